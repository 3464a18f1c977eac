//! Sessions: stretches of the conversation of one agent in one campaign.
//!
//! Invariants:
//! - A campaign, agent and instance have at most one open session.
//! - A running session names its turn and the lease that may end it.
//! - A session is closed with a reason and never reopened. Its successor is another session, linked both ways, that continues the numbers
//!   of turns and messages.
//!
//! Race: a worker that was declared lost may still write. Leases only grow, and every change of a running session names one. A run that
//! begins a turn puts a larger lease on the row; the older run then finds no row and stops.

mod alike;
mod campaign_sessions;
mod credentials;
mod due;
mod error;
mod forks;
mod generations;
mod list;
mod models;
mod open;
mod people;
mod running;
mod transcript;
mod ttl;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

pub use self::{
    alike::{AlikeQuery, AlikeSession, alike, newest_calibration},
    campaign_sessions::{
        BoardReader, is_any_running, list_board_readers, lock_of_campaign, open_of_agents,
        running_of_agent,
    },
    credentials::{CredentialUse, uses_by_credential},
    due::{
        DueReason, DueSession, conversations_without_open, due_after, filter_with_sessions,
        filter_without_row, lock_due, needed_folders, remove_all,
    },
    error::Error,
    generations::{add_tokens, lock_breaker, next_generation, show_generation, store_breaker},
    list::{
        Filter, Session, find, get, history, lineage, list, of_conversation, prompt_hash,
        rejected_turns, successors, with_credential,
    },
    models::{SessionAgent, SessionModel, agents_of, models_of},
    open::{NewSession, ask_rebuild},
    people::{expire, reset, reset_some},
    running::ProviderSession,
    transcript::{transcript, transcript_before},
    ttl::Config,
};
pub(super) use self::{
    forks::{instances, lock_against_removal},
    open::{
        Continuation, ForkPoint, Origin, Position, close, close_ephemeral, find_ephemeral,
        find_open, open,
    },
    running::{take_from_lost_run, take_lease},
};
use super::StatementError;

/// A session as a turn needs it. Not for the API: it holds the fence's seed.
#[derive(Clone, Serialize, Deserialize)]
pub struct SessionRow {
    pub id: Uuid,
    pub campaign_id: Uuid,
    pub agent: String,
    pub instance: String,
    pub provider: String,
    pub model: String,
    pub external_session_id: Option<String>,
    pub prompt_hash: String,
    pub state: State,
    pub ephemeral: bool,
    pub opened_by_task: Option<Uuid>,
    pub opened_because: Reason,
    pub rebuild_because: Option<Reason>,
    pub expires_at: DateTime<Utc>,
    pub lease: Option<i64>,
    pub turn_count: i32,
    pub last_seq: i64,
    pub generation: i32,
    pub context_tokens: i64,
    pub token_count: i64,
    pub board_cursor: i64,
    pub fence_seed: Vec<u8>,
    pub calibration: Option<Value>,
    pub checkpoint: Option<Value>,
    pub compaction_breaker: Option<Value>,
    pub head: Option<Uuid>,
    pub head_seq: Option<i64>,
    pub head_generation: Option<i32>,
    pub meter: Option<Value>,
    pub credential: Option<String>,
    /// Turns whose messages are not sent again. The provider has rejected their prompt, or a later prompt before it had answered
    /// anything.
    pub rejected_turns: Vec<i32>,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = SessionState)]
pub enum State {
    Idle,
    Running,
    /// Its last turn was cut off.
    Interrupted,
    /// Its last turn failed.
    Error,
    Closed,
}

/// Reason why a session was opened, is to be rebuilt, or was closed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = SessionReason)]
pub enum Reason {
    /// The conversation had no session before.
    New,
    PromptChanged,
    ModelChanged,
    ProviderChanged,
    /// The context exceeded the agent's threshold.
    ContextFull,
    Expired,
    /// A reset was requested.
    Reset,
    /// The provider no longer has the session.
    Lost,
    /// The provider rejects this conversation and would reject it again.
    Poisoned,
    /// A task or a user requested a session without a memory.
    Fresh,
    /// The session was made for one task, which has ended.
    Ended,
    CampaignClosed,
}

impl std::fmt::Debug for SessionRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live")
            .field("id", &self.id)
            .field("agent", &self.agent)
            .field("instance", &self.instance)
            .field("state", &self.state)
            .field("turn_count", &self.turn_count)
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}

/// Selects [`SessionRow`] from the sessions that fulfil a condition.
macro_rules! select_live {
    ($condition:literal, $($argument:expr),+ $(,)?) => {
        sqlx::query_as!(
            crate::domain::sessions::SessionRow,
            r#"select id, campaign_id, agent_type as agent, instance, provider, model, external_session_id, prompt_hash,
                      state as "state: State", ephemeral, opened_by_task, opened_because as "opened_because: Reason",
                      rebuild_because as "rebuild_because: Reason", expires_at, lease, turn_count, last_seq, generation,
                      context_tokens, token_count, board_cursor, fence_seed, calibration, checkpoint, compaction_breaker,
                      head, head_seq, head_generation, meter, credential, rejected_turns
                 from dalsegno.sessions where "#
                + $condition,
            $($argument),+
        )
    };
}
use select_live;

/// Reads the session as it is now, without a lock.
pub async fn read_live(executor: impl PgExecutor<'_>, id: Uuid) -> Result<SessionRow, Error> {
    select_live!("id = $1", id)
        .fetch_optional(executor)
        .await
        .map_err(StatementError::to("read a session"))?
        .ok_or(Error::Unknown(id))
}

/// Reads the session by its id and locks it until the transaction ends.
pub(super) async fn lock(conn: &mut PgConnection, id: Uuid) -> Result<SessionRow, Error> {
    select_live!("id = $1 for no key update", id)
        .fetch_optional(conn)
        .await
        .map_err(StatementError::to("lock a session"))?
        .ok_or(Error::Unknown(id))
}
