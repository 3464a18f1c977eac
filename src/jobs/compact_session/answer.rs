//! One call of a summariser, and its line in the ledger.

use std::{borrow::Cow, sync::Arc};

use tokio_util::sync::CancellationToken;

use super::{Error, Folder, fold::Scribe};
use crate::{
    context::compaction::{ladder::Rung, prompt, sections::SECTIONS},
    domain::{
        Amount,
        amount::Owner,
        campaigns,
        sessions::{self, Live},
        tasks,
        usage::{self, Tokens},
    },
    providers::{
        self, Class, EventSink, Options, Outcome, Purpose, Request, StopReason, Think, Usage,
    },
    transcript::{Message, Role},
};

/// What a summariser said, or why there is nothing to judge.
pub(super) type Answer = Result<String, String>;

/// Who is asked about what.
pub(super) struct Call<'a> {
    pub(super) session: &'a Live,
    pub(super) model: &'a str,
    pub(super) request: &'a prompt::Request,
    pub(super) prompt_tokens: u64,
    pub(super) pinned: Vec<String>,
}

impl<'a> Call<'a> {
    pub(super) fn new(
        scribe: &Scribe<'a>,
        rung: Rung,
        request: &'a prompt::Request,
        pinned: Vec<String>,
    ) -> Self {
        let own = scribe.session.model.as_str();
        let alternate = scribe.folder.alternate_model.unwrap_or(own);
        let model = if rung == Rung::Alternate { alternate } else { own };
        let prompt_tokens = scribe.tokens_of(&request.system) + scribe.tokens_of(&request.prompt);
        Self { session: scribe.session, model, request, prompt_tokens, pinned }
    }

    /// Why the budget of the campaign or of the task does not allow it, if it does not. A look without a lock: a call that just fitted is still
    /// charged in full.
    pub(super) async fn refusal(&self, folder: &Folder<'_>) -> Result<Option<String>, Error> {
        let most = Tokens {
            input: Some(clamped(self.prompt_tokens)),
            output: Some(clamped(self.request.reply_max_tokens)),
            ..Tokens::default()
        };
        let needed =
            Amount { micros: (folder.cost)(self.model, most).micros, tokens: most.total() };
        if let Some(task_id) = folder.waiting.map(|task| task.id) {
            match tasks::admit(folder.pool, task_id, needed).await {
                Err(tasks::Error::Budget(refusal)) => return Ok(Some(refusal.to_string())),
                admitted => admitted?,
            }
        }
        let Some(budget) = campaigns::budget(folder.pool, self.session.campaign_id).await? else {
            return Ok(None);
        };
        let admitted = budget.limit.admit(Owner::Campaign, budget.spent, budget.reserved, needed);
        Ok(admitted.err().map(|refusal| refusal.to_string()))
    }

    /// Asks, and writes down what it cost. An error means that nobody was asked.
    pub(super) async fn ask(&self, folder: &Folder<'_>) -> Result<Answer, Error> {
        let request = self.request(folder);
        let cancel: CancellationToken = folder.cancel.clone();
        let answered = folder.provider.run(request, EventSink::discard(), cancel).await;
        self.charge(folder, &answered).await?;
        match answered {
            Ok(outcome) if outcome.stop == StopReason::Length => {
                let tokens = self.request.reply_max_tokens;
                Ok(Err(format!("it broke off after {tokens} tokens")))
            }
            Ok(outcome) => Ok(Ok(outcome.message.text)),
            Err(error) => match error.class {
                Class::Snooze { .. } | Class::Cancelled => Err(Error::NotAsked(error)),
                Class::Retry { .. } | Class::Rebuild { .. } | Class::Fail => {
                    Ok(Err(error.to_string()))
                }
            },
        }
    }

