//! Campaigns by words of their names.

use sqlx::PgExecutor;
use uuid::Uuid;

use super::Status;
use crate::domain::StatementError;

/// Campaigns whose names are read at most, the newest ones. No index has words of names.
const MAX_READ: i64 = 20_000;

/// Words of a name, and the campaigns among which it is looked for.
#[derive(Debug, Clone, Copy)]
pub struct NameQuery<'a> {
    /// Parts of the name, in any case of letters. A name has to contain all of them.
    pub words: &'a [String],
    pub status: Option<Status>,
    /// Only these.
    pub within: Option<&'a [Uuid]>,
    pub limit: i64,
}

/// Lists ids and names of campaigns, the newest first.
pub async fn search_names(
    executor: impl PgExecutor<'_>,
    query: NameQuery<'_>,
) -> Result<Vec<(Uuid, String)>, StatementError> {
    let rows = sqlx::query!(
        r#"select id as "id!", name as "name!"
           from (select id, name, status from dalsegno.campaigns
                  where $1::uuid[] is null or id = any($1) order by id desc limit $2) as newest
          where ($3::text is null or status = $3)
            and not exists (select from unnest($4::text[]) as word where strpos(lower(name), lower(word)) = 0)
          order by id desc limit $5"#,
        query.within,
        MAX_READ,
        query.status.map(Status::as_str),
        query.words,
        query.limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("find campaigns by words of their names"))?;
    Ok(rows.into_iter().map(|row| (row.id, row.name)).collect())
}
