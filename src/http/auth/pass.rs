//! Whether whoever opened a stream would still be let in.

use std::{sync::Arc, time::Duration};

use axum::{extract::FromRequestParts, http::request::Parts};
use secrecy::{ExposeSecret as _, SecretString};

use super::{Holder, Shared, past_the_door};
use crate::http::{Front, Problem, scopes::Need};

/// One look into the database per key, however many streams it has open. With what the keyring remembers, a revoked key is of no
/// use after less than ten seconds.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// What a request has shown at the door.
#[derive(Clone)]
pub(in crate::http) struct Pass {
    pub(super) gate: Arc<Shared>,
    pub(super) need: Need,
    /// A key of the database. Anything else is good until the service ends.
    pub(super) key: Option<SecretString>,
    pub(super) holder: Holder,
}

impl Pass {
    /// The client that its waits and streams are counted for.
    pub(in crate::http) fn holder(&self) -> Holder {
        self.holder
    }

    /// Comes back when it is good no more. A database that does not answer throws nobody out.
    pub(in crate::http) async fn withdrawn(self) {
        let Some(key) = self.key else { return std::future::pending().await };
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if let Ok(false) = self.gate.is_good(key.expose_secret(), self.need).await {
                return;
            }
        }
    }
}

/// For handlers that wait, or whose answer has no end.
impl FromRequestParts<Front> for Pass {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Front) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(past_the_door)
    }
}
