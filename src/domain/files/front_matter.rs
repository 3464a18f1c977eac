//! The two parts of a file: YAML between two lines of `---`, and the text after it.

use std::collections::BTreeMap;

use saphyr::{LoadableYamlNode as _, MarkedYaml, Scalar, YamlData};
use serde_json::Value;

use super::Problem;

/// A file, split into keys and text.
#[derive(Debug)]
pub(in crate::domain) struct Document<'a> {
    pub values: BTreeMap<String, FrontMatter>,
    /// The text behind the front matter, unchanged.
    pub rest: &'a str,
    /// The line in which the rest begins, from 1.
    pub rest_line: usize,
}

#[derive(Debug, Clone)]
pub(in crate::domain) struct FrontMatter {
    /// The line of the key in the file, from 1.
    pub line: usize,
    /// Its items, if it is a list.
    pub items: Vec<ListItem>,
    /// Its keys in their order in the file, if it is a map.
    pub keys: Vec<String>,
    pub value: Value,
}

/// An item of a list.
#[derive(Debug, Clone)]
pub(in crate::domain) struct ListItem {
    pub line: usize,
    /// Its keys with their lines; `None` if it is not a map.
    pub keys: Option<BTreeMap<String, FrontMatter>>,
}

impl ListItem {
    /// Returns the text of a key, if it has one.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.keys.as_ref()?.get(key)?.value.as_str().map(str::trim)
    }

    pub fn has(&self, key: &str) -> bool {
        self.keys.as_ref().is_some_and(|keys| keys.contains_key(key))
    }
}

impl<'a> Document<'a> {
    /// The rest without the blank lines around it.
    pub fn text(&self) -> String {
        self.rest.trim().to_owned()
    }

    /// Parses a file. `file` is its name in problems.
    pub fn parse(file: &str, content: &'a str) -> Result<Self, Problem> {
        let content = content.strip_prefix('\u{feff}').unwrap_or(content);
        let (yaml, rest) = split(content).map_err(|(message, fix)| Problem {
            line: Some(1),
            ..Problem::of_file(file, message, fix)
        })?;
        // The first line of the YAML is the second one of the file.
        let problem = |line: usize, message: String, fix: &str| Problem {
            line: Some(line + 1),
            ..Problem::of_file(file, message, fix)
        };
        let documents = MarkedYaml::load_from_str(yaml).map_err(|error| {
            let message = format!("is not valid YAML: {}", error.info());
            problem(
                error.marker().line(),
                message,
                "`key: value`; texts with a colon or # in quotes",
            )
        })?;
        let values = match documents.first() {
            None => BTreeMap::new(),
            Some(node) if matches!(node.data, YamlData::Value(Scalar::Null)) => BTreeMap::new(),
            Some(node) => keys(node).ok_or_else(|| {
                problem(1, "is not a map of keys".to_owned(), "`key: value`, one per line")
            })?,
        };
        let rest_line = content[..content.len() - rest.len()].matches('\n').count() + 1;
        Ok(Document { values, rest, rest_line })
    }
}

/// Splits a file into its YAML and the text after it, or returns the problem and its fix.
fn split(content: &str) -> Result<(&str, &str), (&'static str, &'static str)> {
    const MISSING: (&str, &str) = (
        "does not begin with front matter",
        "a line ---, then the keys, one `key: value` per line, then another line ---",
    );
    const UNCLOSED: (&str, &str) =
        ("begins with front matter that has no end", "a line --- below the last key");
    let first = content.lines().next().ok_or(MISSING)?;
    if first.trim_end() != "---" {
        return Err(MISSING);
    }
    let yaml = content.split_once('\n').ok_or(UNCLOSED)?.1;
    let mut at = 0;
    for line in yaml.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Ok((&yaml[..at], &yaml[at + line.len()..]));
        }
        at += line.len();
    }
    Err(UNCLOSED)
}

/// Returns the keys of a map. `None`: the value is not a map.
fn keys(node: &MarkedYaml<'_>) -> Option<BTreeMap<String, FrontMatter>> {
    let YamlData::Mapping(mapping) = &node.data else { return None };
    let entry = |(key, value): (&MarkedYaml<'_>, &MarkedYaml<'_>)| {
        let line = line_in_file(key);
        (
            plain(key),
            FrontMatter { line, items: items(value), keys: key_names(value), value: json(value) },
        )
    };
    Some(mapping.iter().map(entry).collect())
}

fn key_names(node: &MarkedYaml<'_>) -> Vec<String> {
    match &node.data {
        YamlData::Mapping(mapping) => mapping.iter().map(|(key, _)| plain(key)).collect(),
        _ => Vec::new(),
    }
}

fn items(node: &MarkedYaml<'_>) -> Vec<ListItem> {
    match &node.data {
        YamlData::Sequence(items) => items
            .iter()
            .map(|item| ListItem { line: line_in_file(item), keys: keys(item) })
            .collect(),
        _ => Vec::new(),
    }
}

/// The first line of the YAML is the second one of the file.
fn line_in_file(node: &MarkedYaml<'_>) -> usize {
    node.span.start.line() + 1
}

fn plain(key: &MarkedYaml<'_>) -> String {
    match json(key) {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn json(node: &MarkedYaml<'_>) -> Value {
    match &node.data {
        YamlData::Value(Scalar::Boolean(value)) => Value::Bool(*value),
        YamlData::Value(Scalar::Integer(value)) => Value::from(*value),
        YamlData::Value(Scalar::FloatingPoint(value)) => Value::from(value.into_inner()),
        YamlData::Value(Scalar::String(text)) => Value::from(text.as_ref()),
        YamlData::Sequence(items) => items.iter().map(json).collect(),
        YamlData::Mapping(mapping) => mapping
            .iter()
            .map(|(key, value)| (plain(key), json(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        // Anchors, tags and unreadable values are not supported.
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(content: &str) -> String {
        Document::parse("x.md", content).unwrap_err().to_string()
    }

    #[test]
    fn missing_and_unclosed_front_matter_are_told_apart() {
        for missing in ["", "name: x\n", "\n---\nname: x\n---\n"] {
            assert!(problem(missing).starts_with("x.md:1: does not begin with"), "{missing}");
        }
        for unclosed in ["---", "---\nname: x\n", "---\nname: x\n----\nText\n"] {
            let said = problem(unclosed);
            assert!(said.starts_with("x.md:1: begins with front matter that has no end"), "{said}");
            assert!(said.ends_with("write: a line --- below the last key"), "{said}");
        }
    }

    #[test]
    fn keys_of_list_items_have_their_lines() {
        let content = "---\nsteps:\n  - step: plan\n    agent: planner\n  - x\n---\n";
        let document = Document::parse("x.md", content).unwrap();
        let items = &document.values["steps"].items;
        assert_eq!((items[0].line, items[0].text("agent")), (3, Some("planner")));
        assert_eq!(items[0].keys.as_ref().unwrap()["agent"].line, 4);
        assert!(items[1].keys.is_none() && !items[1].has("step"));
    }
}
