//! The text for each state of a task.

use super::{Explanation, State, TaskFacts, wait_words::agent_paused};
use crate::{
    domain::{
        amount::Refusal,
        campaigns::Status,
        tasks::{self, RetryOutlook},
        turns,
    },
    queue::admin::Cause,
};

/// The reason, and the next step.
pub(super) type Reason = (String, String);

impl TaskFacts {
    pub(super) fn explain(&self) -> Explanation {
        let (mut because, next) = match self.task.state {
            State::Done => self.done(),
            State::Failed => self.failed(),
            State::Cancelled => self.cancelled(),
            State::Queued | State::Running => match &self.waiting {
                Some(waiting) if waiting.n_open() > 0 => self.waits(waiting),
                _ => self.go_on(),
            },
        };
        because.extend(self.chain().map(|words| format!(" {words}")));
        if let Some((flow, step)) = &self.flow {
            because.push_str(&format!(" It is the step `{step}` of flow {flow}."));
        }
        let obstacles = self.obstacles();
        Explanation { task_id: self.task.id, state: self.task.state, because, next, obstacles }
    }

    /// Names the model that the last turn was given to, with the reason; before a turn, the models that it would skip.
    fn chain(&self) -> Option<String> {
        let turn = self.last_turn.as_ref();
        let turn =
            turn.filter(|turn| matches!(turn.state, turns::State::Running | turns::State::Done));
        match (turn.map(|turn| turn.chain.as_ref()), self.task.state) {
            (Some(Some(choice)), State::Done | State::Failed | State::Running) => {
                Some(sentence(&format!("Its model was {}", choice.describe())))
            }
            (_, State::Queued | State::Running) if !self.rests.is_empty() => {
                Some(sentence(&format!("Of its models, {}", self.rests.join("; "))))
            }
            _ => None,
        }
    }

    fn done(&self) -> Reason {
        let id = self.task.id;
        let place = match (self.task.turn, self.task.session_id) {
            (Some(turn), Some(session)) => format!(" by turn {turn} of session {session}"),
            _ => String::new(),
        };
        let is_unbatched = self
            .last_turn
            .as_ref()
            .is_some_and(|turn| turn.flags.iter().any(|flag| flag == turns::NOT_BATCHED));
        let unbatched = match is_unbatched {
            true => " Its call was an ordinary one and no batch, because it has files.",
            false => "",
        };
        (
            format!("It was answered{place}.{unbatched}"),
            format!("There is nothing to do. `dalsegno task show {id}` prints the answer."),
        )
    }

    fn failed(&self) -> Reason {
        let error = self.task.error.as_deref().unwrap_or("no reason was stored");
        let (cause, outlook) = match &self.budget_refusal {
            Some((refusal, outlook)) => (refusal.amounts(), Some(outlook)),
            None => (error.to_owned(), None),
        };
        let (fix, end) = match outlook {
            Some(RetryOutlook::Refusal(refusal)) => {
                (format!("Raise the limit with {}, then run", refusal.raise_command()), "")
            }
            Some(RetryOutlook::Wait(refusal)) => (
                format!(
                    "A retry waits for space in the budget. To run the task at once, raise the limit with {}. Then run",
                    refusal.raise_command()
                ),
                "",
            ),
            Some(RetryOutlook::Space) => ("The limit allows the call now: run".to_owned(), ""),
            Some(RetryOutlook::AgentFile { .. }) => (
                "Raise the budget in the agent's file, then run".to_owned(),
                " A retry of the task keeps the budget.",
            ),
            Some(RetryOutlook::Unknown) | None => ("Fix the cause, then run".to_owned(), ""),
        };
        let retry = self.retry_command();
        let next = match &self.flow {
            Some(_) => {
                format!("{fix} `{retry}`: it runs the step again, and all that depend on it.{end}")
            }
            None => format!("{fix} `{retry}`."),
        };
        let present = outlook.and_then(|outlook| Some(outlook.refusal()?.amounts()));
        let present = present.filter(|present| *present != cause);
        let present = present.map(|present| format!(" Now {}", sentence(&present)));
        (format!("It failed: {}{}", sentence(&cause), present.unwrap_or_default()), next)
    }

