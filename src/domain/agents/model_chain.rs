//! The chain of an agent: the models that may answer, in the order of preference.

use serde::Serialize;
use serde_json::Value;

use super::{
    Config, Provider,
    provider::{self, find_known},
};
use crate::domain::files::{Fields, ListItem};

/// A model that may answer, with the conditions under which a turn moves on to the next one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = AgentModel)]
pub struct ChainEntry {
    /// Null: the provider of the configuration.
    pub provider: Option<Provider>,
    /// Null: the default model of the provider.
    pub model: Option<String>,
    /// Consecutive failures. Null: `agents.fallback_after`.
    pub errors: Option<i32>,
    /// Longest wait for a rate limit, a paused credential or a busy model. Null: `agents.fallback_secs`.
    pub limit_secs: Option<i64>,
    /// Highest charge of the first call of a turn, in millionths of the currency. Null: no limit.
    pub max_charge_micros: Option<i64>,
    /// Highest median time to the first token of recent calls. Null: no limit.
    pub latency_secs: Option<f64>,
}

/// Key of the list, and of the model of one of its items.
const KEY: &str = "model";
const FALLBACK_PROVIDER: &str = "fallback_provider";
const FALLBACK_MODEL: &str = "fallback_model";
/// Keys that the list has replaced. Files with them are read as before.
pub const REPLACED_KEYS: [&str; 2] = [FALLBACK_PROVIDER, FALLBACK_MODEL];
const WANTED: &str = "a model, or a list of models as `provider/model`";

impl ChainEntry {
    /// Returns the provider and the model, as far as the configuration has them.
    pub fn resolve<'a>(&'a self, config: &'a Config) -> (&'a Provider, Option<&'a str>) {
        let provider = self.provider.as_ref().unwrap_or(&config.provider);
        let usual = (*provider == config.provider).then_some(config.model.as_str());
        (provider, self.model.as_deref().or(usual))
    }

    fn has_conditions(&self) -> bool {
        let Self { provider, model, .. } = self.clone();
        *self != Self { provider, model, ..Self::default() }
    }

    /// Formats the entry as a list of models has it.
    pub fn name(&self, config: &Config) -> String {
        match self.resolve(config) {
            (provider, Some(model)) => format!("{provider}/{model}"),
            (provider, None) => provider.to_string(),
        }
    }
}

/// Reads the keys that name models.
pub(super) fn read(fields: &mut Fields<'_>, known: &[Provider]) -> Vec<ChainEntry> {
    let named = provider::read(fields, "provider", known);
    let model = fields.value(KEY, WANTED, |value| match value {
        Value::String(model) => !model.trim().is_empty(),
        Value::Array(models) => !models.is_empty(),
        _ => false,
    });
    let is_list = model.as_ref().is_some_and(|model| model.value.is_array());
    let fallback = read_fallback(fields, known, is_list);
    let Some(Value::Array(models)) = model.as_ref().map(|model| &model.value) else {
        let model = model.and_then(|model| Some(model.value.as_str()?.trim().to_owned()));
        let first = ChainEntry { provider: named, model, ..ChainEntry::default() };
        return [first].into_iter().chain(fallback).collect();
    };
    for key in ["provider", FALLBACK_PROVIDER, FALLBACK_MODEL] {
        if fields.line(key).is_some() {
            let message = "is set beside a list of models, whose items name their providers";
            fields.fail(key, message, format!("{KEY}: with all models; remove {key}"));
        }
    }
    let items = model.iter().flat_map(|model| &model.items);
    let entries: Vec<_> = items
        .zip(models)
        .filter_map(|(item, value)| read_item(fields, item, value, known))
        .collect();
    if let [only] = entries.as_slice()
        && models.len() == 1
        && only.has_conditions()
    {
        let fix = "a further model in the list, or no conditions";
        fields.fail(KEY, "has conditions, but no model to move on to", fix);
    }
    for (at, entry) in entries.iter().enumerate() {
        let is_same =
            |other: &ChainEntry| (&other.provider, &other.model) == (&entry.provider, &entry.model);
        if entries[..at].iter().any(is_same) {
            fields.fail(KEY, "lists a model twice", "each model once");
        }
    }
    if entries.is_empty() { vec![ChainEntry::default()] } else { entries }
}

