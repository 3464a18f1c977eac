//! Merging a patch into the document, and the paths that differ afterwards.

use serde_json::{Map, Value};

use super::Path;

/// Applies a JSON Merge Patch (RFC 7396): an object merges key by key, null removes, everything else replaces.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    if let Value::Object(fields) = target {
        for (key, change) in changes {
            match change {
                Value::Null => _ = fields.remove(key),
                change => merge(fields.entry(key).or_insert(Value::Null), change),
            }
        }
    }
}

/// Lists the paths at which `after` differs. A new object counts as its parts, because an agent that may write a part may create the
/// objects around it. A removed object counts as itself, because all of it is gone.
pub fn differences(before: &Value, after: &Value) -> Vec<Path> {
    let mut found = Vec::new();
    compare(&Path::default(), Some(before), Some(after), &mut found);
    found
}

fn compare(at: &Path, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Path>) {
    let no_fields = Map::new();
    let (before, after) = match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => (before, after),
        (None, Some(Value::Object(after))) if !after.is_empty() => (&no_fields, after),
        (before, after) if before == after => return,
        _ => return found.push(at.clone()),
    };
    for (key, value) in before {
        compare(&at.join(key), Some(value), after.get(key), found);
    }
    for (key, value) in after.iter().filter(|(key, _)| !before.contains_key(*key)) {
        compare(&at.join(key), None, Some(value), found);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(target: &Value, patch: &Value) -> Value {
        let mut target = target.clone();
        merge(&mut target, patch);
        target
    }

    /// The cases of the appendix of RFC 7396 that have an object for a patch.
    #[test]
    fn patches_are_merged_by_rfc_7396() {
        for (target, patch, result) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            assert_eq!(merged(&target, &patch), result, "{target} {patch}");
        }
    }

    #[test]
    fn differences_are_reported_by_path() {
        let paths = |before, after| {
            let paths = differences(&before, &after);
            paths.iter().map(Path::to_string).collect::<Vec<_>>()
        };
        assert_eq!(paths(json!({"a": 1}), json!({"a": 1})), [""; 0]);
        assert_eq!(paths(json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": 1, "c": 3}})), ["/a/c"]);
        assert_eq!(paths(json!({}), json!({"a": {"b": {"c": 1}}})), ["/a/b/c"]);
        assert_eq!(paths(json!({"a": {"b": 1}}), json!({})), ["/a"]);
        assert_eq!(paths(json!({"a": {"b": 1}}), json!({"a": 1})), ["/a"]);
        assert_eq!(paths(json!({"a": 1}), json!({"a": {"b": 1}})), ["/a"]);
        assert_eq!(paths(json!({}), json!({"a": {}, "b": null})), ["/a", "/b"]);
        assert_eq!(paths(json!({"a": [1, 2]}), json!({"a": [1, 3]})), ["/a"]);
    }
}
