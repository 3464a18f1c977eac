//! The text for each wait of a task.

use super::{
    HeadTask, TaskFacts, TaskWaits, TurnAhead,
    words::{Reason, sentence},
};
use crate::{
    domain::{
        agent_pauses::Pause,
        agents::agent_name,
        amount::Owner,
        audit::describe_label,
        busy_models::format_moment,
        tasks::{OnFailure, WaitedFor},
        text::{count, first_sentence},
        turns,
    },
    queue::admin::Cause,
};

/// Maximum number of dependencies that are named one by one.
const MAX_NAMED: usize = 3;

impl TaskFacts {
    /// Names the dependencies that have not ended. The time of their end is unknown.
    pub(super) fn waits(&self, waiting: &TaskWaits) -> Reason {
        let open: Vec<&WaitedFor> =
            waiting.depends_on.iter().filter(|other| !other.state.has_ended()).collect();
        let name = |other: &&WaitedFor| {
            let WaitedFor { task_id, agent, instance, state } = other;
            format!("{task_id} of {agent}/{instance} ({})", state.as_str())
        };
        let mut named = open.iter().take(MAX_NAMED).map(name).collect::<Vec<_>>().join(", ");
        if open.len() > MAX_NAMED {
            named.push_str(&format!(" and {} more", open.len() - MAX_NAMED));
        }
        let (n_open, n_all) = (open.len(), waiting.depends_on.len());
        let otherwise = match waiting.on_failure {
            OnFailure::Run => "runs, with their results in its prompt",
            OnFailure::Cancel => "runs if all of them succeed, and is cancelled otherwise",
        };
        (
            format!("It waits for {n_open} of {n_all} tasks: {named}."),
            format!(
                "They have to end first. Then it {otherwise}. `dalsegno task explain` explains each of them."
            ),
        )
    }

    /// Explains the job in the words of its conversation, where a turn is known.
    pub(super) fn on_the_queue(&self) -> Reason {
        if let Some(TurnAhead { number, task_id, head }) = &self.turn_ahead {
            return (
                format!(
                    "It waits for turn {number} of this conversation, which {}. {}.",
                    head.started, head.between
                ),
                format!(
                    "There is nothing to do: it starts by itself when that turn, of task {task_id}, has ended. To stop that turn: `dalsegno task cancel {task_id}`."
                ),
            );
        }
        if let (Cause::Later, Some(at)) = (&self.job.cause, self.run_at) {
            let because = format!("It does not start before {}.", format_moment(at));
            return (because, self.job.next.clone());
        }
        let turn = self.last_turn.as_ref().filter(|turn| turn.state == turns::State::Running);
        let because = match turn {
            Some(turn) if self.job.state == "running" => {
                format!("It is in turn {} of its session. {}", turn.number, self.job.because)
            }
            _ => self.job.because.clone(),
        };
        let next = match self.job.cause {
            Cause::Snooze => format!(
                "{} Once its cause is removed, such as an error in its agent's file, `dalsegno job retry {}` checks at once.",
                self.job.next, self.job.job_id
            ),
            _ => self.job.next.clone(),
        };
        (because, next)
    }

    /// Names the task at the head of the conversation, and what that one waits for. The queue knows both as jobs only.
    pub(super) fn waits_behind(&self) -> Reason {
        let Some(HeadTask { task_id, agent, instance, because, .. }) = &self.head else {
            return self.on_the_queue();
        };
        let name = format!("`{}`", agent_name(agent, instance));
        let (first, _) = first_sentence(because);
        let reason = match first.strip_prefix("It ") {
            Some(rest) => format!("That task {rest}"),
            None => format!("Of that task: {first}"),
        };
        let (n_between, release) = match &self.job.cause {
            Cause::Behind { n_between, .. } => (*n_between, String::new()),
            _ => (0, format!("{} ", self.job.next)),
        };
        let between = match n_between {
            0 => String::new(),
            n => format!(" {} between the two.", count(n, "task is", "tasks are")),
        };
        (
            format!(
                "It waits behind task {task_id} of {name} in the campaign `{}`, which comes first in their conversation. {reason}{between}",
                self.campaign.name
            ),
            format!(
                "{release}`dalsegno task explain {task_id}` says what that task needs. When it has ended, this one starts by itself."
            ),
        )
    }

