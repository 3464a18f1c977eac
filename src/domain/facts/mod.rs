//! Facts about the users for whom campaigns work: read by a model from their requests, written by an agent with its tool, or stated by a
//! person.
//!
//! ```text
//! a session is closed, expires, or is compacted ──▶ job: requests of people since then ──▶ a model ──▶ checks ──▶ facts
//! search, and facts told to agents ◀── current facts about this user, from all campaigns
//! ```
//!
//! A campaign names its user ([`set_user`]): all people in its sessions speak for this one user. A campaign without a user has no facts.
//!
//! Invariants:
//! - An attribute has one fact at a time. A later statement closes an earlier one at the moment when it was said, and overwrites nothing. A
//!   statement that becomes known late takes its place in time.
//! - A statement is not recorded if a current fact says the same. A fact that its session was shown counts like a current one, unless the
//!   session already knew a newer one.
//! - A model is shown only requests of people: never its own answers, results of tools or the facts that agents are told.
//! - A stretch of a transcript is read once: its end and its facts are one commit, together with the job's end.
//!
//! Race: two transactions write about one user at once. They wait for each other ([`record()`]), so that no attribute has two facts and the
//! limit holds for both together.

mod change;
mod config;
mod error;
mod extractions;
mod key;
mod limits;
mod read;
mod record;
mod remove;
mod request;
mod search;
mod shown;
mod texts;
mod users;
mod vectors;
mod write;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

pub use self::{
    change::{ForgetResult, edit, forget, record_statement, revoke},
    config::Config,
    error::Error,
    extractions::{
        Extraction, ExtractionCursor, Outcome, extractions, filter_unread, read_up_to,
        record_extraction,
    },
    key::{ATTRIBUTE_MAX_CHARS, TEXT_MAX_CHARS, key},
    limits::LIMITS,
    read::{
        CurrentFact, Filter, PromptFact, find, get, ids_of_user, list, list_current, parse_told,
    },
    record::{RecordOutcome, Statement, StatementOrigin, record},
    remove::{count_ended, remove_ended, remove_some, remove_some_records},
    request::{ExtractFacts, enqueue_reading, request, request_of_ended},
    search::{Hit, search},
    shown::{FactShowing, inherit_showings, list_showings, record_showings},
    texts::find_texts,
    users::{
        CampaignUser, check_name, lock_user_of, set_user, unset_user, user_of, with_campaigns,
    },
    vectors::{keep_vectors, list_without_vector},
    write::{WritingTurn, WrittenFact, write},
};

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = FactSource)]
pub enum Source {
    /// Read by a model, from requests.
    Extracted,
    // In no row, because an older version could not read it: the column `is_written` tells it from an extracted one.
    /// Written by an agent with its tool.
    Written,
    /// Stated by a person.
    Stated,
    /// Written by a person, in place of another fact.
    Edited,
}

/// The reliability of a fact.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = FactTrust)]
pub enum Trust {
    /// A person vouches for it.
    Operator,
    /// A model has read or written it.
    Agent,
}

/// The reason why a fact has ended.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = FactEnded)]
pub enum EndReason {
    /// A later statement contradicts it.
    Contradicted,
    Edited,
    Revoked,
    // In no row, because an older version could not read it: `read` makes it from the two times.
    /// By its `expires_at`.
    Expired,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Fact {
    pub id: Uuid,
    /// The user whom the fact is about.
    pub user: String,
    /// The attribute of the user that the fact is about.
    pub attribute: String,
    /// The text of the fact.
    pub text: String,
    pub source: Source,
    pub trust: Trust,
    /// The agent of the session in which it was said or written, or a person as in the audit log.
    pub author: String,
    /// The campaign in which it was said.
    pub campaign_id: Option<Uuid>,
    pub session_id: Option<Uuid>,
    pub turn: Option<i32>,
    /// The task whose prompt said it.
    pub task_id: Option<Uuid>,
    pub recorded_at: DateTime<Utc>,
    /// Time when it was said.
    pub valid_from: DateTime<Utc>,
    /// Time when it was contradicted, edited or revoked.
    pub valid_until: Option<DateTime<Utc>>,
    pub ended_because: Option<EndReason>,
    /// The fact that ended it.
    pub replaced_by: Option<Uuid>,
    /// Time when it ends in any case.
    pub expires_at: Option<DateTime<Utc>>,
}

impl Fact {
    /// Returns its data for the audit log: id and source, without the text.
    pub fn for_audit(&self) -> Value {
        json!({ "fact_id": self.id, "source": self.source })
    }

    pub fn is_current(&self, now: DateTime<Utc>) -> bool {
        self.valid_until.is_none() && self.expires_at.is_none_or(|end| end > now)
    }
}
