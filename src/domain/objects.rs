//! Strict JSON objects: serde also accepts an array for a struct, field by field, which is almost certainly a mistake.

use std::{fmt, fmt::Write as _, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, Visitor,
        value::MapAccessDeserializer,
    },
};
use serde_path_to_error::{Path, Segment, Track};

/// Deserializes an object and refuses an array. For `#[serde(deserialize_with = "objects::object")]`.
pub fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_map(Object(PhantomData))
}

/// A value that has to be an object as a whole.
#[derive(Debug, Deserialize)]
#[serde(transparent, bound = "T: Deserialize<'de>")]
pub struct ObjectValue<T>(#[serde(deserialize_with = "object")] pub T);

/// The reason why a text is not the expected object.
#[derive(Debug)]
pub struct ObjectError {
    /// JSON Pointer to the wrong part; empty for the whole.
    pub pointer: String,
    pub detail: String,
    /// False if the text is not valid JSON.
    pub is_json: bool,
}

/// Reads a JSON object and refuses anything after it.
pub fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T, ObjectError> {
    read_with(text, PhantomData::<ObjectValue<T>>).map(|ObjectValue(value)| value)
}

/// Reads a JSON object with a seed, which must request a map.
pub fn read_with<S: for<'de> DeserializeSeed<'de, Value = T>, T>(
    text: &[u8],
    seed: S,
) -> Result<T, ObjectError> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let mut track = Track::new();
    let read =
        seed.deserialize(serde_path_to_error::Deserializer::new(&mut deserializer, &mut track));
    let read = read.map_err(|error| (pointer(&track.path()), error));
    let read = read.and_then(|value| match deserializer.end() {
        Ok(()) => Ok(value),
        Err(error) => Err((String::new(), error)),
    });
    read.map_err(|(pointer, error)| {
        // serde_json reports a syntax error, too, if a value of another type stands where an enum is expected.
        let is_json = error.is_data() || serde_json::from_slice::<IgnoredAny>(text).is_ok();
        let words = error.to_string();
        ObjectError {
            pointer,
            detail: if is_json { translate_message(&words) } else { words },
            is_json,
        }
    })
}

/// Returns the JSON Pointer (RFC 6901) to the part of a document where reading failed.
pub fn pointer(path: &Path) -> String {
    path.iter().fold(String::new(), |mut pointer, segment| {
        match segment {
            Segment::Seq { index } => _ = write!(pointer, "/{index}"),
            Segment::Map { key: name } | Segment::Enum { variant: name } => {
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
            }
            // An object that ends too early has no part to point to.
            Segment::Unknown => {}
        }
        pointer
    })
}

/// Translates a serde message about a wrong value: JSON types in place of Rust types.
///
/// Serde quotes the value first and names the expected type last. Only the beginning and the last part are translated.
pub fn translate_message(words: &str) -> String {
    if words.starts_with("data did not match any variant") {
        return "matches none of the allowed forms".to_owned();
    }
    if words.starts_with("UUID parsing failed") {
        return "not an id: use the whole UUID".to_owned();
    }
    let (words, place) = words.rfind(" at line ").map_or((words, ""), |at| words.split_at(at));
    let (found, expected) = match words.rfind("expected ") {
        Some(at) if is_behind_quotes(words, at) => words.split_at(at),
        _ => (words, ""),
    };
    let found = FOUND.iter().find_map(|(rust, json)| Some((found.strip_prefix(rust)?, json)));
    let found = found.map_or_else(
        || words[..words.len() - expected.len()].to_owned(),
        |(rest, json)| format!("{json}{rest}"),
    );
    let expected =
        expected.strip_prefix("expected ").map(|kind| format!("expected {}", json(kind)));
    format!("{found}{}{place}", expected.unwrap_or_default())
}

/// Beginnings of serde messages, and their JSON wording.
const FOUND: [(&str, &str); 8] = [
    ("unknown variant ", "unknown value "),
    ("invalid type: map", "invalid type: object"),
    ("invalid type: sequence", "invalid type: array"),
    ("invalid type: unit variant", "invalid type: string"),
    ("invalid type: newtype variant", "invalid type: object"),
    ("invalid type: tuple variant", "invalid type: object"),
    ("invalid type: struct variant", "invalid type: object"),
    ("invalid type: floating point ", "invalid type: number "),
];

