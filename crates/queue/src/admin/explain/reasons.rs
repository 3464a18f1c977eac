//! The text for each state.

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
        if let Some((group, reason)) = self.paused_group() {
            return (
                format!("It could run now, but its group `{group}` is paused{}.", said(reason)),
                format!(
                    "If the group is a campaign: `dalsegno campaign resume {group}`. Otherwise: `dalsegno queue resume --group {group}`."
                ),
            );
        }
        if self.live_workers == 0 {
            return (
                format!("It could run now, but no live worker serves the queue `{queue}`."),
                "Start a worker for this queue: `dalsegno serve`, `dalsegno worker turns` or `dalsegno worker upkeep`. It claims the job within a second or so."
                    .to_owned(),
            );
        }
        if self.able_workers == 0 {
            return (
                format!(
                    "It could run now, but none of the live workers of the queue `{queue}` ({}) has a handler for the kind `{}`.",
                    self.live_workers, self.kind
                ),
                format!(
                    "Start a version of the worker that handles `{}`, or cancel the job if its kind is wrong: `dalsegno job cancel {}`.",
                    self.kind, self.id
                ),
            );
        }
        if self.crash_count >= 2 {
            return (
                format!(
                    "{} were lost while they ran it, so only a worker that runs nothing else may claim it.",
                    plural(self.crash_count.into(), "worker")
                ),
                "An idle worker claims it. If that worker is lost too, the job becomes a dead letter.".to_owned(),
            );
        }
        let ahead = match self.ready_ahead.unwrap_or(0) {
            0 => "It is next in the queue".to_owned(),
            n if n >= 1_000 => "It waits for a free slot, behind 1000 or more jobs".to_owned(),
            n => format!("It waits for a free slot, behind {}", plural(n, "job")),
        };
        (
            format!("{ahead}."),
            format!(
                "One of {} claims it as soon as a slot is free.",
                plural(self.able_workers, "worker")
            ),
        )
    }

    pub(super) fn scheduled(&self) -> Reason {
        if self.awaits_signal() {
            return self.signal();
        }
        let because = match self.wait_reason.as_deref() {
            Some("retry") => format!(
                "Attempt {} of {} failed{}{}. It is in backoff before the next attempt.",
                self.attempt,
                self.max_attempts,
                self.when_last(),
                self.last_error_said()
            ),
            Some("snooze") => {
                let for_what = match self.last_wait_cause.as_deref() {
                    Some("provider") => " for its provider",
                    Some("limit") => " for a budget or a rate limit",
                    Some("batch") => " for a batch of its provider",
                    _ => "",
                };
                format!(
                    "The last run was put off{for_what}{}. It used up no attempt.",
                    self.last_error_said()
                )
            }
            Some("crash") => format!(
                "The worker that ran it was lost{} ({} in a row). This used up no attempt.",
                self.when_last(),
                plural(self.crash_count.into(), "lost worker")
            ),
            _ => "It was enqueued for later.".to_owned(),
        };
        let lane = match (&self.lane, self.wait_reason.as_deref()) {
            (Some(lane), Some("later")) => {
                format!(" Then it joins the lane `{lane}`.")
            }
            (Some(lane), _) => {
                format!(" The lane `{lane}` waits with it, to keep the order.")
            }
            (None, _) => String::new(),
        };
        let hold = if self.hold_reason.is_some() { " Then it is held, as requested." } else { "" };
        let retry = match self.wait_reason.as_deref() {
            // Its handler would postpone it again: its provider is busy, for example.
            Some("snooze") => String::new(),
            _ => format!(" To run it now: `dalsegno job retry {}`.", self.id),
        };
        let end = match format_in(self.run_in_secs.unwrap_or(0.0)) {
            Some(due) => format!("It is due {due}."),
            None => match self.last_wait_cause.as_deref() {
                Some("limit") => "It continues when its budget or rate limit has space.".to_owned(),
                _ => "It continues when its application ends the wait with `dalsegno.end_snooze`."
                    .to_owned(),
            },
        };
        (because, format!("{end}{lane}{hold}{retry}"))
    }

    /// Returns the group whose pause keeps a ready job waiting, and the reason of the pause. The pause of its queue comes first.
    pub(super) fn paused_group(&self) -> Option<(&str, &str)> {
        match self.queue_pause_reason {
            Some(_) => None,
            None => self.group_key.as_deref().zip(self.group_pause_reason.as_deref()),
        }
    }

    pub(super) fn awaits_signal(&self) -> bool {
        self.wait_reason.as_deref() == Some("signal")
    }

    fn signal(&self) -> Reason {
        let lane = match &self.lane {
            Some(lane) => format!(" Then it joins the lane `{lane}`."),
            None => String::new(),
        };
        (
            "It was put aside by its application, and blocks no other job meanwhile.".to_owned(),
            format!("It continues when its application calls `dalsegno.signal`.{lane}"),
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
                format!("No job of the lane `{lane}` is ready yet. {behind}."),
                "The sweep of lanes, which runs every `queue.upkeep_secs` seconds, makes the next job ready.".to_owned(),
            );
        };
        let kind = self.head_kind.as_deref().unwrap_or("?");
        let (doing, next) = match self.head_state.as_deref() {
            Some("running") => (self.head_start(), format!("Job {head} has to end first.")),
            Some("scheduled") => {
                let due = format_in(self.head_run_in_secs.unwrap_or(0.0));
                let why = match self.head_wait_reason.as_deref() {
                    Some("retry") => "is in backoff after a failure",
                    Some("snooze") => "was put off",
                    Some("crash") => "is in backoff after its worker was lost",
                    _ => "was enqueued for later",
                };
                let (when, explain) = match due {
                    Some(due) => (format!(" and is due {due}"), String::new()),
                    None => (
                        " without a time".to_owned(),
                        format!(" `dalsegno job explain {head}` says what ends its wait."),
                    ),
                };
                (format!("{why}{when}"), format!("Job {head} has to run and end first.{explain}"))
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
                format!(
                    "Job {head} has to run and end first: `dalsegno job explain {head}` explains why it waits."
                ),
            ),
        };
        (
            format!(
                "It waits for job {head} (`{kind}`) in the lane `{lane}`, which {doing}. {behind}."
            ),
            format!("{next} Then the lane continues by itself."),
        )
    }

    /// Explains a blocked job without naming the jobs before it or the reason of a hold, which may belong to other callers.
    pub(super) fn blocked_by_others(&self) -> Reason {
        let n_ahead = self.blocked_ahead.unwrap_or(0) + i64::from(self.head_id.is_some());
        (
            format!("Its lane runs one job at a time. {}.", behind(n_ahead)),
            "The jobs before it have to end first. Then the lane continues by itself.".to_owned(),
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
                    "It failed permanently{reason}, and its lane is held after a failure.{lane}"
                ),
                format!(
                    "`dalsegno job retry {}` runs it again with new attempts; `dalsegno lane release {name}` makes it a dead letter and continues the lane.",
                    self.id
                ),
            ),
            _ => (
                format!("It is held{reason}.{lane}"),
                format!(
                    "Release it (`dalsegno job release {id}`) or cancel it (`dalsegno job cancel {id}`).",
                    id = self.id
                ),
            ),
        }
    }

    pub(super) fn running(&self) -> Reason {
        let because = format!(
            "Attempt {} of {} started {}{}.",
            self.attempt,
            self.max_attempts,
            format_ago(self.running_secs.unwrap_or(0.0)),
            on_worker(self.worker_host.as_deref(), self.worker_pid)
        );
        let lease_over = self.worker_lease_secs.is_none_or(|secs| secs < 0.0);
        let next = if let Some(secs) = self.cancel_requested_secs {
            format!(
                "Its cancellation was requested {}. Its handler is asked to stop, and is aborted if it has not stopped within the grace period, the setting `queue.cancel_grace_secs`.",
                format_ago(secs)
            )
        } else if self.worker_gone.is_some() || lease_over {
            "Its worker is lost. Another worker claims the job within some seconds and tries it again.".to_owned()
        } else {
            "There is nothing to do: its handler is at work, and its worker renews the lease."
                .to_owned()
        };
        (because, next)
    }

    pub(super) fn dead(&self) -> Reason {
        let why = match self.death_reason.as_deref() {
            Some("exhausted") => format!("all {} failed", plural(self.attempt.into(), "attempt")),
            Some("bad_payload") => "its handler could not read the payload".to_owned(),
            Some("worker_lost") => "three workers in a row were lost while running it".to_owned(),
            _ => "its handler reported a permanent failure".to_owned(),
        };
        let error = self.death_error.as_deref().map(said).unwrap_or_default();
        (
            format!(
                "It became a dead letter {}: {why}{error}.",
                format_ago(self.died_secs.unwrap_or(0.0))
            ),
            format!(
                "Fix the cause, then run `dalsegno job retry {}`. It does not run again by itself.",
                self.id
            ),
        )
    }

    pub(super) fn ended(&self) -> Reason {
        let outcome = self.last_outcome.as_deref().unwrap_or("done");
        (
            format!("It ended{} as {outcome}{}.", self.when_last(), self.last_error_said()),
            match outcome {
                "done" => "There is nothing to do. It has left the queue.".to_owned(),
                _ => "It has left the queue, and does not run again.".to_owned(),
            },
        )
    }

    pub(super) fn unknown(&self) -> Reason {
        (
            format!(
                "There is no job {}: it is not in the queue, is not a dead letter, and has no stored run.",
                self.id
            ),
            "Check the number with `dalsegno job ls`. Runs are removed after `queue.keep.runs_days` days."
                .to_owned(),
        )
    }

    /// Returns when and where the head of the lane started: `started 12 s ago on worker-2 (pid 41)`.
    pub(super) fn head_start(&self) -> String {
        let at = format_ago(self.head_running_secs.unwrap_or(0.0));
        format!("started {at}{}", on_worker(self.head_worker_host.as_deref(), self.head_worker_pid))
    }

    fn when_last(&self) -> String {
        self.last_ended_secs.map(|secs| format!(" {}", format_ago(secs))).unwrap_or_default()
    }

    fn last_error_said(&self) -> String {
        self.last_error.as_deref().map(said).unwrap_or_default()
    }
}

fn on_worker(host: Option<&str>, pid: Option<i32>) -> String {
    match (host, pid) {
        (Some(host), Some(pid)) if !host.is_empty() => format!(" on {host} (pid {pid})"),
        _ => String::new(),
    }
}

pub(super) fn behind(n_ahead: i64) -> String {
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
