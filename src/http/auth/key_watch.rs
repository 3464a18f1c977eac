//! Repeated checks of the key that a stream was opened with.

use std::{sync::Arc, time::Duration};

use axum::{extract::FromRequestParts, http::request::Parts};
use secrecy::{ExposeSecret as _, SecretString};

use super::{AuthState, Holder, unauthenticated_fault};
use crate::http::{Problem, RouterState, scopes::RequiredScope};

/// Pause between two checks, each of which is at most one lookup per key for all its streams. Together with the cache
/// of the keyring, a revoked key is refused within ten seconds.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The key of an admitted request, and the scope that it needs.
#[derive(Clone)]
pub(in crate::http) struct KeyWatch {
    pub(super) gate: Arc<AuthState>,
    pub(super) need: RequiredScope,
    /// Key of the database. `None`: the request stays admitted until the service ends.
    pub(super) key: Option<SecretString>,
    pub(super) holder: Holder,
}

impl KeyWatch {
    /// Builds the watch of a page, which counts its waits and watches no key.
    pub(super) fn of_page(gate: Arc<AuthState>, holder: Holder) -> Self {
        Self { gate, need: RequiredScope::Nothing, key: None, holder }
    }

    /// Returns the client that its waiting requests and streams are counted for.
    pub(in crate::http) fn holder(&self) -> Holder {
        self.holder
    }

    /// Waits until the key is no longer admitted. A failed lookup ends no stream.
    pub(in crate::http) async fn wait_until_revoked(self) {
        let Some(key) = self.key else { return std::future::pending().await };
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if let Ok(false) = self.gate.is_admitted(key.expose_secret(), self.need).await {
                return;
            }
        }
    }
}

/// Extracts the pass for handlers that wait or stream.
impl FromRequestParts<RouterState> for KeyWatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &RouterState) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(unauthenticated_fault)
    }
}
