//! What questions mean, where the configuration names a model that says so.

use std::sync::{Arc, LazyLock};

use crate::{
    causes::causes,
    domain::{
        memory,
        search::{self, Answered, Meaning},
    },
    providers::ollama::{self, Embedder},
};

type MakeEmbedder = Box<dyn FnOnce() -> Option<Arc<Embedder>> + Send>;

/// Whom to ask. Made once, because it remembers a host that does not answer.
#[derive(Debug)]
pub struct Meanings {
    /// Made at the first question: most commands ask none.
    embedder: LazyLock<Option<Arc<Embedder>>, MakeEmbedder>,
    least_similarity: f64,
}

impl Meanings {
    pub fn new(memory: &memory::Config, ollama: &ollama::Config) -> Self {
        let (model, timeout) =
            (memory.embeddings_model().map(str::to_owned), memory.embeddings_timeout());
        let ollama = ollama.clone();
        let make = move || {
            let embedder = Embedder::new(&ollama, model.as_deref()?, timeout);
            // Words alone are enough to go on with.
            let warn = |error| {
                tracing::error!(error = causes(&error), "memories are searched by words alone")
            };
            embedder.map(Arc::new).map_err(warn).ok()
        };
        let embedder = LazyLock::new(Box::new(make) as MakeEmbedder);
        Self { embedder, least_similarity: memory.embeddings_least_similarity() }
    }

    /// `None`: nobody says what texts mean.
    pub fn embedder(&self) -> Option<&Embedder> {
        self.embedder.as_deref()
    }

    /// `None`: words alone are to be looked for. No transaction may be open.
    pub async fn of_question(&self, words: &str) -> Option<Meaning> {
        let embedder = self.embedder.as_ref()?;
        // What the search refuses or takes word for word needs no vector.
        if !search::needs_meaning(words) {
            return None;
        }
        match embedder.of_question(words).await {
            Ok(vector) => Some(Meaning {
                model: embedder.model().to_owned(),
                vector,
                least_similarity: self.least_similarity,
            }),
            Err(error) => {
                search::count(Answered::NoModel);
                tracing::warn!(
                    error = causes(&error),
                    "a question has no embedding: the search uses its words alone"
                );
                None
            }
        }
    }
}
