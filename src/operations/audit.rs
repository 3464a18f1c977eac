//! The audit log.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use uuid::Uuid;

use super::{Call, Listing, Operation, Refusal, Spec, page_limit};
use crate::domain::{
    audit::{self, Entry, Filter},
    budgets::OwnerKind,
    campaigns, facts,
    keys::Scope,
    timestamp,
};

/// A subject of lines as a person names it.
struct Subject {
    /// The text itself, the ids of campaigns and facts that it names, and the subjects of budgets.
    subjects: Vec<String>,
    /// The agent whose name lines about other subjects have in their data.
    agents: Vec<String>,
    /// The campaigns whose id lines about other subjects have in their data.
    campaigns: Vec<String>,
}

/// Lists the audit log, the newest first.
#[derive(Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListAudit {
    /// A name, a kind, or the id of a key.
    pub actor: Option<String>,
    /// `task.cancel`, or `task` for everything that was done to tasks.
    pub action: Option<String>,
    /// An id; or the name of a campaign, an agent, a user, or another thing that has one.
    pub subject: Option<String>,
    /// Only lines that were written at this moment or later.
    #[serde(default, deserialize_with = "timestamp::optional")]
    pub created_after: Option<DateTime<Utc>>,
    /// Only lines that were written earlier.
    #[serde(default, deserialize_with = "timestamp::optional")]
    pub created_before: Option<DateTime<Utc>>,
    pub cursor: Option<i64>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

impl Operation for ListAudit {
    const SPEC: Spec =
        Spec::read("list_audit", "/v1/audit", "audit ls").tag("keys").needs(&[Scope::Admin]);
    type Output = Listing<Entry>;

    async fn run(self, call: &Call) -> Result<Listing<Entry>, Refusal> {
        let limit = page_limit(self.limit)?;
        let subject = match &self.subject {
            Some(text) => Some(subject(call, text).await?),
            None => None,
        };
        let filter = Filter {
            actor: self.actor.as_deref(),
            action: self.action.as_deref(),
            subjects: subject.as_ref().map(|subject| subject.subjects.as_slice()),
            agents: subject.as_ref().map_or(&[], |subject| subject.agents.as_slice()),
            campaigns: subject.as_ref().map_or(&[], |subject| subject.campaigns.as_slice()),
            created_after: self.created_after,
            created_before: self.created_before,
            before: self.cursor,
            limit: limit + 1,
        };
        let entries = audit::list(&call.pool, filter).await?;
        Ok(Listing::of(entries, limit, |entry| entry.id))
    }
}

/// Looks up what a text names: campaigns, an agent, a user by the facts about them. The owner of a budget is part of its subject.
async fn subject(call: &Call, text: &str) -> Result<Subject, Refusal> {
    let id = text.parse::<Uuid>().ok();
    let campaigns: Vec<Uuid> = match id {
        // The id of something else is no campaign: its lines are found by the index alone.
        Some(id) => campaigns::names(&call.pool, &[id]).await?.into_keys().collect(),
        None => campaigns::ids_of_name(&call.pool, text).await?,
    };
    let campaigns: Vec<String> = campaigns.iter().map(Uuid::to_string).collect();
    // A user may be named by a UUID; an agent is not.
    let facts = facts::ids_of_user(&call.pool, text).await?;
    let agents: Vec<String> = id.is_none().then(|| text.to_owned()).into_iter().collect();
    let budgets =
        [OwnerKind::Agent, OwnerKind::User].map(|owner| format!("{}/{text}", owner.as_str()));
    let mut subjects = vec![text.to_owned()];
    subjects.extend(budgets);
    subjects.extend(campaigns.iter().cloned());
    subjects.extend(facts.iter().map(Uuid::to_string));
    Ok(Subject { subjects, agents, campaigns })
}