fn read_item(
    fields: &mut Fields<'_>,
    item: &ListItem,
    value: &Value,
    known: &[Provider],
) -> Option<ChainEntry> {
    let Some(mut keys) = fields.open_item(item) else {
        return match value.as_str() {
            Some(name) => read_name(fields, item.line, name, known),
            None => {
                fields.fail_at(item.line, KEY, format!("has the item {value}"), WANTED);
                None
            }
        };
    };
    let name = keys.required(KEY, "anthropic/claude-sonnet-4-5");
    let limits = ChainEntry {
        errors: keys.number("errors", 1..=1000).and_then(|n| i32::try_from(n).ok()),
        limit_secs: keys.number("limit_secs", 0..=31_536_000),
        max_charge_micros: keys
            .decimal("max_charge", 0.000_001..=1_000_000.0)
            .map(|units| (units * 1_000_000.0).round() as i64),
        latency_secs: keys.decimal("latency_secs", 0.001..=86_400.0),
        ..ChainEntry::default()
    };
    fields.problems.extend(keys.into_problems());
    let named = (!name.is_empty()).then(|| read_name(fields, item.line, &name, known))??;
    Some(ChainEntry { provider: named.provider, model: named.model, ..limits })
}

/// Reads `provider/model`, or a provider alone for its default model. The first slash separates them; further ones belong to the model.
fn read_name(
    fields: &mut Fields<'_>,
    line: usize,
    name: &str,
    known: &[Provider],
) -> Option<ChainEntry> {
    let (provider, model) = match name.trim().split_once('/') {
        Some((provider, model)) => (provider.trim(), Some(model.trim())),
        None => (name.trim(), None),
    };
    match find_known(provider, known) {
        Ok(_) if model == Some("") => {
            let message = format!("has the item `{name}` without a model behind the slash");
            fields.fail_at(line, KEY, message, format!("{provider}/MODEL"));
            None
        }
        Ok(provider) => Some(ChainEntry {
            provider: Some(provider),
            model: model.map(str::to_owned),
            ..ChainEntry::default()
        }),
        Err(names) => {
            let message = format!("has the item `{name}`, which begins with no provider");
            fields.fail_at(
                line,
                KEY,
                message,
                format!("`provider/model` with the provider {names}"),
            );
            None
        }
    }
}

/// Reads the second model of files that were written before there were lists.
fn read_fallback(fields: &mut Fields<'_>, known: &[Provider], is_list: bool) -> Option<ChainEntry> {
    let provider = fields.without_key(|fields| provider::read(fields, FALLBACK_PROVIDER, known));
    let model = fields.without_key(|fields| fields.text(FALLBACK_MODEL));
    let is_lone = model.is_some() && fields.line(FALLBACK_PROVIDER).is_none();
    if is_lone && !is_list {
        let fix = "model: [PROVIDER/MODEL, PROVIDER/MODEL]";
        fields.fail(FALLBACK_MODEL, "is set without a provider", fix);
    }
    let provider = provider?;
    Some(ChainEntry { provider: Some(provider), model, ..ChainEntry::default() })
}

/// JSON Schema of the key `model`.
pub(super) const SCHEMA: &str = r##"{
    "anyOf": [
        { "type": "string", "minLength": 1, "description": "A model of `provider`." },
        {
            "type": "array",
            "minItems": 1,
            "description": "Models as `provider/model`, in the order of preference.",
            "items": {
                "anyOf": [
                    { "$ref": "#/properties/model/definitions/name" },
                    {
                        "type": "object",
                        "properties": {
                            "model": { "$ref": "#/properties/model/definitions/name" },
                            "errors": { "type": "integer", "minimum": 1, "maximum": 1000, "description": "Consecutive failures after which turns move on to the next model." },
                            "limit_secs": { "type": "integer", "minimum": 0, "maximum": 31536000, "description": "Turns move on if they would wait longer for a rate limit, a paused credential or a busy model." },
                            "max_charge": { "type": "number", "minimum": 0.000001, "maximum": 1000000, "description": "A turn moves on if its first call may be charged more, or if a budget cannot pay for it." },
                            "latency_secs": { "type": "number", "minimum": 0.001, "maximum": 86400, "description": "Turns move on while the median time to the first token of recent calls is longer." }
                        },
                        "required": ["model"],
                        "additionalProperties": false
                    }
                ]
            }
        }
    ],
    "definitions": {
        "name": { "type": "string", "pattern": "^[a-z0-9_-]+(/.+)?$" }
    }
}"##;
