//! Preview of a bulk action: the tasks that match now.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use super::{Action, Error};
use crate::domain::tasks::{self, ListedTask, RefusedRetry, Task, TaskFilter};

/// Maximum number of tasks that a preview shows.
const PREVIEW_LIMIT: i64 = 20;

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = BulkActionPreview)]
pub struct Preview {
    /// Tasks that match now.
    pub matched: i64,
    /// The first of them, at most 20.
    pub tasks: Vec<ListedTask>,
    /// Those of `tasks` that would fail again at once, because the limit of their budget does not allow their call, and those that the action
    /// leaves out, because they are steps of flows and are retried with these. Empty for a cancellation.
    #[serde(default)]
    pub refused: Vec<RefusedRetry>,
}

pub async fn preview(
    conn: &mut PgConnection,
    action: Action,
    filter: &TaskFilter,
    now: DateTime<Utc>,
) -> Result<Preview, Error> {
    filter.check()?;
    if filter.is_empty() {
        return Err(Error::EmptyFilter);
    }
    let states = action.states();
    let matched = tasks::count_matching(&mut *conn, filter, states, now).await?;
    let ids = tasks::list_matching(&mut *conn, filter, states, now, None, PREVIEW_LIMIT).await?;
    let tasks = tasks::listed(&mut *conn, &ids).await?;
    let refused = match action {
        Action::Cancel => Vec::new(),
        Action::Retry => {
            let shown: Vec<&Task> = tasks.iter().map(|listed| &listed.task).collect();
            tasks::refused_retries(conn, &shown).await?
        }
    };
    Ok(Preview { matched, tasks, refused })
}

impl Preview {
    /// Counts the retries that would fail again and those that are left out, of the tasks that the preview shows.
    pub fn describe_refused(&self) -> String {
        let n_shown = self.tasks.len();
        let is_part = usize::try_from(self.matched).is_ok_and(|matched| matched > n_shown);
        tasks::describe_refused(&self.refused, is_part.then_some(n_shown))
    }
}
