//! Facts about the users for whom campaigns work.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Call, Change, ChangeOutput, ChangeResult, Listing, Operation, Refusal, Spec, page_limit,
};
use crate::domain::{
    Page,
    audit::Action,
    campaigns,
    facts::{self, Error, Extraction, ExtractionCursor, Fact, Filter, ForgetResult, Hit},
    memory,
    search::Question,
    text, timestamp,
    transaction::connection,
};

const TAG: &str = "memory";

/// Lists the parts of sessions of a campaign that were read for facts, with the results, the newest first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListExtractions {
    /// The campaign.
    pub id: Uuid,
    #[schema(value_type = Option<String>)]
    pub cursor: Option<ExtractionCursor>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Lists the facts about a user, the newest first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListFacts {
    /// The user.
    pub name: String,
    /// Ended facts, too.
    #[serde(default)]
    pub ended: bool,
    /// The id of the last fact that was read.
    pub cursor: Option<Uuid>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Searches the valid facts about a user by words, the best match first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchFacts {
    /// The user.
    pub name: String,
    /// Words; `"in this order"`, `or` and `-without` mean what they do elsewhere.
    pub q: String,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Shows a fact, including an ended one.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowFact {
    /// The user.
    pub name: String,
    pub fact: Uuid,
}

/// States a fact about a user. The facts that it contradicts end, and stay in the history.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewFact, example = json!({ "attribute": "Diet", "text": "Eats no meat." }))]
pub struct StateFact {
    /// The user.
    pub name: String,
    /// The aspect of the user that it is about: one fact of each is valid at a time.
    #[schema(min_length = 1, max_length = 100)]
    pub attribute: String,
    #[schema(min_length = 1, max_length = 400)]
    pub text: String,
    /// The moment at which it ends.
    #[serde(default, deserialize_with = "timestamp::optional")]
    pub expires_at: Option<DateTime<Utc>>,
}

/// Replaces the text of a valid fact. The older text stays in the history.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditFact {
    /// The user.
    pub name: String,
    pub fact: Uuid,
    #[schema(min_length = 1, max_length = 400)]
    pub text: String,
}

/// Revokes a fact: agents no longer see or find it, and people can still read it.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RevokeFact {
    /// The user.
    pub name: String,
    pub fact: Uuid,
}

/// Removes all facts about a user permanently, including ended ones.
///
/// Earlier prompts are not read for facts any more. Later ones are, in campaigns that go on working for this user.
/// Prompts, transcripts, summaries and records stay. `sessions` says where to look; erasing a campaign removes them.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgetUser {
    /// The user.
    pub name: String,
}

impl Operation for ListExtractions {
    const SPEC: Spec =
        Spec::read("list_extractions", "/v1/campaigns/{id}/extractions", "memory facts readings")
            .tag(TAG)
            .refuses(&[campaigns::Error::UNKNOWN]);
    type Output = Listing<Extraction>;

    async fn run(self, call: &Call) -> Result<Listing<Extraction>, Refusal> {
        let limit = page_limit(self.limit)?;
        campaigns::get(&call.pool, self.id).await?;
        let read = facts::extractions(&call.pool, self.id, self.cursor, limit + 1).await?;
        Ok(Listing::of(read, limit, Extraction::cursor))
    }
}

impl Operation for ListFacts {
    const SPEC: Spec = Spec::read("list_facts", "/v1/users/{name}/facts", "memory facts ls")
        .tag(TAG)
        .refuses(&[Error::BAD_USER]);
    type Output = Listing<Fact>;

    async fn run(self, call: &Call) -> Result<Listing<Fact>, Refusal> {
        let limit = page_limit(self.limit)?;
        let filter = Filter { with_ended: self.ended };
        let page = Page { after: self.cursor, limit: limit + 1 };
        let facts = facts::list(&call.pool, &self.name, filter, page, call.now).await?;
        Ok(Listing::of(facts, limit, |fact| fact.id))
    }
}

impl Operation for SearchFacts {
    const SPEC: Spec =
        Spec::read("search_facts", "/v1/users/{name}/facts/search", "memory facts search")
            .tag(TAG)
            .refuses(&[
                text::Error::TOO_LONG,
                Error::BAD_USER,
                text::Error::NO_WORDS,
                text::Error::EMPTY,
            ]);
    type Output = Listing<Hit>;

