//! Errors of facts, and their classes.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::domain::{
    StatementError, campaigns,
    class::{Class, Classify, Kind},
    text,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no fact {id} about `{user}`: `dalsegno memory facts ls {user}` lists them")]
    NoFact { user: String, id: Uuid },
    #[error(
        "invalid name of a user {0:?}: use letters a to z, digits, and after the first character . _ @ + -, at most 128, for example `ann@example.org`"
    )]
    User(String),
    #[error("the {what} {problem}")]
    Words { what: &'static str, problem: &'static str },
    #[error("this fact ended at {0}: use the current fact")]
    Ended(DateTime<Utc>),
    #[error("its campaign {0} is closed: revoke this fact, and add the correct one")]
    SaidInClosed(Uuid),
    #[error("another fact about this user has the same content: {0}")]
    Known(Uuid),
    #[error(
        "this campaign has no user: a person can set one, then facts about them can be written"
    )]
    NoUser,
    #[error(
        "this turn has written {limit} facts, the most that one turn may write (`facts.answer_max`): keep the rest in a record or your journal"
    )]
    TurnFull { limit: usize },
    #[error("`{user}` already has {limit} facts: revoke some of them, or raise facts.user_max")]
    Full { user: String, limit: i64 },
    #[error("the expiry {0} is in the past: give a future time")]
    Expired(DateTime<Utc>),
    #[error(transparent)]
    Text(#[from] text::Error),
    #[error(transparent)]
    Campaign(#[from] campaigns::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Error {
    pub const BAD_USER: Class = Class::of(Kind::Invalid, "bad_user");
    pub const UNKNOWN: Class = Class::of(Kind::NotFound, "unknown_fact");
    pub const ENDED: Class = Class::of(Kind::Conflict, "fact_ended");
    pub const KNOWN: Class = Class::of(Kind::Conflict, "fact_known");
    pub const FULL: Class = Class::of(Kind::Conflict, "facts_full");
    pub const BAD_FACT: Class = Class::of(Kind::Invalid, "bad_fact");
    pub const EXPIRED: Class = Class::of(Kind::Invalid, "expired");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::NoFact { .. } => Self::UNKNOWN,
            Self::User(_) => Self::BAD_USER,
            Self::Words { .. } => Self::BAD_FACT,
            Self::Ended(_) => Self::ENDED,
            Self::SaidInClosed(_) => campaigns::Error::CLOSED,
            Self::Known(_) => Self::KNOWN,
            Self::NoUser => Class::of(Kind::Conflict, "no_user"),
            Self::Full { .. } | Self::TurnFull { .. } => Self::FULL,
            Self::Expired(_) => Self::EXPIRED,
            Self::Text(error) => error.class(),
            Self::Campaign(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}
