//! Lookup of ids by a part of them.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Call, LONGEST_SCAN, Operation, Refusal, Spec};
use crate::domain::{
    bulk_actions, campaigns,
    class::{Classify as _, Kind},
    facts, flows,
    ids::{NoId, NotFound, PartialId},
    keys::Scope,
    memory, posts, sessions, tasks, webhooks,
};

/// Finds the id with a beginning or end; that of a campaign also by its name.
///
/// A key with the scope `enqueue` finds campaigns only.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FindId {
    #[schema(inline)]
    pub noun: Noun,
    /// The id, its beginning, eight or more of its last digits, or the name of a campaign.
    pub text: String,
    /// Looks for last digits among this many of the newest ids only. No index has the ends of ids, so a search of all reads the whole
    /// table.
    #[schema(minimum = 1)]
    pub newest: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Noun {
    BulkAction,
    Campaign,
    Fact,
    Flow,
    MemoryItem,
    Post,
    Session,
    Task,
    Webhook,
    WebhookDelivery,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FoundId {
    pub id: Uuid,
}

impl Operation for FindId {
    const SPEC: Spec = Spec::read("find_id", "/v1/ids", "")
        .tag("campaigns")
        .for_bound_keys()
        .needs(&[Scope::Read, Scope::Enqueue])
        .refuses(&[NotFound::UNKNOWN, NotFound::AMBIGUOUS])
        .without_command("commands with an id call it");
    type Output = FoundId;

    async fn run(self, call: &Call) -> Result<FoundId, Refusal> {
        let Self { noun, text, newest } = self;
        if newest.is_some_and(|newest| newest < 1) {
            return Err(Refusal::new(Kind::Malformed, "bad_query", "newest must be 1 or more"));
        }
        let partial = || given(&text).map(|id: PartialId| id.among(newest));
        let within = call.reach.campaigns();
        let only_adds = call.reach.only_of().is_some();
        if only_adds && noun != Noun::Campaign {
            let detail = "the key does not have the scope `read`: give the whole id, or create a key with that scope";
            return Err(Refusal::new(Kind::Forbidden, "missing_scope", detail));
        }
        // No index has the ends of ids, so a lookup reads the whole table.
        let mut scan = call.begin_scan().await?;
        let conn = scan.conn();
        let id = match noun {
            Noun::BulkAction => bulk_actions::find(conn, &partial()?, within).await,
            Noun::Campaign => campaigns::find(conn, &given(&text)?, within).await,
            Noun::Fact => facts::find(conn, &partial()?, within).await,
            Noun::Flow => flows::find(conn, &partial()?, within).await,
            Noun::MemoryItem => memory::find_id(conn, &partial()?, within).await,
            Noun::Post => posts::find(conn, &partial()?, within).await,
            Noun::Session => sessions::find(conn, &partial()?, within).await,
            Noun::Task => tasks::find(conn, &partial()?, within).await,
            Noun::Webhook => webhooks::find(conn, &partial()?, within).await,
            Noun::WebhookDelivery => webhooks::find_delivery(conn, &partial()?, within).await,
        };
        let id = id.map_err(|error| if only_adds { error.without_matches() } else { error });
        Ok(FoundId { id: id.map_err(|error| refusal(error, &text))? })
    }
}

fn refusal(error: NotFound, text: &str) -> Refusal {
    match error {
        NotFound::Database(failed) if failed.class().code == "database_busy" => {
            let detail = format!(
                "no id that begins or ends with `{text}` was found in {} seconds: give the whole id, or try again in a moment",
                LONGEST_SCAN.as_secs()
            );
            Refusal::new(Kind::Unavailable, "database_busy", detail)
        }
        error => error.into(),
    }
}

fn given<T: FromStr<Err = NoId>>(text: &str) -> Result<T, Refusal> {
    text.parse().map_err(|error: NoId| {
        let detail = format!("the query parameter `text` is not valid: {error}");
        Refusal::new(Kind::Malformed, "bad_query", detail)
    })
}
