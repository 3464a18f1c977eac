//! What a question means, and how it is compared.

use sqlx::{PgConnection, PgExecutor};

use super::metrics::{Answered, count};
use crate::domain::Failed;

/// What a question means.
#[derive(Debug, Clone, PartialEq)]
pub struct Meaning {
    /// Who says so. Only vectors of the same model are compared with it.
    pub model: String,
    pub vector: Vec<f32>,
    /// What is less near is not found: 1 is the same direction, 0 has nothing in common.
    pub least_similarity: f64,
}

/// Whether the extension that compares vectors can be used in this database.
pub async fn is_comparable(executor: impl PgExecutor<'_>) -> Result<bool, Failed> {
    sqlx::query_scalar!(r#"select to_regtype('vector') is not null as "is_there!""#)
        .fetch_one(executor)
        .await
        .map_err(Failed::to("see whether vectors can be compared"))
}

impl Meaning {
    /// The statement, for vectors as long as this one: an index of the extension is of one length. `None`: nothing can be compared here.
    pub(in crate::domain) async fn statement(
        &self,
        conn: &mut PgConnection,
        template: &str,
    ) -> Result<Option<String>, Failed> {
        if !is_comparable(conn).await? {
            count(Answered::NoExtension);
            return Ok(None);
        }
        Ok(Some(template.replace("{n}", &self.vector.len().to_string())))
    }
}
