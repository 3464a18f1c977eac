//! The text for each state of a session.

use chrono::{DateTime, Utc};

use super::{
    session::{AgentFile, SessionExplanation, SessionFacts},
    words::sentence,
};
use crate::domain::{
    sessions::{Reason, State},
    text::count,
    turns::Turn,
};

impl SessionFacts {
    pub(super) fn explain(&self) -> SessionExplanation {
        let (mut because, mut next) = match self.session.state {
            State::Closed => self.closed(),
            State::Running => self.runs(),
            _ => self.rests(),
        };
        if self.session.state != State::Closed {
            self.compaction().into_iter().for_each(|note| push(&mut because, &note));
            self.rebuild().into_iter().for_each(|note| push(&mut next, &note));
        }
        let (session_id, state) = (self.session.id, self.session.state);
        SessionExplanation { session_id, state, because, next }
    }

    fn closed(&self) -> (String, String) {
        let session = &self.session;
        let at = session.closed_at.map(moment).unwrap_or_default();
        let why = session.closed_because.map_or("for an unknown reason", closing);
        let next = match (session.successor_id, session.closed_because) {
            (Some(successor), _) => format!(
                "Session {successor} continues the conversation: `dalsegno session explain {successor}`."
            ),
            (None, Some(Reason::Ended | Reason::CampaignClosed)) => {
                "There is nothing to do: no later task continues it.".to_owned()
            }
            (None, _) => format!(
                "Its successor was removed, or is opened by the next task: `dalsegno session ls --agent {} --open` lists open ones.",
                session.agent
            ),
        };
        (format!("It was closed at {at}: {why}."), next)
    }

    fn runs(&self) -> (String, String) {
        let mut because = match &self.last_turn {
            Some(turn) => format!("It is in turn {}, for task {}.", turn.number, turn.task_id),
            None => "A turn is running.".to_owned(),
        };
        let mut next = String::new();
        if let Some(job) = &self.running {
            push(&mut because, &job.because);
            next.push_str(&job.next);
        }
        if let Some(tool) = &self.tool {
            let (name, since) = (&tool.name, moment(tool.since));
            push(&mut because, &format!("It calls the tool `{name}` since {since}."));
        }
        if self.n_waiting > 0 {
            let waiting = count(self.n_waiting as u64, "task waits", "tasks wait");
            push(&mut because, &format!("{waiting} behind it."));
            push(&mut next, "The next one starts by itself when this turn has ended.");
        }
        (because, next)
    }

    /// Explains a session without a running turn.
    fn rests(&self) -> (String, String) {
        let mut because = self.last_end();
        let Some(waiting) = &self.waiting else {
            let name = format!("{}/{}", self.session.agent, self.session.instance);
            return (because, self.without_task(&name));
        };
        push(&mut because, &format!("Task {} waits for it: {}", waiting.id, waiting.because));
        if self.n_waiting > 1 {
            let others = count(self.n_waiting as u64 - 1, "more task waits", "more tasks wait");
            // A retried task is at the end of the lane, although it is the oldest.
            push(&mut because, &format!("{others} in this conversation."));
        }
        (because, waiting.next.clone())
    }

    fn last_end(&self) -> String {
        let Some(turn) = &self.last_turn else {
            let opened = moment(self.session.created_at);
            return format!("It is idle: no turn has begun since it was opened at {opened}.");
        };
        let (number, at) = (turn.number, moment(turn.ended_at.unwrap_or(self.session.used_at)));
        match self.session.state {
            State::Interrupted => {
                format!("Its turn {number} was interrupted at {at}{}", error(turn))
            }
            State::Error => format!("Its turn {number} failed at {at}{}", error(turn)),
            _ => format!("It is idle since {at}, when its turn {number} ended."),
        }
    }

    fn without_task(&self, name: &str) -> String {
        let failed = self.last_turn.as_ref().filter(|_| self.session.state == State::Error);
        if self.session.ephemeral {
            return "It belongs to one task. No other task continues it.".to_owned();
        }
        match (self.session.state, failed) {
            (State::Interrupted, _) => format!(
                "No task waits. The next task of {name} continues it, and a notice tells the model that the turn was cut off."
            ),
            (_, Some(turn)) => format!(
                "No task waits. The next task of {name} continues it. To run the failed task again: `dalsegno task retry {}`.",
                turn.task_id
            ),
            _ => format!("There is nothing to do. The next task of {name} continues it."),
        }
    }

    fn compaction(&self) -> Option<String> {
        match (&self.compacting, self.prepared) {
            (Some((job, state)), _) if state == "running" => {
                Some(format!("A compaction of it is running (job {job})."))
            }
            (Some((job, _)), _) => {
                Some(format!("A compaction of it waits: `dalsegno job explain {job}` explains it."))
            }
            (None, Some(generation)) => Some(format!(
                "Compaction {generation} is prepared: the first turn that needs the space applies it."
            )),
            (None, None) => None,
        }
    }

