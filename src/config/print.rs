//! The effective configuration with the origin of every value, without secrets.

use serde::Serialize;
use serde_json::Value as Json;

use super::TEMPLATE;
use crate::settings::{Environment, Flags, Layers, Problems, is_secret, toml};

/// One effective value.
#[derive(Debug, Serialize)]
pub struct PrintedValue {
    pub key: String,
    pub value: Json,
    pub origin: String,
}

/// Lists every key with its effective value. Problems are reported as by [`super::Config::load`].
pub fn print(environment: &Environment, flags: &Flags) -> Result<Vec<PrintedValue>, Problems> {
    super::Config::load(environment, flags)?;
    let mut problems = Problems::default();
    let layers = Layers::read(TEMPLATE, environment, flags, &mut problems);
    let printed = layers.values().map(|(key, value, origin)| PrintedValue {
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

/// Returns true for a boolean such as `require_key`, which is named like a secret.
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
    let text = toml(value);
    value.clone().try_deserialize().unwrap_or_else(|_| Json::from(text))
}
