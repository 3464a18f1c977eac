//! The size of a turn that is not run, in one way in which it could begin.

use sqlx::PgConnection;

use super::{
    begin::{
        draft::{Draft, DraftParams},
        outlook::Outlook,
        window::EarlierBegins,
    },
    error::Error as TurnError,
    load::assignment::Assignment,
    preview::LEASE,
};
use crate::{
    context::{Calibration, Manifest, manifest::Kind},
    domain::{
        conversations::Decision,
        estimates::{TurnPart, WaySize},
        sessions::SessionRow,
    },
    jobs::{Services, compact_session::setup::FixedWeight},
};

/// A turn as it would begin now.
pub(super) struct Sketch {
    pub(super) decision: Decision,
    pub(super) session: SessionRow,
    pub(super) manifest: Manifest,
    pub(super) calibration: Calibration,
    pub(super) around: FixedWeight,
    /// True if older messages are summarised before the call.
    pub(super) needs_space: bool,
    /// Tokens of the first call, as the turn itself would estimate them.
    pub(super) estimated_tokens: u64,
    pub(super) size: WaySize,
}

/// Drafts the turn. The caller rolls it back. `learnt` stands in for a session that has no calibration.
pub(super) async fn sketch(
    conn: &mut PgConnection,
    services: &Services,
    assignment: &Assignment<'_>,
    learnt: Option<Calibration>,
) -> Result<Sketch, TurnError> {
    let found =
        DraftParams::find(&mut *conn, services, assignment, LEASE, EarlierBegins::default()).await;
    let (params, resolved) = found?;
    let Draft { resolved, outlook, .. } = Draft::with_prepared(conn, &params, resolved).await?;
    if resolved.decision != Decision::Resume {
        // Its session goes with the transaction.
        services.histories.remove_sessions(&[resolved.session.id]);
    }
    let begins = EarlierBegins::default();
    let needs_space = begins.needs_space(&assignment.route, &outlook, &params.calibration);
    let known = Some(params.calibration).filter(|own| !own.is_cold());
    let calibration = known.or(learnt).unwrap_or_default();
    let first_tokens = first_tokens(&outlook, known, &calibration);
    let scales_parts = !assignment.route.provider.holds_session();
    Ok(Sketch {
        size: WaySize {
            first_tokens,
            is_calibrated: !calibration.is_cold(),
            cached_tokens: 0,
            parts: parts(&outlook.assembled.manifest, scales_parts.then_some(first_tokens)),
            compaction: None,
        },
        decision: resolved.decision,
        session: resolved.session,
        estimated_tokens: outlook.estimated_tokens,
        around: outlook.around,
        manifest: outlook.assembled.manifest,
        calibration,
        needs_space,
    })
}

/// A draft for a model that has not counted a call yet is high on purpose; its bare weight is more likely.
fn first_tokens(outlook: &Outlook, known: Option<Calibration>, calibration: &Calibration) -> i64 {
    let weight = outlook.assembled.weight;
    let tokens = match known {
        Some(_) => outlook.estimated_tokens,
        None if calibration.is_cold() => weight.millitokens() / 1000,
        None => calibration.tokens(weight),
    };
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

/// Adds up the parts that are sent, in their order. Scales them to `total`, if it is given.
fn parts(manifest: &Manifest, total: Option<i64>) -> Vec<(TurnPart, i64)> {
    let mut parts: Vec<(TurnPart, i64)> = Vec::new();
    for sent in manifest.parts.iter().filter(|part| part.sent) {
        let (part, tokens) = (part_of(sent.kind), i64::try_from(sent.tokens).unwrap_or(i64::MAX));
        match parts.iter_mut().find(|(known, _)| *known == part) {
            Some((_, sum)) => *sum = sum.saturating_add(tokens),
            None => parts.push((part, tokens)),
        }
    }
    parts.sort_by_key(|(part, _)| *part);
    let sum: i64 = parts.iter().map(|(_, tokens)| tokens).sum();
    if let Some(total) = total.filter(|_| sum > 0) {
        let mut left = total;
        for (at, (_, tokens)) in parts.iter_mut().enumerate().rev() {
            let share = i128::from(*tokens) * i128::from(total) / i128::from(sum);
            // The first one gets the rest of the division.
            *tokens = if at == 0 { left } else { i64::try_from(share).unwrap_or(i64::MAX) };
            left -= *tokens;
        }
    }
    parts
}

fn part_of(kind: Kind) -> TurnPart {
    match kind {
        Kind::AgentPrompt
        | Kind::FenceRules
        | Kind::Skill
        | Kind::CampaignBrief
        | Kind::ClientContext
        | Kind::Edict
        | Kind::Fact
        | Kind::Roster => TurnPart::System,
        Kind::Tools => TurnPart::Tools,
        Kind::Summary => TurnPart::Summary,
        Kind::Transcript | Kind::SyntheticResults | Kind::Notice | Kind::Rounds => {
            TurnPart::Messages
        }
        Kind::Posts => TurnPart::Posts,
        Kind::Statuses
        | Kind::Blackboard
        | Kind::Results
        | Kind::Parameters
        | Kind::ResultSchema => TurnPart::State,
        Kind::Task | Kind::Attachment => TurnPart::Prompt,
    }
}

/// Returns true for parts in front of the conversation. If one of them changes, nothing after it is in a cache.
pub(super) fn is_in_front(kind: Kind) -> bool {
    matches!(part_of(kind), TurnPart::System | TurnPart::Tools)
}
