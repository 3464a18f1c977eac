//! Resetting the conversations of an agent in a campaign, or of all its agents, however many they are.

use crate::domain::class::{Class, Classify};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::domain::{
    StatementError,
    audit::{self, Action, Actor},
    campaigns, session_summaries,
    sessions::{self, open_of_agents, reset_some},
    transaction::{Transactions, commit},
};

/// The result of a reset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = AgentsReset)]
pub struct Reset {
    pub campaign_id: Uuid,
    /// Null: all agents.
    pub agent: Option<String>,
    /// True: the successors remember nothing.
    pub fresh: bool,
    /// The sessions whose next tasks open successors.
    pub session_ids: Vec<Uuid>,
}

#[derive(Debug, thiserror::Error)]
pub enum ResetError {
    #[error(transparent)]
    Campaign(#[from] campaigns::Error),
    #[error(transparent)]
    Session(#[from] sessions::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Classify for ResetError {
    fn class(&self) -> Class {
        match self {
            Self::Campaign(error) => error.class(),
            Self::Session(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

/// Sessions that one transaction resets. Turns that begin or end in them wait for it.
const BATCH: usize = 20;

/// Makes the next task of each open conversation open a successor. Running turns go on. Each transaction resets twenty
/// sessions; the first also writes the line of the audit log. A call that was cut off can be repeated.
///
/// Only conversations that are open at the beginning are reset: a successor that is opened meanwhile is already the result.
pub async fn reset_agents(
    transactions: &impl Transactions,
    who: &Actor,
    (campaign_id, agent): (Uuid, Option<&str>),
    fresh: bool,
    now: DateTime<Utc>,
) -> Result<Reset, ResetError> {
    let mut tx = transactions.begin().await?;
    campaigns::get(&mut *tx, campaign_id).await?;
    let open = open_of_agents(&mut *tx, campaign_id, agent).await?;
    commit(tx).await?;
    let data = json!({ "agent": agent, "fresh": fresh, "sessions": open.len() });
    let mut line = Some(data);
    let mut session_ids = Vec::with_capacity(open.len());
    let nothing: &[Uuid] = &[];
    let batches = open.chunks(BATCH).chain(open.is_empty().then_some(nothing));
    for ids in batches {
        let mut tx = transactions.begin().await?;
        session_ids.extend(reset_some(&mut tx, campaign_id, ids, fresh, now).await?);
        if let Some(data) = line.take() {
            audit::write(&mut *tx, who, Action::AgentReset, campaign_id, data, now).await?;
        }
        commit(tx).await?;
    }
    if fresh {
        // After the others: a session that a cleanup has removed meanwhile has left its summary by now.
        let mut tx = transactions.begin().await?;
        session_summaries::delete_of_agents(&mut *tx, campaign_id, agent).await?;
        commit(tx).await?;
    }
    session_ids.sort_unstable();
    Ok(Reset { campaign_id, agent: agent.map(str::to_owned), fresh, session_ids })
}
