//! Fields of documented JSON objects, such as the data of events.

use serde_json::{Map, Value, json};

/// A documented field of an object.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    pub name: &'static str,
    pub value: FieldType,
    /// The value may be null.
    pub is_nullable: bool,
    /// Some of the objects lack the field.
    pub is_optional: bool,
    pub meaning: &'static str,
}

/// The type of a field's value.
#[derive(Debug, Clone, Copy)]
pub enum FieldType {
    Text,
    Uuid,
    Time,
    Date,
    Integer,
    Number,
    Boolean,
    /// Any JSON.
    Json,
    OneOf(&'static [&'static str]),
    Texts,
    List(&'static [Field]),
    Object(&'static [Field]),
}

impl Field {
    pub const fn new(name: &'static str, value: FieldType, meaning: &'static str) -> Self {
        Self { name, value, is_nullable: false, is_optional: false, meaning }
    }

    pub const fn text(name: &'static str, meaning: &'static str) -> Self {
        Self::new(name, FieldType::Text, meaning)
    }

    pub const fn integer(name: &'static str, meaning: &'static str) -> Self {
        Self::new(name, FieldType::Integer, meaning)
    }

    pub const fn boolean(name: &'static str, meaning: &'static str) -> Self {
        Self::new(name, FieldType::Boolean, meaning)
    }

    pub const fn uuid(name: &'static str, meaning: &'static str) -> Self {
        Self::new(name, FieldType::Uuid, meaning)
    }

    pub const fn or_null(self) -> Self {
        Self { is_nullable: true, ..self }
    }

    pub const fn optional(self) -> Self {
        Self { is_optional: true, ..self }
    }

    fn schema(&self) -> Value {
        let mut schema = self.value.schema();
        if self.is_nullable && schema.get("enum").is_some() {
            schema = json!({ "oneOf": [{ "type": "null" }, schema] });
        } else if self.is_nullable && schema.get("type").is_some() {
            schema["type"] = json!([schema["type"], "null"]);
        }
        schema["description"] = self.meaning.into();
        schema
    }
}

impl FieldType {
    /// Returns the type in words.
    pub fn describe(&self) -> String {
        let words = match self {
            Self::Text => "text",
            Self::Uuid => "UUID",
            Self::Time => "time",
            Self::Date => "date",
            Self::Integer => "whole number",
            Self::Number => "number",
            Self::Boolean => "`true` or `false`",
            Self::Json => "any JSON",
            Self::OneOf(names) => {
                return names.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ");
            }
            Self::Texts => "list of texts",
            Self::List(_) => "list of objects",
            Self::Object(_) => "object",
        };
        words.to_owned()
    }

    /// Returns the fields of the object, or of each object of the list.
    pub fn fields(&self) -> &'static [Field] {
        match self {
            Self::List(fields) | Self::Object(fields) => fields,
            _ => &[],
        }
    }

    fn schema(&self) -> Value {
        match self {
            Self::Text => json!({ "type": "string" }),
            Self::Uuid => json!({ "type": "string", "format": "uuid" }),
            Self::Time => json!({ "type": "string", "format": "date-time" }),
            Self::Date => json!({ "type": "string", "format": "date" }),
            Self::Integer => json!({ "type": "integer", "format": "int64" }),
            Self::Number => json!({ "type": "number", "format": "double" }),
            Self::Boolean => json!({ "type": "boolean" }),
            Self::Json => json!({}),
            Self::OneOf(names) => json!({ "type": "string", "enum": names }),
            Self::Texts => json!({ "type": "array", "items": { "type": "string" } }),
            Self::List(fields) => json!({ "type": "array", "items": object_schema(fields) }),
            Self::Object(fields) => object_schema(fields),
        }
    }
}

/// Returns the JSON Schema of an object with these fields. Newer versions may add fields, so it accepts others.
pub fn object_schema(fields: &[Field]) -> Value {
    let properties: Map<String, Value> =
        fields.iter().map(|field| (field.name.to_owned(), field.schema())).collect();
    let required = fields.iter().filter(|field| !field.is_optional).map(|field| field.name);
    let mut schema = json!({ "type": "object", "properties": properties });
    let required: Vec<&str> = required.collect();
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}
