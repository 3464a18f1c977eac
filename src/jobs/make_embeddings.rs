//! Makes vectors of what holds in memories and of facts that hold, as far as the configured model has made none of it.
//!
//! In batches, each kept in a short transaction under the job's lease: a run that is stopped has done something, and whoever comes again
//! goes on there. No transaction is open while the model is asked.
//!
//! One text that a model does not take, or at which its server breaks, keeps no other from being found: what fails is asked for in
//! halves, down to that text. If the model takes another text meanwhile, it gets an empty vector: at once where it is refused, and after
//! some attempts of the job where the server breaks. Otherwise it is the server, and the job comes again.
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
    providers::ollama::{self, Embedder},
    queue::{self, End, HandlerResult, JobError, Run},
};

/// Texts of one request, at first.
const BATCH: usize = 32;
/// The attempt in which a text is given up at which the server breaks. Before it, that may have been anything.
const GIVE_UP_AT: i16 = 5;

#[derive(Debug, thiserror::Error)]
#[error("making vectors: a later run of this job has taken over")]
struct Overtaken;

#[derive(Debug, Clone, Copy)]
enum Of {
    Items,
    Facts,
}

/// A model, and what it says.
struct Asking<'a> {
    embedder: &'a Embedder,
    run: &'a Run,
    /// Texts of one request. Fewer where the server needs too long for more.
    most: usize,
    /// Not kept yet.
    made: Vec<Made>,
    /// Why a text was left to the next attempt.
    left_out: Option<ollama::Error>,
}

pub(super) async fn run(_: MakeEmbeddings, run: Run, services: Arc<Services>) -> HandlerResult {
    let Some(embedder) = services.tools.meanings.embedder() else { return Ok(End::Done) };
    let (most, made) = (BATCH, Vec::new());
    let mut asking = Asking { embedder, run: &run, most, made, left_out: None };
    for of in [Of::Items, Of::Facts] {
        let mut after = Uuid::nil();
        loop {
            let now = services.clock.now();
            let texts = of.unmade(run.pool(), embedder.model(), after, asking.most, now).await;
            let texts = texts.map_err(JobError::retry)?;
            let Some(last) = texts.last() else { break };
            after = last.id;
            let asked = asking.ask_for(&texts).await;
            let made = std::mem::take(&mut asking.made);
            keep(of, embedder.model(), &made, &run, now).await?;
            // A model that is not there may be pulled any time.
            asked.map_err(come_again)?;
        }
    }
    asking.left_out.map_or(Ok(End::Done), |error| Err(JobError::retry(error)))
}

/// A server that asks for a longer wait than the job's own gets it.
fn come_again(error: ollama::Error) -> JobError {
    match error {
        ollama::Error::Busy { after, .. } if !after.is_zero() => {
            JobError::retry_after(after)(error)
        }
        error => JobError::retry(error),
    }
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
    /// Makes what can be made of these. An error is about the server.
    async fn ask_for(&mut self, texts: &[Unmade]) -> Result<(), ollama::Error> {
        let mut left = vec![texts];
        while let Some(part) = left.pop() {
            match self.ask(part).await {
                Ok(vectors) => {
                    let made = part.iter().zip(vectors).map(|(text, vector)| text.made(vector));
                    self.made.extend(made);
                }
                Err(error) if !may_be_about_texts(&error) => return Err(error),
                Err(error) => match part {
                    [text] => self.leave_out(text, error).await?,
                    _ => left.extend(self.halves(part, &error).await?),
                },
            }
        }
        Ok(())
    }

    async fn ask(&self, texts: &[Unmade]) -> Result<Vec<Vec<f32>>, ollama::Error> {
        let said: Vec<&str> = texts.iter().map(|text| text.text.as_str()).collect();
        self.embedder.of_texts(&said, self.run.cancel()).await
    }

    /// The second one first: what is taken next stands last.
    async fn halves<'a>(
        &mut self,
        part: &'a [Unmade],
        error: &ollama::Error,
    ) -> Result<[&'a [Unmade]; 2], ollama::Error> {
        let (first, second) = part.split_at(part.len() / 2);
        if needs_too_long(error) {
            // One that hangs would be waited for again with each half.
            self.embedder.probe(self.run.cancel()).await?;
            self.most = self.most.min(first.len());
        }
        Ok([second, first])
    }

    /// A text that is not taken alone, while the model takes another one.
    async fn leave_out(
        &mut self,
        text: &Unmade,
        error: ollama::Error,
    ) -> Result<(), ollama::Error> {
        self.embedder.probe(self.run.cancel()).await?;
        if !is_refusal(&error) && self.run.attempt() < GIVE_UP_AT {
            self.left_out = Some(error);
            return Ok(());
        }
        tracing::warn!(id = %text.id, code = error.code(), "the model does not take a text: it is found by its words alone");
        self.made.push(text.made(Vec::new()));
        Ok(())
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

/// Models are known to answer some texts with what is no number, at which their server breaks, with an answer or without one.
fn may_be_about_texts(error: &ollama::Error) -> bool {
    use ollama::Error::{Broken, Failed, Malformed};
    let breaks = matches!(error, Broken { .. } | Failed { .. } | Malformed(_));
    breaks || is_refusal(error) || needs_too_long(error)
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
