//! The documented format of a kind of file, from which its JSON Schema follows.

use serde_json::{Map, Value, json};

use super::{Document, Key, ValueType, name::NAME_PATTERN};

/// The keys of a kind of file with their descriptions.
#[derive(Debug, Clone)]
pub struct FileFormat {
    pub title: &'static str,
    /// The keys, as the reader reads them.
    pub keys: Vec<Key>,
    pub texts: &'static [KeyText],
    /// The text after the front matter in the example. Empty: the example is the front matter alone.
    pub example_text: &'static str,
}

/// The description of a key.
#[derive(Debug, Clone, Copy)]
pub struct KeyText {
    pub key: &'static str,
    pub text: &'static str,
    /// The value without the key, in words. Empty for a required key.
    pub default: &'static str,
    /// A value as it is written in a file.
    pub example: &'static str,
    /// JSON Schema of a value that [`ValueType`] does not describe.
    pub schema: Option<&'static str>,
}

impl KeyText {
    pub(in crate::domain) const fn new(
        key: &'static str,
        default: &'static str,
        example: &'static str,
        text: &'static str,
    ) -> Self {
        Self { key, text, default, example, schema: None }
    }

    pub(in crate::domain) const fn with_schema(self, schema: &'static str) -> Self {
        Self { schema: Some(schema), ..self }
    }
}

impl FileFormat {
    pub fn text(&self, key: &str) -> Option<&KeyText> {
        self.texts.iter().find(|text| text.key == key)
    }

    /// Returns the names of keys without a description, and of descriptions without a key.
    #[cfg(test)]
    pub fn undocumented(&self) -> Vec<&'static str> {
        let keys = self.keys.iter().map(|key| key.name);
        let without_text = keys.filter(|name| self.text(name).is_none());
        let texts = self.texts.iter().map(|text| text.key);
        let without_key = texts.filter(|name| !self.keys.iter().any(|key| key.name == *name));
        without_text.chain(without_key).collect()
    }

    /// Returns the names of the required keys: those without a default.
    pub fn required(&self) -> Vec<&'static str> {
        self.texts.iter().filter(|text| text.default.is_empty()).map(|text| text.key).collect()
    }

    /// Returns the front matter with every key, each with its example, and the text after it.
    pub fn example(&self) -> String {
        let lines = self.texts.iter().map(|text| format!("{}: {}\n", text.key, text.example));
        format!("---\n{}---\n{}", lines.collect::<String>(), self.example_text)
    }

    /// Returns the JSON Schema of the front matter.
    ///
    /// # Errors
    ///
    /// An example or a schema of a key cannot be parsed.
    pub fn schema(&self) -> Result<Value, String> {
        let example = self.example();
        let document = Document::parse(self.title, &example).map_err(|error| error.to_string())?;
        let mut properties = Map::new();
        for key in &self.keys {
            let Some(text) = self.text(key.name) else { continue };
            let mut schema = match text.schema {
                Some(schema) => serde_json::from_str(schema)
                    .map_err(|error| format!("schema of `{}`: {error}", key.name))?,
                None => value_schema(&key.value),
            };
            if key.name == "name" {
                schema["pattern"] = NAME_PATTERN.into();
            }
            schema["description"] = match text.default {
                "" => text.text.into(),
                default => format!("{} Default: {default}.", text.text).into(),
            };
            if let Some(found) = document.values.get(key.name) {
                schema["examples"] = json!([found.value]);
            }
            properties.insert(key.name.to_owned(), schema);
        }
        Ok(json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": self.title,
            "type": "object",
            "properties": properties,
            "required": self.required(),
            "additionalProperties": false,
        }))
    }
}

fn value_schema(value: &ValueType) -> Value {
    match value {
        ValueType::Text => json!({ "type": "string", "minLength": 1 }),
        ValueType::Whole(range) => {
            let mut schema = json!({ "type": "integer", "minimum": range.start() });
            if *range.end() != i64::MAX {
                schema["maximum"] = (*range.end()).into();
            }
            schema
        }
        ValueType::Decimal(range) => {
            json!({ "type": "number", "minimum": range.start(), "maximum": range.end() })
        }
        ValueType::Flag => json!({ "type": "boolean" }),
        ValueType::Choice(names) => json!({ "enum": names }),
        ValueType::Names | ValueType::Rules => {
            json!({ "type": ["array", "string"], "items": { "type": "string" } })
        }
        ValueType::Json(_) => json!({}),
    }
}
