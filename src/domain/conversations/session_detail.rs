//! A session with what has happened in it.

use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::domain::{
    compactions::{self, Compaction},
    nodes::{self, NodeVisit},
    sessions::{self, Error, Session},
    turns::{self, Turn},
};

/// Turns that are shown. The transcript has all of them.
const LAST_TURNS: i64 = 10;

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = SessionDetail)]
pub struct Detail {
    #[serde(flatten)]
    pub session: Session,
    /// The nodes of the session, in order.
    pub nodes: Vec<NodeVisit>,
    /// Compactions in the order of their creation, including refused ones.
    pub compactions: Vec<Compaction>,
    /// The newest first.
    pub last_turns: Vec<Turn>,
}

pub async fn detail(conn: &mut PgConnection, id: Uuid) -> Result<Detail, Error> {
    Ok(Detail {
        session: sessions::get(&mut *conn, id).await?,
        nodes: nodes::of_session(&mut *conn, id).await?,
        compactions: compactions::list(&mut *conn, id).await?,
        last_turns: turns::of_session(conn, id, None, LAST_TURNS).await?,
    })
}
