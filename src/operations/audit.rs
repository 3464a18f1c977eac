//! The audit log.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Call, Listing, Operation, Refusal, Spec, page_limit};
use crate::domain::{
    audit::{self, Entry, Filter},
    budgets::OwnerKind,
    campaigns, facts,
    ids::PartialId,
    keys::{self, Scope},
    timestamp, webhooks,
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
///
/// Filters by caller, action and the name of a subject check each line. A page checks at most 100,000 lines: it may have fewer items than
/// `limit`, or none, and a `next`.
#[derive(Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListAudit {
    /// A name, a kind, or the id of a key.
    pub actor: Option<String>,
    /// `task.cancel`, or `task` for everything that was done to tasks.
    pub action: Option<String>,
    /// An id; eight or more of its last digits, if one of the newest 100,000 lines has it; or the name of a campaign, an agent, a user, an API
    /// key, a schedule, or another thing that has one; or the URL or the host of a webhook.
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
        let mut transaction = call.begin_read().await?;
        let page = audit::search(&mut transaction, filter).await?;
        let listing = Listing::of(page.entries, limit, |entry| entry.id);
        let next = listing.next.or(page.looked_up_to.map(|id| id.to_string()));
        Ok(Listing { next, ..listing })
    }
}

/// Looks up what a text names: the thing with this id, or else the things whose ids end with it, and campaigns, an agent, API keys and
/// webhooks by their names; and a user by the facts about them. The owner of a budget is part of its subject, and a schedule is its own.
async fn subject(call: &Call, text: &str) -> Result<Subject, Refusal> {
    let whole = text.parse::<Uuid>().ok();
    let ids = match whole {
        Some(id) => vec![id],
        None => ids_ending(call, text).await?,
    };
    // The id of something else is no campaign: its lines are found by the index alone.
    let mut campaigns: BTreeSet<Uuid> = match ids.is_empty() {
        false => campaigns::names(&call.pool, &ids).await?.into_keys().collect(),
        true => BTreeSet::new(),
    };
    let mut named = Vec::new();
    // A user may be named by a UUID; other things are not.
    if whole.is_none() {
        campaigns.extend(campaigns::ids_of_name(&call.pool, text).await?);
        named = ids_of_keys_and_webhooks(call, text).await?;
    }
    let campaigns: Vec<String> = campaigns.iter().map(Uuid::to_string).collect();
    let facts = facts::ids_of_user(&call.pool, text).await?;
    let agents: Vec<String> = whole.is_none().then(|| text.to_owned()).into_iter().collect();
    let budgets =
        [OwnerKind::Agent, OwnerKind::User].map(|owner| format!("{}/{text}", owner.as_str()));
    let mut subjects = vec![text.to_owned()];
    subjects.extend(budgets);
    subjects.extend(campaigns.iter().cloned());
    subjects.extend(facts.iter().chain(&ids).chain(&named).map(Uuid::to_string));
    Ok(Subject { subjects, agents, campaigns })
}

/// Returns the ids of subjects that end with the digits that a text is.
async fn ids_ending(call: &Call, text: &str) -> Result<Vec<Uuid>, Refusal> {
    let Some(end) = text.parse::<PartialId>().ok().and_then(|given| given.end) else {
        return Ok(Vec::new());
    };
    let mut scan = call.begin_scan().await?;
    Ok(audit::subjects_ending(scan.conn(), &end).await?)
}

/// Finds API keys by their name or handle, also revoked ones, and webhooks by their URL or host.
async fn ids_of_keys_and_webhooks(call: &Call, text: &str) -> Result<Vec<Uuid>, Refusal> {
    let mut ids = keys::ids_of_name(&call.pool, text).await?;
    let webhooks = webhooks::list(&call.pool).await?;
    ids.extend(webhooks.iter().filter(|webhook| names_url(text, &webhook.url)).map(|it| it.id));
    Ok(ids)
}

/// Returns true if a text is a URL, with or without its scheme, or its host.
fn names_url(text: &str, url: &str) -> bool {
    let bare = url.split_once("://").map_or(url, |(_, bare)| bare);
    let host = bare.split(['/', '?']).next().unwrap_or(bare);
    [url, bare, host].contains(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_is_named_by_its_url_or_its_host() {
        let url = "https://shop.example/hooks?a=1";
        for text in [url, "shop.example/hooks?a=1", "shop.example"] {
            assert!(names_url(text, url), "{text}");
        }
        assert!(!names_url("example", url) && !names_url("", url));
    }
}
