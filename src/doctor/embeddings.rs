//! Check of search by meaning, where `memory.embeddings_model` is set.

use std::time::Duration;

use sqlx::PgPool;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Finding;
use crate::{causes::causes, config::Config, domain::search, providers::ollama::Embedder};

const CHECK: &str = "embeddings";
const WHY: &str = "memory.embeddings_model is set, but without pgvector and the model, searches use full-text search only";

/// Timeout of the probe: it may have to load the model into memory first.
const LOAD_LIMIT: Duration = Duration::from_secs(60);

/// Returns nothing where embeddings are off.
pub(super) async fn examine(config: &Config, pool: &PgPool) -> Option<Finding> {
    let model = config.memory.embeddings_model()?;
    Some(match search::is_comparable(pool).await {
        Ok(true) => ask(config, model).await,
        Ok(false) => {
            let what = "the type vector is not on the search path of the database";
            let fix = "install pgvector on the server, and run `create extension vector` in this database, in a schema of the search path";
            Finding::warn(CHECK, what, WHY, fix)
        }
        Err(error) => Finding::warn(CHECK, causes(&error), WHY, "dalsegno migrate up"),
    })
}

async fn ask(config: &Config, model: &str) -> Finding {
    let embedder = Embedder::new(&config.ollama, model, config.memory.embeddings_timeout());
    let never = CancellationToken::new();
    let asked = match &embedder {
        Ok(embedder) => timeout(LOAD_LIMIT, embedder.probe(&never)).await,
        Err(error) => return warn(causes(error), model),
    };
    match asked {
        Ok(Ok(vector)) => {
            let what = format!(
                "pgvector is installed; {model} computes embeddings with {} dimensions",
                vector.len()
            );
            Finding::ok(CHECK, what, WHY)
        }
        Ok(Err(error)) => warn(causes(&error), model),
        Err(_) => {
            let what = format!("{model} did not answer within {} s", LOAD_LIMIT.as_secs());
            let fix = "check with `ollama ps` whether the server hangs; the service itself waits longer for a model that loads slowly";
            Finding::warn(CHECK, what, WHY, fix)
        }
    }
}

fn warn(what: String, model: &str) -> Finding {
    let fix = format!(
        "run `ollama pull {model}` on the server at ollama.base_url, or correct one of the two settings"
    );
    Finding::warn(CHECK, what, WHY, fix)
}
