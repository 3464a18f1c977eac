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
    /// The lines of its items, if it is a list.
    pub item_lines: Vec<usize>,
    pub value: Value,
}

impl<'a> Document<'a> {
    /// The rest without the blank lines around it.
    pub fn text(&self) -> String {
        self.rest.trim().to_owned()
    }

    /// Parses a file. `file` is its name in problems.
    pub fn parse(file: &str, content: &'a str) -> Result<Self, Problem> {
        let content = content.strip_prefix('\u{feff}').unwrap_or(content);
        let (yaml, rest) = split(content).ok_or_else(|| Problem {
            line: Some(1),
            ..Problem::of_file(
                file,
                "does not begin with front matter",
                "a line ---, then keys such as `name: copywriter`, then another line ---",
            )
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
        let values = match documents.first().map(|document| &document.data) {
            None | Some(YamlData::Value(Scalar::Null)) => BTreeMap::new(),
            Some(YamlData::Mapping(mapping)) => mapping
                .iter()
                .map(|(key, value)| {
                    let line = key.span.start.line() + 1;
                    (
                        plain(key),
                        FrontMatter { line, item_lines: item_lines(value), value: json(value) },
                    )
                })
                .collect(),
            Some(_) => {
                return Err(problem(
                    1,
                    "is not a map of keys".to_owned(),
                    "`key: value`, one per line",
                ));
            }
        };
        let rest_line = content[..content.len() - rest.len()].matches('\n').count() + 1;
        Ok(Document { values, rest, rest_line })
    }
}

/// Splits a file into its YAML and the text after it.
fn split(content: &str) -> Option<(&str, &str)> {
    let first = content.lines().next()?;
    if first.trim_end() != "---" {
        return None;
    }
    let yaml = content.split_once('\n')?.1;
    let mut at = 0;
    for line in yaml.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&yaml[..at], &yaml[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

fn item_lines(node: &MarkedYaml<'_>) -> Vec<usize> {
    match &node.data {
        YamlData::Sequence(items) => items.iter().map(|item| item.span.start.line() + 1).collect(),
        _ => Vec::new(),
    }
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
