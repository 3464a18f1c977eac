//! Objects that are objects: serde takes an array for a struct too, field by field, and nobody who sends one means that.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};

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
    fn an_array_is_no_object() {
        let read = |text| object::<_, Pair>(&mut serde_json::Deserializer::from_str(text));
        assert_eq!(read(r#"{"a":1,"b":2}"#).unwrap(), Pair { a: 1, b: 2 });
        let wrong = read("[1,2]").unwrap_err().to_string();
        assert!(wrong.contains("invalid type: sequence, expected an object"), "{wrong}");
    }
}