/// Expected types in serde messages by their first word, and their JSON wording.
const EXPECTED: [(&str, &str); 27] = [
    ("struct", "an object"),
    ("map", "an object"),
    ("a map", "an object"),
    ("internally tagged enum", "an object"),
    ("adjacently tagged enum", "an object"),
    ("newtype variant", "an object"),
    ("newtype struct", "a value of another type"),
    ("tuple", "an array"),
    ("a tuple", "an array"),
    ("a sequence", "an array"),
    ("enum", "a string"),
    ("unit", "a string without anything beside it"),
    ("string or map", "a string"),
    ("variant identifier", "a string"),
    ("field identifier", "a string"),
    ("a borrowed string", "a string"),
    ("value", "a value of another type"),
    ("u8", "a whole number from 0 to 255"),
    ("u16", "a whole number from 0 to 65535"),
    ("u32", "a whole number from 0 to 4294967295"),
    ("u64", "a whole number of 0 or more"),
    ("usize", "a whole number of 0 or more"),
    ("i16", "a whole number from -32768 to 32767"),
    ("i32", "a whole number from -2147483648 to 2147483647"),
    ("i64", "a whole number"),
    ("f32", "a number"),
    ("f64", "a number"),
];

fn json(kind: &str) -> &str {
    let is = |name: &str| {
        kind.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    EXPECTED.iter().find(|(name, _)| is(name)).map_or(kind, |(_, json)| *json)
}

/// Returns false if the text is part of the quoted value.
fn is_behind_quotes(words: &str, at: usize) -> bool {
    !words[at..].contains('"') && (at == 0 || words[..at].ends_with(", "))
}

struct Object<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Pair {
        a: i32,
        b: i32,
    }

    #[test]
    fn an_invalid_part_is_located_by_json_pointer() {
        type Document = std::collections::BTreeMap<String, Vec<Pair>>;
        let wrong = |text| {
            let mut deserializer = serde_json::Deserializer::from_str(text);
            let read = serde_path_to_error::deserialize::<_, Document>(&mut deserializer);
            pointer(read.unwrap_err().path())
        };
        assert_eq!(wrong(r#"{"x":[{"a":1,"b":2},{"a":1,"b":"2"}]}"#), "/x/1/b");
        assert_eq!(wrong(r#"{"a/b~c":7}"#), "/a~1b~0c");
        assert_eq!(wrong("7"), "");
    }

    #[test]
    fn an_array_is_not_accepted_as_an_object() {
        let read = |text| object::<_, Pair>(&mut serde_json::Deserializer::from_str(text));
        assert_eq!(read(r#"{"a":1,"b":2}"#).unwrap(), Pair { a: 1, b: 2 });
        let wrong = read("[1,2]").unwrap_err().to_string();
        assert!(wrong.contains("invalid type: sequence, expected an object"), "{wrong}");
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Mode {
        Fresh,
        Kept,
    }

    #[test]
    fn error_messages_contain_no_rust_type_names() {
        fn said<T: fmt::Debug + for<'de> Deserialize<'de>>(text: &str) -> String {
            translate_message(&serde_json::from_str::<T>(text).unwrap_err().to_string())
        }
        for (said, expected) in [
            (said::<Pair>("7"), "invalid type: integer `7`, expected an object at line 1 column 1"),
            (said::<Vec<Pair>>("{}"), "invalid type: object, expected an array at line 1 column 0"),
            (
                said::<Mode>(r#"{"fresh":1}"#),
                "invalid type: integer `1`, expected a string without anything beside it at line 1 column 10",
            ),
            (said::<Mode>("5"), "expected a value of another type at line 1 column 1"),
            (
                said::<Mode>(r#""struct""#),
                "unknown value `struct`, expected `fresh` or `kept` at line 1 column 8",
            ),
            (
                said::<u8>("300"),
                "invalid value: integer `300`, expected a whole number from 0 to 255 at line 1 column 3",
            ),
            (
                said::<Pair>(r#"", expected struct Pair""#),
                r#"invalid type: string ", expected struct Pair", expected an object at line 1 column 24"#,
            ),
            (said::<(i32, i32)>("[1]"), "invalid length 1, expected an array at line 1 column 3"),
        ] {
            assert_eq!(said, expected);
        }
        // Messages about missing and unknown fields stay as serde words them.
        for words in [
            "missing field `a` at line 1 column 2",
            "unknown field `expected struct`, expected `a`",
        ] {
            assert_eq!(translate_message(words), words);
        }
    }
}
