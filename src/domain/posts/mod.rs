//! The board of a campaign: posts and their visibility.
//!
//! Invariants:
//! - `seq` is dense within a campaign and grows in the order of commits. A reader that has seen everything up to one place never finds an
//!   earlier post later.
//! - Visibility is decided when a post is written, by whole names, and is looked up in the database (`dalsegno.visible_posts`). The
//!   operator and the lead see all posts. Others see posts addressed to them or to all, and their own.
//! - The sender is a column. Claims in a text about its sender are ignored.
//!
//! A reader's name ([`reader`]) is the agent's name for the instance `main`, and `<agent>/<instance>` for any other. A post to `curator`
//! therefore reaches the instance `main` alone, and not `curator/2`. People may write `curator_2` ([`reader_named`]).
//!
//! Race: adding locks the board's row until the transaction ends, so posts of one campaign are committed one after the other. At the end
//! of a turn only the job is locked after the board.

mod add;
mod answer;
mod archive;
mod audience;
mod chain;
mod config;
mod error;
mod hidden;
mod key;
mod read;
mod remove;
mod texts;

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use self::{
    add::{add, check_text},
    answer::{EndedTask, Outcome, answer, answer_to},
    archive::{
        Archive, ArchivedSender, DueBoard, archive, archive_of, first_place_of,
        first_visible_after, list_due, lock_board, remove_archive,
    },
    audience::Audience,
    chain::{
        AnswerChain, AnswerChainQuery, RepeatedText, count_repetitions, load_ancestry, sender_of,
    },
    config::Config,
    error::Error,
    hidden::{HiddenPost, list_hidden},
    key::{Key, KeyedPost, find_by_key, keep_key, lock_key},
    read::{ListDirection, find, list_before, list_page},
    remove::remove_some,
    texts::find_texts,
};
pub use super::agents::{OPERATOR, SYSTEM};
use super::{
    agents::{Catalogue, MAIN, agent_name},
    limits::{
        LimitEffect::{Refused, Sentence},
        LimitEntry,
    },
    text,
};

/// The longest text of a post.
pub const TEXT_MAX_BYTES: usize = 1024 * 1024;

pub const LIMITS: &[LimitEntry] = &[
    LimitEntry::fixed(
        "bytes of a post of a person",
        TEXT_MAX_BYTES as u64,
        Refused(text::Error::TOO_LONG.code),
    ),
    LimitEntry::fixed(
        "bytes of an answer that becomes a post",
        TEXT_MAX_BYTES as u64,
        Sentence("The post is cut, and says so."),
    ),
    LimitEntry::fixed(
        "names in the audience of a post",
        audience::MAX_NAMES as u64,
        Refused(Error::TOO_MANY_NAMES.code),
    ),
    LimitEntry::setting(
        "posts on the board of a campaign",
        "board.keep_posts",
        (0, None),
        Sentence("The nightly cleanup archives the oldest. 0: no limit."),
    ),
    LimitEntry::setting(
        "days that a post stays on the board",
        "board.keep_days",
        (0, Some(config::MAX_DAYS as u64)),
        Sentence("The nightly cleanup archives it. 0: no limit."),
    ),
];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Post {
    pub id: Uuid,
    /// Number of the post on the board, from 1, in the order of commits.
    pub seq: i64,
    /// `operator`, `system`, or the name of the agent: `<agent>`, or `<agent>/<instance>` for an instance other than `main`.
    pub sender: String,
    pub origin: Origin,
    pub trust: Trust,
    /// The person or the API key that posted, as in the audit log. Null for posts of agents and of the service, and for older ones.
    pub author: Option<String>,
    /// Addressees: names as in `sender`, or `all`.
    pub audience: Vec<String>,
    /// The post that this one answers.
    pub reply_to: Option<Uuid>,
    pub posted_at: DateTime<Utc>,
    /// The task whose turn wrote the post, or that the post is about.
    pub task_id: Option<Uuid>,
    pub session_id: Option<Uuid>,
    pub turn: Option<i32>,
    pub text: String,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = PostOrigin)]
pub enum Origin {
    /// A person.
    Operator,
    /// A turn of an agent.
    Agent,
    /// The service itself.
    System,
}

/// Trust level of a post.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = PostTrust)]
pub enum Trust {
    /// Written by a person: at the command line, with the admin key, or without a key.
    Operator,
    /// Written with an API key, by a program or a person behind it.
    Key,
    /// Written by a model, from any input that it got.
    Agent,
    /// Written by the service itself.
    System,
}

/// A post to add.
#[derive(Debug, Clone, Copy)]
pub struct New<'a> {
    pub campaign_id: Uuid,
    pub sender: Sender<'a>,
    pub audience: &'a Audience,
    pub reply_to: Option<Uuid>,
    pub text: &'a str,
}

#[derive(Debug, Clone, Copy)]
pub enum Sender<'a> {
    /// A person or a program; `author` is the caller as in the audit log.
    Operator {
        author: &'a str,
    },
    /// The service; `task_id` is the task that the post is about.
    System {
        task_id: Option<Uuid>,
    },
    Agent {
        agent: &'a str,
        instance: &'a str,
        said: SourceTurn,
    },
}

/// The turn in which an agent said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceTurn {
    pub task_id: Uuid,
    pub session_id: Uuid,
    pub turn: i32,
    /// The message of the transcript that is posted, if it is an answer. A session that contains this message is not shown the post.
    pub message_id: Option<Uuid>,
}

/// The reader for whom posts are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Viewer<'a> {
    /// A reader who sees every post: the operator or the campaign's lead.
    All,
    /// A reader's name; see [`reader`].
    Reader(&'a str),
}

impl Trust {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Key => "key",
            Self::Agent => "agent",
            Self::System => "system",
        }
    }
}

impl Viewer<'_> {
    /// Returns the parameter for the functions of the schema. None means all posts.
    pub(in crate::domain) fn column(&self) -> Option<&str> {
        match self {
            Self::All => None,
            Self::Reader(name) => Some(name),
        }
    }
}

/// Returns the name of an agent's instance on the board. Agent names contain no slash.
pub fn reader<'a>(agent: &'a str, instance: &str) -> Cow<'a, str> {
    match instance {
        MAIN => Cow::Borrowed(agent),
        other => Cow::Owned(agent_name(agent, other)),
    }
}

/// Resolves `curator`, `curator_2` or `curator/2` to a reader's name. Unknown names are returned unchanged.
pub fn reader_named(catalogue: &Catalogue, written: &str) -> String {
    match catalogue.parse_name(written, MAIN) {
        Ok((agent, instance)) => reader(agent, instance).into_owned(),
        Err(_) => written.to_owned(),
    }
}
