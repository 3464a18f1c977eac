//! Parsing of an operation's input: text fields of the path and the query, and fields of a JSON body.

mod text;

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, Visitor,
    value::{MapAccessDeserializer, MapDeserializer},
};
use std::{cell::Cell, fmt, marker::PhantomData};
use uuid::Uuid;

use self::text::Text;
use super::{FieldError, Refusal, TypeSchema};
use crate::domain::{
    class::Kind,
    objects::{self, ObjectError, translate_message},
};

/// Longest accepted name.
pub(super) const NAME_MAX_CHARS: usize = 200;

/// Fields of an input as the caller has sent them.
#[derive(Debug, Default)]
pub struct Fields {
    pub path: Vec<(&'static str, String)>,
    pub query: Vec<(String, String)>,
    /// A JSON object. `None`: all fields are text.
    pub json: Option<Vec<u8>>,
    /// Body of an operation that takes a list.
    pub items: Option<ItemsText>,
    /// Files of a form.
    pub files: Vec<FormFile>,
}

/// A file in a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormFile {
    pub name: String,
    /// As its sender declares it.
    pub media_type: Option<String>,
    pub content: Vec<u8>,
}

/// A list as text.
#[derive(Debug)]
pub struct ItemsText {
    pub text: Vec<u8>,
    /// True: one item per line; false: a JSON array.
    pub are_lines: bool,
}

impl Fields {
    pub(super) fn read<T: DeserializeOwned>(
        &self,
        described: &dyn Fn() -> TypeSchema,
    ) -> Result<T, Refusal> {
        for (name, text) in &self.path {
            check_name(text).map_err(|detail| path_refusal(name, detail, described))?;
        }
        match &self.json {
            Some(json) => self.read_json(json, described),
            None => self.read_text(described),
        }
    }

    /// Returns the field `id` of the path.
    pub(super) fn id(&self) -> Result<Uuid, Refusal> {
        let text = self.path.iter().find(|(name, _)| *name == "id").map(|(_, text)| text.as_str());
        parse_id(text.unwrap_or_default())
    }

    fn read_json<T: DeserializeOwned>(
        &self,
        json: &[u8],
        described: &dyn Fn() -> TypeSchema,
    ) -> Result<T, Refusal> {
        let failed = Cell::new(None);
        let with_path = WithPath { path: &self.path, failed: &failed, made: PhantomData };
        objects::read_with(json, with_path).map_err(|error| match failed.get() {
            Some((name, text)) => path_misfit(name, text, described),
            None => body_refusal(error, &self.path),
        })
    }

    fn read_text<T: DeserializeOwned>(
        &self,
        described: &dyn Fn() -> TypeSchema,
    ) -> Result<T, Refusal> {
        if self.query.iter().any(|(name, text)| name.contains('\0') || text.contains('\0')) {
            return Err(Refusal::new(Kind::Malformed, "bad_query", NUL));
        }
        let path = self.path.iter().map(|(name, text)| (*name, Text::new(text)));
        let query = self.query.iter().map(|(name, text)| (name.as_str(), Text::new(text)));
        let fields = MapDeserializer::<_, serde::de::value::Error>::new(path.chain(query));
        serde_path_to_error::deserialize(fields).map_err(|error| {
            let (field, why) =
                (error.path().to_string(), translate_message(&error.inner().to_string()));
            match self.path.iter().find(|(name, _)| *name == field) {
                Some((name, text)) => path_misfit(name, text, described),
                None => {
                    let words = query_words(&field, &why);
                    Refusal::new(Kind::Malformed, "bad_query", words)
                }
            }
        })
    }
}

/// Parses an id in a path.
pub fn parse_id(text: &str) -> Result<Uuid, Refusal> {
    let wrong = |detail| Refusal::new(Kind::Malformed, "bad_id", detail);
    check_name(text).map_err(wrong)?;
    text.parse().map_err(|_| wrong(not_an_id(text)))
}

const NUL: &str = "the URL contains the character U+0000, which is not allowed: remove it";

/// Refuses names that are too long, or contain U+0000, which Postgres cannot store.
fn check_name(text: &str) -> Result<(), String> {
    if text.contains('\0') {
        return Err(NUL.to_owned());
    }
    match text.chars().count() {
        0..=NAME_MAX_CHARS => Ok(()),
        n_chars => Err(format!(
            "the name has {n_chars} characters, at most {NAME_MAX_CHARS} are allowed: use a shorter one"
        )),
    }
}

