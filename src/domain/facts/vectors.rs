//! The vectors of facts.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::domain::{
    StatementError,
    embeddings::{Embedding, PendingText},
};

/// Current facts behind this id without a vector of the model, in the order of ids.
pub async fn list_without_vector(
    executor: impl PgExecutor<'_>,
    model: &str,
    after: Uuid,
    limit: i64,
    now: DateTime<Utc>,
) -> Result<Vec<PendingText>, StatementError> {
    sqlx::query_as!(
        PendingText,
        r#"select f.id, 1 as "version!", f.attribute || ': ' || f.text as "text!"
             from dalsegno.facts as f
            where f.id > $2 and f.valid_until is null and (f.expires_at is null or f.expires_at > $4)
              and not exists (select from dalsegno.fact_embeddings as e where e.fact_id = f.id and e.model = $1)
            order by f.id limit $3"#,
        model,
        after,
        limit,
        now,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list facts without an embedding"))
}

/// Stores vectors of facts that still exist. Skips locked facts: the transaction that changes one requests a vector again.
pub async fn keep_vectors(
    conn: &mut PgConnection,
    model: &str,
    made: &[Embedding],
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    for Embedding { id, vector, .. } in made {
        sqlx::query!(
            "insert into dalsegno.fact_embeddings (fact_id, made_at, model, vector)
             select f.id, $2, $3, $4 from dalsegno.facts as f where f.id = $1 for key share skip locked
             on conflict (fact_id) do update set made_at = excluded.made_at, model = excluded.model, vector = excluded.vector",
            id,
            now,
            model,
            vector,
        )
        .execute(&mut *conn)
        .await
        .map_err(StatementError::to("store the embedding of a fact"))?;
    }
    Ok(())
}
