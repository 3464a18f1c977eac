//! A task with its attempts.

use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Error, Task, get, node::node_of};
use crate::domain::{
    Failed, feed,
    turns::{self, Turn},
};

#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[schema(as = TaskDetail)]
pub struct Detail {
    #[serde(flatten)]
    pub task: Task,
    /// Where in the work it belongs; nothing: wherever the session stands.
    pub node: Option<String>,
    /// As the audit log names them; nobody, if it came another way than through the API or the command line.
    pub added_by: Option<String>,
    /// Its attempts that reached a session, in order.
    pub turns: Vec<Turn>,
}

pub async fn detail(conn: &mut PgConnection, id: Uuid) -> Result<Detail, Error> {
    let task = get(&mut *conn, id).await?;
    let added_by = added_by(&mut *conn, id).await?;
    let node = node_of(&mut *conn, id).await?;
    Ok(Detail { task, node, added_by, turns: turns::of_task(conn, id).await? })
}

async fn added_by(conn: &mut PgConnection, id: Uuid) -> Result<Option<String>, Failed> {
    sqlx::query_scalar!("select added_by from dalsegno.tasks where id = $1", id)
        .fetch_one(conn)
        .await
        .map_err(Failed::to("see who added a task"))
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
