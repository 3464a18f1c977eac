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
    /// Numbers of those whose cost is 0 only because no price was set for their model.
    #[serde(default)]
    pub unpriced_turns: Vec<i32>,
}

pub async fn detail(conn: &mut PgConnection, id: Uuid) -> Result<Detail, Error> {
    let session = sessions::get(&mut *conn, id).await?;
    let last_turns = turns::of_session(&mut *conn, id, None, LAST_TURNS).await?;
    let campaign_id = session.campaign_id;
    Ok(Detail {
        unpriced_turns: turns::unpriced_turns(&mut *conn, campaign_id, &last_turns).await?,
        last_turns,
        session,
        nodes: nodes::of_session(&mut *conn, id).await?,
        compactions: compactions::list(conn, id).await?,
    })
}
