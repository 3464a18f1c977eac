//! The words for each state.

use super::{
    super::words::{format_ago, format_in, plural, span},
    JobFacts,
};

/// The reason for the state, and the next step.
type Reason = (String, String);

impl JobFacts {
    pub(super) fn ready(&self) -> Reason {
        let queue = &self.queue;
        if let Some(reason) = &self.queue_pause_reason {
            return (
                format!("It could run now, but the queue `{queue}` is paused{}.", said(reason)),
                format!("Resume the queue: `dalsegno queue resume {queue}`."),
            );
        }
        if let (Some(reason), Some(group)) = (&self.group_pause_reason, &self.group_key) {
            return (
                format!("It could run now, but its group `{group}` is paused{}.", said(reason)),
                format!("Resume the group `{group}`."),
            );
        }
        if self.live_workers == 0 {
            return (
                format!(
                    "It could run now, but no worker that is alive serves the queue `{queue}`."
                ),
                "Start a worker for this queue; it takes the job within a second or so.".to_owned(),
            );
        }
        if self.able_workers == 0 {
            return (
                format!(
                    "It could run now, but no worker of the queue `{queue}` ({} alive) has a handler for the kind `{}`. It is left alone and nothing is lost.",
                    self.live_workers, self.kind
                ),
                format!(
                    "Start a version of the worker that knows `{}`, or cancel the job if the name is a mistake: `dalsegno job cancel {}`.",
                    self.kind, self.id
                ),
            );
        }
        if self.crash_count >= 2 {
            return (
                format!(
                    "{} were lost while running it, so it may only run in a worker that runs nothing else.",
                    plural(self.crash_count.into(), "worker")
                ),
                "A worker makes itself idle and takes it. If that one is lost too, the job is dead.".to_owned(),
            );
        }
        let ahead = match self.ready_ahead.unwrap_or(0) {
            0 => "It is the next in the queue".to_owned(),
            n if n >= 1_000 => {
                "It waits for a free slot, with 1000 or more jobs before it".to_owned()
            }
            n => format!("It waits for a free slot, with {} before it", plural(n, "job")),
        };
        (
            format!("{ahead}."),
            format!(
                "One of {} takes it as soon as a slot is free.",
                plural(self.able_workers, "worker")
            ),
        )
    }

    pub(super) fn scheduled(&self) -> Reason {
        if self.wait_reason.as_deref() == Some("signal") {
            return self.awaits_signal();
        }
        let due = format_in(self.run_in_secs.unwrap_or(0.0));
        let because = match self.wait_reason.as_deref() {
            Some("retry") => format!(
                "Attempt {} of {} failed{}{}. It backs off before the next one.",
                self.attempt,
                self.max_attempts,
                self.when_last(),
                self.last_error_said()
            ),
            Some("snooze") => format!(
                "The last run put itself off{}. No attempt was burned.",
                self.last_error_said()
            ),
            Some("crash") => format!(
                "The worker that ran it was lost{}; that makes {} in a row. No attempt was burned.",
                self.when_last(),
                plural(self.crash_count.into(), "lost worker")
            ),
            _ => "It was enqueued for later.".to_owned(),
        };
        let lane = match (&self.lane, self.wait_reason.as_deref()) {
            (Some(lane), Some("later")) => {
                format!(" Then it takes its place in the lane `{lane}`.")
            }
            (Some(lane), _) => {
                format!(" The lane `{lane}` waits with it, so that the order is kept.")
            }
            (None, _) => String::new(),
        };
        let hold = if self.hold_reason.is_some() { " Then it is held, as requested." } else { "" };
        (
            because,
            format!(
                "It is due {due}.{lane}{hold} To run it now: `dalsegno job retry {}`.",
                self.id
            ),
        )
    }

    fn awaits_signal(&self) -> Reason {
        let lane = match &self.lane {
            Some(lane) => format!(" Then it takes its place in the lane `{lane}`."),
            None => String::new(),
        };
        (
            "It waits for something else to end, and blocks no other job meanwhile.".to_owned(),
            format!(
                "It continues when that has ended.{lane} To run it now: `dalsegno job retry {}`.",
                self.id
            ),
        )
    }

    pub(super) fn blocked(&self) -> Reason {
        let lane = self.lane.as_deref().unwrap_or("?");
        let behind = behind(self.blocked_ahead.unwrap_or(0));
        if let Some(reason) = &self.lane_hold_reason {
            return (
                format!(
                    "The lane `{lane}` has been held for {}{}. {behind}.",
                    span(self.lane_held_secs.unwrap_or(0.0)),
                    said(reason)
                ),
                format!("Release the lane: `dalsegno lane release {lane}`."),
            );
        }
        let Some(head) = self.head_id else {
            return (
                format!("The lane `{lane}` has no head at this moment. {behind}."),
                "The sweep that runs every second promotes the next job of the lane.".to_owned(),
            );
        };
        let kind = self.head_kind.as_deref().unwrap_or("?");
        let (doing, next) = match self.head_state.as_deref() {
            Some("running") => (
                format!("has been running for {}", span(self.head_running_secs.unwrap_or(0.0))),
                format!("Job {head} has to end."),
            ),
            Some("scheduled") => {
                let due = format_in(self.head_run_in_secs.unwrap_or(0.0));
                let why = match self.head_wait_reason.as_deref() {
                    Some("retry") => "backs off after a failure",
                    Some("snooze") => "put itself off",
                    Some("crash") => "waits after its worker was lost",
                    _ => "waits for its time",
                };
                (
                    format!("{why} and is due {due}"),
                    format!("Job {head} has to run again {due} and end."),
                )
            }
            Some("held") => (
                format!(
                    "is held{}",
                    self.head_hold_reason.as_deref().map(said).unwrap_or_default()
                ),
                format!(
                    "Retry job {head} with `dalsegno job retry {head}`, or continue without it: `dalsegno lane release {lane}`."
                ),
            ),
            _ => (
                "is ready and waits for a slot".to_owned(),
                format!("Job {head} has to be claimed and end; see `dalsegno job explain {head}`."),
            ),
        };
        (
            format!(
                "Lanes run one job at a time, and job {head} (`{kind}`) at the head of `{lane}` {doing}. {behind}."
            ),
            format!("{next} Then the lane moves up by itself."),
        )
    }

