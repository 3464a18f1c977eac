//! Handler that makes embeddings for valid memory items and facts, as far as the configured model has made none yet.
//!
//! It works in batches. Each is stored in a short transaction under the job's lease, so a later run continues where
//! this one stopped. No transaction is open during a call of the model.
//!
//! One text that the model refuses, or that breaks its server, does not block the others: a failed batch is halved down
//! to that text. If the model accepts another text meanwhile, the bad one gets an empty vector: at once if it was
//! refused, after some attempts of the job if the server broke. If the model accepts no other text, the server is at
//! fault, and the job is retried.
//!
//! Race: a text may change or be removed meanwhile. Only rows that still have the same text get its vector. The change
//! has requested the next run.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::Services;
use crate::{
    causes::causes,
    domain::{
        StatementError,
        embeddings::{self, Embedding, MakeEmbeddings, PendingText},
        facts, memory,
        transaction::{begin, commit},
    },
    providers::ollama::{self, Embedder},
    queue::{self, End, HandlerResult, JobError, Run},
};

/// Initial number of texts of one request.
const BATCH: usize = 32;
/// Attempt in which a text that breaks the server is given up. Earlier failures may have other causes.
const GIVE_UP_AT: i16 = 5;

#[derive(Debug, thiserror::Error)]
#[error("a later run of this job took over the computation of embeddings")]
struct LostLease;

#[derive(Debug, Clone, Copy)]
enum EmbeddingSource {
    Items,
    Facts,
}

/// A run's calls of the embedding model, and their results.
struct EmbeddingRun<'a> {
    embedder: &'a Embedder,
    run: &'a Run,
    /// Texts of one request. It shrinks when the server is too slow for more.
    most: usize,
    /// Vectors that are not stored yet.
    made: Vec<Embedding>,
    /// Error of a text that was left to the next attempt.
    left_out: Option<ollama::Error>,
}

pub(super) async fn run(_: MakeEmbeddings, run: Run, services: Arc<Services>) -> HandlerResult {
    let Some(embedder) = services.tools.meanings.embedder() else { return Ok(End::Done) };
    let (most, made) = (BATCH, Vec::new());
    let mut asking = EmbeddingRun { embedder, run: &run, most, made, left_out: None };
    for of in [EmbeddingSource::Items, EmbeddingSource::Facts] {
        let mut after = Uuid::nil();
        loop {
            let now = services.clock.now();
            let texts =
                of.list_without_vector(run.pool(), embedder.model(), after, asking.most, now).await;
            let texts = texts.map_err(JobError::retry)?;
            let Some(last) = texts.last() else { break };
            after = last.id;
            let asked = asking.embed_texts(&texts).await;
            let made = std::mem::take(&mut asking.made);
            store_vectors(of, embedder.model(), &made, &run, now).await?;
            // A retry, because a missing model may be pulled at any time.
            asked.map_err(retry_later)?;
        }
    }
    asking.left_out.map_or(Ok(End::Done), |error| Err(JobError::retry(error)))
}

/// Retries the job, after the wait that the server asks for, if any.
fn retry_later(error: ollama::Error) -> JobError {
    match error {
        ollama::Error::Busy { after, .. } if !after.is_zero() => {
            JobError::retry_after(after)(error)
        }
        error => JobError::retry(error),
    }
}

/// Requests embeddings when a process starts, because it may be the first with this model.
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
            "cannot enqueue the computation of embeddings: the next write enqueues it"
        );
    }
}

