//! Search by meaning.

use sqlx::{
    AssertSqlSafe, PgConnection, PgExecutor, Postgres, postgres::PgArguments, query::QueryScalar,
};
use uuid::Uuid;

use super::{
    Searchable,
    metrics::{SearchResult, count},
};
use crate::domain::StatementError;

/// The embedding of a question.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryEmbedding {
    /// The embedding model. Only vectors of the same model are compared.
    pub model: String,
    pub vector: Vec<f32>,
    /// Lowest cosine similarity of a hit: 1 is the same direction, 0 is unrelated.
    pub least_similarity: f64,
}

pub(in crate::domain) type NearQuery<'q> = QueryScalar<'q, Postgres, Uuid, PgArguments>;

/// Returns true if this database has the extension that compares vectors.
pub async fn is_comparable(executor: impl PgExecutor<'_>) -> Result<bool, StatementError> {
    sqlx::query_scalar!(r#"select to_regtype('vector') is not null as "is_there!""#)
        .fetch_one(executor)
        .await
        .map_err(StatementError::to("check whether pgvector is installed"))
}

impl QueryEmbedding {
    /// Lists the nearest rows, the nearest first. Returns none without the extension.
    pub(super) async fn nearest<R: Searchable>(
        &self,
        conn: &mut PgConnection,
        rows: &R,
        limit: i64,
    ) -> Result<Vec<Uuid>, StatementError> {
        if !is_comparable(&mut *conn).await? {
            count(SearchResult::NoExtension);
            return Ok(Vec::new());
        }
        // The statement names the vector's length, because an index of the extension has one length.
        let n = self.vector.len().to_string();
        let statement =
            include_str!("by_meaning.sql").replace("{near}", R::NEAR).replace("{n}", &n);
        let query = sqlx::query_scalar(AssertSqlSafe(statement))
            .bind(&self.model)
            .bind(&self.vector)
            .bind(1.0 - self.least_similarity)
            .bind(limit);
        let near = rows.bind(query).fetch_all(conn).await;
        let near = near.map_err(StatementError::to("search by embedding"))?;
        count(if near.is_empty() { SearchResult::Nothing } else { SearchResult::Found });
        Ok(near)
    }
}
