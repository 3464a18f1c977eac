//! Tags and metadata: the caller's own words about a task or a campaign, to find it by. They go into no prompt.

use serde_json::{Map, Value};
use utoipa::openapi::{ArrayBuilder, ObjectBuilder, RefOr, Schema, schema::Type};

use super::{
    class::{Class, Classify, Kind},
    limits::{LimitEffect::Refused, LimitEntry},
};

/// Limits of tags, as in `dalsegno.are_tags`.
const MAX_TAGS: usize = 16;
const MAX_TAG_CHARS: usize = 63;
/// Less than `dalsegno.is_metadata` takes, which counts the blanks that Postgres writes.
const MAX_METADATA_BYTES: usize = 4096;

pub const LIMITS: &[LimitEntry] = &[
    LimitEntry::fixed("tags of a task or campaign", MAX_TAGS as u64, Refused(Error::BAD_TAGS.code)),
    LimitEntry::fixed("characters of a tag", MAX_TAG_CHARS as u64, Refused(Error::BAD_TAGS.code)),
    LimitEntry::fixed(
        "bytes of the metadata of a task or campaign, as JSON (in SQL 8,192, in the form that Postgres prints)",
        MAX_METADATA_BYTES as u64,
        Refused(Error::METADATA_TOO_LONG.code),
    ),
];

/// Labels of a new task or campaign, or of a filter.
#[derive(Debug, Clone, Copy, Default)]
pub struct Labels<'a> {
    pub tags: &'a [String],
    pub metadata: Option<&'a Map<String, Value>>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(
        "invalid tag `{0}`: use at most {MAX_TAG_CHARS} lower-case letters, digits, - _ . and :"
    )]
    Tag(String),
    #[error("{0} tags are too many: give at most {MAX_TAGS}")]
    TooManyTags(usize),
    #[error(
        "the metadata has {0} bytes as JSON, at most {MAX_METADATA_BYTES} are allowed: store long values elsewhere, and references here"
    )]
    TooLong(usize),
    #[error("invalid metadata: use a JSON object such as {{\"customer\":\"acme\"}}")]
    NotAnObject,
}

impl Error {
    pub const BAD_TAGS: Class = Class::of(Kind::Invalid, "bad_tags");
    pub const METADATA_TOO_LONG: Class = Class::of(Kind::TooLarge, "metadata_too_long");
    const NOT_AN_OBJECT: Class = Class::of(Kind::Malformed, "bad_query");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Tag(_) | Self::TooManyTags(_) => Self::BAD_TAGS,
            Self::TooLong(_) => Self::METADATA_TOO_LONG,
            Self::NotAnObject => Self::NOT_AN_OBJECT,
        }
    }
}

impl Labels<'_> {
    pub fn is_none(&self) -> bool {
        self.tags.is_empty() && self.metadata.is_none_or(Map::is_empty)
    }

    pub fn check(&self) -> Result<(), Error> {
        if self.tags.len() > MAX_TAGS {
            return Err(Error::TooManyTags(self.tags.len()));
        }
        if let Some(wrong) = self.tags.iter().find(|tag| !is_tag(tag)) {
            return Err(Error::Tag(wrong.chars().take(100).collect()));
        }
        let Some(metadata) = self.metadata.filter(|metadata| !metadata.is_empty()) else {
            return Ok(());
        };
        match serde_json::to_string(metadata).unwrap_or_default().len() {
            n_bytes if n_bytes > MAX_METADATA_BYTES => Err(Error::TooLong(n_bytes)),
            _ => Ok(()),
        }
    }
}

/// Tags in the document of the API.
pub fn tags_schema() -> RefOr<Schema> {
    let tag = ObjectBuilder::new().schema_type(Type::String);
    let tag = tag.pattern(Some("^[a-z0-9][a-z0-9_.:-]{0,62}$"));
    ArrayBuilder::new().items(tag).max_items(Some(MAX_TAGS)).into()
}

/// Parses the tags of a filter, which have commas between them.
pub fn tags_of(text: &str) -> Vec<String> {
    let tags = text.split(',').map(str::trim).filter(|tag| !tag.is_empty());
    tags.map(str::to_owned).collect()
}

/// One tag.
pub fn tag(text: &str) -> Result<String, Error> {
    match is_tag(text) {
        true => Ok(text.to_owned()),
        false => Err(Error::Tag(text.to_owned())),
    }
}

/// Parses the metadata of a filter, which is a JSON object.
pub fn metadata_of(text: &str) -> Result<Map<String, Value>, Error> {
    serde_json::from_str(text).map_err(|_| Error::NotAnObject)
}

fn is_tag(tag: &str) -> bool {
    let is_first = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_part = |c: char| is_first(c) || "-_.:".contains(c);
    tag.starts_with(is_first) && tag.len() <= MAX_TAG_CHARS && tag.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tags_are_short_names_and_metadata_is_limited() {
        let tags = |tags: &[&str]| {
            let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
            Labels { tags: &tags, metadata: None }.check()
        };
        assert_eq!(tags(&["a", "customer:acme", "2026-11", "v1.2_x"]), Ok(()));
        for wrong in ["", "A", "a b", "-a", "ü", "a,b", &"a".repeat(64)] {
            assert_eq!(tags(&[wrong]), Err(Error::Tag(wrong.to_owned())), "{wrong}");
        }
        assert_eq!(tags(&["a"; 17]), Err(Error::TooManyTags(17)));
        let of = |n: usize| json!({ "a": "x".repeat(n) }).as_object().cloned().unwrap();
        let check =
            |metadata: &Map<String, Value>| Labels { tags: &[], metadata: Some(metadata) }.check();
        assert_eq!(check(&of(4096 - 8)), Ok(()));
        assert_eq!(check(&of(4097 - 8)), Err(Error::TooLong(4097)));
    }
}
