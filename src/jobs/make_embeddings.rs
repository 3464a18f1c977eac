//! Makes vectors of what holds in memories and of facts that hold, as far as the configured model has made none of it.
//!
//! In batches, each kept in a short transaction under the job's lease: a run that is stopped has done something, and whoever comes again
//! goes on there. No transaction is open while the model is asked.
//!
//! Race: what a vector is made of may change or go meanwhile. Only what is still there and says the same gets it, and whoever changed it
//! has asked for the next run.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::Services;
use crate::{
    causes::causes,
    domain::{
        Failed,
        embeddings::{self, Made, MakeEmbeddings, Unmade},
        facts, memory,
        transaction::{begin, commit},
    },
    providers::{
        Class,
        ollama::{self, Embedder},
    },
    queue::{self, End, HandlerResult, JobError, Run},
};

/// Texts of one request.
const BATCH: i64 = 32;

#[derive(Debug, thiserror::Error)]
#[error("making vectors: a later run of this job has taken over")]
struct Overtaken;

#[derive(Debug, Clone, Copy)]
enum Of {
    Items,
    Facts,
}

/// What a model makes of texts.
struct Answer {
    made: Vec<Made>,
    /// Why some were left out. They are tried again.
    failed: Option<ollama::Error>,
}

pub(super) async fn run(_: MakeEmbeddings, run: Run, services: Arc<Services>) -> HandlerResult {
    let Some(embedder) = services.tools.meanings.embedder() else { return Ok(End::Done) };
    let mut left_out = None;
    for of in [Of::Items, Of::Facts] {
        let mut after = Uuid::nil();
        loop {
            let now = services.clock.now();
            let texts = of.unmade(run.pool(), embedder.model(), after, now).await;
            let texts = texts.map_err(JobError::retry)?;
            let Some(last) = texts.last() else { break };
            after = last.id;
            let Answer { made, failed } = ask(embedder, &texts, &run).await?;
            keep(of, embedder.model(), &made, &run, now).await?;
            left_out = failed.or(left_out);
        }
    }
    left_out.map_or(Ok(End::Done), |error| Err(again(error)))
}

/// Has vectors made in a process that has just begun: it may be the first with this model.
pub async fn request_embeddings(services: &Services, pool: &PgPool) {
    if services.tools.meanings.embedder().is_none() {
        return;
    }
    let requested = async {
        let mut tx = begin(pool).await?;
        embeddings::request(&mut tx).await?;
        commit(tx).await
    };
    if let Err(error) = requested.await {
        tracing::warn!(
            error = causes(&error),
            "vectors are made when something is written the next time"
        );
    }
}

async fn ask(embedder: &Embedder, texts: &[Unmade], run: &Run) -> Result<Answer, JobError> {
    let said: Vec<&str> = texts.iter().map(|text| text.text.as_str()).collect();
    match embedder.of_texts(&said, run.cancel()).await {
        Ok(vectors) => {
            let made = texts.iter().zip(vectors).map(|(text, vector)| text.made(vector)).collect();
            Ok(Answer { made, failed: None })
        }
        Err(error) if may_be_about_one(&error) => one_by_one(embedder, texts, run).await,
        Err(error) => Err(again(error)),
    }
}

/// One text that a model does not take, or at which its server breaks, should not keep others from being found. Where none of several
/// passes, it is not about texts.
async fn one_by_one(embedder: &Embedder, texts: &[Unmade], run: &Run) -> Result<Answer, JobError> {
    let mut answer = Answer { made: Vec::new(), failed: None };
    let mut refused = Vec::new();
    for text in texts {
        match embedder.of_texts(&[&text.text], run.cancel()).await {
            Ok(mut vectors) => answer.made.push(text.made(vectors.swap_remove(0))),
            Err(error) if is_refusal(&error) => refused.push((text, error)),
            Err(error) if may_be_about_one(&error) => answer.failed = Some(error),
            Err(error) => return Err(again(error)),
        }
    }
    if answer.made.is_empty() && texts.len() > 1 {
        let last = refused.pop().map(|(_, error)| error).or(answer.failed.take());
        return last.map_or(Ok(answer), |error| Err(again(error)));
    }
    for (text, error) in refused {
        tracing::warn!(id = %text.id, code = error.code(), "the model refuses a text: it is found by its words alone");
        answer.made.push(text.made(Vec::new()));
    }
    Ok(answer)
}

/// Under the job's lease: a run that has lost it keeps nothing.
async fn keep(
    of: Of,
    model: &str,
    made: &[Made],
    run: &Run,
    now: DateTime<Utc>,
) -> Result<(), JobError> {
    let kept = async {
        let mut tx = begin(run.pool()).await?;
        of.keep(&mut tx, model, made, now).await?;
        Ok::<_, Failed>(tx)
    };
    let mut tx = kept.await.map_err(JobError::retry)?;
    if !queue::holds(&mut *tx, run.job_id(), run.lease()).await.map_err(JobError::retry)? {
        return Err(JobError::retry(Overtaken));
    }
    commit(tx).await.map_err(JobError::retry)
}

fn is_refusal(error: &ollama::Error) -> bool {
    matches!(error, ollama::Error::Refused { .. } | ollama::Error::Overflow { .. })
}

/// Models are known to answer some texts with what is no number, at which their server breaks.
fn may_be_about_one(error: &ollama::Error) -> bool {
    is_refusal(error) || matches!(error, ollama::Error::Failed { .. } | ollama::Error::Malformed(_))
}

/// A model that is not there may be pulled any time.
fn again(error: ollama::Error) -> JobError {
    match error.class() {
        Class::Snooze { after, .. } => JobError::retry_after(after)(error),
        _ => JobError::retry(error),
    }
}

impl Of {
    async fn unmade(
        self,
        pool: &PgPool,
        model: &str,
        after: Uuid,
        now: DateTime<Utc>,
    ) -> Result<Vec<Unmade>, Failed> {
        match self {
            Self::Items => memory::unmade(pool, model, after, BATCH, now).await,
            Self::Facts => facts::unmade(pool, model, after, BATCH, now).await,
        }
    }

    async fn keep(
        self,
        conn: &mut PgConnection,
        model: &str,
        made: &[Made],
        now: DateTime<Utc>,
    ) -> Result<(), Failed> {
        match self {
            Self::Items => memory::keep_vectors(conn, model, made, now).await,
            Self::Facts => facts::keep_vectors(conn, model, made, now).await,
        }
    }
}
