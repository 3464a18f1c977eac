//! Result schemas: JSON Schemas that the answers of tasks have to match.
//!
//! A schema is one document: references to others are refused, because a check reads neither files nor addresses.

use std::error::Error as StdError;

use boon::{CompileError, Compiler, Schemas, UrlLoader, ValidationError};
use serde_json::Value;

use super::{
    class::{Class, Classify, Kind},
    limits::{LimitEffect::Refused, LimitEntry},
    text,
};

/// Maximum size as JSON. The schema is in every call of its task.
const MAX_BYTES: usize = 32_768;

pub const LIMITS: &[LimitEntry] = &[LimitEntry::fixed(
    "bytes of a result schema, as JSON",
    MAX_BYTES as u64,
    Refused(Error::INVALID.code),
)];
/// Address of the schema within its compiler, which reads no other.
const ADDRESS: &str = "schema://result/";
/// Faults of one answer that are named, and characters of all of them.
const MAX_FAULTS: usize = 5;
const FAULT_MAX_CHARS: usize = 2000;

/// The reason why a schema is refused. Places are JSON Pointers into the schema; `#` is the whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(
        "the result schema is not a JSON object: write a JSON Schema, for example {{\"type\": \"object\", \"required\": [\"title\"]}}"
    )]
    NotObject,
    #[error(
        "the result schema has {0} bytes as JSON, at most {MAX_BYTES} are allowed: it is in every call; shorten its descriptions"
    )]
    TooLong(usize),
    #[error(
        "the result schema refers to `{target}` at `{place}`, and other documents are not read: copy the definition to `$defs`, and refer to `#/$defs/NAME`"
    )]
    Remote { place: String, target: String },
    #[error("the result schema is invalid at `{place}`: {problem}")]
    Invalid { place: String, problem: String },
}

impl Error {
    pub const INVALID: Class = Class::of(Kind::Invalid, "bad_result_schema");
}

impl Classify for Error {
    fn class(&self) -> Class {
        Self::INVALID
    }
}

/// Checks that a schema can be used.
pub fn check(schema: &Value) -> Result<(), Error> {
    if !schema.is_object() {
        return Err(Error::NotObject);
    }
    let json = schema.to_string();
    if json.len() > MAX_BYTES {
        return Err(Error::TooLong(json.len()));
    }
    if has_nul(schema) {
        let problem = "it contains the character U+0000".to_owned();
        return Err(Error::Invalid { place: "#".to_owned(), problem });
    }
    refuse_remote(schema, "#")?;
    compile(schema, &mut Schemas::new()).map(|_| ())
}

/// Reads an answer as a structured result. The error says how it does not match the schema, for the model that wrote it.
pub fn read_answer(schema: &Value, answer: &str) -> Result<Value, String> {
    let mut value: Value = serde_json::from_str(without_fence(answer))
        .map_err(|error| format!("the answer is not JSON: {error}"))?;
    let mut schemas = Schemas::new();
    let compiled = compile(schema, &mut schemas).map_err(|error| error.to_string())?;
    schemas.validate(&value, compiled).map_err(|error| describe(&error))?;
    text::make_json_storable(&mut value);
    Ok(value)
}

/// Returns the first name of a path that no matching value has, as far as the schema says so. A name that it does not list counts as
/// missing, unless it allows others.
pub fn missing_field<'p>(schema: &Value, path: &'p [String]) -> Option<&'p str> {
    let mut node = schema;
    for name in path {
        match field_of(schema, node, name) {
            Field::Known(of_field) => node = of_field,
            Field::Unknown => return None,
            Field::Missing => return Some(name),
        }
    }
    None
}

/// Returns the text in the Markdown fence that models put around JSON.
pub fn without_fence(answer: &str) -> &str {
    let text = answer.trim();
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    // The rest of the fence's line names a language.
    inside.and_then(|inside| inside.split_once('\n')).map_or(text, |(_, json)| json.trim())
}

/// The part of a schema that describes a field.
enum Field<'a> {
    Known(&'a Value),
    /// The schema says nothing about it.
    Unknown,
    Missing,
}

/// `$ref`s that are followed one after the other.
const MAX_REFS: usize = 32;
/// Keywords whose effect on a field needs a value to be known.
const CONDITIONS: [&str; 6] = ["allOf", "anyOf", "oneOf", "if", "patternProperties", "$dynamicRef"];

