//! Makes vectors of what holds in memories and of facts that hold, as far as the configured model has made none of it.
//!
//! In batches, each kept in a short transaction under the job's lease: a run that is stopped has done something, and whoever comes again
//! goes on there. No transaction is open while the model is asked.
//!
//! One text that a model does not take, or at which its server breaks, keeps no other from being found: what fails is asked for in
//! halves, down to that text. It gets an empty vector, if the model takes another text meanwhile; otherwise it is the server, and the
//! job comes again.
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

/// Texts of one request, at first.
const BATCH: usize = 32;

#[derive(Debug, thiserror::Error)]
#[error("making vectors: a later run of this job has taken over")]
struct Overtaken;

#[derive(Debug, Clone, Copy)]
enum Of {
    Items,
    Facts,
}

/// A model, and what it takes at once.
struct Asking<'a> {
    embedder: &'a Embedder,
    run: &'a Run,
    /// Texts of one request. Fewer where the server needs too long for more.
    most: usize,
}

pub(super) async fn run(_: MakeEmbeddings, run: Run, services: Arc<Services>) -> HandlerResult {
    let Some(embedder) = services.tools.meanings.embedder() else { return Ok(End::Done) };
    let mut asking = Asking { embedder, run: &run, most: BATCH };
    for of in [Of::Items, Of::Facts] {
        let mut after = Uuid::nil();
        loop {
            let now = services.clock.now();
            let texts = of.unmade(run.pool(), embedder.model(), after, asking.most, now).await;
            let texts = texts.map_err(JobError::retry)?;
            let Some(last) = texts.last() else { break };
            after = last.id;
            let made = asking.vectors_of(&texts).await.map_err(again)?;
            keep(of, embedder.model(), &made, &run, now).await?;
        }
    }
    Ok(End::Done)
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

impl Asking<'_> {
    /// One for each text, empty where the model has none for it. An error is about the server.
    async fn vectors_of(&mut self, texts: &[Unmade]) -> Result<Vec<Made>, ollama::Error> {
        let mut made = Vec::with_capacity(texts.len());
        let mut left = vec![texts];
        while let Some(part) = left.pop() {
            match self.ask(part).await {
                Ok(vectors) => {
                    made.extend(part.iter().zip(vectors).map(|(text, vector)| text.made(vector)));
                }
                Err(error) if !may_be_about_texts(&error) => return Err(error),
                Err(error) => match part {
                    [text] => made.push(text.made(self.of_odd(text, error).await?)),
                    _ => left.extend(self.halves(part, &error)),
                },
            }
        }
        Ok(made)
    }

    async fn ask(&self, texts: &[Unmade]) -> Result<Vec<Vec<f32>>, ollama::Error> {
        let said: Vec<&str> = texts.iter().map(|text| text.text.as_str()).collect();
        self.embedder.of_texts(&said, self.run.cancel()).await
    }

    /// The second one first: what is taken next stands last.
    fn halves<'a>(&mut self, part: &'a [Unmade], error: &ollama::Error) -> [&'a [Unmade]; 2] {
        let (first, second) = part.split_at(part.len() / 2);
        if needs_too_long(error) {
            self.most = self.most.min(first.len());
        }
        [second, first]
    }

    /// Of a text that is not taken alone. Where the model takes another one and this one fails again, it is the text.
    async fn of_odd(&self, text: &Unmade, error: ollama::Error) -> Result<Vec<f32>, ollama::Error> {
        self.embedder.probe(self.run.cancel()).await?;
        if !is_refusal(&error) {
            match self.ask(std::slice::from_ref(text)).await {
                Ok(mut vectors) => return Ok(vectors.swap_remove(0)),
                Err(error) if !may_be_about_texts(&error) => return Err(error),
                Err(_) => {}
            }
        }
        tracing::warn!(id = %text.id, code = error.code(), "the model does not take a text: it is found by its words alone");
        Ok(Vec::new())
    }
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

fn needs_too_long(error: &ollama::Error) -> bool {
    matches!(error, ollama::Error::Silent { .. } | ollama::Error::TooLong { .. })
}

/// Models are known to answer some texts with what is no number, at which their server breaks.
fn may_be_about_texts(error: &ollama::Error) -> bool {
    let breaks = matches!(error, ollama::Error::Failed { .. } | ollama::Error::Malformed(_));
    breaks || is_refusal(error) || needs_too_long(error)
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
        most: usize,
        now: DateTime<Utc>,
    ) -> Result<Vec<Unmade>, Failed> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        match self {
            Self::Items => memory::unmade(pool, model, after, most, now).await,
            Self::Facts => facts::unmade(pool, model, after, most, now).await,
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
