//! The effective configuration with the origin of every value, without secrets.

use serde_json::Value as Json;

use crate::{
    domain::installation::Setting,
    settings::{Environment, Flags, Layers, Origin, Problems, is_secret, toml},
};

/// Lists every key with its effective value. Problems are reported as by [`super::Config::load`].
pub fn print(environment: &Environment, flags: &Flags) -> Result<Vec<Setting>, Problems> {
    Ok(super::Config::load(environment, flags)?.settings)
}

/// Lists every key of these layers.
pub(super) fn settings(layers: &Layers) -> Vec<Setting> {
    let printed = layers.values().map(|(key, value, origin)| Setting {
        key: key.to_owned(),
        value: if is_secret(key) && !is_switch(value) {
            redact(&value.to_string())
        } else {
            json(value)
        },
        is_default: *origin == Origin::Default,
        origin: origin.to_string(),
    });
    printed.collect()
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
