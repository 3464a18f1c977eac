//! Requests generated from a schema: valid ones, and ones with a mistake.

use rand::{RngExt as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::{Map, Number, Value, json};

use super::schema::resolve;

/// Texts that often cause faults.
const ODD_TEXTS: &[&str] = &[
    "",
    " ",
    "\0",
    "a\0b",
    "null",
    "-1",
    "0",
    "💥🎼",
    "e\u{301}\u{202e}x",
    "\u{feff}",
    "\u{ffff}",
    "../../etc",
    "'; drop table x; --",
    "%",
    "%00",
    "{{7*7}}",
    "a\r\nb: c",
    "\u{1b}[31m",
    "9999999999999999999999",
    "00000000-0000-0000-0000-000000000000",
    "turns",
];

/// Existing names and ids, by the name of a field or parameter.
#[derive(Debug, Default)]
pub struct KnownValues(pub Vec<(&'static str, Value)>);

pub struct RequestGenerator<'a> {
    pub document: &'a Value,
    pub known: &'a KnownValues,
    pub rng: &'a mut StdRng,
}

impl RequestGenerator<'_> {
    pub fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    pub fn odd_text(&mut self) -> String {
        match self.rng.random_range(0..12) {
            0 => "x".repeat(self.rng.random_range(150..5_000)),
            1 => "ü".repeat(self.rng.random_range(60..250)),
            _ => (*ODD_TEXTS.choose(self.rng).unwrap()).to_owned(),
        }
    }

    /// Returns a valid value of the schema, for a field of this name.
    pub fn valid_value(&mut self, schema: &Value, name: &str) -> Value {
        let known: Vec<&Value> =
            self.known.0.iter().filter(|(known, _)| *known == name).map(|(_, v)| v).collect();
        if !known.is_empty() && self.chance(75) {
            return (*known.choose(self.rng).unwrap()).clone();
        }
        let schema = resolve(self.document, schema).clone();
        if let Some(choices) = schema["enum"].as_array() {
            return choices.choose(self.rng).unwrap().clone();
        }
        if let Some(parts) = schema["oneOf"].as_array() {
            let part = parts.choose(self.rng).unwrap().clone();
            return self.valid_value(&part, name);
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.choose(self.rng).unwrap().clone(),
            kind => kind.clone(),
        };
        match kind.as_str().unwrap_or("object") {
            "null" => Value::Null,
            "boolean" => self.chance(50).into(),
            "integer" => {
                let least = schema["minimum"].as_i64().unwrap_or(-3);
                let most = schema["maximum"].as_i64().unwrap_or(300);
                self.rng.random_range(least..=most).into()
            }
            "number" => 0.5.into(),
            "array" => {
                let n_items = self.rng.random_range(0..4);
                (0..n_items).map(|_| self.valid_value(&schema["items"], name)).collect()
            }
            "string" => self.text(&schema),
            _ => self.object(&schema),
        }
    }

    fn text(&mut self, schema: &Value) -> Value {
        match schema["format"].as_str() {
            Some("uuid") => uuid::Uuid::from_u128(self.rng.random()).to_string().into(),
            Some("date-time") => "2099-11-20T12:00:00Z".into(),
            _ if schema["minLength"].is_u64() || self.chance(50) => {
                let n_chars = self.rng.random_range(1..40);
                let letters = "abcdefg_-0123";
                let letter =
                    |_| letters.as_bytes()[self.rng.random_range(0..letters.len())] as char;
                Value::String((0..n_chars).map(letter).collect())
            }
            _ => self.odd_text().into(),
        }
    }

    fn object(&mut self, schema: &Value) -> Value {
        let mut object = Map::new();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, part) in schema["properties"].as_object().cloned().unwrap_or_default() {
            if required.contains(&json!(name)) || self.chance(40) {
                let value = self.valid_value(&part, &name);
                object.insert(name, value);
            }
        }
        object.into()
    }

    /// Returns an arbitrary JSON value.
    pub fn any(&mut self) -> Value {
        match self.rng.random_range(0..12) {
            0 => Value::Null,
            1 => true.into(),
            2 => i64::MAX.into(),
            3 => i64::MIN.into(),
            4 => u64::MAX.into(),
            5 => (-1).into(),
            6 => 0.into(),
            7 => Number::from_f64(1e300).unwrap().into(),
            8 => json!([]),
            9 => json!({}),
            10 => json!([[[[[[{ "a": [null] }]]]]]]),
            _ => self.odd_text().into(),
        }
    }

    /// Returns the value with one random change inside.
    pub fn mutate(&mut self, value: Value) -> Value {
        match value {
            Value::Object(mut fields) if !fields.is_empty() && !self.chance(5) => {
                let names: Vec<String> = fields.keys().cloned().collect();
                let name = names.choose(self.rng).unwrap().clone();
                match self.rng.random_range(0..4) {
                    0 => _ = fields.remove(&name),
                    1 => _ = fields.insert(self.odd_text(), self.any()),
                    _ => {
                        let inner = fields.remove(&name).unwrap();
                        let spoilt = self.mutate(inner);
                        fields.insert(name, spoilt);
                    }
                }
                fields.into()
            }
            Value::Array(mut items) if !items.is_empty() && !self.chance(5) => {
                let place = self.rng.random_range(0..items.len());
                let inner = items.swap_remove(place);
                let spoilt = self.mutate(inner);
                items.push(spoilt);
                items.into()
            }
            _ => self.any(),
        }
    }
}

/// Escapes all characters but letters, digits, `-` and `_` for a URL.
pub fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    text.bytes()
        .map(|byte| match plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

/// Formats a value for a query or a path.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
