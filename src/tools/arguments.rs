//! Arguments of a call: their schema, checks and cursor.

use std::error::Error as _;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::{Refusal, tool::Tool};
use crate::domain::objects::translate_message;

/// Maximum size of all arguments of one call. Longer input belongs in a file, or in several calls.
pub(super) const MAX_BYTES: usize = 256 * 1024;
/// Characters of a caller's text that an error message repeats.
const SHOWN_CHARS: usize = 60;

const CURSOR: &str = "cursor";

/// Arguments of a tool that takes none.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoArguments {}

/// Position at which an answer continues.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    /// Position in the list, in the tool's own notation.
    pub place: Option<String>,
    /// First character to show of the answer that begins at `place`.
    pub from_char: usize,
    /// Mark of the answer that the page is cut from; see [`super::pages::mark`].
    pub mark: Option<String>,
}

/// Returns the schema of a struct of arguments, without the parts that are useless to a model.
pub(super) fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Value::Object(fields) = &mut schema {
        fields.remove("title");
        fields.remove("description");
        fields.entry("properties").or_insert_with(|| json!({}));
    }
    without_null(&mut schema);
    schema
}

/// Removes `null` from the types of optional fields. Every client and every model's API understands a single type.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Array(types)) = fields.get_mut("type") {
                types.retain(|one| one != "null");
                if let [one] = types.as_slice() {
                    let one = one.clone();
                    fields.insert("type".to_owned(), one);
                }
            }
            if let Some(Value::Array(values)) = fields.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
            if let Some(Value::Array(either)) = fields.get_mut("anyOf") {
                either.retain(|one| one["type"] != "null");
                if let [Value::Object(one)] = either.as_slice() {
                    let one = one.clone();
                    fields.remove("anyOf");
                    fields.extend(one);
                }
            }
            fields.values_mut().for_each(without_null);
        }
        Value::Array(items) => items.iter_mut().for_each(without_null),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

pub(super) fn add_cursor(schema: &mut Value) {
    let about = "The cursor that an earlier answer named, to continue there. Repeat the other arguments with it.";
    schema["properties"][CURSOR] = json!({ "type": "string", "description": about });
}

/// Separates the cursor from the arguments. Refuses arguments that are not an object, are too large or contain U+0000.
pub(super) fn check(tool: &Tool, arguments: Value) -> Result<(Value, Cursor), Refusal> {
    let mut fields = match arguments {
        Value::Object(fields) => fields,
        Value::Null => Map::new(),
        _ => {
            return Err(Refusal::of_text("the arguments must be a JSON object: {\"name\": value}"));
        }
    };
    let cursor = match fields.remove(CURSOR) {
        Some(cursor) if tool.in_pages => Cursor::read(&cursor)?,
        Some(cursor) => {
            fields.insert(CURSOR.to_owned(), cursor);
            Cursor::default()
        }
        None => Cursor::default(),
    };
    let arguments = Value::Object(fields);
    if let Some(path) = nul(&arguments, "") {
        return Err(Refusal::of_text(format!(
            "`{path}` contains the character U+0000, which cannot be stored: remove it"
        )));
    }
    let n_bytes = arguments.to_string().len();
    if n_bytes > MAX_BYTES {
        return Err(Refusal::of_text(format!(
            "the arguments have {n_bytes} bytes, at most {MAX_BYTES} are allowed: shorten them, or use several calls"
        )));
    }
    Ok((arguments, cursor))
}

pub(super) fn read<T: DeserializeOwned>(arguments: &Value) -> Result<T, Refusal> {
    serde_path_to_error::deserialize(arguments).map_err(|error| {
        let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        let place = match error.path().to_string() {
            path if path == "." => String::new(),
            path => format!("`{}`: ", short(&path)),
        };
        let why: String = translate_message(&why).chars().take(500).collect();
        Refusal::of_text(format!("{place}{why}; look at the tool's schema, and call it again"))
    })
}

pub(super) fn bad_cursor() -> Refusal {
    Refusal::of_text(
        "`cursor` is not from an earlier answer of this tool: repeat it exactly, or leave it out to start from the beginning",
    )
}

