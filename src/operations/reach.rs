//! The campaigns and tasks that a key reaches.

use std::sync::Arc;

use uuid::Uuid;

use crate::domain::keys::{Key, Scope};

/// The campaigns and tasks that a call may name. The default reaches everything.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    /// `None`: all campaigns.
    campaigns: Option<Arc<[Uuid]>>,
    /// Name of the key, if it sees only its own tasks.
    own: Option<Arc<str>>,
}

impl Reach {
    pub fn of(key: &Key) -> Self {
        Self {
            campaigns: key.campaigns.as_deref().map(Arc::from),
            own: (!key.allows(Scope::Read)).then(|| Arc::from(key.name.as_str())),
        }
    }

    /// Returns the campaigns that the key is bound to, if any.
    pub fn campaigns(&self) -> Option<&[Uuid]> {
        self.campaigns.as_deref()
    }

    pub fn into_campaigns(self) -> Option<Arc<[Uuid]>> {
        self.campaigns
    }

    /// Returns the name of the only caller whose tasks may be named, if the reach is limited to one.
    pub fn only_of(&self) -> Option<&str> {
        self.own.as_deref()
    }
}
