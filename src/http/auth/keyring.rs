//! Cache of API keys, which saves requests the database lookup.
//!
//! A key is looked up again after [`CACHE_TTL`], so a key revoked elsewhere is refused within that time. Its expiry is
//! checked at each request. Unknown keys are not cached, because their number has no bound.

use std::{
    num::NonZeroUsize,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hashlink::LruCache;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::time::Instant;

use super::lookup::KeyLookups;
use crate::{
    app::App,
    causes::causes,
    domain::keys::{self, Digest, Key},
    http::Problem,
};

/// Longest use of a revoked key; 5 s are promised.
const CACHE_TTL: Duration = Duration::from_secs(3);
/// Most cached keys, of some hundred bytes each.
const MAX_KNOWN: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1_023);

#[derive(Debug)]
pub(super) struct Keyring {
    admin: Option<Digest>,
    /// By the hash of the key's text; the text itself is stored nowhere.
    known: Mutex<LruCache<Digest, KnownKey>>,
    lookups: KeyLookups,
}

#[derive(Debug)]
struct KnownKey {
    key: Arc<Key>,
    since: Instant,
}

impl Keyring {
    pub(super) fn new(admin: Option<&SecretString>) -> Self {
        Self {
            admin: admin.map(|key| keys::digest(key.expose_secret())),
            known: Mutex::new(LruCache::new(MAX_KNOWN.get())),
            lookups: KeyLookups::default(),
        }
    }

    pub(super) fn is_admin(&self, text: &str) -> bool {
        self.is_admin_digest(&keys::digest(text))
    }

    pub(super) fn is_admin_digest(&self, digest: &Digest) -> bool {
        self.admin.is_some_and(|admin| keys::is_same(&admin, digest))
    }

    /// Returns the key if its cache entry is fresh.
    pub(super) fn find_cached(&self, text: &str) -> Option<Arc<Key>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.get(&keys::digest(text))?;
        (found.since.elapsed() < CACHE_TTL).then(|| Arc::clone(&found.key))
    }

    /// Looks up the key in the database, usable or not, and caches it. Stores its last use once a minute.
    pub(super) async fn look_up(&self, app: &App, text: &str) -> Result<Option<Arc<Key>>, Problem> {
        let Some(handle) = keys::handle(text) else { return Ok(None) };
        let digest = keys::digest(text);
        let found = self.lookups.find(&app.pool, handle).await?;
        let stored = found.stored.filter(|stored| keys::is_same(&stored.digest, &digest));
        let Some(key) = stored.map(|stored| Arc::new(stored.key.clone())) else { return Ok(None) };
        let now = app.clock.now();
        if key.is_usable(now) && key.should_record_use(now) {
            record_use(app, &key).await;
        }
        let entry = KnownKey { key: Arc::clone(&key), since: found.at };
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(digest, entry);
        Ok(Some(key))
    }
}

/// Stores the last use of a key. A failure is logged only, and the request continues.
async fn record_use(app: &App, key: &Key) {
    if let Err(error) = keys::record_use(&app.pool, key.id, app.clock.now()).await {
        let error = causes(&error);
        tracing::warn!(error, key.id = %key.id, "cannot store the last use of an API key");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revocation_takes_effect_within_the_promised_time() {
        // The lookup and the request itself take time, too.
        assert!(CACHE_TTL <= Duration::from_secs(4));
    }

    #[test]
    fn the_configured_key_is_recognised_and_not_printed() {
        let text = "an-admin-key-of-forty-characters-in-all!";
        let keyring = Keyring::new(Some(&SecretString::from(text)));
        assert!(keyring.is_admin(text) && !keyring.is_admin(&text[1..]));
        assert!(!Keyring::new(None).is_admin(""));
        assert!(!format!("{keyring:?}").contains("forty"));
    }
}