/// Shortens a caller's text for use within a sentence, and drops its control characters.
pub(super) fn short(text: &str) -> String {
    let mut rest = text.chars().filter(|c| !c.is_control());
    let mut shown: String = rest.by_ref().take(SHOWN_CHARS).collect();
    if rest.next().is_some() {
        shown.push('…');
    }
    shown
}

/// Returns the path of the first string or key that contains a NUL.
fn nul(value: &Value, path: &str) -> Option<String> {
    match value {
        Value::String(text) => text.contains('\0').then(|| path.to_owned()),
        Value::Array(items) => {
            let at = |(place, item)| nul(item, &format!("{path}[{place}]"));
            items.iter().enumerate().find_map(at)
        }
        Value::Object(fields) => fields.iter().find_map(|(key, value)| {
            let path = if path.is_empty() { short(key) } else { format!("{path}.{}", short(key)) };
            if key.contains('\0') { Some(path) } else { nul(value, &path) }
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

impl Cursor {
    /// Parses `<character>[.<mark>][/<place>]`.
    pub(super) fn read(value: &Value) -> Result<Self, Refusal> {
        let text = value.as_str().unwrap_or_default();
        let (from_char, place) = match text.split_once('/') {
            Some((from_char, place)) => (from_char, Some(place.to_owned())),
            None => (text, None),
        };
        let (from_char, mark) = match from_char.split_once('.') {
            Some((from_char, mark)) => (from_char, Some(mark.to_owned())),
            None => (from_char, None),
        };
        match from_char.parse() {
            Ok(from_char) => Ok(Self { place, from_char, mark }),
            Err(_) => Err(bad_cursor()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_parsed_as_it_was_returned() {
        let read = |text: &str| Cursor::read(&json!(text)).ok();
        assert_eq!(read("45000"), Some(Cursor { from_char: 45000, ..Cursor::default() }));
        let place = Some("a/b".to_owned());
        assert_eq!(read("0/a/b"), Some(Cursor { place: place.clone(), ..Cursor::default() }));
        let mark = Some("0a1b".to_owned());
        assert_eq!(read("7.0a1b/a/b"), Some(Cursor { place, from_char: 7, mark }));
        for bad in ["", "x", "-1", "/a", "99999999999999999999999"] {
            assert_eq!(read(bad), None, "{bad}");
        }
        assert!(Cursor::read(&json!(5)).is_err());
    }

    #[test]
    fn only_a_shortened_text_ends_with_an_ellipsis() {
        let whole = "x".repeat(SHOWN_CHARS);
        assert_eq!(short(&format!("\u{1b}{whole}\n\n")), whole);
        assert_eq!(short(&format!("{whole}\nx")), format!("{whole}…"));
    }

    #[test]
    fn an_optional_argument_has_one_type() {
        #[derive(serde::Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        enum Kind {
            One,
            Two,
        }
        #[derive(serde::Deserialize, JsonSchema)]
        struct SomeArguments {
            number: Option<u8>,
            /// Which.
            kind: Option<Kind>,
        }
        let schema = schema::<SomeArguments>();
        assert_eq!(schema["properties"]["number"]["type"], "integer", "{schema}");
        let kind = json!({ "description": "Which.", "type": "string", "enum": ["one", "two"] });
        assert_eq!(schema["properties"]["kind"], kind, "{schema}");
        assert!(!schema.to_string().contains("null"), "{schema}");
        let read: Result<SomeArguments, _> = read(&json!({ "number": null }));
        assert!(read.is_ok_and(|read| read.number.or(read.kind.map(|_| 0)).is_none()));
    }

    #[test]
    fn a_nul_is_found_at_any_depth() {
        let found = |value: Value| nul(&value, "");
        assert_eq!(found(json!({ "a": ["x", { "b": "y\0" }] })), Some("a[1].b".to_owned()));
        assert_eq!(found(json!({ "a\0": 1 })), Some("a".to_owned()));
        assert_eq!(found(json!({ "a": "\u{1}" })), None);
    }
}
