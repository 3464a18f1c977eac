//! The sessions and turns that were shown a fact.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Call, Operation, Refusal, Spec};
use crate::{
    context::manifest::Kind,
    domain::{
        facts::{self, Error, FactShowing},
        manifests::{self, TurnsWithPart},
        sessions::{self, SessionAgent},
    },
};

/// Most sessions of a list.
const MAX_SESSIONS: i64 = 20;
/// Calls of a session that are read at most, the newest ones.
const MAX_CALLS: i64 = 50;

/// Lists the sessions that were shown a fact, the newest use first, with the turns whose calls contained it.
///
/// Records of showings are kept as long as ended facts (`memory.keep_days`). Of a fact with more than 10,000 records, only 10,000 are read:
/// the list may then lack the newest sessions.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListFactUses {
    /// The user.
    pub name: String,
    pub fact: Uuid,
}

/// The sessions that were shown a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FactUses {
    /// The 20 sessions that were shown it last, to a day, among the 10,000 records that are read at most; the newest use first.
    pub items: Vec<FactUse>,
    /// True if more sessions were shown it.
    pub has_more: bool,
}

/// A session that was shown a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FactUse {
    pub session_id: Uuid,
    pub campaign_id: Uuid,
    /// Null: the session was removed.
    pub agent: Option<String>,
    /// Null: the session was removed.
    pub instance: Option<String>,
    /// Turns with a call that contained the fact in its system part, the newest first; among the last 50 calls of the session. If empty, the fact
    /// may be in its transcript: the agent read it with `recall` or wrote it, or the session continues one that was shown it.
    pub turns: Vec<i32>,
    /// Time of the newest of these calls; without one the time of the showing, to a day.
    pub last_at: DateTime<Utc>,
}

impl FactUse {
    fn new(
        showing: FactShowing,
        agent: Option<SessionAgent>,
        calls: Option<TurnsWithPart>,
    ) -> Self {
        let (agent, instance) = agent.map(|it| (it.agent, it.instance)).unzip();
        let FactShowing { session_id, campaign_id, shown_at } = showing;
        let last_at = calls.as_ref().map_or(shown_at, |calls| calls.last_at);
        let turns = calls.map(|calls| calls.turns).unwrap_or_default();
        Self { session_id, campaign_id, agent, instance, turns, last_at }
    }
}

impl Operation for ListFactUses {
    const SPEC: Spec =
        Spec::read("list_fact_uses", "/v1/users/{name}/facts/{fact}/uses", "memory facts uses")
            .tag("memory")
            .refuses(&[Error::UNKNOWN, Error::BAD_USER]);
    type Output = FactUses;

    async fn run(self, call: &Call) -> Result<FactUses, Refusal> {
        let mut transaction = call.begin_read().await?;
        let fact = facts::get(&mut *transaction, &self.name, self.fact).await?;
        let mut showings =
            facts::list_showings(&mut *transaction, fact.id, MAX_SESSIONS + 1).await?;
        let max_sessions = usize::try_from(MAX_SESSIONS).unwrap_or(usize::MAX);
        let has_more = showings.len() > max_sessions;
        showings.truncate(max_sessions);
        let ids: Vec<Uuid> = showings.iter().map(|showing| showing.session_id).collect();
        let agents = sessions::agents_of(&mut *transaction, &ids).await?;
        let mut agents: HashMap<Uuid, _> = agents.into_iter().map(|it| (it.id, it)).collect();
        let part = fact.id.to_string();
        let part = (Kind::Fact, part.as_str());
        let calls = manifests::turns_with_part(&mut *transaction, &ids, part, MAX_CALLS).await?;
        let mut calls: HashMap<Uuid, _> = calls.into_iter().map(|it| (it.session_id, it)).collect();
        let use_of = |showing: FactShowing| {
            let id = showing.session_id;
            FactUse::new(showing, agents.remove(&id), calls.remove(&id))
        };
        let mut items: Vec<FactUse> = showings.into_iter().map(use_of).collect();
        items.sort_by_key(|item| std::cmp::Reverse(item.last_at));
        Ok(FactUses { items, has_more })
    }
}
