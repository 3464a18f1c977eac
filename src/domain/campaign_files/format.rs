//! The lines of a campaign file.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};
use uuid::Uuid;

use super::{Counts, tables};

pub(super) const FORMAT: &str = "dalsegno campaign";
/// The version of the form of the lines. Tables and columns have the version of the schema.
pub(super) const VERSION: u32 = 1;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) format: String,
    pub(super) version: u32,
    /// The last migration of the database.
    pub(super) schema: i64,
    pub(super) campaign_id: Uuid,
    pub(super) name: String,
    pub(super) exported_at: DateTime<Utc>,
    pub(super) installation_id: Uuid,
    /// In the order of the lines.
    pub(super) tables: Vec<TableColumns>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TableColumns {
    pub(super) table: String,
    pub(super) columns: Vec<String>,
}

/// The fields that every version of the header has.
#[derive(Debug, Deserialize)]
pub(super) struct Preamble {
    pub(super) format: String,
    pub(super) version: u32,
}

/// A line between header and trailer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RowLine<'a> {
    pub(super) table: &'a str,
    #[serde(borrow)]
    pub(super) row: &'a RawValue,
}

/// The last line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Trailer {
    /// Tables without rows are left out.
    pub(super) rows: Counts,
    /// Of all bytes before this line, in hexadecimal.
    pub(super) sha256: String,
}

/// Writes the JSON Schema of a line.
pub fn schema() -> Value {
    let names: Vec<&str> = tables().iter().map(|table| table.name).collect();
    let text = json!({ "type": "string" });
    let object = |title: &str, properties: Value| {
        let required: Vec<&String> =
            properties.as_object().into_iter().flatten().map(|(name, _)| name).collect();
        json!({
            "title": title,
            "type": "object",
            "required": required,
            "properties": properties,
            "additionalProperties": false,
        })
    };
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of a campaign file",
        "description": "The first line is the header, the last line the trailer. Each line between them is a row of a table, as Postgres writes it \
                        as JSON: binary data as `\\x` and hexadecimal digits, times as ISO 8601.",
        "oneOf": [
            object("Header", json!({
                "format": { "const": FORMAT },
                "version": { "type": "integer", "minimum": 1, "maximum": VERSION },
                "schema": { "type": "integer", "description": "Last migration of the database that wrote the file." },
                "campaign_id": { "type": "string", "format": "uuid" },
                "name": text,
                "exported_at": { "type": "string", "format": "date-time" },
                "installation_id": { "type": "string", "format": "uuid" },
                "tables": {
                    "description": "The columns of each table, in the order of the lines.",
                    "type": "array",
                    "items": object("Columns", json!({
                        "table": { "enum": names },
                        "columns": { "type": "array", "items": text },
                    })),
                },
            })),
            object("Row", json!({ "table": { "enum": names }, "row": { "type": "object" } })),
            object("Trailer", json!({
                "rows": { "description": "Number of rows by table.", "type": "object", "additionalProperties": { "type": "integer", "minimum": 1 } },
                "sha256": { "description": "SHA-256 of all bytes before this line.", "type": "string", "pattern": "^[0-9a-f]{64}$" },
            })),
        ],
    })
}
