//! The rule that chooses the session of a task.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::domain::{
    agents::SessionMode as Mode,
    sessions::{Reason, SessionRow},
};

/// The task, and its agent as it is now.
#[derive(Debug, Clone, Copy)]
pub struct SessionRequest<'a> {
    pub task_id: Uuid,
    pub mode: Mode,
    pub provider: &'a str,
    pub model: &'a str,
    pub prompt_hash: &'a str,
    pub now: DateTime<Utc>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Resume,
    Create {
        ephemeral: bool,
    },
    /// Closes the open session for this reason and opens its successor.
    Rebuild(Reason),
}

/// The part of a conversation that a successor takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inherit {
    /// The summary that is shown, and the recent turns after it.
    All,
    /// The same without tool calls and their results.
    Text,
    Nothing,
}

/// Chooses the session of a task. `open` is the open session of the conversation, or for [`Mode::None`] the one that an earlier attempt of
/// this task has made. `others_spoke` says if it has turns of other tasks; only [`Mode::Fresh`] uses it.
///
/// If several reasons hold, the first of this list is given: a request for a fresh session, expiry, other requests of people and of earlier
/// turns, provider, model, prompt.
pub fn decide(
    open: Option<&SessionRow>,
    wanted: &SessionRequest<'_>,
    others_spoke: bool,
) -> Decision {
    let Some(open) = open else {
        return Decision::Create { ephemeral: wanted.mode == Mode::None };
    };
    // A second attempt continues the session that the first one began, unless other tasks have used it since.
    let is_own = open.opened_by_task == Some(wanted.task_id) && !others_spoke;
    if wanted.mode == Mode::Fresh && !is_own {
        return Decision::Rebuild(Reason::Fresh);
    }
    match reason_to_rebuild(open, wanted) {
        Some(reason) => Decision::Rebuild(reason),
        None => Decision::Resume,
    }
}

/// Decides what the successor takes over when `open` is rebuilt for `reason`.
pub fn inherit(open: &SessionRow, reason: Reason) -> Inherit {
    // The session was opened for the same reason, and no turn of it has succeeded: what it took over did not help.
    let did_not_help = open.opened_because == reason && open.context_tokens == 0;
    match reason {
        Reason::Fresh => Inherit::Nothing,
        Reason::ContextFull if did_not_help => Inherit::Nothing,
        Reason::Poisoned => Inherit::Text,
        _ => Inherit::All,
    }
}

fn reason_to_rebuild(open: &SessionRow, wanted: &SessionRequest<'_>) -> Option<Reason> {
    let is_expired = open.expires_at <= wanted.now;
    // Expiry outranks all requests but `Fresh`. A cleanup may already have removed the session with its request, and the successor must be
    // the same.
    let because = open.rebuild_because.filter(|because| *because == Reason::Fresh || !is_expired);
    because.or_else(|| {
        [
            (is_expired, Reason::Expired),
            (open.provider != wanted.provider, Reason::ProviderChanged),
            (open.model != wanted.model, Reason::ModelChanged),
            (open.prompt_hash != wanted.prompt_hash, Reason::PromptChanged),
        ]
        .into_iter()
        .find_map(|(holds, reason)| holds.then_some(reason))
    })
}

#[cfg(test)]
mod tests {
    use chrono::{TimeDelta, TimeZone as _};

    use super::*;
    use crate::domain::sessions::State;

    fn now() -> DateTime<Utc> {
        Utc.with_ymd_and_hms(2026, 11, 20, 12, 0, 0).unwrap()
    }