    fn request(&self, folder: &Folder<'_>) -> Request {
        let sections = SECTIONS.iter().map(|(title, _)| (*title).to_owned()).collect();
        let prompt = Message {
            role: Role::User,
            text: self.request.prompt.clone(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            tool_name: None,
        };
        Request {
            turn: format!("{}/{}/summary", self.session.id, self.session.turn_count),
            purpose: Purpose::Summary { sections, pinned: self.pinned.clone() },
            model: self.model.to_owned(),
            system: self.request.system.clone(),
            messages: vec![Arc::new(prompt)],
            tools: Vec::new(),
            window_tokens: narrow(folder.summariser_window_tokens),
            reserve_tokens: narrow(self.request.reply_max_tokens),
            estimated_prompt_tokens: Some(narrow(self.prompt_tokens)),
            options: Options {
                // A record is copied, not composed; thinking would use up the room of the answer.
                temperature: Some(0.0),
                think: Some(Think::Off),
                ..Options::default()
            },
            timeouts: folder.timeouts,
            conversation: None,
            login: self.session.login.clone(),
        }
    }

    /// Ledger, session, task and budget in one transaction, in the order in which turns lock them.
    async fn charge(
        &self,
        folder: &Folder<'_>,
        answered: &Result<Outcome, providers::Error>,
    ) -> Result<(), Error> {
        let Some((outcome, usage)) = billed(answered) else { return Ok(()) };
        let tokens = tokens(usage);
        let cost = (folder.cost)(self.model, tokens);
        let told = told_micros(answered).filter(|_| cost.price.is_none());
        let durations = answered.as_ref().ok().map(|outcome| outcome.durations);
        let millis = |duration: std::time::Duration| i32::try_from(duration.as_millis()).ok();
        let id = answered.as_ref().ok().and_then(|outcome| outcome.provider_message_id.as_deref());
        let call = usage::Call {
            campaign_id: self.session.campaign_id,
            task_id: folder.waiting.map(|task| task.id),
            session_id: Some(self.session.id),
            turn: Some(self.session.turn_count),
            agent: &self.session.agent,
            provider: &self.session.provider,
            model: self.model,
            purpose: usage::Purpose::Summary,
            outcome,
            provider_message_id: id,
            tokens,
            cost_micros: told.unwrap_or(cost.micros),
            price: cost.price.as_ref().map(Cow::Borrowed),
            first_byte_ms: durations.and_then(|durations| durations.first_byte).and_then(millis),
            total_ms: durations.map(|durations| durations.total).and_then(millis),
            called_at: folder.clock.now(),
        };
        self.write(folder, &call).await
    }

    async fn write(&self, folder: &Folder<'_>, call: &usage::Call<'_>) -> Result<(), Error> {
        let mut tx = folder.pool.begin().await.map_err(Error::Transaction)?;
        sessions::add_tokens(&mut *tx, self.session.id, call.tokens.total()).await?;
        // The answer of a call that was written before is charged already: the transaction is dropped.
        if usage::record(&mut *tx, call).await? {
            if let Some(task_id) = call.task_id {
                tasks::charge(&mut *tx, task_id, call.amount()).await?;
            }
            campaigns::settle(&mut *tx, self.session.campaign_id, Amount::ZERO, call.amount())
                .await?;
            tx.commit().await.map_err(Error::Transaction)?;
        }
        Ok(())
    }
}

/// What the provider says it cost, if it says so.
fn told_micros(answered: &Result<Outcome, providers::Error>) -> Option<i64> {
    let spent = match answered {
        Ok(outcome) => &outcome.spent,
        Err(error) => &error.spent,
    };
    let told: u64 = spent.iter().filter_map(|spent| spent.cost_micros).sum();
    i64::try_from(told).ok().filter(|_| !spent.is_empty())
}

/// How a call stands in the ledger. One that was not taken is no call.
fn billed(answered: &Result<Outcome, providers::Error>) -> Option<(usage::Outcome, Option<Usage>)> {
    match answered {
        Ok(outcome) => Some((usage::Outcome::Done, Some(outcome.usage))),
        Err(error) => {
            let usage = error.usage.as_deref().copied();
            match error.class {
                Class::Snooze { .. } if usage.is_none() => None,
                Class::Cancelled => Some((usage::Outcome::Interrupted, usage)),
                _ => Some((usage::Outcome::Failed, usage)),
            }
        }
    }
}

fn tokens(usage: Option<Usage>) -> Tokens {
    let usage = usage.unwrap_or_default();
    Tokens {
        input: usage.input.map(clamped),
        output: usage.output.map(clamped),
        cache_read: usage.cache_read.map(clamped),
        cache_creation: usage.cache_creation.map(clamped),
    }
}

fn clamped(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

fn narrow(tokens: u64) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}
