//! The campaigns and tasks that a key reaches.

use std::sync::Arc;

use uuid::Uuid;

use crate::domain::keys::{Key, Scope};

/// The things that a call may name. The default reaches everything.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    /// `None`: all campaigns.
    campaigns: Option<Arc<[Uuid]>>,
    /// The name of the key, if it sees its own tasks only.
    own: Option<Arc<str>>,
}

impl Reach {
    pub fn of(key: &Key) -> Self {
        Self {
            campaigns: key.campaigns.as_deref().map(Arc::from),
            own: (!key.allows(Scope::Read)).then(|| Arc::from(key.name.as_str())),
        }
    }

    /// The campaigns that it is bound to, if any.
    pub fn campaigns(&self) -> Option<&[Uuid]> {
        self.campaigns.as_deref()
    }

    pub fn into_campaigns(self) -> Option<Arc<[Uuid]>> {
        self.campaigns
    }

    /// The name of the caller whose tasks alone may be named, if so.
    pub fn only_of(&self) -> Option<&str> {
        self.own.as_deref()
    }
}