impl EmbeddingRun<'_> {
    /// Makes vectors for these texts, as far as possible. An error is one of the server.
    async fn embed_texts(&mut self, texts: &[PendingText]) -> Result<(), ollama::Error> {
        let mut left = vec![texts];
        while let Some(part) = left.pop() {
            match self.ask(part).await {
                Ok(vectors) => {
                    let made =
                        part.iter().zip(vectors).map(|(text, vector)| text.with_vector(vector));
                    self.made.extend(made);
                }
                Err(error) if !may_be_about_texts(&error) => return Err(error),
                Err(error) => match part {
                    [text] => self.skip_text(text, error).await?,
                    _ => left.extend(self.halves(part, &error).await?),
                },
            }
        }
        Ok(())
    }

    async fn ask(&self, texts: &[PendingText]) -> Result<Vec<Vec<f32>>, ollama::Error> {
        let said: Vec<&str> = texts.iter().map(|text| text.text.as_str()).collect();
        self.embedder.embed_texts(&said, self.run.cancel()).await
    }

    /// Splits a batch. The second half comes first, because the stack is popped from its end.
    async fn halves<'a>(
        &mut self,
        part: &'a [PendingText],
        error: &ollama::Error,
    ) -> Result<[&'a [PendingText]; 2], ollama::Error> {
        let (first, second) = part.split_at(part.len() / 2);
        if needs_too_long(error) {
            // If the server hangs, each half would run into the timeout again; the probe finds that out first.
            self.embedder.probe(self.run.cancel()).await?;
            self.most = self.most.min(first.len());
        }
        Ok([second, first])
    }

    /// Gives a single text up, or leaves it to the next attempt, if the model accepts another text.
    async fn skip_text(
        &mut self,
        text: &PendingText,
        error: ollama::Error,
    ) -> Result<(), ollama::Error> {
        self.embedder.probe(self.run.cancel()).await?;
        if !is_refusal(&error) && self.run.attempt() < GIVE_UP_AT {
            self.left_out = Some(error);
            return Ok(());
        }
        tracing::warn!(text.id = %text.id, code = error.code(), "the embedding model refuses a text: full-text search still finds it");
        self.made.push(text.with_vector(Vec::new()));
        Ok(())
    }
}

/// Stores vectors under the job's lease: a run that has lost it stores nothing.
async fn store_vectors(
    of: EmbeddingSource,
    model: &str,
    made: &[Embedding],
    run: &Run,
    now: DateTime<Utc>,
) -> Result<(), JobError> {
    let kept = async {
        let mut tx = begin(run.pool()).await?;
        of.store(&mut tx, model, made, now).await?;
        Ok::<_, StatementError>(tx)
    };
    let mut tx = kept.await.map_err(JobError::retry)?;
    if !queue::check_and_lock_lease(&mut *tx, run.job_id(), run.lease())
        .await
        .map_err(JobError::retry)?
    {
        return Err(JobError::retry(LostLease));
    }
    commit(tx).await.map_err(JobError::retry)
}

fn is_refusal(error: &ollama::Error) -> bool {
    matches!(error, ollama::Error::Refused { .. } | ollama::Error::Overflow { .. })
}

fn needs_too_long(error: &ollama::Error) -> bool {
    matches!(error, ollama::Error::Silent { .. } | ollama::Error::TooLong { .. })
}

/// Returns true if a text may be the cause. Some models answer certain texts with NaN, at which their server breaks.
fn may_be_about_texts(error: &ollama::Error) -> bool {
    use ollama::Error::{Broken, Failed, Malformed};
    let breaks = matches!(error, Broken { .. } | Failed { .. } | Malformed(_));
    breaks || is_refusal(error) || needs_too_long(error)
}

impl EmbeddingSource {
    async fn list_without_vector(
        self,
        pool: &PgPool,
        model: &str,
        after: Uuid,
        most: usize,
        now: DateTime<Utc>,
    ) -> Result<Vec<PendingText>, StatementError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        match self {
            Self::Items => memory::list_without_vector(pool, model, after, most, now).await,
            Self::Facts => facts::list_without_vector(pool, model, after, most, now).await,
        }
    }

    async fn store(
        self,
        conn: &mut PgConnection,
        model: &str,
        made: &[Embedding],
        now: DateTime<Utc>,
    ) -> Result<(), StatementError> {
        match self {
            Self::Items => memory::keep_vectors(conn, model, made, now).await,
            Self::Facts => facts::keep_vectors(conn, model, made, now).await,
        }
    }
}
