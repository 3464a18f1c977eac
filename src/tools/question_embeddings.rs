//! Embeddings of questions, if the configuration names an embedding model.

use std::sync::{Arc, LazyLock};

use crate::{
    causes::causes,
    domain::{
        memory,
        search::{self, QueryEmbedding, SearchResult},
    },
    providers::ollama::{self, Embedder},
};

type MakeEmbedder = Box<dyn FnOnce() -> Option<Arc<Embedder>> + Send>;

/// Source of embeddings for questions. Made once, because it remembers a host that does not answer.
#[derive(Debug)]
pub struct Meanings {
    /// Made at the first question: most commands never ask one.
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
            // Search continues with words alone.
            let warn = |error| {
                tracing::error!(
                    error = causes(&error),
                    "cannot set up the embedding search: using full-text search only"
                )
            };
            embedder.map(Arc::new).map_err(warn).ok()
        };
        let embedder = LazyLock::new(Box::new(make) as MakeEmbedder);
        Self { embedder, least_similarity: memory.embeddings_least_similarity() }
    }

    /// Returns the embedder, or `None` if no embedding model can be used.
    pub fn embedder(&self) -> Option<&Embedder> {
        self.embedder.as_deref()
    }

    /// Embeds a question. `None` means that the search uses words alone. No transaction may be open.
    pub async fn of_question(&self, words: &str) -> Option<QueryEmbedding> {
        let embedder = self.embedder.as_ref()?;
        // Questions that the search refuses or takes word for word need no vector.
        if !search::needs_meaning(words) {
            return None;
        }
        match embedder.embed_question(words).await {
            Ok(vector) => Some(QueryEmbedding {
                model: embedder.model().to_owned(),
                vector,
                least_similarity: self.least_similarity,
            }),
            Err(error) => {
                search::count(SearchResult::NoModel);
                tracing::warn!(
                    error = causes(&error),
                    "cannot compute the embedding of a query: using full-text search only"
                );
                None
            }
        }
    }
}
