//! Facts about the users for whom campaigns work: read by a model from what they have asked, or stated by a person.
//!
//! ```text
//! a session is closed, expires, or is compacted ──▶ job: what people have asked since ──▶ a model ──▶ judged ──▶ facts
//! recall, and what agents are told ◀── what holds of this user, in whatever campaign it was said
//! ```
//!
//! Whom a campaign works for is said of the campaign ([`set_user`]): all who speak in its sessions speak for this one user. A campaign
//! without a user has no facts.
//!
//! Invariants:
//! - Of one attribute one fact holds at a time. What is said later closes what was said earlier, at the moment when it was said, and
//!   overwrites nothing; what comes to be known late takes its place in time.
//! - What says the same as a fact that holds is no news, and neither is what says the same as one that was shown to the session that says
//!   it, unless that session knew already that something else holds by now.
//! - A model is shown only what people have asked: never its own answers, results of tools or what agents are told of facts.
//! - A stretch of a transcript that was read is not read again: its end and its facts are one commit, together with the job's.
//!
//! Race: two write about one user at once. They wait for each other ([`record()`]), so that no attribute has two facts and no limit is
//! passed by both together.

mod change;
mod config;
mod error;
mod extractions;
mod key;
mod read;
mod record;
mod remove;
mod request;
mod search;
mod shown;
mod users;
mod vectors;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

pub use self::{
    change::{Forgotten, edit, forget, revoke, state},
    config::Config,
    error::Error,
    extractions::{
        Extraction, ExtractionCursor, Outcome, extraction_ended, extractions, read_up_to, unread,
    },
    key::{ATTRIBUTE_MAX_CHARS, TEXT_MAX_CHARS, key},
    read::{Filter, Held, Told, find, get, held, list, told},
    record::{Found, Recorded, Stated, record},
    remove::{count_ended, remove_ended, remove_some, remove_some_records},
    request::{ExtractFacts, again, request, request_of_ended},
    search::{Hit, search},
    shown::{inherit_showings, show},
    users::{CampaignUser, check_name, hold_user_of, set_user, unset_user, user_of},
    vectors::{keep_vectors, unmade},
};

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = FactSource)]
pub enum Source {
    /// By a model, from what was asked.
    Extracted,
    /// By a person.
    Stated,
    /// By a person, in place of another fact.
    Edited,
}

/// How far it can be relied on.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = FactTrust)]
pub enum Trust {
    /// A person vouches for it.
    Operator,
    /// A model has read it.
    Agent,
}

/// Why a fact holds no more.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = FactEnded)]
pub enum Ended {
    /// By what was said later.
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
    /// Whom it is about.
    pub user: String,
    /// What of the user it is about.
    pub attribute: String,
    /// What it says.
    pub text: String,
    pub source: Source,
    pub trust: Trust,
    /// The agent in whose session it was said, or a person as in the audit log.
    pub author: String,
    /// Where it was said.
    pub campaign_id: Option<Uuid>,
    pub session_id: Option<Uuid>,
    pub turn: Option<i32>,
    /// The task with whose words it was said.
    pub task_id: Option<Uuid>,
    pub recorded_at: DateTime<Utc>,
    /// When it was said.
    pub valid_from: DateTime<Utc>,
    /// When it was contradicted or taken back.
    pub valid_until: Option<DateTime<Utc>>,
    pub ended_because: Option<Ended>,
    /// The fact that ended it.
    pub replaced_by: Option<Uuid>,
    /// From when on it holds no more, whatever else.
    pub expires_at: Option<DateTime<Utc>>,
}

impl Fact {
    /// What the audit log keeps of it: which one it is, and nothing of what it says.
    pub fn for_audit(&self) -> Value {
        json!({ "fact_id": self.id, "source": self.source })
    }

    pub fn holds(&self, now: DateTime<Utc>) -> bool {
        self.valid_until.is_none() && self.expires_at.is_none_or(|end| end > now)
    }
}
