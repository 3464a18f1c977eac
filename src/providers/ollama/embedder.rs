//! Embeddings of texts, by `/api/embed`.
//!
//! A search waits for the embedding of its question. So that call has its own timeout, and a host that keeps missing it is not asked for a
//! while. The job that embeds stored texts has the time that loading a model takes.
//!
//! A server stops loading a model when the caller hangs up. So a question that timed out leaves a call behind that has this time
//! ([`Embedder::load`]), one at once. Otherwise questions alone would never get a model loaded.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize, de::Error as _};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{config::Config, error::Error, http::Http};
use crate::providers::{breaker::Breaker, deadline::CallDeadline};

/// Client of an embedding model.
#[derive(Debug)]
pub struct Embedder {
    http: Http,
    breaker: Breaker,
    model: String,
    keep_alive_secs: i64,
    question_timeout: Duration,
    texts_timeout: Duration,
    /// Limits the calls that load the model to one at once.
    loading: Arc<Semaphore>,
}

#[derive(Debug, Serialize)]
struct Body<'a> {
    model: &'a str,
    input: &'a [&'a str],
    /// On: the beginning of a text tells its subject, and full-text search finds the rest.
    truncate: bool,
    keep_alive: i64,
}

#[derive(Debug, Deserialize)]
struct Answer {
    embeddings: Vec<Vec<f32>>,
}

/// A text that no model refuses.
const PROBE_TEXT: &str = "harbour";
/// Maximum dimensions of a vector in pgvector.
const MAX_DIMENSIONS: usize = 16_000;

impl Embedder {
    /// Builds the client. No connection is opened yet.
    pub fn new(config: &Config, model: &str, question_timeout: Duration) -> Result<Self, Error> {
        Ok(Self {
            http: Http::new(config)?,
            breaker: Breaker::new(config.breaker_failures, config.breaker_open()),
            model: model.to_owned(),
            keep_alive_secs: config.keep_alive_secs,
            question_timeout,
            texts_timeout: config.total_timeout(),
            loading: Arc::new(Semaphore::new(1)),
        })
    }

    pub fn model(&self) -> &str {
        &self.model
    }

    /// Returns the embedding of a question, within `question_timeout`.
    pub async fn embed_question(self: &Arc<Self>, question: &str) -> Result<Vec<f32>, Error> {
        let permit = self.breaker.admit(Instant::now());
        let permit = permit.map_err(|wait| self.http.breaker_open(wait))?;
        let (texts, never) = ([question], CancellationToken::new());
        let asked = self.ask(&texts, &never);
        let answered = timeout(self.question_timeout, asked).await;
        let result = answered.unwrap_or(Err(Error::NoMeaning { after: self.question_timeout }));
        match &result {
            Err(error) if error.is_of_transport() => permit.record_failure(Instant::now()),
            _ => permit.record_success(),
        }
        if matches!(result, Err(Error::NoMeaning { .. })) {
            self.load();
        }
        Ok(result?.swap_remove(0))
    }

    /// Returns the embeddings of texts, in their order and with equal dimensions.
    pub async fn embed_texts(
        &self,
        texts: &[&str],
        cancel: &CancellationToken,
    ) -> Result<Vec<Vec<f32>>, Error> {
        self.ask(texts, cancel).await
    }

    /// Embeds a harmless text, to tell whether the server can embed with this model at all.
    pub async fn probe(&self, cancel: &CancellationToken) -> Result<Vec<f32>, Error> {
        Ok(self.ask(&[PROBE_TEXT], cancel).await?.swap_remove(0))
    }

    /// Loads the model in the background, for later questions. It ends with the process.
    fn load(self: &Arc<Self>) {
        let Ok(only_one) = Arc::clone(&self.loading).try_acquire_owned() else { return };
        let embedder = Arc::clone(self);
        tokio::spawn(async move {
            let _only_one = only_one;
            if let Err(error) = embedder.probe(&CancellationToken::new()).await {
                let (code, model) = (error.code(), &embedder.model);
                tracing::warn!(code, model, "cannot load the embedding model: {error}");
            }
        });
    }

    async fn ask(
        &self,
        texts: &[&str],
        cancel: &CancellationToken,
    ) -> Result<Vec<Vec<f32>>, Error> {
        let Self { model, keep_alive_secs, .. } = self;
        let body = Body { model, input: texts, truncate: true, keep_alive: *keep_alive_secs };
        let body = serde_json::to_vec(&body).map_err(Error::Unwritable)?;
        let patience = CallDeadline::starting_now(self.texts_timeout, cancel);
        let answer: Answer = self.http.embed(model, body, &patience).await?;
        match wrong_with(&answer.embeddings, texts.len()) {
            None => Ok(answer.embeddings),
            Some(wrong) => Err(Error::Malformed(serde_json::Error::custom(wrong))),
        }
    }
}

/// Returns the fault of vectors that could not be compared, and so must not be stored.
fn wrong_with(vectors: &[Vec<f32>], n_texts: usize) -> Option<&'static str> {
    let length = vectors.first().map_or(0, Vec::len);
    let is_vector = |vector: &Vec<f32>| {
        vector.len() == length
            && vector.iter().all(|number| number.is_finite())
            && vector.iter().any(|number| *number != 0.0)
    };
    match vectors.len() == n_texts && (1..=MAX_DIMENSIONS).contains(&length) {
        false => Some("the number of embeddings differs from the number of texts"),
        true if !vectors.iter().all(is_vector) => {
            Some("the embeddings differ in length, or contain invalid numbers")
        }
        true => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_vector_per_text_is_accepted() {
        assert_eq!(wrong_with(&[vec![0.0, 1.0], vec![1.0, 0.0]], 2), None);
        for (vectors, n_texts) in [
            (vec![], 1),
            (vec![vec![1.0]], 2),
            (vec![vec![]], 1),
            (vec![vec![1.0], vec![1.0, 0.0]], 2),
            (vec![vec![0.0, 0.0]], 1),
            (vec![vec![f32::INFINITY]], 1),
            (vec![vec![1.0; MAX_DIMENSIONS + 1]], 1),
        ] {
            assert!(wrong_with(&vectors, n_texts).is_some(), "{} of {n_texts}", vectors.len());
        }
    }
}
