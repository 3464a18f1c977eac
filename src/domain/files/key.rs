//! The keys of a kind of file, as its reader reads them.

use std::{fmt, ops::RangeInclusive};

/// A key that a reader has asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    pub name: &'static str,
    pub value: ValueType,
}

/// The type of a key's value. Displayed as the advice for a value of another type.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueType {
    Text,
    /// A whole number.
    Whole(RangeInclusive<i64>),
    Decimal(RangeInclusive<f64>),
    Flag,
    /// One of these names.
    Choice(Vec<&'static str>),
    /// A list, or one text with commas between the names.
    Names,
    /// A list, or one text with commas between the rules.
    Rules,
    /// Another shape, with the advice for a value that does not fit.
    Json(&'static str),
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("a text"),
            Self::Whole(_) => f.write_str("a whole number"),
            Self::Decimal(_) => f.write_str("a number"),
            Self::Flag => f.write_str("true or false"),
            Self::Choice(names) => f.write_str(&names.join(", ")),
            Self::Names => f.write_str("a list of names"),
            Self::Rules => f.write_str("a list of rules"),
            Self::Json(wanted) => f.write_str(wanted),
        }
    }
}
