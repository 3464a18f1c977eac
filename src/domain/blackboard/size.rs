//! Limits for the size of a blackboard. It goes into prompts, and every change is stored.

use serde_json::Value;

use super::Error;

/// Maximum size of the document as JSON without blanks.
pub const MAX_BYTES: usize = 256 * 1024;
const MAX_DEPTH: usize = 32;
/// Keys and items together.
const MAX_VALUES: usize = 10_000;
const MAX_KEY_CHARS: usize = 200;

/// Checks a document or a patch, and returns its size in bytes. A patch is kept as long as the document.
pub fn check(document: &Value) -> Result<usize, Error> {
    if !document.is_object() {
        return Err(Error::NoObject);
    }
    let mut n_values = 0;
    walk(document, 1, &mut n_values)?;
    match document.to_string().len() {
        n_bytes if n_bytes > MAX_BYTES => Err(Error::TooLong { n_bytes }),
        n_bytes => Ok(n_bytes),
    }
}

fn walk(value: &Value, depth: usize, n_values: &mut usize) -> Result<(), Error> {
    *n_values += 1;
    if *n_values > MAX_VALUES {
        return Err(Error::TooMany { limit: MAX_VALUES });
    }
    if depth > MAX_DEPTH {
        return Err(Error::TooDeep { limit: MAX_DEPTH });
    }
    match value {
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            let n_chars = key.chars().count();
            if n_chars == 0 || n_chars > MAX_KEY_CHARS {
                return Err(Error::Key { n_chars, limit: MAX_KEY_CHARS });
            }
            walk(value, depth + 1, n_values)
        }),
        Value::Array(items) => items.iter().try_for_each(|item| walk(item, depth + 1, n_values)),
        _ => Ok(()),
    }
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
}