    /// Describes the end of the session that its next task finds.
    fn rebuild(&self) -> Option<String> {
        let session = &self.session;
        if session.ephemeral {
            return None;
        }
        let is_expired = session.expires_at <= self.now;
        let requested = session.rebuild_because.filter(|it| *it == Reason::Fresh || !is_expired);
        let reason = match (requested, self.file) {
            (None, AgentFile::Unusable) => {
                return Some(format!(
                    "The file of its agent `{}` is missing or has problems, so no turn can begin: `dalsegno agent check` lists them.",
                    session.agent
                ));
            }
            // The explanation of a waiting task names a requested rebuild.
            (Some(_), _) if self.waiting.is_some() => return None,
            (Some(reason), _) => reason,
            (None, _) if is_expired => Reason::Expired,
            (None, AgentFile::Differs(reason)) => reason,
            (None, AgentFile::Same) => {
                let at = moment(session.expires_at);
                return Some(format!("It expires at {at}, unless it is used before."));
            }
        };
        Some(format!("Before its next turn, a new session replaces it: {}.", coming(reason)))
    }
}

fn push(text: &mut String, note: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(note);
}

fn error(turn: &Turn) -> String {
    match turn.error.as_deref().map(str::trim) {
        None | Some("") => ".".to_owned(),
        Some(error) => format!(": {}", sentence(error)),
    }
}

fn moment(at: DateTime<Utc>) -> String {
    format!("{} UTC", at.format("%F %T"))
}

/// Explains why a session was closed.
fn closing(reason: Reason) -> &'static str {
    match reason {
        Reason::Ended => "it was made for one task, which has ended",
        Reason::CampaignClosed => "its campaign was closed",
        reason => coming(reason),
    }
}

/// Explains why a new session replaces one.
fn coming(reason: Reason) -> &'static str {
    match reason {
        Reason::New | Reason::Ended | Reason::CampaignClosed => "it has ended",
        Reason::PromptChanged => "the prompt of its agent has changed",
        Reason::ModelChanged => "the model of its agent has changed",
        Reason::ProviderChanged => "the provider of the conversation has changed",
        Reason::ContextFull => "its context has reached its limit",
        Reason::Expired => "it has expired",
        Reason::Reset => "a reset was requested",
        Reason::Lost => "its provider no longer has it",
        Reason::Poisoned => "its provider rejects its messages",
        Reason::Fresh => "a session without a memory was requested",
    }
}

#[cfg(test)]
mod tests {
    use chrono::{TimeDelta, TimeZone as _};
    use uuid::Uuid;

    use super::*;
    use crate::{
        domain::{
            explanations::session::WaitingTask, sessions::Session, statuses::RunningTool, turns,
        },
        queue::admin,
    };

    fn now() -> DateTime<Utc> {
        Utc.with_ymd_and_hms(2026, 11, 20, 12, 0, 0).unwrap()
    }

    fn facts(state: State) -> SessionFacts {
        SessionFacts {
            session: Session {
                id: Uuid::from_u128(3),
                campaign_id: Uuid::from_u128(2),
                agent: "writer".to_owned(),
                instance: "main".to_owned(),
                provider: "sim".to_owned(),
                model: "sim-1".to_owned(),
                external_session_id: None,
                prompt_hash: String::new(),
                state,
                ephemeral: false,
                opened_because: Reason::New,
                rebuild_because: None,
                closed_because: None,
                predecessor_id: None,
                successor_id: None,
                forked_from_session: None,
                forked_at_turn: None,
                turns: 4,
                token_count: 0,
                cost_micros: 0,
                context_tokens: 0,
                generation: 0,
                rejected_turns: Vec::new(),
                created_at: now(),
                used_at: now(),
                expires_at: now() + TimeDelta::days(7),
                closed_at: None,
            },
            now: now(),
            last_turn: Some(turn(turns::State::Done, None)),
            running: None,
            tool: None,
            waiting: None,
            n_waiting: 0,
            file: AgentFile::Same,
            prepared: None,
            compacting: None,
        }
    }

    fn turn(state: turns::State, error: Option<&str>) -> Turn {
        Turn { error: error.map(str::to_owned), ..Turn::example(state, now()) }
    }

    #[test]
    fn an_idle_session_names_its_last_turn_and_its_expiry() {
        let told = facts(State::Idle).explain();
        assert_eq!(
            told.because,
            "It is idle since 2026-11-20 12:00:00 UTC, when its turn 4 ended."
        );
        assert_eq!(
            told.next,
            "There is nothing to do. The next task of writer/main continues it. It expires at 2026-11-27 12:00:00 UTC, unless it is used before."
        );
    }

