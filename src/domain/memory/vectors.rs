//! The vectors of items.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::Config;
use crate::domain::{
    StatementError,
    embeddings::{self, Embedding, PendingText, TEXT_MAX_CHARS},
};

/// Requests vectors of the items that the caller has written, if an embedding model is configured.
pub async fn request_embeddings(
    conn: &mut PgConnection,
    config: &Config,
) -> Result<(), StatementError> {
    match config.embeddings_model() {
        Some(_) => embeddings::request(conn).await,
        None => Ok(()),
    }
}

/// Lists current items after this id that have no vector of the model, in the order of ids.
pub async fn list_without_vector(
    executor: impl PgExecutor<'_>,
    model: &str,
    after: Uuid,
    limit: i64,
    now: DateTime<Utc>,
) -> Result<Vec<PendingText>, StatementError> {
    sqlx::query_as!(
        PendingText,
        r#"select m.id, m.version, m.title || e'\n\n' || left(m.body, $5) as "text!"
             from dalsegno.memory_items as m
            where m.id > $2 and m.revoked_at is null and (m.expires_at is null or m.expires_at > $4)
              and not exists (select from dalsegno.memory_embeddings as e
                               where e.item_id = m.id and e.version = m.version and e.model = $1)
            order by m.id limit $3"#,
        model,
        after,
        limit,
        now,
        TEXT_MAX_CHARS,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list items without an embedding"))
}

/// Stores vectors of items that still exist in the same version. Skips locked items: the transaction that changes one requests a vector
/// again.
pub async fn keep_vectors(
    conn: &mut PgConnection,
    model: &str,
    made: &[Embedding],
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    for Embedding { id, version, vector } in made {
        sqlx::query!(
            "insert into dalsegno.memory_embeddings (item_id, made_at, version, model, vector)
             select m.id, $3, m.version, $4, $5 from dalsegno.memory_items as m where m.id = $1 and m.version = $2 for key share skip locked
             on conflict (item_id) do update
                set made_at = excluded.made_at, version = excluded.version, model = excluded.model, vector = excluded.vector",
            id,
            version,
            now,
            model,
            vector,
        )
        .execute(&mut *conn)
        .await
        .map_err(StatementError::to("store the embedding of an item"))?;
    }
    Ok(())
}
