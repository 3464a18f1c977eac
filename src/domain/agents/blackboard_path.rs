//! Paths in the blackboard document.

use std::fmt;

use serde::{Serialize, Serializer};

/// The path of a place: its keys from the root, written as a JSON Pointer (RFC 6901) such as `/plan/parts`. `/` alone is the root, because
/// keys of a blackboard are never empty. Elements of an array have no path: an array is changed as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(Vec<String>);

/// Error for a text that is not a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid path `{0}`: use /key/key from the top, or / for the whole document")]
pub struct NoPath(pub String);

impl Path {
    pub fn parse(text: &str) -> Result<Self, NoPath> {
        let no_path = || NoPath(text.to_owned());
        match text.strip_prefix('/') {
            None => Err(no_path()),
            Some("") => Ok(Self::default()),
            Some(keys) => {
                keys.split('/').map(key).collect::<Option<_>>().map(Self).ok_or_else(no_path)
            }
        }
    }

    /// Returns true if `other` is this place, or inside of it. Compared key by key: `/plan` does not cover `/planning`.
    pub fn covers(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }

    #[must_use]
    pub fn join(&self, key: &str) -> Self {
        Self(self.0.iter().cloned().chain([key.to_owned()]).collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("/");
        }
        self.0
            .iter()
            .try_for_each(|key| write!(f, "/{}", key.replace('~', "~0").replace('/', "~1")))
    }
}

impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn key(text: &str) -> Option<String> {
    let is_escaped = text.split('~').skip(1).all(|after| after.starts_with(['0', '1']));
    // In this order, so that `~01` becomes `~1` and not a slash.
    (is_escaped && !text.is_empty()).then(|| text.replace("~1", "/").replace("~0", "~"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_printed_as_it_was_parsed() {
        for text in ["/", "/plan", "/plan/parts", "/a~1b/c~0d", "/~01", "/ü <&>"] {
            assert_eq!(Path::parse(text).unwrap().to_string(), text);
        }
        for wrong in ["", "plan", "//", "/plan/", "/a~2", "/a~"] {
            assert_eq!(Path::parse(wrong), Err(NoPath(wrong.to_owned())), "{wrong}");
        }
    }

    #[test]
    fn a_path_covers_itself_and_its_contents_but_no_longer_name() {
        let covers = |a: &str, b: &str| Path::parse(a).unwrap().covers(&Path::parse(b).unwrap());
        assert!(covers("/", "/plan") && covers("/plan", "/plan") && covers("/plan", "/plan/parts"));
        assert!(!covers("/plan", "/planning") && !covers("/plan/parts", "/plan"));
        assert!(!covers("/a/b", "/a~1b") && !covers("/plan", "/"));
    }
}
