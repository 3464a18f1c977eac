//! Errors of webhooks, and their classes.

use uuid::Uuid;

use super::address::Refused;
use crate::{
    domain::{
        Failed,
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
    Refused(#[from] Refused),
    #[error("there is no campaign {0}: `dalsegno campaign ls` lists them")]
    UnknownCampaign(Uuid),
    #[error("webhook {0} is disabled: `dalsegno webhook enable {0}` has it told again")]
    Disabled(Uuid),
    #[error("enqueuing a delivery: {0}")]
    Enqueue(#[from] queue::Error),
    #[error(transparent)]
    Database(#[from] Failed),
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown(_) => Class::of(Kind::NotFound, "unknown_webhook"),
            Self::UnknownDelivery(_) => Class::of(Kind::NotFound, "unknown_delivery"),
            Self::UnknownCampaign(_) => Class::of(Kind::NotFound, "unknown_campaign"),
            Self::Refused(_) => Class::of(Kind::Invalid, "bad_webhook_url"),
            Self::Disabled(_) => Class::of(Kind::Conflict, "webhook_disabled"),
            Self::Enqueue(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}
