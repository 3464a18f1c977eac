//! The first call of a turn, and its reservation.

use crate::{
    context::{Budget, Calibration, Weight},
    domain::{Amount, amount::format_money, prices::Price},
    jobs::run_turn::{
        begin::{open_turn::OpenTurn, outlook::Outlook},
        error::{BeginRefusal, Error},
        load::assignment::Assignment,
    },
    providers::{Options, Purpose, Request, Timeouts},
};

/// Computes the reservation of a call. Zero without a limit: the budget's row is shared by all turns of a campaign.
///
/// Claude reports costs itself. For a model without a configured price, money is reserved only after a turn has
/// reported its price. Until then the CLI is told the rest of the budget, and stops there.
pub fn reserve(assignment: &Assignment<'_>, estimated_tokens: u64) -> Amount {
    match assignment.is_limited {
        true => ceiling(assignment, estimated_tokens),
        false => Amount::ZERO,
    }
}

/// Refuses a call that may be charged more than the chain allows for its entry.
pub fn check_charge(assignment: &Assignment<'_>, estimated_tokens: u64) -> Result<(), Error> {
    let chain = assignment.chain.as_ref();
    let most = chain.and_then(|chain| chain.chosen().conditions.max_charge_micros);
    let Some(most) = most else { return Ok(()) };
    let charge = ceiling(assignment, estimated_tokens).micros;
    if charge <= most {
        return Ok(());
    }
    let (charge, most) = (format_money(charge), format_money(most));
    let why = format!(
        "its first call may be charged {charge}, above max_charge ({most}); raise max_charge, or list a cheaper model behind it"
    );
    Err(Error::Refused(BeginRefusal { is_too_dear: true, ..BeginRefusal::for_good(why) }))
}

/// Computes the highest possible charge of the first call.
fn ceiling(assignment: &Assignment<'_>, estimated_tokens: u64) -> Amount {
    let route = &assignment.route;
    let tokens = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let ceiling =
        Price::ceiling(route.price, tokens(estimated_tokens), tokens(route.reserve_tokens));
    if route.price.is_some() || !route.provider.holds_session() {
        return ceiling;
    }
    let told = route.provider.ceiling_micros(&route.model, estimated_tokens, route.reserve_tokens);
    Amount { micros: told.map_or(0, tokens), ..ceiling }
}

/// Returns the tokens that a correct server would count. A cold estimate is high on purpose, and so is one that would
/// not fit: a correct count would look like that of a cut prompt.
pub fn expected_tokens(opened: &OpenTurn) -> u64 {
    let OpenTurn { weight, files_weight, budget, estimated_tokens, calibration, .. } = opened;
    expected_of((*weight, *files_weight), budget, *estimated_tokens, calibration)
}

/// Files do not count: a server may need far fewer tokens for an image than it is estimated at.
fn expected_of(
    (weight, files_weight): (Weight, Weight),
    budget: &Budget,
    estimated_tokens: u64,
    calibration: &Calibration,
) -> u64 {
    let bare_tokens = weight.saturating_sub(files_weight).millitokens() / 1000;
    let estimated_tokens = estimated_tokens.saturating_sub(calibration.tokens(files_weight));
    let room_tokens = budget.window_tokens() - budget.reserve_tokens();
    match calibration.is_cold() {
        true => bare_tokens,
        false if estimated_tokens > room_tokens => bare_tokens.min(estimated_tokens),
        false => estimated_tokens,
    }
}

/// Builds the first request of a turn.
pub fn first_request(
    assignment: &Assignment<'_>,
    outlook: &Outlook,
    calibration: &Calibration,
) -> Request {
    let Outlook { assembled, budget, estimated_tokens, .. } = outlook;
    let weights = (assembled.weight, assembled.files_weight);
    let expected_tokens = expected_of(weights, budget, *estimated_tokens, calibration);
    let route = &assignment.route;
    let tokens = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    Request {
        turn: assignment.task.id.to_string(),
        purpose: Purpose::Turn,
        model: route.model.clone(),
        system: assembled.system.clone(),
        messages: assembled.messages.clone(),
        tools: assignment.tools.clone(),
        window_tokens: tokens(route.window_tokens),
        reserve_tokens: tokens(route.reserve_tokens),
        estimated_prompt_tokens: Some(tokens(expected_tokens)),
        options: Options { format: assignment.result_schema.clone(), ..route.options.clone() },
        timeouts: Timeouts::default(),
        conversation: None,
        credential: None,
    }
}
