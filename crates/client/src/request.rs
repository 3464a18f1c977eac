//! A request, before it is sent.

use reqwest::Method;
use serde::Serialize;
use uuid::Uuid;

use super::Error;

#[derive(Debug, Clone)]
pub(super) struct Request {
    /// The purpose in words, for errors.
    pub(super) action: &'static str,
    pub(super) method: Method,
    /// Path below the address of the service.
    pub(super) path: String,
    pub(super) body: Option<Vec<u8>>,
    pub(super) key: Option<String>,
    pub(super) last_event_id: Option<String>,
}

impl Request {
    pub(super) fn get(action: &'static str, path: String) -> Self {
        let (body, key, last_event_id) = (None, None, None);
        Self { action, method: Method::GET, path, body, key, last_event_id }
    }

    pub(super) fn post(action: &'static str, path: String) -> Self {
        Self { method: Method::POST, ..Self::get(action, path) }
    }

    /// Sets the idempotency key. The service runs a repeated request with a key once, so each request that can have a key gets one.
    pub(super) fn with_key(self, key: Option<&str>) -> Self {
        let key = key.map_or_else(|| Uuid::new_v4().to_string(), str::to_owned);
        Self { key: Some(key), ..self }
    }

    pub(super) fn with_body(self, body: &impl Serialize) -> Result<Self, Error> {
        let body = serde_json::to_vec(body).map_err(Error::Body)?;
        Ok(Self { body: Some(body), ..self })
    }

    pub(super) fn after(self, last_event_id: Option<&str>) -> Self {
        Self { last_event_id: last_event_id.map(str::to_owned), ..self }
    }

    /// Returns true if the request can be sent again although the service may have received it.
    pub(super) fn is_repeatable(&self) -> bool {
        self.method == Method::GET || self.key.is_some()
    }
}
