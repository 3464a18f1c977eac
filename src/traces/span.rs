//! Spans: operations with a start and an end.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::Context;

#[derive(Debug, Clone)]
pub struct Span {
    pub context: Context,
    pub parent: Option<[u8; 8]>,
    pub name: String,
    pub kind: Kind,
    pub started_at: DateTime<Utc>,
    pub ended_at: DateTime<Utc>,
    pub attributes: Vec<(&'static str, Value)>,
    pub links: Vec<Context>,
    /// Short description of the error.
    pub error: Option<String>,
}

/// Span kinds, with the numbers of OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Internal = 1,
    Client = 3,
    Producer = 4,
    Consumer = 5,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Value {
    #[serde(rename = "stringValue")]
    Text(String),
    /// OTLP's JSON writes 64-bit integers as strings.
    #[serde(rename = "intValue", serialize_with = "as_text")]
    Number(i64),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

fn as_text<S: serde::Serializer>(number: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}
