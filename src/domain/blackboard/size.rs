//! Limits for the size of a blackboard. It goes into prompts, and every change is stored.

use serde_json::Value;

use super::{Error, Path};
use crate::domain::limits::{LimitEffect::Refused, LimitEntry};

/// Maximum size of the document as JSON without blanks.
pub const MAX_BYTES: usize = 256 * 1024;
const MAX_DEPTH: usize = 32;
/// Keys and items together.
const MAX_VALUES: usize = 10_000;
const MAX_KEY_CHARS: usize = 200;

pub const LIMITS: &[LimitEntry] = &[
    LimitEntry::fixed(
        "bytes of a blackboard, as JSON without blanks",
        MAX_BYTES as u64,
        Refused(Error::TOO_LARGE.code),
    ),
    LimitEntry::fixed("levels of a blackboard", MAX_DEPTH as u64, Refused(Error::TOO_LARGE.code)),
    LimitEntry::fixed(
        "keys and items of a blackboard together",
        MAX_VALUES as u64,
        Refused(Error::TOO_LARGE.code),
    ),
    LimitEntry::fixed(
        "characters of a key of a blackboard",
        MAX_KEY_CHARS as u64,
        Refused(Error::BAD_KEY.code),
    ),
];
/// Characters of a bad key that its error shows.
const SHOWN_KEY_CHARS: usize = 40;

/// Checks a document or a patch, and returns its size in bytes. A patch is kept as long as the document.
pub fn check(document: &Value) -> Result<usize, Error> {
    if !document.is_object() {
        return Err(Error::NoObject);
    }
    let mut n_values = 0;
    walk(document, &Path::default(), 1, &mut n_values)?;
    match document.to_string().len() {
        n_bytes if n_bytes > MAX_BYTES => Err(Error::TooLong { n_bytes }),
        n_bytes => Ok(n_bytes),
    }
}

fn walk(value: &Value, at: &Path, depth: usize, n_values: &mut usize) -> Result<(), Error> {
    *n_values += 1;
    if *n_values > MAX_VALUES {
        return Err(Error::TooMany { limit: MAX_VALUES });
    }
    if depth > MAX_DEPTH {
        return Err(Error::TooDeep { limit: MAX_DEPTH });
    }
    match value {
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            check_key(at, key)?;
            walk(value, &at.join(key), depth + 1, n_values)
        }),
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items
                .try_for_each(|(n, item)| walk(item, &at.join(&n.to_string()), depth + 1, n_values))
        }
        _ => Ok(()),
    }
}

fn check_key(at: &Path, key: &str) -> Result<(), Error> {
    let n_chars = key.chars().count();
    if (1..=MAX_KEY_CHARS).contains(&n_chars) {
        return Ok(());
    }
    let start = key.chars().take(SHOWN_KEY_CHARS).collect();
    Err(Error::Key { at: at.clone(), start, n_chars, limit: MAX_KEY_CHARS })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_size_limit_has_its_own_error() {
        assert_eq!(check(&json!({ "a": [1] })).unwrap(), 9);
        assert!(matches!(check(&json!([1])), Err(Error::NoObject)));
        assert!(matches!(check(&json!({ "": 1 })), Err(Error::Key { n_chars: 0, .. })));
        assert!(matches!(check(&json!({ "k".repeat(201): 1 })), Err(Error::Key { .. })));
        assert!(matches!(
            check(&json!({ "a": "x".repeat(MAX_BYTES) })),
            Err(Error::TooLong { .. })
        ));
        assert!(matches!(check(&json!({ "a": vec![0; MAX_VALUES] })), Err(Error::TooMany { .. })));
        let deep = (0..MAX_DEPTH).fold(json!(1), |inner, _| json!({ "a": inner }));
        assert!(matches!(check(&deep), Err(Error::TooDeep { .. })));
    }
    #[test]
    fn the_error_of_a_bad_key_names_its_place() {
        let document = json!({ "plan": { "parts": [{ "k".repeat(201): 1 }] } });
        let words = check(&document).unwrap_err().to_string();
        let expected = format!("the key `{}` in /plan/parts/0 has 201", "k".repeat(40));
        assert!(words.starts_with(&expected), "{words}");
        let words = check(&json!({ "": 1 })).unwrap_err().to_string();
        assert_eq!(words, "the key `` in / has 0 characters: use 1 to 200");
    }
}