fn field_of<'a>(root: &'a Value, node: &'a Value, name: &str) -> Field<'a> {
    let node = match resolve(root, node) {
        Some(Value::Object(node)) => node,
        Some(Value::Bool(false)) => return Field::Missing,
        _ => return Field::Unknown,
    };
    if CONDITIONS.iter().any(|keyword| node.contains_key(*keyword)) {
        return Field::Unknown;
    }
    let index: Option<usize> = name.parse().ok();
    let types = node.get("type");
    let may_be = |kind: &str| match types {
        None => true,
        Some(Value::String(only)) => only == kind,
        Some(types) => types.as_array().is_some_and(|all| all.iter().any(|one| one == kind)),
    };
    if let Some(index) = index.filter(|_| may_be("array") && !may_be("object")) {
        let first = node.get("prefixItems").and_then(|items| items.get(index));
        return first.or_else(|| node.get("items")).map_or(Field::Unknown, Field::Known);
    }
    if !may_be("object") {
        return Field::Missing;
    }
    let properties = node.get("properties");
    match (properties.and_then(|all| all.get(name)), node.get("additionalProperties")) {
        (Some(found), _) => Field::Known(found),
        (None, Some(others @ Value::Object(_))) => Field::Known(others),
        (None, Some(Value::Bool(true))) => Field::Unknown,
        (None, Some(_)) => Field::Missing,
        (None, None) if properties.is_some() => Field::Missing,
        (None, None) => Field::Unknown,
    }
}

/// Follows the references of a part.
fn resolve<'a>(root: &'a Value, mut node: &'a Value) -> Option<&'a Value> {
    for _ in 0..MAX_REFS {
        let Some(target) = node.get("$ref").and_then(Value::as_str) else { return Some(node) };
        node = root.pointer(target.strip_prefix('#')?)?;
    }
    None
}

/// Refuses loading.
struct NoDocuments;

impl UrlLoader for NoDocuments {
    fn load(&self, url: &str) -> Result<Value, Box<dyn StdError>> {
        Err(format!("`{url}` is another document").into())
    }
}

fn compile(schema: &Value, schemas: &mut Schemas) -> Result<boon::SchemaIndex, Error> {
    let mut compiler = Compiler::new();
    compiler.use_loader(Box::new(NoDocuments));
    compiler.add_resource(ADDRESS, schema.clone()).map_err(|error| invalid(&error))?;
    compiler.compile(ADDRESS, schemas).map_err(|error| invalid(&error))
}

fn invalid(error: &CompileError) -> Error {
    let at = |place: &str, problem: String| Error::Invalid { place: place.to_owned(), problem };
    match error {
        CompileError::LoadUrlError { url, .. }
        | CompileError::UnsupportedUrlScheme { url }
        | CompileError::UnsupportedDraft { url } => {
            Error::Remote { place: "#".to_owned(), target: url.clone() }
        }
        CompileError::ValidationError { src, .. } => {
            let leaf = first_leaf(src);
            at(&format!("#{}", leaf.instance_location), leaf.kind.to_string())
        }
        CompileError::InvalidRegex { url, regex, src } => {
            at(place_of(url), format!("`{regex}` is not a valid pattern: {src}"))
        }
        CompileError::JsonPointerNotFound(url) => {
            at(place_of(url), "a `$ref` points here, and there is no such definition".to_owned())
        }
        CompileError::AnchorNotFound { reference, .. } => {
            at("#", format!("there is no anchor `{reference}`"))
        }
        error => at("#", error.to_string()),
    }
}

/// Returns the place within the schema from an address of the compiler.
fn place_of(url: &str) -> &str {
    match url.find('#') {
        Some(at) => &url[at..],
        None => "#",
    }
}

/// Refuses references to other documents. Values that a schema only compares with are not schemas.
fn refuse_remote(schema: &Value, place: &str) -> Result<(), Error> {
    match schema {
        Value::Object(keys) => keys.iter().try_for_each(|(key, value)| {
            let place = format!("{place}/{}", key.replace('~', "~0").replace('/', "~1"));
            match (key.as_str(), value) {
                ("$ref" | "$dynamicRef", Value::String(target)) if !target.starts_with('#') => {
                    Err(Error::Remote { place, target: target.clone() })
                }
                ("enum" | "const" | "default" | "examples", _) => Ok(()),
                _ => refuse_remote(value, &place),
            }
        }),
        Value::Array(items) => (0..)
            .zip(items)
            .try_for_each(|(at, item): (usize, _)| refuse_remote(item, &format!("{place}/{at}"))),
        _ => Ok(()),
    }
}