    /// Explains a blocked job without naming the jobs before it or the reason of a hold, which may belong to other callers.
    pub(super) fn blocked_by_others(&self) -> Reason {
        let n_ahead = self.blocked_ahead.unwrap_or(0) + i64::from(self.head_id.is_some());
        (
            format!("Lanes run one job at a time. {}.", behind(n_ahead)),
            "What is before it has to end. Then the lane moves up by itself.".to_owned(),
        )
    }

    pub(super) fn held(&self) -> Reason {
        let reason = self.hold_reason.as_deref().map(said).unwrap_or_default();
        let lane = self
            .lane
            .as_ref()
            .map(|lane| format!(" The lane `{lane}` waits behind it."))
            .unwrap_or_default();
        match (self.hold_by.as_deref(), &self.lane) {
            (Some("failure"), Some(name)) => (
                format!(
                    "It failed for good{reason}, and the policy of its lane is to wait for a person.{lane}"
                ),
                format!(
                    "`dalsegno job retry {}` runs it again with fresh attempts; `dalsegno lane release {name}` makes it a dead letter and continues.",
                    self.id
                ),
            ),
            _ => (
                format!("A person holds it{reason}.{lane}"),
                format!(
                    "Release it (`dalsegno job release {id}`) or cancel it (`dalsegno job cancel {id}`).",
                    id = self.id
                ),
            ),
        }
    }

    pub(super) fn running(&self) -> Reason {
        let place = match (self.worker_host.as_deref(), self.worker_pid) {
            (Some(host), Some(pid)) if !host.is_empty() => format!(" on {host} (pid {pid})"),
            _ => String::new(),
        };
        let because = format!(
            "Attempt {} of {} has been running{place} for {}.",
            self.attempt,
            self.max_attempts,
            span(self.running_secs.unwrap_or(0.0))
        );
        let lease_over = self.worker_lease_secs.is_none_or(|secs| secs < 0.0);
        let next = if let Some(secs) = self.cancel_requested_secs {
            format!(
                "Its cancellation was asked for {}. The handler has to stop; if it does not within its grace, it is dropped.",
                format_ago(secs)
            )
        } else if self.worker_gone.is_some() || lease_over {
            "Its worker is lost. Another worker takes the job back within some seconds and tries it again.".to_owned()
        } else {
            "The handler has to finish. Its worker renews the lease every few seconds.".to_owned()
        };
        (because, next)
    }

    pub(super) fn dead(&self) -> Reason {
        let why = match self.death_reason.as_deref() {
            Some("exhausted") => format!("all {} failed", plural(self.attempt.into(), "attempt")),
            Some("bad_payload") => "its handler could not read the payload".to_owned(),
            Some("worker_lost") => "three workers in a row were lost while running it".to_owned(),
            _ => "its handler gave it up".to_owned(),
        };
        let error = self.death_error.as_deref().map(said).unwrap_or_default();
        (
            format!("It died {}: {why}{error}.", format_ago(self.died_secs.unwrap_or(0.0))),
            format!(
                "Nothing happens by itself. Fix the cause, then `dalsegno job retry {}`.",
                self.id
            ),
        )
    }

    pub(super) fn ended(&self) -> Reason {
        let outcome = self.last_outcome.as_deref().unwrap_or("done");
        (
            format!("It ended{} as {outcome}{}.", self.when_last(), self.last_error_said()),
            "Nothing. It is no longer on the queue.".to_owned(),
        )
    }

    pub(super) fn unknown(&self) -> Reason {
        (
            format!(
                "There is no job {}: it is not on the queue, is not a dead letter, and no run of it is stored.",
                self.id
            ),
            "Check the number with `dalsegno job ls`. Runs are removed after their retention."
                .to_owned(),
        )
    }

    fn when_last(&self) -> String {
        self.last_ended_secs.map(|secs| format!(" {}", format_ago(secs))).unwrap_or_default()
    }

    fn last_error_said(&self) -> String {
        self.last_error.as_deref().map(said).unwrap_or_default()
    }
}

fn behind(n_ahead: i64) -> String {
    match n_ahead {
        0 => "It is next in line".to_owned(),
        1 => "1 job is in line before it".to_owned(),
        n if n >= 1_000 => "1000 or more jobs are before it in line".to_owned(),
        n => format!("{n} jobs are in line before it"),
    }
}

/// Returns `": the reason"`, or nothing if none was given. Drops the reason's full stop, because the sentence has its own.
fn said(reason: &str) -> String {
    let reason = reason.trim().trim_end_matches('.');
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}