    fn open() -> SessionRow {
        SessionRow {
            id: Uuid::from_u128(1),
            campaign_id: Uuid::from_u128(2),
            agent: "copywriter".to_owned(),
            instance: "main".to_owned(),
            provider: "ollama".to_owned(),
            model: "m1".to_owned(),
            external_session_id: None,
            prompt_hash: "aa".to_owned(),
            state: State::Idle,
            ephemeral: false,
            opened_by_task: Some(Uuid::from_u128(3)),
            opened_because: Reason::New,
            rebuild_because: None,
            expires_at: now() + TimeDelta::seconds(1),
            lease: None,
            turn_count: 4,
            last_seq: 8,
            generation: 0,
            context_tokens: 999,
            token_count: 4000,
            board_cursor: 0,
            fence_seed: vec![0; 32],
            calibration: None,
            checkpoint: None,
            compaction_breaker: None,
            head: None,
            head_seq: None,
            head_generation: None,
            meter: None,
            credential: None,
            rejected_turns: Vec::new(),
        }
    }

    fn wanted() -> SessionRequest<'static> {
        SessionRequest {
            task_id: Uuid::from_u128(9),
            mode: Mode::Continue,
            provider: "ollama",
            model: "m1",
            prompt_hash: "aa",
            now: now(),
        }
    }

    #[test]
    fn without_an_open_session_one_is_created() {
        for (mode, ephemeral) in [(Mode::Continue, false), (Mode::Fresh, false), (Mode::None, true)]
        {
            let decision = decide(None, &SessionRequest { mode, ..wanted() }, false);
            assert_eq!(decision, Decision::Create { ephemeral }, "{mode:?}");
        }
    }

    #[test]
    fn each_rebuild_reason_alone_rebuilds() {
        type Change = fn(&mut SessionRow, &mut SessionRequest<'static>);
        let table: [(Change, Decision); 13] = [
            (|_, _| {}, Decision::Resume),
            (|o, _| o.context_tokens = 1 << 40, Decision::Resume),
            (|_, w| w.prompt_hash = "bb", Decision::Rebuild(Reason::PromptChanged)),
            (|_, w| w.model = "m2", Decision::Rebuild(Reason::ModelChanged)),
            (|_, w| w.provider = "sim", Decision::Rebuild(Reason::ProviderChanged)),
            (|o, _| o.expires_at = now(), Decision::Rebuild(Reason::Expired)),
            (|o, _| o.rebuild_because = Some(Reason::Reset), Decision::Rebuild(Reason::Reset)),
            (|o, _| o.rebuild_because = Some(Reason::Lost), Decision::Rebuild(Reason::Lost)),
            (
                |o, _| o.rebuild_because = Some(Reason::Poisoned),
                Decision::Rebuild(Reason::Poisoned),
            ),
            (|_, w| w.mode = Mode::Fresh, Decision::Rebuild(Reason::Fresh)),
            // The second attempt of the task that began it.
            (|o, w| (o.opened_by_task, w.mode) = (Some(w.task_id), Mode::Fresh), Decision::Resume),
            (
                |o, w| {
                    (o.opened_by_task, o.ephemeral, w.mode) = (Some(w.task_id), true, Mode::None)
                },
                Decision::Resume,
            ),
            (|o, _| o.state = State::Interrupted, Decision::Resume),
        ];
        for (index, (change, expected)) in table.into_iter().enumerate() {
            let (mut open, mut wanted) = (open(), wanted());
            change(&mut open, &mut wanted);
            assert_eq!(decide(Some(&open), &wanted, false), expected, "row {index}");
        }
    }

    #[test]
    fn a_second_attempt_at_a_fresh_session_inherits_no_later_messages() {
        let wanted = SessionRequest { mode: Mode::Fresh, ..wanted() };
        let own = SessionRow { opened_by_task: Some(wanted.task_id), ..open() };
        assert_eq!(decide(Some(&own), &wanted, false), Decision::Resume);
        assert_eq!(decide(Some(&own), &wanted, true), Decision::Rebuild(Reason::Fresh));
        let going_on = SessionRequest { mode: Mode::Continue, ..wanted };
        assert_eq!(decide(Some(&own), &going_on, true), Decision::Resume);
    }

    #[test]
    fn the_most_informative_of_several_reasons_is_reported() {
        let mut open = open();
        let mut wanted = SessionRequest { prompt_hash: "bb", ..wanted() };
        assert_eq!(decide(Some(&open), &wanted, false), Decision::Rebuild(Reason::PromptChanged));
        wanted.model = "m2";
        assert_eq!(decide(Some(&open), &wanted, false), Decision::Rebuild(Reason::ModelChanged));
        wanted.provider = "sim";
        assert_eq!(decide(Some(&open), &wanted, false), Decision::Rebuild(Reason::ProviderChanged));
        open.expires_at = now();
        assert_eq!(decide(Some(&open), &wanted, false), Decision::Rebuild(Reason::Expired));
        open.rebuild_because = Some(Reason::Poisoned);
        assert_eq!(decide(Some(&open), &wanted, false), Decision::Rebuild(Reason::Expired));
        open.rebuild_because = Some(Reason::Fresh);
        assert_eq!(decide(Some(&open), &wanted, false), Decision::Rebuild(Reason::Fresh));
        open.expires_at = now() + TimeDelta::seconds(1);
        open.rebuild_because = Some(Reason::Poisoned);
        assert_eq!(decide(Some(&open), &wanted, false), Decision::Rebuild(Reason::Poisoned));
        wanted.mode = Mode::Fresh;
        assert_eq!(decide(Some(&open), &wanted, false), Decision::Rebuild(Reason::Fresh));
    }

    /// For all combinations of facts, the decision can be carried out, and its result needs no further rebuild.
    #[test]
    fn a_rebuilt_session_is_resumed_by_the_next_attempt() {
        let bits = |bits: u32, n: u32| bits >> n & 1 == 1;
        for facts in 0..(1_u32 << 8) {
            let mut open = open();
            let mut wanted = wanted();
            if bits(facts, 0) {
                open.expires_at = now();
            }
            if bits(facts, 1) {
                wanted.model = "m2";
            }
            if bits(facts, 2) {
                wanted.provider = "sim";
            }
            if bits(facts, 3) {
                wanted.prompt_hash = "bb";
            }
            if bits(facts, 4) {
                open.context_tokens = 5000;
            }
            if bits(facts, 5) {
                open.rebuild_because = Some(Reason::Lost);
            }
            wanted.mode = if bits(facts, 6) { Mode::Fresh } else { Mode::Continue };
            if bits(facts, 7) {
                open.opened_by_task = Some(wanted.task_id);
            }
            let Decision::Rebuild(reason) = decide(Some(&open), &wanted, false) else { continue };
            let successor = SessionRow {
                provider: wanted.provider.to_owned(),
                model: wanted.model.to_owned(),
                prompt_hash: wanted.prompt_hash.to_owned(),
                expires_at: now() + TimeDelta::days(7),
                opened_by_task: Some(wanted.task_id),
                opened_because: reason,
                rebuild_because: None,
                context_tokens: 0,
                ..open
            };
            assert_eq!(decide(Some(&successor), &wanted, false), Decision::Resume, "{facts:08b}");
        }
    }

    #[test]
    fn history_that_did_not_help_is_not_inherited_again() {
        let mut open = open();
        assert_eq!(inherit(&open, Reason::Expired), Inherit::All);
        assert_eq!(inherit(&open, Reason::Fresh), Inherit::Nothing);
        assert_eq!(inherit(&open, Reason::Poisoned), Inherit::Text);
        open.opened_because = Reason::Poisoned;
        assert_eq!(inherit(&open, Reason::Poisoned), Inherit::Text);
        open.context_tokens = 0;
        // A provider that refuses a call has not shown that the history is to blame.
        assert_eq!(inherit(&open, Reason::Poisoned), Inherit::Text);
        assert_eq!(inherit(&open, Reason::Lost), Inherit::All);
        open.opened_because = Reason::ContextFull;
        assert_eq!(inherit(&open, Reason::ContextFull), Inherit::Nothing);
    }
}