/// Describes the faults of an answer, the first ones of many.
fn describe(error: &ValidationError<'_, '_>) -> String {
    let mut faults = Vec::new();
    collect_leaves(error, &mut faults);
    let n_more = faults.len().saturating_sub(MAX_FAULTS);
    faults.truncate(MAX_FAULTS);
    let more = if n_more > 0 { format!("; and {n_more} more") } else { String::new() };
    let text = format!("the answer does not match the schema: {}{more}", faults.join("; "));
    match text.char_indices().nth(FAULT_MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn collect_leaves(error: &ValidationError<'_, '_>, faults: &mut Vec<String>) {
    if error.causes.is_empty() {
        let place = error.instance_location.to_string();
        let place = if place.is_empty() { "the top".to_owned() } else { format!("`{place}`") };
        faults.push(format!("at {place}: {}", error.kind));
    }
    for cause in &error.causes {
        collect_leaves(cause, faults);
    }
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(keys) => keys.iter().any(|(key, value)| key.contains('\0') || has_nul(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn first_leaf<'a, 's, 'v>(error: &'a ValidationError<'s, 'v>) -> &'a ValidationError<'s, 'v> {
    error.causes.first().map_or(error, first_leaf)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn title() -> Value {
        json!({
            "type": "object",
            "properties": { "title": { "type": "string", "pattern": "^[A-Z]" }, "n": { "$ref": "#/$defs/n" } },
            "required": ["title"],
            "$defs": { "n": { "type": "integer", "minimum": 1 } },
        })
    }

    #[test]
    fn an_answer_is_read_with_or_without_a_fence() {
        let expected = json!({ "title": "One", "n": 2 });
        for answer in
            ["{\"title\": \"One\", \"n\": 2}", " ```json\n{\"title\":\"One\",\"n\":2}\n```\n"]
        {
            assert_eq!(read_answer(&title(), answer), Ok(expected.clone()), "{answer}");
        }
    }

    #[test]
    fn the_faults_of_an_answer_have_their_places() {
        let fault = |answer: &str| read_answer(&title(), answer).unwrap_err();
        assert!(fault("Sure!").starts_with("the answer is not JSON: "));
        assert!(fault("{\"title\": \"One\"} And more.").starts_with("the answer is not JSON: "));
        assert!(fault("{}").contains("at the top: missing properties 'title'"), "{}", fault("{}"));
        let two = fault("{\"title\": \"one\", \"n\": 0}");
        assert!(two.contains("at `/title`: ") && two.contains("at `/n`: "), "{two}");
    }

    #[test]
    fn a_field_is_missing_where_the_schema_says_so() {
        let schema = json!({
            "type": "object",
            "properties": {
                "title": { "type": "string" },
                "parts": { "type": "array", "items": { "$ref": "#/$defs/part" } },
                "notes": { "type": "object" },
                "other": { "anyOf": [{ "type": "string" }, { "type": "object" }] },
            },
            "$defs": { "part": { "type": "object", "properties": { "name": {} }, "additionalProperties": false } },
        });
        let missing = |path: &str| {
            let path: Vec<String> = path.split('.').map(str::to_owned).collect();
            missing_field(&schema, &path).map(str::to_owned)
        };
        for known in ["title", "parts", "parts.0.name", "parts.0.name.x", "notes.any", "other.x"] {
            assert_eq!(missing(known), None, "{known}");
        }
        for (path, name) in [
            ("titel", "titel"),
            ("title.x", "x"),
            ("parts.first", "first"),
            ("parts.0.title", "title"),
        ] {
            assert_eq!(missing(path).as_deref(), Some(name), "{path}");
        }
    }

    #[test]
    fn an_unusable_schema_is_refused_with_its_place() {
        assert_eq!(check(&title()), Ok(()));
        assert_eq!(check(&json!([])), Err(Error::NotObject));
        let place = |schema: Value| match check(&schema) {
            Err(Error::Invalid { place, .. } | Error::Remote { place, .. }) => place,
            other => panic!("{other:?}"),
        };
        let of_title = |title: Value| json!({ "properties": { "title": title } });
        assert_eq!(place(of_title(json!({ "type": "text" }))), "#/properties/title/type");
        assert_eq!(place(of_title(json!(7))), "#/properties/title");
        assert_eq!(place(of_title(json!({ "pattern": "(" }))), "#/properties/title/pattern");
        assert_eq!(place(of_title(json!({ "$ref": "#/$defs/none" }))), "#/$defs/none");
        let elsewhere = of_title(json!({ "$ref": "https://example.com/title.json" }));
        assert_eq!(place(elsewhere), "#/properties/title/$ref");
        let file = of_title(json!({ "allOf": [{ "$ref": "file:///etc/passwd" }] }));
        assert_eq!(place(file), "#/properties/title/allOf/0/$ref");
        assert_eq!(place(json!({ "$schema": "https://example.com/draft" })), "#");
        let long = json!({ "description": "x".repeat(MAX_BYTES) });
        assert!(matches!(check(&long), Err(Error::TooLong(_))));
        assert_eq!(check(&json!({ "enum": [{ "$ref": "a" }] })), Ok(()));
    }
}
