//! The section `http` of the configuration.

use std::{net::SocketAddr, time::Duration};

use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::{auth, guard};
use crate::settings::{Checks, empty_as_none};

const ADMIN_KEY_MIN_CHARS: usize = 32;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub listen: SocketAddr,
    pub allow_unauthenticated: bool,
    pub require_key: bool,
    /// A key with all scopes.
    #[serde(deserialize_with = "empty_as_none")]
    pub admin_key: Option<SecretString>,
    /// Limit per key, or per address without a key. 0 disables it.
    pub requests_per_minute: u32,
    /// Host names, separated by commas.
    pub allowed_hosts: String,
    /// Addresses and networks, separated by commas.
    pub trusted_proxies: String,
    pub header_timeout_secs: u64,
    pub request_timeout_secs: u64,
    pub max_waiting: usize,
    /// Limit per key, or per address without a key.
    pub max_waiting_per_client: usize,
    pub max_page_streams: usize,
    /// Limit per key, or per address without a key.
    pub max_page_streams_per_client: usize,
    pub max_body_bytes: usize,
    pub max_header_bytes: usize,
    /// Limit of a body with many tasks.
    pub max_bulk_bytes: usize,
}

impl Config {
    /// Returns true if requests need a key.
    pub fn asks_for_keys(&self) -> bool {
        !self.allow_unauthenticated && (self.require_key || !self.listen.ip().is_loopback())
    }

    /// Returns the time that a connection has to send its headers.
    pub fn header_timeout(&self) -> Duration {
        Duration::from_secs(self.header_timeout_secs)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        items(&self.allowed_hosts)
    }

    pub(super) fn trusted_networks(&self) -> impl Iterator<Item = auth::Network> {
        items(&self.trusted_proxies).filter_map(|text| text.parse().ok())
    }

    pub fn check(&self, checks: &mut Checks<'_>) {
        checks.secs("http.header_timeout_secs", self.header_timeout_secs, 1);
        checks.secs("http.request_timeout_secs", self.request_timeout_secs, 1);
        checks.at_least("http.max_waiting", self.max_waiting as u64, 1);
        let per_client = self.max_waiting_per_client as u64;
        checks.at_least("http.max_waiting_per_client", per_client, 1);
        checks.at_least("http.max_page_streams", self.max_page_streams as u64, 1);
        let per_client = self.max_page_streams_per_client as u64;
        checks.at_least("http.max_page_streams_per_client", per_client, 1);
        checks.at_least("http.max_body_bytes", self.max_body_bytes as u64, 1024);
        checks.at_least("http.max_header_bytes", self.max_header_bytes as u64, 1024);
        checks.at_least("http.max_bulk_bytes", self.max_bulk_bytes as u64, 1024);
        for name in self.names().filter(|name| !guard::is_name(name)) {
            let fix = "names alone, without scheme, port and path: dalsegno.internal, dalsegno";
            checks.fail(
                "http.allowed_hosts",
                format!("has `{name}`, which is not a host name"),
                fix,
            );
        }
        let is_network = |text: &&str| text.parse::<auth::Network>().is_ok();
        for text in items(&self.trusted_proxies).filter(|text| !is_network(text)) {
            let message = format!("has `{text}`, which is not an address or a network");
            checks.fail("http.trusted_proxies", message, "for example 10.0.0.5, fd00::/8");
        }
        if self.admin_key.as_ref().is_some_and(|key| !is_good_secret(key.expose_secret())) {
            let message = format!(
                "is too short, or has invalid characters: it must have at least {ADMIN_KEY_MIN_CHARS} visible ASCII characters"
            );
            checks.fail(
                "http.admin_key",
                message,
                "for example the output of `openssl rand -hex 32`",
            );
        }
        if self.require_key && self.allow_unauthenticated {
            let keys = ["http.require_key", "http.allow_unauthenticated"];
            let message = "http.require_key and http.allow_unauthenticated are both true, but contradict each other";
            checks.fail_pair(keys, message, "only one of the two");
        }
    }
}

/// Splits a text at its commas.
fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

fn is_good_secret(text: &str) -> bool {
    text.len() >= ADMIN_KEY_MIN_CHARS && text.bytes().all(|byte| byte.is_ascii_graphic())
}
