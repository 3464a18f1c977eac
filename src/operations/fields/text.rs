//! A deserializer for values that are text, such as parts of a path.

use std::marker::PhantomData;

use serde::{
    Deserializer,
    de::{Error, IntoDeserializer, Visitor},
    forward_to_deserialize_any,
};

pub(super) struct Text<'a, E> {
    text: &'a str,
    error: PhantomData<E>,
}

impl<'a, E> Text<'a, E> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, error: PhantomData }
    }
}

impl<'de, E: Error> IntoDeserializer<'de, E> for Text<'_, E> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Defines `deserialize_i64` and its siblings.
macro_rules! parsed {
    ($($deserialize:ident, $visit:ident;)*) => {$(
        fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
            visitor.$visit(self.text.parse().map_err(E::custom)?)
        }
    )*};
}

impl<'de, E: Error> Deserializer<'de> for Text<'_, E> {
    type Error = E;

    parsed! {
        deserialize_bool, visit_bool;
        deserialize_i16, visit_i16;
        deserialize_i32, visit_i32;
        deserialize_i64, visit_i64;
        deserialize_u16, visit_u16;
        deserialize_u32, visit_u32;
        deserialize_u64, visit_u64;
        deserialize_f32, visit_f32;
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_str(self.text)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, E> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, E> {
        visitor.visit_enum(self.text.into_deserializer())
    }

    forward_to_deserialize_any! {
        i8 i128 u8 u128 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
