//! Deserializers for numbers that may be invalid.

use std::fmt;

use serde::{
    Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};

/// Reads a number, or `None` for anything else: `null`, a text, an object, an infinity.
pub(super) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    deserializer.deserialize_any(Number)
}

/// Reads a count, or `None` for anything that cannot be one.
pub(super) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    // Larger counts are not exact as a float, and cannot be counts of tokens.
    const MAX: f64 = (1_u64 << 53) as f64;
    let number = number(deserializer)?;
    Ok(number.filter(|number| (0.0..=MAX).contains(number)).map(truncated))
}

fn truncated(number: f64) -> u64 {
    number as u64
}

struct Number;

impl<'de> Visitor<'de> for Number {
    type Value = Option<f64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(value.is_finite().then_some(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Some(value as f64))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Some(value as f64))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}
