//! The row of a compaction: prepared, or refused with its reasons.

use serde_json::{Value, json};

use super::{Cause, Error, Folder, PreparedCompaction, fold::FoldResult};
use crate::{
    context::compaction::{
        folding::{Outcome, RefusedAttempt},
        ladder::CompactionStep,
        plan::Plan,
    },
    domain::{
        compactions::{self, AcceptedSummary, New},
        feed,
        sessions::{self, SessionRow},
    },
    jobs::write_attempts::WriteRetries,
};

pub(super) struct Store<'a> {
    pub(super) folder: &'a Folder<'a>,
    pub(super) session: &'a SessionRow,
    pub(super) cause: Cause,
    /// Node of the session.
    pub(super) node: Option<&'a str>,
}

impl Store<'_> {
    pub(super) async fn store(&self, folded: FoldResult) -> Result<PreparedCompaction, Error> {
        let FoldResult { result, model, plan } = folded;
        match result {
            Ok(outcome) => self.store_prepared(outcome, model.as_deref(), &plan).await,
            Err(refused) => self.store_parked(refused, model.as_deref(), &plan).await,
        }
    }

    async fn store_prepared(
        &self,
        outcome: Outcome,
        model: Option<&str>,
        plan: &Plan,
    ) -> Result<PreparedCompaction, Error> {
        let Outcome { compaction, rung, refused, pins_dropped } = outcome;
        let pins = serde_json::to_value(&compaction.pins).map_err(Error::Encode)?;
        let prompts = serde_json::to_value(&compaction.prompts).map_err(Error::Encode)?;
        let tokens_after = signed(compaction.tokens_after);
        let flow = compaction.flow.as_ref().map(serde_json::to_value).transpose();
        let flow = flow.map_err(Error::Encode)?;
        let accepted = AcceptedSummary {
            summary: &compaction.summary,
            pins: &pins,
            rung: word(rung),
            tokens_after,
            flow: flow.as_ref(),
            prompts: Some(&prompts),
        };
        let generation = self.insert(plan, model, &refused, Some(accepted)).await?;
        if pins_dropped > 0 {
            tracing::warn!(session.id = %self.session.id, generation, pins_dropped, "cannot pin all strings of a summary");
        }
        Ok(PreparedCompaction {
            generation,
            rung: Some(rung),
            tokens_before: signed(plan.tokens_before),
            tokens_after,
            refused,
            pins_dropped,
            is_earlier: false,
        })
    }

    async fn store_parked(
        &self,
        refused: Vec<RefusedAttempt>,
        model: Option<&str>,
        plan: &Plan,
    ) -> Result<PreparedCompaction, Error> {
        let generation = self.insert(plan, model, &refused, None).await?;
        Err(Error::Parked { session_id: self.session.id, generation, refused })
    }

    /// Stores the row as soon as the database answers: its summary was paid for. If a commit was not confirmed, the next attempt stores
    /// another row, and only one of them is applied.
    async fn insert(
        &self,
        plan: &Plan,
        model: Option<&str>,
        refused: &[RefusedAttempt],
        accepted: Option<AcceptedSummary<'_>>,
    ) -> Result<i32, Error> {
        let mut retries = WriteRetries::new(self.folder.cancel);
        loop {
            match self.try_insert(plan, model, refused, accepted).await {
                Err(error) if retries.wait_after(&error).await => {}
                inserted => return inserted,
            }
        }
    }

    async fn try_insert(
        &self,
        plan: &Plan,
        model: Option<&str>,
        refused: &[RefusedAttempt],
        accepted: Option<AcceptedSummary<'_>>,
    ) -> Result<i32, Error> {
        let now = self.folder.clock.now();
        let refusals = serde_json::to_value(refused).map_err(Error::Encode)?;
        let mut tx = self.folder.pool.begin().await.map_err(Error::Transaction)?;
        let generation = sessions::next_generation(&mut *tx, self.session.id).await?;
        let new = New {
            session_id: self.session.id,
            generation,
            parent: self.session.generation,
            from_seq: plan.from_seq,
            to_seq: plan.to_seq,
            cause: self.cause,
            turn: self.session.turn_count,
            model,
            tokens_before: signed(plan.tokens_before),
            refusals: &refusals,
            node: self.node,
            accepted,
        };
        compactions::insert(&mut *tx, &new, now).await?;
        if !refused.is_empty() {
            let event = self.refusal(generation, refused, accepted);
            feed::append(&mut *tx, &[event], now).await?;
        }
        tx.commit().await.map_err(Error::Transaction)?;
        Ok(generation)
    }

    /// Builds the feed event of refused summaries. The operator should learn of a bad summariser even where another one
    /// stepped in.
    fn refusal(
        &self,
        generation: i32,
        refused: &[RefusedAttempt],
        accepted: Option<AcceptedSummary<'_>>,
    ) -> feed::New {
        feed::New {
            campaign_id: Some(self.session.campaign_id),
            task_id: None,
            session_id: Some(self.session.id),
            kind: feed::Kind::CompactionRefused,
            data: json!({
                "generation": generation,
                "cause": self.cause,
                "refused": refused.iter().map(reasons).collect::<Vec<_>>(),
                "accepted": accepted.map(|accepted| accepted.rung),
            }),
        }
    }
}

/// Kinds of the refusals, without texts: the feed holds nothing of a conversation.
fn reasons(attempt: &RefusedAttempt) -> Value {
    let kinds: Vec<Value> = attempt
        .refusals
        .iter()
        .filter_map(|refusal| serde_json::to_value(refusal).ok()?.get("refusal").cloned())
        .collect();
    json!({ "rung": attempt.rung, "refusals": kinds })
}

fn word(rung: CompactionStep) -> &'static str {
    match rung {
        CompactionStep::First => "first",
        CompactionStep::Retry => "retry",
        CompactionStep::Alternate => "alternate",
        CompactionStep::Extract => "extract",
        CompactionStep::Park => "park",
    }
}

fn signed(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}
