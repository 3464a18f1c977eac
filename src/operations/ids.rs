//! Ids that a person gives in part.

use std::{str::FromStr, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Call, Limits, Operation, Refusal, Spec, begin_read};
use crate::domain::{
    bulk_actions, campaigns,
    class::{Classify as _, Kind},
    facts, flows,
    ids::{NoId, NotFound},
    memory, posts, sessions, tasks, webhooks,
};

/// How long a request looks for an id. No index has the ends of ids, so that the whole table is read.
const LONGEST: Duration = Duration::from_secs(5);

/// Finds the one id that begins or ends as a person says; that of a campaign also by its name.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FindId {
    #[schema(inline)]
    pub noun: Noun,
    /// The id, its beginning, eight or more of its last digits, or the name of a campaign.
    pub text: String,
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
        .refuses(&[NotFound::UNKNOWN, NotFound::AMBIGUOUS])
        .without_command("each command that takes an id calls it");
    type Output = FoundId;

    async fn run(self, call: &Call) -> Result<FoundId, Refusal> {
        let Self { noun, text } = self;
        let within = call.reach.campaigns();
        let scan = |limits: &Limits| Limits {
            places: Arc::clone(&limits.scans),
            longest: LONGEST,
            ..limits.clone()
        };
        let limits = call.limits.as_ref().map(scan);
        let _place = match &limits {
            Some(limits) => Some(limits.enter().await?),
            None => None,
        };
        let mut transaction = begin_read(&call.pool, limits.as_ref()).await?;
        let conn = &mut *transaction;
        let id = match noun {
            Noun::BulkAction => bulk_actions::find(conn, &given(&text)?, within).await,
            Noun::Campaign => campaigns::find(conn, &given(&text)?, within).await,
            Noun::Fact => facts::find(conn, &given(&text)?, within).await,
            Noun::Flow => flows::find(conn, &given(&text)?, within).await,
            Noun::MemoryItem => memory::find_id(conn, &given(&text)?, within).await,
            Noun::Post => posts::find(conn, &given(&text)?, within).await,
            Noun::Session => sessions::find(conn, &given(&text)?, within).await,
            Noun::Task => tasks::find(conn, &given(&text)?, within).await,
            Noun::Webhook => webhooks::find(conn, &given(&text)?, within).await,
            Noun::WebhookDelivery => webhooks::find_delivery(conn, &given(&text)?, within).await,
        };
        Ok(FoundId { id: id.map_err(|error| refusal(error, &text))? })
    }
}

fn refusal(error: NotFound, text: &str) -> Refusal {
    match error {
        NotFound::Database(failed) if failed.class().code == "database_busy" => {
            let detail = format!(
                "no id was found in {} seconds that begins or ends with `{text}`: write the whole id, or try again in a moment",
                LONGEST.as_secs()
            );
            Refusal::new(Kind::Unavailable, "database_busy", detail)
        }
        error => error.into(),
    }
}

fn given<T: FromStr<Err = NoId>>(text: &str) -> Result<T, Refusal> {
    text.parse().map_err(|error: NoId| {
        let detail = format!("the query parameter `text` does not fit: {error}");
        Refusal::new(Kind::Malformed, "bad_query", detail)
    })
}
