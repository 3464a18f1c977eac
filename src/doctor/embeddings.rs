//! What it takes to find by meaning, where that is on.

use sqlx::PgPool;

use super::Finding;
use crate::{causes::causes, config::Config, domain::embeddings, providers::ollama::Embedder};

const CHECK: &str = "embeddings";
const WHY: &str = "memory.embeddings_model is set, and without pgvector and the model memories are searched by words alone";

/// Nothing where it is off.
pub(super) async fn examine(config: &Config, pool: &PgPool) -> Option<Finding> {
    let model = config.memory.embeddings_model()?;
    Some(match embeddings::is_comparable(pool).await {
        Ok(true) => ask(config, model).await,
        Ok(false) => {
            let what = "the type vector is not on the search path of the database";
            let mend = "install pgvector on the server, and run `create extension vector` in this database, in a schema that the \
                        service looks into";
            Finding::warn(CHECK, what, WHY, mend)
        }
        Err(error) => Finding::warn(CHECK, causes(&error), WHY, "dalsegno migrate up"),
    })
}

async fn ask(config: &Config, model: &str) -> Finding {
    let embedder = Embedder::new(&config.ollama, model, config.memory.embeddings_timeout());
    let asked = match &embedder {
        Ok(embedder) => embedder.of_question("harbour").await.map_err(|error| causes(&error)),
        Err(error) => Err(causes(error)),
    };
    match asked {
        Ok(vector) => {
            let what = format!("pgvector is there, and {model} makes vectors of {}", vector.len());
            Finding::ok(CHECK, what, WHY)
        }
        Err(error) => {
            let mend =
                format!("`ollama pull {model}` where ollama.base_url leads, or correct the two");
            Finding::warn(CHECK, error, WHY, mend)
        }
    }
}
