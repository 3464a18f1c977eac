//! Errors of webhooks, and their classes.

use uuid::Uuid;

use super::address::RefusalReason;
use crate::{
    domain::{
        StatementError, campaigns,
        class::{Class, Classify, Kind},
    },
    queue,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no webhook {0}: `dalsegno webhook ls` lists them")]
    Unknown(Uuid),
    #[error("there is no delivery {0}: `dalsegno webhook deliveries` lists them")]
    UnknownDelivery(Uuid),
    #[error(transparent)]
    Refused(#[from] RefusalReason),
    #[error("there is no campaign {0}: `dalsegno campaign ls` lists them")]
    UnknownCampaign(Uuid),
    #[error("webhook {0} is disabled: enable it with `dalsegno webhook enable {0}`")]
    Disabled(Uuid),
    #[error("cannot enqueue a delivery: {0}")]
    Enqueue(#[from] queue::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Error {
    pub const UNKNOWN: Class = Class::of(Kind::NotFound, "unknown_webhook");
    pub const UNKNOWN_DELIVERY: Class = Class::of(Kind::NotFound, "unknown_delivery");
    pub const BAD_URL: Class = Class::of(Kind::Invalid, "bad_webhook_url");
    pub const DISABLED: Class = Class::of(Kind::Conflict, "webhook_disabled");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown(_) => Self::UNKNOWN,
            Self::UnknownDelivery(_) => Self::UNKNOWN_DELIVERY,
            Self::UnknownCampaign(_) => campaigns::Error::UNKNOWN,
            Self::Refused(_) => Self::BAD_URL,
            Self::Disabled(_) => Self::DISABLED,
            Self::Enqueue(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}