    /// Returns the command that runs the task again, as the overview and lists name it.
    fn retry_command(&self) -> String {
        let step = self.flow.as_ref().map(|(flow, step)| (*flow, step.as_str()));
        tasks::retry_command(self.task.id, step)
    }

    fn cancelled(&self) -> Reason {
        let retry = self.retry_command();
        let when = match &self.last_turn {
            // One commit has ended both.
            Some(turn) if turn.ended_at == self.task.ended_at => {
                format!(
                    " during its turn {}; a part of the answer that had arrived is kept",
                    turn.number
                )
            }
            Some(turn) => format!(" after its turn {}, before the next one started", turn.number),
            None => " before it ran".to_owned(),
        };
        (
            match &self.cancelled_because {
                Some(reason) => format!("It was cancelled{when}: {}", sentence(reason)),
                None => format!("It was cancelled{when}."),
            },
            match &self.flow {
                Some(_) => format!(
                    "There is nothing to do. To run the step and all that depend on it after all: `{retry}`."
                ),
                None => format!("There is nothing to do. To run it after all: `{retry}`."),
            },
        )
    }

    fn go_on(&self) -> Reason {
        match self.paused_flow {
            Some(flow) if self.task.started_at.is_none() => (
                format!("Its flow {flow} is paused, so no task of the flow starts."),
                format!("Resume the flow: `dalsegno flow resume {flow}`."),
            ),
            _ => self.live(),
        }
    }

    fn live(&self) -> Reason {
        let id = self.task.id;
        if matches!(self.job.state.as_str(), "dead" | "ended" | "unknown") {
            return (
                format!(
                    "Its job {} is {}, but the end of the task was not stored. {}",
                    self.job.job_id, self.job.state, self.job.because
                ),
                format!(
                    "Workers look for such tasks every few seconds and end them. After a third lost worker they wait a minute, because that worker may come back. \
                     `dalsegno task cancel {id}` ends it at once; then `dalsegno task retry {id}` runs it again."
                ),
            );
        }
        let runs = self.job.state == "running";
        let paused = self.campaign.status == Status::Paused;
        let (mut because, mut next) = match (&self.pauses[..], &self.spent) {
            _ if self.batch_wait.is_some() => self.waits_for_batch(),
            _ if paused && !runs => self.paused(),
            ([pause, others @ ..], _) if !runs => agent_paused(pause, others),
            _ if self.budget_wait.is_some() => self.waits_for_budget(),
            _ if self.limit_wait.is_some() => self.waits_for_limit(),
            _ if self.busy_since.is_some() => self.waits_for_provider(),
            (_, Some(refusal)) if !runs => (told(refusal), self.job.next.clone()),
            _ if self.head.is_some() && !runs => self.waits_behind(),
            _ => self.on_the_queue(),
        };
        if paused && runs {
            next.push_str(
                " The campaign is paused: this turn goes on to its end, and no other starts.",
            );
        } else if !self.pauses.is_empty() && runs {
            next.push_str(
                " Its agent is paused: this turn goes on to its end, and no other starts.",
            );
        }
        for note in [self.last_attempt(), self.rebuild()].into_iter().flatten() {
            because.push(' ');
            because.push_str(&note);
        }
        (because, next)
    }

    /// Describes the failure of the last turn, with its error.
    fn last_attempt(&self) -> Option<String> {
        let turn = self.last_turn.as_ref()?;
        let how = match turn.state {
            // Its wait has been explained.
            _ if turn.is_put_off() && self.job.cause == Cause::Snooze => return None,
            turns::State::Failed if turn.is_put_off() => "was put off",
            turns::State::Failed => "failed",
            turns::State::Interrupted => "was interrupted",
            turns::State::Running | turns::State::Done => return None,
        };
        let error = turn.error.as_deref().unwrap_or_default();
        // The queue may have said it already.
        let is_new = error.is_empty() || !self.job.because.contains(error.trim_end_matches('.'));
        is_new.then(|| format!("Its turn {} {how}: {}", turn.number, sentence(error)))
    }

