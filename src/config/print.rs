//! The effective configuration with the origin of every value, secrets left out.

use serde::Serialize;
use serde_json::Value as Json;

use super::{Environment, Flags, Layers, Problems, check};

/// Whole words: `max_tokens` and `idempotency_keys_days` are no secrets.
const SECRET_WORDS: [&str; 7] =
    ["password", "secret", "token", "key", "url", "dsn", "authorization"];

/// One effective value.
#[derive(Debug, Serialize)]
pub struct Printed {
    pub key: String,
    pub value: Json,
    pub origin: String,
}

/// Every key with its effective value. Problems are reported as by [`super::Config::load`].
pub fn print(environment: &Environment, flags: &Flags) -> Result<Vec<Printed>, Problems> {
    super::Config::load(environment, flags)?;
    let mut problems = Problems::default();
    let layers = Layers::read(environment, flags, &mut problems);
    let printed = layers.values().map(|(key, value, origin)| Printed {
        key: key.to_owned(),
        value: if is_secret(key) && !is_switch(value) {
            redact(&value.to_string())
        } else {
            json(value)
        },
        origin: origin.to_string(),
    });
    Ok(printed.collect())
}

/// Keys whose values never reach an output: by name, so that a new key is safe before anybody thinks of it.
pub(super) fn is_secret(key: &str) -> bool {
    let leaf = key.rsplit('.').next().unwrap_or(key);
    leaf.split('_').any(|word| SECRET_WORDS.contains(&word))
}

/// `require_key` is named like a secret and is none.
fn is_switch(value: &config::Value) -> bool {
    matches!(value.kind, config::ValueKind::Boolean(_))
}

fn redact(value: &str) -> Json {
    match value {
        "" => Json::from(""),
        _ => Json::from("(secret, not shown)"),
    }
}

fn json(value: &config::Value) -> Json {
    let text = check::toml(value);
    value.clone().try_deserialize().unwrap_or_else(|_| Json::from(text))
}
