//! Idempotency keys of tasks: each caller of a campaign has its own key space.
//!
//! The queue has one key space for all jobs. A key is therefore stored as a digest of campaign, caller and the text that the caller
//! chose. `dalsegno.task_key` makes the digest, and `dalsegno.caller_of` derives the caller from a label of the audit log.

use std::collections::HashMap;

use sqlx::PgConnection;
use uuid::Uuid;

use super::{Error, New};
use crate::{domain::StatementError, queue};

/// The key space of a caller in a campaign.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeySpace<'a> {
    campaign_id: Uuid,
    /// The caller's label in the audit log.
    added_by: Option<&'a str>,
}

impl<'a> KeySpace<'a> {
    /// Builds the key space of tasks that one caller adds in one call.
    pub(super) fn of(campaign_id: Uuid, news: &[New<'a>]) -> Self {
        Self { campaign_id, added_by: news.first().and_then(|new| new.added_by) }
    }

    /// Returns the stored form of each key, by the text that the caller chose.
    pub(super) async fn stored(
        self,
        conn: &mut PgConnection,
        keys: &[&str],
    ) -> Result<HashMap<String, String>, StatementError> {
        if keys.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = sqlx::query!(
            r#"select k.key as "key!", dalsegno.task_key($1, dalsegno.caller_of($2), k.key) as "stored!"
                 from unnest($3::text[]) as k (key)"#,
            self.campaign_id,
            self.added_by,
            keys as &[&str],
        )
        .fetch_all(conn)
        .await
        .map_err(StatementError::to("find idempotency keys of a caller"))?;
        Ok(rows.into_iter().map(|row| (row.key, row.stored)).collect())
    }

    /// Finds the tasks that were added under these keys.
    pub(super) async fn tasks(
        self,
        conn: &mut PgConnection,
        keys: &[&str],
    ) -> Result<HashMap<String, Uuid>, Error> {
        // Postgres cannot store NUL, so no task has such a key.
        let keys: Vec<&str> = keys.iter().copied().filter(|key| !key.contains('\0')).collect();
        let stored = self.stored(&mut *conn, &keys).await?;
        let texts: Vec<String> = stored.values().cloned().collect();
        let jobs: HashMap<String, i64> =
            queue::jobs_of_keys(&mut *conn, &texts).await?.into_iter().collect();
        let job_ids: Vec<i64> = jobs.values().copied().collect();
        let tasks = sqlx::query!(
            r#"select coalesce(first_job_id, job_id) as "job_id!", id from dalsegno.tasks
                where ((job_id = any ($1) and first_job_id is null) or first_job_id = any ($1)) and campaign_id = $2"#,
            &job_ids,
            self.campaign_id,
        )
        .fetch_all(conn)
        .await
        .map_err(StatementError::to("find the tasks of idempotency keys"))?;
        let tasks: HashMap<i64, Uuid> = tasks.into_iter().map(|row| (row.job_id, row.id)).collect();
        let task_of = |(key, stored): (String, String)| {
            let task = *tasks.get(jobs.get(&stored)?)?;
            Some((key, task))
        };
        Ok(stored.into_iter().filter_map(task_of).collect())
    }
}