    fn rebuild(&self) -> Option<String> {
        let session = self.session.as_ref().filter(|session| session.closed_at.is_none())?;
        let reason = serde_json::to_value(session.rebuild_because?).ok()?;
        let reason = reason.as_str()?.replace('_', " ");
        Some(format!(
            "Before the next turn, a new session replaces its session {} ({reason}).",
            session.id
        ))
    }
}

/// Formats a refusal that is estimated by the size of the last call. Only the next turn decides if its call is refused.
fn told(refusal: &Refusal) -> String {
    match refusal.needed {
        1 => format!("There is no budget left: {refusal}."),
        _ => format!("The budget is too small for another turn like the last one: {refusal}."),
    }
}

pub(super) fn sentence(text: &str) -> String {
    let text = text.trim();
    match text.ends_with(['.', '!', '?']) {
        true => text.to_owned(),
        false => format!("{text}."),
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};
    use sqlx::types::Json;
    use uuid::Uuid;

    use super::*;
    use crate::{
        domain::{
            Amount,
            agent_pauses::Pause,
            amount::{OnLimit, Owner, Unit},
            campaigns::{Campaign, CampaignPause},
            explanations::{HeadTask, Obstacle, TurnAhead},
            failovers::{ChainChoice, SkippedEntry},
            tasks::{OnFailure, Task, TaskWaits, WaitedFor},
            turns::Turn,
        },
        queue::admin,
    };

    fn at() -> DateTime<Utc> {
        DateTime::UNIX_EPOCH
    }

    fn facts(state: State, job: &str) -> TaskFacts {
        TaskFacts {
            task: Task { state, ..Task::example() },
            campaign: Campaign {
                id: Uuid::from_u128(2),
                name: "Harbour".to_owned(),
                status: Status::Active,
                version: 1,
                brief: String::new(),
                client_context: None,
                parameters: Json::default(),
                tags: Vec::new(),
                metadata: Json::default(),
                is_erased: false,
                created_at: at(),
                closed_at: None,
            },
            campaign_pause: None,
            spent: None,
            session: None,
            rests: Vec::new(),
            last_turn: None,
            turn_ahead: None,
            head: None,
            pauses: Vec::new(),
            waiting: None,
            flow: None,
            paused_flow: None,
            budget_wait: None,
            budget_refusal: None,
            batch_wait: None,
            limit_wait: None,
            busy_since: None,
            is_model_busy: false,
            run_at: None,
            cancelled_because: None,
            job: admin::Explanation {
                job_id: 7,
                state: job.to_owned(),
                because: "It is next in the queue.".to_owned(),
                runs: Vec::new(),
                next: "One of 2 workers takes it.".to_owned(),
                cause: Cause::Explained,
            },
        }
    }

    fn turn(state: turns::State, error: &str) -> Turn {
        Turn { error: Some(error.to_owned()), ..Turn::example(state, at()) }
    }

    #[test]
    fn a_task_that_waits_in_peace_says_what_the_queue_says() {
        let told = facts(State::Queued, "ready").explain();
        assert_eq!(told.because, "It is next in the queue.");
        assert_eq!(told.next, "One of 2 workers takes it.");
    }

    #[test]
    fn the_answering_model_of_a_chain_is_named_with_the_reason() {
        let mut facts = facts(State::Done, "ended");
        let skipped = SkippedEntry {
            entry: "anthropic/x".to_owned(),
            because: "waiting for `x`: 60 requests per minute, next slot in 40 s".to_owned(),
            usable_at: Some(at()),
        };
        let choice = ChainChoice { entry: "local/y".to_owned(), skipped: vec![skipped] };
        facts.last_turn = Some(Turn { chain: Some(Json(choice)), ..turn(turns::State::Done, "") });
        assert_eq!(
            facts.explain().because,
            "It was answered. Its model was `local/y`, because `anthropic/x` is skipped until 1970-01-01 00:00:00 UTC: waiting for `x`: 60 requests per minute, next slot in 40 s."
        );
        let mut waiting = self::facts(State::Queued, "ready");
        waiting.rests = vec!["`anthropic/x` is not used before noon: boom".to_owned()];
        assert_eq!(
            waiting.explain().because,
            "It is next in the queue. Of its models, `anthropic/x` is not used before noon: boom."
        );
    }

    #[test]
    fn a_call_that_was_no_batch_because_of_its_files_is_told() {
        let mut facts = facts(State::Done, "unknown");
        let flags = vec![turns::NOT_BATCHED.to_owned()];
        facts.last_turn = Some(Turn { flags, ..turn(turns::State::Done, "") });
        let because = facts.explain().because;
        assert!(
            because.ends_with("an ordinary one and no batch, because it has files."),
            "{because}"
        );
    }

    #[test]
    fn a_task_behind_a_turn_names_its_number_its_start_and_its_worker() {
        let mut facts = facts(State::Queued, "blocked");
        facts.turn_ahead = Some(TurnAhead {
            number: 4,
            task_id: Uuid::from_u128(8),
            head: admin::RunningHead {
                job_id: 6,
                started: "started 12 s ago on worker-2 (pid 41)".to_owned(),
                between: "It is next in line".to_owned(),
            },
        });
        let told = facts.explain();
        assert_eq!(
            told.because,
            "It waits for turn 4 of this conversation, which started 12 s ago on worker-2 (pid 41). It is next in line."
        );
        assert!(told.next.contains("`dalsegno task cancel 00000000-"), "{}", told.next);
    }

    #[test]
    fn a_task_behind_another_one_names_that_task_and_its_wait() {
        let mut facts = facts(State::Queued, "blocked");
        let refusal = refusal(Owner::Campaign(Uuid::from_u128(2)), 90, 20);
        facts.job.cause = Cause::Behind { job_id: 6, n_between: 2 };
        facts.head = Some(HeadTask {
            task_id: Uuid::from_u128(8),
            agent: "copywriter".to_owned(),
            instance: "main".to_owned(),
            because:
                "It waits for the budget of its campaign `Harbour`: 10 are left. 90 are spent."
                    .to_owned(),
            obstacles: vec![Obstacle::Budget(refusal.clone())],
        });
        let told = facts.explain();
        let head = Uuid::from_u128(8);
        assert_eq!(
            told.because,
            format!(
                "It waits behind task {head} of `copywriter` in the campaign `Harbour`, which comes first in their conversation. That task waits for the budget of its campaign `Harbour`: 10 are left. 2 tasks are between the two."
            )
        );
        assert!(told.next.starts_with(&format!("`dalsegno task explain {head}` says")), "{told:?}");
        assert_eq!(told.obstacles, [Obstacle::Budget(refusal)]);
        // A person has to decide about a failed head.
        let of = admin::HoldOf::Job(6);
        facts.job.cause = Cause::Hold { reason: "failed".to_owned(), of };
        facts.job.next = "Retry job 6.".to_owned();
        assert!(facts.explain().next.starts_with("Retry job 6. `dalsegno task explain "));
    }

    #[test]
    fn obstacles_are_those_of_the_text() {
        let mut facts = facts(State::Queued, "held");
        facts.job.cause = Cause::Hold { reason: "legal".to_owned(), of: admin::HoldOf::Job(7) };
        assert_eq!(facts.explain().obstacles, [Obstacle::HeldJob { job_id: 7 }]);
        facts.campaign.status = Status::Paused;
        let campaign_id = facts.campaign.id;
        assert_eq!(facts.explain().obstacles, [Obstacle::CampaignPause { campaign_id }]);
        facts.job.state = "running".to_owned();
        assert_eq!(facts.explain().obstacles, []);
    }

    #[test]
    fn a_paused_campaign_is_named_before_the_queue_unless_the_turn_runs() {
        let mut facts = facts(State::Queued, "ready");
        facts.campaign.status = Status::Paused;
        facts.campaign_pause = Some(CampaignPause {
            reason: "client call".to_owned(),
            paused_at: at(),
            paused_by: Some("cli:ann@host".to_owned()),
        });
        let told = facts.explain();
        assert!(told.because.contains("`Harbour` is paused: client call."), "{}", told.because);
        let since = "It was paused at 1970-01-01 00:00:00 UTC by ann on the command line of host.";
        assert!(told.because.contains(since), "{}", told.because);
        assert!(told.next.contains("dalsegno campaign resume 00000000-"), "{}", told.next);
        facts.job.state = "running".to_owned();
        let told = facts.explain();
        assert_eq!(told.because, "It is next in the queue.");
        assert!(
            told.next.ends_with("this turn goes on to its end, and no other starts."),
            "{}",
            told.next
        );
    }

    #[test]
    fn a_paused_agent_is_named_with_author_and_next_step() {
        let mut facts = facts(State::Queued, "held");
        facts.pauses = vec![Pause {
            id: Uuid::from_u128(9),
            campaign_id: None,
            agent: "copywriter".to_owned(),
            reason: "too expensive".to_owned(),
            paused_at: at(),
            paused_by: "cli:ann@host".to_owned(),
            resumed_at: None,
            resumed_by: None,
        }];
        let told = facts.explain();
        assert!(
            told.because
                .contains("in all campaigns by ann on the command line of host: too expensive."),
            "{}",
            told.because
        );
        assert!(
            told.next.contains("dalsegno agent resume copywriter --everywhere"),
            "{}",
            told.next
        );
        facts.job.state = "running".to_owned();
        let told = facts.explain();
        assert!(
            told.next.ends_with("this turn goes on to its end, and no other starts."),
            "{}",
            told.next
        );
    }

    fn refusal(owner: Owner, spent: i64, needed: i64) -> Refusal {
        let call = Amount { micros: 0, tokens: needed };
        let (unit, limit, reserved) = (Unit::Tokens, 100, 0);
        let (on_limit, ends) = (OnLimit::Wait, None);
        Refusal { owner, unit, limit, spent, reserved, needed, call, on_limit, ends }
    }

    #[test]
    fn a_wait_for_a_budget_names_the_budget_and_everything_that_ends_it() {
        let mut facts = facts(State::Queued, "scheduled");
        facts.budget_wait = Some(Some(refusal(Owner::Task(Uuid::from_u128(1)), 90, 20)));
        let told = facts.explain();
        assert_eq!(
            told.because,
            "It waits for its own budget: 10 tokens of 100 tokens are left, and the next call may need 20 tokens. 90 tokens are spent."
        );
        assert!(told.next.contains("when `dalsegno task budget 00000000"), "{told:?}");
        facts.budget_wait = Some(Some(refusal(Owner::Campaign(Uuid::from_u128(2)), 100, 20)));
        let told = facts.explain();
        let because =
            "It waits for the budget of its campaign `Harbour`: nothing of 100 tokens is left, and";
        assert!(told.because.starts_with(because), "{told:?}");
        facts.budget_wait = Some(None);
        assert!(facts.explain().because.contains("has space now"));
        facts.campaign.status = Status::Paused;
        assert!(facts.explain().because.contains("is paused"));
    }

    #[test]
    fn a_task_with_an_earliest_start_names_it_and_can_run_now() {
        let mut facts = facts(State::Queued, "scheduled");
        facts.run_at = Some(at());
        assert_eq!(facts.explain().because, "It is next in the queue.");
        facts.job.cause = Cause::Later;
        let told = facts.explain();
        assert_eq!(told.because, "It does not start before 1970-01-01 00:00:00 UTC.");
        assert_eq!(told.obstacles, [Obstacle::Later { job_id: 7 }]);
    }

    #[test]
    fn a_wait_for_a_busy_provider_begins_with_a_short_sentence() {
        let mut facts = facts(State::Queued, "scheduled");
        let refused = "sim refuses calls: overloaded";
        facts.last_turn = Some(Turn {
            flags: vec![turns::PUT_OFF.to_owned()],
            ..turn(turns::State::Failed, refused)
        });
        assert!(
            facts
                .explain()
                .because
                .ends_with("Its turn 4 was put off: sim refuses calls: overloaded.")
        );
        facts.busy_since = Some(at());
        facts.job.cause = Cause::Snooze;
        facts.job.because = format!("The last run was put off: {refused}. It used up no attempt.");
        let told = facts.explain();
        let first = "It waits for its provider, which refuses calls or cannot be reached, since 1970-01-01 00:00:00 UTC. The last run";
        assert!(told.because.starts_with(first), "{told:?}");
        let next = "The call is tried again by itself: after an overload or a rate limit there is nothing to do. If the reason names a setting or a server, correct it there;";
        assert!(told.next.starts_with(next), "{told:?}");
        assert!(told.next.ends_with("To try at once: `dalsegno job retry 7`."), "{told:?}");
        assert_eq!(told.obstacles, [Obstacle::Later { job_id: 7 }]);
        facts.is_model_busy = true;
        let all_wait = facts.explain();
        assert!(!all_wait.next.contains("job retry"), "{all_wait:?}");
        assert_eq!(all_wait.obstacles, []);
        assert_eq!(told.because.matches(refused).count(), 1, "{told:?}");
    }

    #[test]
    fn a_task_that_looks_again_names_the_reason_and_the_command_for_now() {
        let mut facts = facts(State::Queued, "scheduled");
        facts.job.cause = Cause::Snooze;
        facts.job.because =
            "The last run was put off: agent `writer` is refused until its file is fixed."
                .to_owned();
        facts.job.next = "It is due in 20 s.".to_owned();
        let told = facts.explain();
        assert_eq!(told.because, facts.job.because);
        assert!(told.next.starts_with("It is due in 20 s. Once its cause"), "{told:?}");
        assert!(told.next.contains("`dalsegno job retry 7`"), "{told:?}");
        facts.job.cause = Cause::Explained;
        assert_eq!(facts.explain().next, facts.job.next);
    }

    #[test]
    fn the_providers_message_is_shown_once() {
        let mut facts = facts(State::Queued, "scheduled");
        facts.last_turn = Some(turn(turns::State::Failed, "the host is away"));
        let told = facts.explain().because;
        assert!(told.ends_with("Its turn 4 failed: the host is away."), "{told}");
        facts.job.because = "Attempt 1 of 5 failed: the host is away. It backs off.".to_owned();
        assert_eq!(facts.explain().because, facts.job.because);
    }

    #[test]
    fn a_spent_budget_shows_its_amounts() {
        let mut facts = facts(State::Queued, "scheduled");
        facts.spent = Some(refusal(Owner::Campaign(Uuid::from_u128(7)), 100, 1));
        let told = facts.explain().because;
        assert!(told.contains("100 tokens of 100 tokens are spent"), "{told}");
        let next = format!("`dalsegno campaign budget {} --tokens", Uuid::from_u128(7));
        assert!(told.contains(&next), "{told}");
    }

    #[test]
    fn a_cancellation_between_attempts_is_not_attributed_to_a_turn() {
        let mut facts = facts(State::Cancelled, "ended");
        facts.task.ended_at = Some(at());
        assert!(facts.explain().because.ends_with("cancelled before it ran."));
        facts.last_turn = Some(turn(turns::State::Interrupted, "an operator was cancelled"));
        let told = facts.explain().because;
        assert!(
            told.ends_with("during its turn 4; a part of the answer that had arrived is kept."),
            "{told}"
        );
        facts.task.ended_at = Some(at() + chrono::TimeDelta::seconds(1));
        let told = facts.explain().because;
        assert!(told.ends_with("after its turn 4, before the next one started."), "{told}");
    }

    #[test]
    fn a_budget_too_small_for_a_turn_is_not_called_spent() {
        let mut facts = facts(State::Queued, "ready");
        let refusal = refusal(Owner::Task(Uuid::from_u128(1)), 10, 200);
        facts.spent = Some(refusal.clone());
        let told = facts.explain().because;
        assert!(told.starts_with("The budget is too small for another turn"), "{told}");
        facts.spent = Some(Refusal { spent: 100, needed: 1, ..refusal });
        let told = facts.explain().because;
        assert!(told.starts_with("There is no budget left"), "{told}");
    }

    #[test]
    fn a_waiting_task_names_its_predecessors_and_their_number() {
        let other = |n: u128, state| WaitedFor {
            task_id: Uuid::from_u128(n),
            agent: "writer".to_owned(),
            instance: "main".to_owned(),
            state,
        };
        let mut states = vec![State::Done, State::Failed, State::Running];
        states.extend([State::Queued; 3]);
        let depends_on: Vec<_> = (1..).zip(states).map(|(n, state)| other(n, state)).collect();
        let mut facts = facts(State::Queued, "scheduled");
        facts.waiting = Some(TaskWaits { depends_on, on_failure: OnFailure::Run, waits: true });
        let told = facts.explain();
        assert!(
            told.because.starts_with("It waits for 4 of 6 tasks: 00000000-"),
            "{}",
            told.because
        );
        assert!(told.because.contains("of writer/main (running), "), "{}", told.because);
        assert!(told.because.ends_with(" and 1 more."), "{}", told.because);
        assert!(told.next.contains("runs, with their results in its prompt"), "{}", told.next);
    }

    #[test]
    fn a_failed_step_names_its_flow_and_the_retry_of_the_step() {
        let mut facts = facts(State::Failed, "ended");
        facts.flow = Some((Uuid::from_u128(5), "draft".to_owned()));
        let retry = format!("`dalsegno flow retry {} --from draft`", Uuid::from_u128(5));
        let told = facts.explain();
        assert!(
            told.because
                .ends_with("It is the step `draft` of flow 00000000-0000-0000-0000-000000000005."),
            "{told:?}"
        );
        assert!(told.next.contains(&retry), "{told:?}");
        let (flow_id, step) = facts.flow.clone().unwrap();
        let refused = refusal(Owner::Task(Uuid::from_u128(1)), 90, 20);
        facts.budget_refusal = Some((refused, RetryOutlook::AgentFile { flow_id, step }));
        let told = facts.explain();
        assert!(told.next.starts_with("Raise the budget in the agent's file"), "{told:?}");
        assert!(told.next.contains(&retry), "{told:?}");
        facts.task.state = State::Cancelled;
        let told = facts.explain();
        assert!(told.next.contains(&retry), "{told:?}");
    }

    #[test]
    fn a_task_that_failed_at_a_budget_names_the_limit_before_the_retry() {
        let refused = refusal(Owner::Campaign(Uuid::from_u128(2)), 0, 120);
        let mut facts = facts(State::Failed, "ended");
        facts.task.error = Some(refused.to_string());
        facts.budget_refusal = Some((refused.clone(), RetryOutlook::Refusal(refused.clone())));
        let told = facts.explain();
        assert_eq!(
            told.because,
            "It failed: this call may use up to 120 tokens; the whole limit of the budget of the campaign is 100 tokens."
        );
        let raise =
            format!("Raise the limit with {}, then run `dalsegno task", refused.raise_command());
        assert!(told.next.starts_with(&raise), "{told:?}");
        assert_eq!(told.obstacles, [Obstacle::Budget(refused.clone())]);
        let waits = Refusal { limit: 130, spent: 50, ..refused.clone() };
        facts.budget_refusal = Some((refused.clone(), RetryOutlook::Wait(waits.clone())));
        let told = facts.explain();
        assert!(
            told.because.ends_with(
                "is 100 tokens. Now the budget of the campaign does not allow the call: 50 tokens of 130 tokens are spent, and up to 120 tokens are needed."
            ),
            "{told:?}"
        );
        assert!(told.next.starts_with("A retry waits for space in the budget."), "{told:?}");
        assert_eq!(told.obstacles, [Obstacle::Budget(waits)]);
        facts.budget_refusal = Some((refused.clone(), RetryOutlook::Space));
        assert!(facts.explain().next.starts_with("The limit allows the call now: run `dalsegno"));
        facts.budget_refusal = Some((refused, RetryOutlook::Unknown));
        let told = facts.explain();
        assert!(told.next.starts_with("Fix the cause, then run `dalsegno task"), "{told:?}");
        assert_eq!(told.obstacles, []);
    }

    #[test]
    fn a_stored_reason_is_shown() {
        let mut facts = facts(State::Cancelled, "ended");
        facts.cancelled_because = Some("not wanted".to_owned());
        assert_eq!(facts.explain().because, "It was cancelled before it ran: not wanted.");
    }

    #[test]
    fn a_task_without_a_job_is_ended_by_a_worker_or_a_person() {
        for state in ["dead", "ended", "unknown"] {
            let told = facts(State::Running, state).explain();
            for words in ["Workers look for such tasks", "a minute", "dalsegno task cancel"] {
                assert!(told.next.contains(words), "{}", told.next);
            }
        }
    }
}
