//! A task with its attempts.

use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Error, Task, get};
use crate::domain::{
    feed,
    turns::{self, Turn},
};

#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[schema(as = TaskDetail)]
pub struct Detail {
    #[serde(flatten)]
    pub task: Task,
    /// Its attempts that reached a session, in order.
    pub turns: Vec<Turn>,
}

pub async fn detail(conn: &mut PgConnection, id: Uuid) -> Result<Detail, Error> {
    let task = get(&mut *conn, id).await?;
    Ok(Detail { task, turns: turns::of_task(conn, id).await? })
}

impl Task {
    pub fn event(&self, kind: feed::Kind, data: serde_json::Value) -> feed::New {
        feed::New {
            campaign_id: Some(self.campaign_id),
            task_id: Some(self.id),
            session_id: self.session_id,
            kind,
            data,
        }
    }
}
