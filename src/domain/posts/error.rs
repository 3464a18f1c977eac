//! Errors of posts, and their classes.

use uuid::Uuid;

use crate::domain::{
    StatementError, campaigns,
    class::{Class, Classify, Kind},
    text,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no campaign {0}: `dalsegno campaign ls` lists them")]
    UnknownCampaign(Uuid),
    #[error("campaign {0} is closed: create a new one")]
    Closed(Uuid),
    #[error("there is no post {0} in this campaign: `dalsegno board history` lists them")]
    UnknownPost(Uuid),
    #[error("unknown name {}: address a post to `all`, `operator`, or agents that `dalsegno agent ls` lists", list(.0))]
    UnknownNames(Vec<String>),
    #[error("the post has no readers: name agents, `operator` or `all`")]
    NoAudience,
    #[error(
        "the post is addressed to {0} names, at most 200 are allowed: `all` reaches all agents"
    )]
    TooManyNames(usize),
    #[error(transparent)]
    Text(#[from] text::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Error {
    pub const UNKNOWN_POST: Class = Class::of(Kind::NotFound, "unknown_post");
    pub const UNKNOWN_NAMES: Class = Class::of(Kind::Invalid, "unknown_names");
    pub const NO_AUDIENCE: Class = Class::of(Kind::Invalid, "no_audience");
    pub const TOO_MANY_NAMES: Class = Class::of(Kind::TooLarge, "too_many_names");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::UnknownCampaign(_) => campaigns::Error::UNKNOWN,
            Self::Closed(_) => campaigns::Error::CLOSED,
            Self::UnknownPost(_) => Self::UNKNOWN_POST,
            Self::UnknownNames(_) => Self::UNKNOWN_NAMES,
            Self::NoAudience => Self::NO_AUDIENCE,
            Self::TooManyNames(_) => Self::TOO_MANY_NAMES,
            Self::Text(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
