//! Finding facts by what they mean, and the vectors that it takes.

use chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, PgConnection, PgExecutor};
use uuid::Uuid;

use crate::domain::{
    Failed,
    embeddings::{self, Answered, Made, Meaning, Unmade},
};

/// The nearest first. Nothing where nothing can be compared.
pub(super) async fn nearest(
    conn: &mut PgConnection,
    user: &str,
    limit: i64,
    meaning: &Meaning,
    now: DateTime<Utc>,
) -> Result<Vec<Uuid>, Failed> {
    let template = include_str!("by_meaning.sql");
    let Some(statement) = meaning.statement(&mut *conn, template).await? else {
        return Ok(Vec::new());
    };
    let near: Vec<Uuid> = sqlx::query_scalar(AssertSqlSafe(statement))
        .bind(user)
        .bind(now)
        .bind(limit)
        .bind(&meaning.model)
        .bind(&meaning.vector)
        .bind(1.0 - meaning.least_similarity)
        .fetch_all(conn)
        .await
        .map_err(Failed::to("search facts by meaning"))?;
    embeddings::count(if near.is_empty() { Answered::Nothing } else { Answered::Found });
    Ok(near)
}

/// What holds behind this id and has no vector of the model, in the order of ids.
pub async fn unmade(
    executor: impl PgExecutor<'_>,
    model: &str,
    after: Uuid,
    limit: i64,
    now: DateTime<Utc>,
) -> Result<Vec<Unmade>, Failed> {
    sqlx::query_as!(
        Unmade,
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
    .map_err(Failed::to("look for facts without a vector"))
}

/// Keeps vectors of facts that are still there, but for those that somebody has locked: whoever changes one asks again.
pub async fn keep_vectors(
    conn: &mut PgConnection,
    model: &str,
    made: &[Made],
    now: DateTime<Utc>,
) -> Result<(), Failed> {
    for Made { id, vector, .. } in made {
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
        .map_err(Failed::to("keep the vector of a fact"))?;
    }
    Ok(())
}
