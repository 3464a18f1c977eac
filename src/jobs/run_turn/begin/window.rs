//! The fit of a call into the model's window, and the attempts to make it fit.

use crate::{
    context::{Calibration, Pressure},
    jobs::{
        route::Route,
        run_turn::{
            begin::{make_space::keep_after, outlook::Outlook},
            error::{BeginRefusal, Error},
            load::assignment::Assignment,
        },
    },
};

/// Earlier attempts of this run to begin.
#[derive(Debug, Clone, Copy, Default)]
pub struct EarlierBegins {
    /// Attempts to make space.
    pub n_rooms: u32,
    /// Refusals by the provider because of length; they count more than the estimate.
    pub n_refused: u32,
}

impl EarlierBegins {
    pub fn was_refused(self) -> bool {
        self.n_refused > 0
    }

    /// Returns true if space should be made. After a compaction that helps too little, the next one keeps less.
    pub fn needs_space(
        self,
        route: &Route<'_>,
        outlook: &Outlook,
        calibration: &Calibration,
    ) -> bool {
        match self.n_rooms {
            0 => outlook.pressure >= Pressure::Apply,
            n => !fits(route, outlook, calibration) && keep_after(n + 1).is_some(),
        }
    }
}

/// Returns true if the call may fit. A cold estimate is too high, and a learnt factor may come from different text: if
/// the bare weight fits, the provider decides.
fn fits(route: &Route<'_>, outlook: &Outlook, calibration: &Calibration) -> bool {
    let within =
        |tokens: u64| tokens.saturating_add(route.reserve_tokens) <= route.model_window_tokens;
    outlook.pressure < Pressure::Overflow
        || calibration.is_cold()
        || within(outlook.estimated_tokens)
        || within(outlook.assembled.weight.millitokens() / 1000)
}

pub fn check_space(
    Assignment { route, .. }: &Assignment<'_>,
    outlook: &Outlook,
    calibration: &Calibration,
) -> Result<(), Error> {
    if route.provider.refuses_too_long() || fits(route, outlook, calibration) {
        return Ok(());
    }
    Err(Error::Refused(BeginRefusal::for_good(format!(
        "the task of about {} tokens does not fit into the window of {} tokens with {} reserved for the answer: shorten the task, or give the agent a larger window",
        outlook.estimated_tokens,
        route.model_window_tokens,
        outlook.budget.reserve_tokens(),
    ))))
}
