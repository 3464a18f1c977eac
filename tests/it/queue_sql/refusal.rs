//! The errors that a caller in any language gets for a refused call.

use sqlx::{PgConnection, postgres::PgDatabaseError};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub code: String,
    pub message: String,
    pub hint: String,
}

impl Refusal {
    pub fn new(code: &str, message: &str, hint: &str) -> Self {
        Self { code: code.to_owned(), message: message.to_owned(), hint: hint.to_owned() }
    }

    pub fn of(error: &sqlx::Error) -> Self {
        let error = error.as_database_error().unwrap_or_else(|| panic!("not refused, but {error}"));
        let error = error.downcast_ref::<PgDatabaseError>();
        Self::new(error.code(), error.message(), error.hint().unwrap_or_default())
    }
}

/// Runs a statement that must be refused.
pub async fn refused(conn: &mut PgConnection, sql: &str) -> Refusal {
    let answer = sqlx::query(sqlx::AssertSqlSafe(sql.to_owned())).fetch_all(conn).await;
    Refusal::of(&answer.err().unwrap_or_else(|| panic!("not refused: {sql}")))
}
