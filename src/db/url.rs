//! Parser of `database.url` and `database.direct_url`. Their values are secrets; messages repeat only plain names of
//! parameters.

use secrecy::{ExposeSecret as _, SecretString};
use sqlx::postgres::PgConnectOptions;

use super::Error;
use crate::settings::Checks;

/// The parameters that sqlx reads. It ignores others, and logs them with their values.
const PARAMETERS: [&str; 18] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "password",
    "port",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-mode",
    "ssl-root-cert",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "statement-cache-capacity",
    "user",
];

pub(super) fn parse(setting: &'static str, url: &SecretString) -> Result<PgConnectOptions, Error> {
    let parse_error = |source| Error::ParseUrl { setting, source };
    let url = url.expose_secret();
    // sqlx ignores the scheme.
    if !url.starts_with("postgres:") && !url.starts_with("postgresql:") {
        return Err(parse_error(sqlx::Error::Configuration("another scheme".into())));
    }
    url.parse().map_err(parse_error)
}

pub(super) fn check(key: &'static str, url: &SecretString, checks: &mut Checks<'_>) {
    if parse(key, url).is_err() {
        let fix = "postgres://user:password@host:port/database";
        checks.fail(key, "is not a valid address of a Postgres database", fix);
        return;
    }
    for name in unknown_parameters(url.expose_secret()) {
        let message = format!("has the unknown parameter {name}, which would be ignored");
        checks.fail(key, message, "the address without it");
    }
}

fn unknown_parameters(url: &str) -> impl Iterator<Item = String> {
    let query = url.split('#').next().and_then(|url| url.split_once('?'));
    let pairs = query.map_or("", |(_, query)| query).split('&').filter(|pair| !pair.is_empty());
    let names = pairs.map(|pair| pair.split('=').next().unwrap_or(pair));
    let known = |name: &str| PARAMETERS.contains(&name) || name.starts_with("options[");
    names.filter(move |name| !known(name)).map(|name| {
        // The text after a `?` in a password looks like a parameter, too.
        let is_plain = name.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '_' | '-'));
        if is_plain { format!("the parameter `{name}`") } else { "a parameter".to_owned() }
    })
}