    async fn run(self, call: &Call) -> Result<Listing<Hit>, Refusal> {
        let Self { name, q, limit } = self;
        let limit = page_limit(limit)?;
        let meaning = call.meanings.of_question(&q).await;
        let question = Question { words: &q, limit, meaning: meaning.as_ref() };
        let language = &call.config.memory.language;
        let mut conn = connection(&call.pool).await?;
        let hits = facts::search(&mut conn, &name, question, language, call.now).await?;
        Ok(Listing { items: hits, next: None })
    }
}

impl Operation for ShowFact {
    const SPEC: Spec =
        Spec::read("show_fact", "/v1/users/{name}/facts/{fact}", "memory facts show")
            .tag(TAG)
            .refuses(&[Error::UNKNOWN, Error::BAD_USER]);
    type Output = Fact;

    async fn run(self, call: &Call) -> Result<Fact, Refusal> {
        Ok(facts::get(&call.pool, &self.name, self.fact).await?)
    }
}

impl Change for StateFact {
    const SPEC: Spec = Spec::change("state_fact", "/v1/users/{name}/facts", "memory facts state")
        .tag(TAG)
        .refuses(&[Error::KNOWN, Error::FULL, Error::BAD_USER, Error::BAD_FACT, Error::EXPIRED]);
    const ACTION: Action = Action::FactState;
    type Output = Fact;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<Fact> {
        let stated = (self.name.as_str(), self.attribute.as_str(), self.text.as_str());
        let (by, settings) = (call.actor.label(), settings(call));
        let output =
            facts::record_statement(conn, stated, self.expires_at, &by, settings, call.now).await?;
        memory::request_embeddings(conn, &call.config.memory).await?;
        Ok(changed(output.id, output))
    }
}

impl Change for EditFact {
    const SPEC: Spec =
        Spec::change("edit_fact", "/v1/users/{name}/facts/{fact}/edit", "memory facts edit")
            .tag(TAG)
            .refuses(&[
                Error::UNKNOWN,
                campaigns::Error::CLOSED,
                Error::ENDED,
                Error::KNOWN,
                Error::FULL,
                Error::BAD_USER,
                Error::BAD_FACT,
            ]);
    const ACTION: Action = Action::FactEdit;
    type Output = Fact;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<Fact> {
        let Self { name, fact, text } = self;
        let (by, settings) = (call.actor.label(), settings(call));
        let output = facts::edit(conn, (&name, fact), &text, &by, settings, call.now).await?;
        memory::request_embeddings(conn, &call.config.memory).await?;
        Ok(changed(fact, output))
    }
}

impl Change for RevokeFact {
    const SPEC: Spec =
        Spec::change("revoke_fact", "/v1/users/{name}/facts/{fact}/revoke", "memory facts revoke")
            .tag(TAG)
            .refuses(&[Error::UNKNOWN, Error::ENDED, Error::BAD_USER]);
    const ACTION: Action = Action::FactRevoke;
    type Output = Fact;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<Fact> {
        let output = facts::revoke(conn, &self.name, self.fact, call.now).await?;
        Ok(changed(self.fact, output))
    }
}

impl Change for ForgetUser {
    const SPEC: Spec =
        Spec::change("forget_user", "/v1/users/{name}/forget", "memory facts forget")
            .tag(TAG)
            .refuses(&[Error::BAD_USER]);
    const ACTION: Action = Action::UserForget;
    type Output = ForgetResult;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<ForgetResult> {
        let output = facts::forget(conn, &self.name, call.now).await?;
        let data = json!({ "facts": output.facts });
        Ok(ChangeOutput::of(self.name, output, data))
    }
}

/// Returns the settings of facts, and the language of the full-text search.
fn settings(call: &Call) -> (&facts::Config, &str) {
    (&call.config.facts, call.config.memory.language.as_str())
}

/// Builds the audit line. `id` is the id of the fact that the caller named, or else of the new one.
fn changed(id: Uuid, output: Fact) -> ChangeOutput<Fact> {
    let data = output.for_audit();
    ChangeOutput::of(id, output, data)
}
