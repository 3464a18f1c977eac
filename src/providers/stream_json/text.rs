//! Strings that borrow from the line unless they have to be unescaped.

use std::{borrow::Cow, ops::Deref};

use serde::Deserialize;

/// A borrowed or owned string. A type of its own, because serde borrows no `Cow` inside of an `Option`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}
