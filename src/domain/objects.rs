//! Objects that are objects: serde takes an array for a struct too, field by field, and nobody who sends one means that.

use std::{fmt, fmt::Write as _, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_path_to_error::{Path, Segment};

/// For `#[serde(deserialize_with = "objects::object")]`.
pub fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_map(Object(PhantomData))
}

/// A value that is such an object as a whole.
#[derive(Debug, Deserialize)]
#[serde(transparent, bound = "T: Deserialize<'de>")]
pub struct Whole<T>(#[serde(deserialize_with = "object")] pub T);

/// The JSON Pointer (RFC 6901) to the part of a document where reading it failed.
pub fn pointer(path: &Path) -> String {
    path.iter().fold(String::new(), |mut pointer, segment| {
        match segment {
            Segment::Seq { index } => _ = write!(pointer, "/{index}"),
            Segment::Map { key: name } | Segment::Enum { variant: name } => {
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
            }
            // An object that ends too early has no part that could be named.
            Segment::Unknown => {}
        }
        pointer
    })
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
    fn the_part_that_is_wrong_has_a_json_pointer() {
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
    fn an_array_is_no_object() {
        let read = |text| object::<_, Pair>(&mut serde_json::Deserializer::from_str(text));
        assert_eq!(read(r#"{"a":1,"b":2}"#).unwrap(), Pair { a: 1, b: 2 });
        let wrong = read("[1,2]").unwrap_err().to_string();
        assert!(wrong.contains("invalid type: sequence, expected an object"), "{wrong}");
    }
}