    #[test]
    fn a_running_session_names_its_turn_its_worker_and_the_tasks_behind_it() {
        let mut facts = facts(State::Running);
        facts.last_turn = Some(turn(turns::State::Running, None));
        facts.running = Some(admin::Explanation {
            job_id: 7,
            state: "running".to_owned(),
            because: "Attempt 1 of 5 started 12 s ago on worker-2 (pid 41).".to_owned(),
            runs: Vec::new(),
            next: "There is nothing to do.".to_owned(),
            cause: admin::Cause::Explained,
        });
        facts.tool = Some(RunningTool { name: "edicts_read".to_owned(), since: now() });
        facts.n_waiting = 2;
        let told = facts.explain();
        assert!(told.because.starts_with("It is in turn 4, for task 00000000-"), "{told:?}");
        let tool = "It calls the tool `edicts_read` since 2026-11-20 12:00:00 UTC.";
        let end = format!("on worker-2 (pid 41). {tool} 2 tasks wait behind it.");
        assert!(told.because.ends_with(&end), "{told:?}");
        assert!(told.next.contains("starts by itself when this turn has ended."), "{told:?}");
    }

    #[test]
    fn a_session_with_a_waiting_task_says_what_that_task_waits_for() {
        let mut facts = facts(State::Interrupted);
        facts.last_turn = Some(turn(turns::State::Interrupted, Some("the worker was lost")));
        let id = Uuid::from_u128(8);
        let (because, next) = ("Its campaign is paused.".to_owned(), "Resume it.".to_owned());
        (facts.waiting, facts.n_waiting) = (Some(WaitingTask { id, because, next }), 3);
        let told = facts.explain();
        assert!(
            told.because
                .contains("was interrupted at 2026-11-20 12:00:00 UTC: the worker was lost.")
        );
        assert!(told.because.contains(&format!("Task {id} waits for it: Its campaign is paused.")));
        assert!(told.because.ends_with("2 more tasks wait in this conversation."), "{told:?}");
        assert!(told.next.starts_with("Resume it."), "{told:?}");
    }

    #[test]
    fn a_failed_session_names_the_error_and_the_retry() {
        let mut facts = facts(State::Error);
        facts.last_turn = Some(turn(turns::State::Failed, Some("the host is away")));
        let told = facts.explain();
        assert!(told.because.ends_with("failed at 2026-11-20 12:00:00 UTC: the host is away."));
        assert!(told.next.contains("`dalsegno task retry 00000000-"), "{told:?}");
    }

    #[test]
    fn a_coming_rebuild_is_named_with_its_reason() {
        let mut facts = facts(State::Idle);
        facts.file = AgentFile::Differs(Reason::PromptChanged);
        let next = |facts: &SessionFacts| facts.explain().next;
        assert!(next(&facts).ends_with("replaces it: the prompt of its agent has changed."));
        facts.session.expires_at = now();
        assert!(next(&facts).ends_with("replaces it: it has expired."));
        facts.session.rebuild_because = Some(Reason::Reset);
        assert!(next(&facts).ends_with("it has expired."), "expiry outranks a reset");
        facts.session.expires_at = now() + TimeDelta::days(1);
        assert!(next(&facts).ends_with("replaces it: a reset was requested."));
        facts.session.rebuild_because = None;
        facts.file = AgentFile::Unusable;
        assert!(next(&facts).contains("no turn can begin: `dalsegno agent check`"));
    }

    #[test]
    fn compactions_are_named_by_their_progress() {
        let mut facts = facts(State::Idle);
        facts.prepared = Some(2);
        assert!(facts.explain().because.contains("Compaction 2 is prepared"));
        facts.compacting = Some((9, "ready".to_owned()));
        assert!(facts.explain().because.ends_with("waits: `dalsegno job explain 9` explains it."));
        facts.compacting = Some((9, "running".to_owned()));
        assert!(facts.explain().because.ends_with("is running (job 9)."));
    }

    #[test]
    fn a_closed_session_names_its_reason_and_its_successor() {
        let mut facts = facts(State::Closed);
        facts.session.closed_at = Some(now());
        facts.session.closed_because = Some(Reason::ContextFull);
        facts.session.successor_id = Some(Uuid::from_u128(5));
        let told = facts.explain();
        assert_eq!(
            told.because,
            "It was closed at 2026-11-20 12:00:00 UTC: its context has reached its limit."
        );
        assert!(told.next.starts_with("Session 00000000-0000-0000-0000-000000000005 continues"));
        facts.session.successor_id = None;
        facts.session.closed_because = Some(Reason::Ended);
        assert!(facts.explain().next.contains("no later task continues it"));
    }
}