fn not_an_id(text: &str) -> String {
    format!("`{text}` is not an id: use the whole UUID")
}

/// Builds the refusal of a path field: `bad_id` if its type is an id or a number, else `bad_name`.
fn path_refusal(name: &str, detail: String, described: &dyn Fn() -> TypeSchema) -> Refusal {
    let schema = serde_json::to_value(described().schema).unwrap_or_default();
    let field = &schema["properties"][name];
    let is_id = name == "id" || field["format"] == "uuid" || field["type"] == "integer";
    Refusal::new(Kind::Malformed, if is_id { "bad_id" } else { "bad_name" }, detail)
}

/// The refusal of a field of the path that cannot be read: an id, or a number.
fn path_misfit(name: &str, text: &str, described: &dyn Fn() -> TypeSchema) -> Refusal {
    let schema = serde_json::to_value(described().schema).unwrap_or_default();
    let detail = match schema["properties"][name]["type"] == "integer" {
        true => format!("`{text}` is not a number: use a number that the list shows"),
        false => not_an_id(text),
    };
    path_refusal(name, detail, described)
}

fn query_words(field: &str, why: &str) -> String {
    if let Some(name) = why.strip_prefix("duplicate field `").and_then(|it| it.split('`').next()) {
        return format!("the query parameter `{name}` is given more than once: give it once");
    }
    match field {
        "" | "." => why.to_owned(),
        field => format!("the query parameter `{field}` is not valid: {why}"),
    }
}

fn body_refusal(
    ObjectError { pointer, detail, is_json }: ObjectError,
    path: &[(&'static str, String)],
) -> Refusal {
    match is_json {
        true => {
            let detail = body_words(detail, &pointer, path);
            let words = format!("the request body is not valid: {detail}");
            let wrong = vec![FieldError { code: None, pointer, detail }];
            Refusal { wrong, ..Refusal::new(Kind::Invalid, "bad_field", words) }
        }
        false => {
            let detail = format!("the request body is not valid JSON: {detail}");
            Refusal::new(Kind::Malformed, "bad_json", detail)
        }
    }
}

/// Serde names the fields of the whole input. Those of the path are not part of the body.
fn body_words(detail: String, pointer: &str, path: &[(&'static str, String)]) -> String {
    let is_in_path = |name: &str| path.iter().any(|(in_path, _)| *in_path == name);
    let name = detail.split('`').nth(1).unwrap_or_default();
    if detail.starts_with("duplicate field `") && is_in_path(name) {
        return format!("the path already names `{name}`: leave it out of the body");
    }
    match detail.rsplit_once(", expected ") {
        Some((unknown, fields))
            if unknown.starts_with("unknown field `") && pointer.matches('/').count() == 1 =>
        {
            let fields = fields.split('`').skip(1).step_by(2).filter(|name| !is_in_path(name));
            match fields.collect::<Vec<_>>().as_slice() {
                [] => format!("{unknown}: the body takes no fields"),
                fields => format!("{unknown}: the body takes `{}`", fields.join("`, `")),
            }
        }
        _ => detail,
    }
}

/// Name and text of the invalid path field.
type PathFieldError<'a> = Cell<Option<(&'static str, &'a str)>>;

/// Deserializes an object whose first fields are those of the path.
struct WithPath<'a, T> {
    path: &'a [(&'static str, String)],
    failed: &'a PathFieldError<'a>,
    made: PhantomData<T>,
}

impl<'de, T: DeserializeOwned> DeserializeSeed<'de> for WithPath<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: DeserializeOwned> Visitor<'de> for WithPath<'_, T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, body: A) -> Result<T, A::Error> {
        let Self { path, failed, .. } = self;
        T::deserialize(MapAccessDeserializer::new(ChainedFields {
            path,
            value: None,
            failed,
            body,
        }))
    }
}

struct ChainedFields<'a, A> {
    path: &'a [(&'static str, String)],
    /// Field whose name was returned last.
    value: Option<(&'static str, &'a str)>,
    failed: &'a PathFieldError<'a>,
    body: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for ChainedFields<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let Some(((name, text), rest)) = self.path.split_first() else {
            return self.body.next_key_seed(seed);
        };
        (self.path, self.value) = (rest, Some((*name, text.as_str())));
        seed.deserialize(Text::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        match self.value.take() {
            Some((name, text)) => seed
                .deserialize(Text::new(text))
                .inspect_err(|_| self.failed.set(Some((name, text)))),
            None => self.body.next_value_seed(seed),
        }
    }
}
