//! Blackboard paths that an agent may read and write, from its file.

use serde::Serialize;
use serde_json::{Map, Value};

use super::blackboard_path::Path;

/// Paths that are not covered are neither shown nor changed. Permission to write a path does not include reading it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = BlackboardGrants)]
pub struct Grants {
    /// JSON Pointers; `/` is the whole document.
    #[schema(value_type = Vec<String>)]
    pub read: Vec<Path>,
    #[schema(value_type = Vec<String>)]
    pub write: Vec<Path>,
}

impl Grants {
    /// Returns the readable parts of a document, each in its place. `None`: no part is readable.
    pub fn readable_parts(&self, document: &Value) -> Option<Value> {
        filter_readable(&self.read, &Path::default(), document)
    }

    pub fn may_write(&self, path: &Path) -> bool {
        self.write.iter().any(|granted| granted.covers(path))
    }

    /// Returns the line of an agent's file that grants the same, and to write this path.
    pub fn line_to_write(&self, path: &Path) -> String {
        let write = list_paths(self.write.iter().chain([path]));
        match self.read.is_empty() {
            true => format!("blackboard: {{ write: {write} }}"),
            false => {
                let read = list_paths(self.read.iter());
                format!("blackboard: {{ read: {read}, write: {write} }}")
            }
        }
    }
}

/// Writes paths as a list of YAML. They are quoted, because keys may hold any character.
fn list_paths<'a>(paths: impl Iterator<Item = &'a Path>) -> String {
    paths.map(|path| Value::from(path.to_string())).collect::<Value>().to_string()
}

fn filter_readable(granted: &[Path], at: &Path, value: &Value) -> Option<Value> {
    if granted.iter().any(|path| path.covers(at)) {
        return Some(value.clone());
    }
    // Descends only along granted paths: the rest of the document is not searched.
    let Value::Object(fields) = value else { return None };
    if !granted.iter().any(|path| at.covers(path)) {
        return None;
    }
    let shown: Map<String, Value> = fields
        .iter()
        .filter_map(|(key, value)| {
            Some((key.clone(), filter_readable(granted, &at.join(key), value)?))
        })
        .collect();
    (!shown.is_empty()).then_some(Value::Object(shown))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn grants(read: &[&str]) -> Grants {
        let read = read.iter().map(|path| Path::parse(path).unwrap()).collect();
        Grants { read, write: Vec::new() }
    }

    #[test]
    fn the_line_that_allows_a_change_keeps_the_other_grants() {
        let path = Path::parse("/notes").unwrap();
        let line = Grants::default().line_to_write(&path);
        assert_eq!(line, r#"blackboard: { write: ["/notes"] }"#);
        let both = Grants { write: vec![Path::parse("/plan").unwrap()], ..grants(&["/"]) };
        let line = both.line_to_write(&path);
        assert_eq!(line, r#"blackboard: { read: ["/"], write: ["/plan","/notes"] }"#);
    }

    #[test]
    fn the_readable_document_is_limited_to_the_granted_paths() {
        let document = json!({
            "plan": { "parts": 10, "partsman": "x" }, "planning": "secret", "notes": [1, { "plan": 2 }], "empty": {},
        });
        let shown = |read: &[&str]| grants(read).readable_parts(&document);
        assert_eq!(shown(&["/"]), Some(document.clone()));
        assert_eq!(shown(&["/plan"]), Some(json!({ "plan": { "parts": 10, "partsman": "x" } })));
        assert_eq!(shown(&["/plan/parts"]), Some(json!({ "plan": { "parts": 10 } })));
        assert_eq!(
            shown(&["/plan/parts", "/notes", "/empty"]),
            Some(json!({ "plan": { "parts": 10 }, "notes": [1, { "plan": 2 }], "empty": {} }))
        );
        for nothing in [&[][..], &["/pla"], &["/plan/parts/10"], &["/notes/0"], &["/plan/none"]] {
            assert_eq!(shown(nothing), None, "{nothing:?}");
        }
    }
}