    pub(super) fn waits_for_budget(&self) -> Reason {
        match self.budget_wait.as_ref().and_then(Option::as_ref) {
            Some(refusal) => (
                format!(
                    "It waits for {}: {}. {}.",
                    self.name_budget(&refusal.owner),
                    refusal.describe_left(),
                    refusal.describe_use()
                ),
                format!(
                    "It continues {}. Later tasks of its conversation wait behind it.",
                    refusal.describe_end()
                ),
            ),
            None => (
                "It has waited for its budget, which has space now.".to_owned(),
                "There is nothing to do: it continues within seconds.".to_owned(),
            ),
        }
    }

    fn name_budget(&self, owner: &Owner) -> String {
        match owner {
            Owner::Campaign(_) => format!("the budget of its campaign `{}`", self.campaign.name),
            Owner::Task(_) => "its own budget".to_owned(),
            owner => owner.describe(),
        }
    }

    /// The first sentence is short. The text of the queue, which has the provider's own words, follows.
    pub(super) fn waits_for_provider(&self) -> Reason {
        let since = self.busy_since.map(format_moment).unwrap_or_default();
        let provider = match &self.session {
            Some(session) => format!("its provider {} ({})", session.provider, session.model),
            None => "its provider".to_owned(),
        };
        let at_once = match self.is_model_busy {
            true => String::new(),
            false => format!(" To try at once: `dalsegno job retry {}`.", self.job.job_id),
        };
        (
            format!(
                "It waits for {provider}, which refuses calls or cannot be reached, since {since}. {}",
                self.job.because
            ),
            format!(
                "The call is tried again by itself: after an overload or a rate limit there is nothing to do. If the reason names a setting or a server, correct it there; `dalsegno doctor` checks the servers of Ollama and of endpoints. {}{at_once}",
                self.job.next
            ),
        )
    }

    pub(super) fn waits_for_batch(&self) -> Reason {
        let Some(wait) = &self.batch_wait else { return self.on_the_queue() };
        let next = match wait.cancelled_at {
            Some(_) => {
                "There is nothing to do: when the batch has ended, an ordinary call is made, unless the answer came first."
            }
            None => {
                "There is nothing to do: the service asks about the batch every 1 to 10 minutes, and goes on with its answer. Later tasks of the conversation wait behind it. To stop waiting, cancel the task, which cancels the batch."
            }
        };
        (sentence(&format!("It {}", wait.describe())), next.to_owned())
    }

    pub(super) fn waits_for_limit(&self) -> Reason {
        let Some(wait) = &self.limit_wait else { return self.on_the_queue() };
        if wait.is_granted {
            return (
                "It has waited for a rate limit, which has space now.".to_owned(),
                "There is nothing to do: it continues within seconds.".to_owned(),
            );
        }
        let ahead = match wait.n_ahead {
            0 => "It is the next one.".to_owned(),
            n => format!("{} before it.", count(n, "task is", "tasks are")),
        };
        (
            format!("It is {}. {ahead}", wait.describe()),
            "There is nothing to do: it continues by itself, in turn with the other campaigns. To raise the limit, change `rate_limits.rules`.".to_owned(),
        )
    }

    pub(super) fn paused(&self) -> Reason {
        let (name, id) = (&self.campaign.name, self.campaign.id);
        let reason = match self.campaign_pause.as_ref().map(|pause| pause.reason.as_str()) {
            None | Some("") => "no reason was given.".to_owned(),
            Some(reason) => sentence(reason),
        };
        let since = self.campaign_pause.as_ref().map(|pause| {
            let author =
                pause.paused_by.as_ref().map(|author| format!(" by {}", describe_label(author)));
            let at = format_moment(pause.paused_at);
            format!(" It was paused at {at}{}.", author.unwrap_or_default())
        });
        (
            format!(
                "Its campaign `{name}` is paused: {reason}{} No turn of the campaign starts until it is resumed.",
                since.unwrap_or_default()
            ),
            format!("Resume the campaign: `dalsegno campaign resume {id}`."),
        )
    }
}

pub(super) fn agent_paused(pause: &Pause, others: &[Pause]) -> Reason {
    let describe = |Pause { campaign_id, reason, paused_at, paused_by, .. }: &Pause| {
        let place = match campaign_id {
            Some(_) => "in this campaign",
            None => "in all campaigns",
        };
        let at = format_moment(*paused_at);
        let author = describe_label(paused_by);
        format!("paused {place} by {author}: {} It was paused at {at}.", sentence(reason))
    };
    let mut because = format!("Its agent `{}` is {}", pause.agent, describe(pause));
    let mut next = format!("Resume the agent: {}", pause.resume_command());
    for other in others {
        because.push_str(&format!(" It is also {}", describe(other)));
        next.push_str(&format!(" and {}", other.resume_command()));
    }
    next.push('.');
    (because, next)
}
