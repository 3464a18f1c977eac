//! Reading keys one by one, so that one wrong value does not hide the next.

use std::{collections::BTreeMap, ops::RangeInclusive};

use serde_json::Value;

use super::{
    Key, Problem, ValueType,
    front_matter::{FrontMatter, ListItem},
    is_name, nearest,
};
use crate::domain::{result_schemas, text};

/// The keys of a file. Each is asked for once; [`Fields::finish`] reports the others.
pub(in crate::domain) struct Fields<'a> {
    file: &'a str,
    values: BTreeMap<String, FrontMatter>,
    keys: Vec<Key>,
    lines: BTreeMap<&'static str, usize>,
    /// The line of the item of a list whose keys these are. `None`: the keys are those of the file.
    item_line: Option<usize>,
    pub problems: Vec<Problem>,
}

impl<'a> Fields<'a> {
    pub fn new(file: &'a str, values: BTreeMap<String, FrontMatter>) -> Self {
        Self {
            file,
            values,
            keys: Vec::new(),
            lines: BTreeMap::new(),
            item_line: None,
            problems: Vec::new(),
        }
    }

    /// Opens the keys of an item of a list. `None`: the item is not a map.
    pub fn open_item(&self, item: &ListItem) -> Option<Self> {
        let values = item.keys.clone()?;
        Some(Self { item_line: Some(item.line), ..Self::new(self.file, values) })
    }

    pub fn text(&mut self, key: &'static str) -> Option<String> {
        self.read(key, ValueType::Text, |value| match value {
            Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
            _ => None,
        })
    }

    /// Reads a key that is not part of the documented format, because another one has replaced it.
    pub fn without_key<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let n_keys = self.keys.len();
        let value = read(self);
        self.keys.truncate(n_keys);
        value
    }

    /// Reads a required text.
    pub fn required(&mut self, key: &'static str, example: &str) -> String {
        let found = self.values.get(key);
        // A key without a value is missing, too.
        let is_set = found.is_some_and(|found| !found.value.is_null());
        let line = found.map(|found| found.line).or(self.item_line).unwrap_or(1);
        let text = self.text(key);
        if !is_set {
            self.fail_at(line, key, "is missing", format!("{key}: {example}"));
        }
        text.unwrap_or_default()
    }

    pub fn number(&mut self, key: &'static str, range: RangeInclusive<i64>) -> Option<i64> {
        let number = self.read(key, ValueType::Whole(range.clone()), Value::as_i64)?;
        if range.contains(&number) {
            return Some(number);
        }
        let (least, most) = (range.start(), range.end());
        let fix = match *most {
            i64::MAX => format!("{key}: {least} or more"),
            _ => format!("{key}: {least} to {most}"),
        };
        self.fail(key, format!("is {number}"), fix);
        None
    }

    pub fn decimal(&mut self, key: &'static str, range: RangeInclusive<f64>) -> Option<f64> {
        let number = self.read(key, ValueType::Decimal(range.clone()), Value::as_f64)?;
        if range.contains(&number) {
            return Some(number);
        }
        self.fail(
            key,
            format!("is {number}"),
            format!("{key}: {} to {}", range.start(), range.end()),
        );
        None
    }

    pub fn flag(&mut self, key: &'static str) -> bool {
        self.flag_or(key, false)
    }

    pub fn flag_or(&mut self, key: &'static str, otherwise: bool) -> bool {
        self.read(key, ValueType::Flag, Value::as_bool).unwrap_or(otherwise)
    }

    pub fn one_of<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Option<T> {
        let names = choices.iter().map(|(name, _)| *name);
        let text =
            self.read(key, ValueType::Choice(names.clone().collect()), |value| match value {
                Value::String(text) => Some(text.trim().to_owned()),
                // YAML 1.1 reads `on` and `off` as booleans. Files written for it have to go on working.
                Value::Bool(flag) => Some(if *flag { "on" } else { "off" }.to_owned()),
                _ => None,
            })?;
        if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == text) {
            return Some(*choice);
        }
        let fix = match nearest(&text, names.clone()) {
            Some(near) => format!("{key}: {near} (the closest match)"),
            None => format!("{key}: {}", ValueType::Choice(names.collect())),
        };
        self.fail(key, format!("is `{text}`"), fix);
        None
    }

    /// Reads a list of names, or names with commas between them as in Claude Code's own files.
    pub fn names(&mut self, key: &'static str) -> Vec<String> {
        self.names_if_set(key).unwrap_or_default()
    }

    /// Does the same as [`Self::names`], and tells an empty list from a missing one.
    pub fn names_if_set(&mut self, key: &'static str) -> Option<Vec<String>> {
        let names = self.read(key, ValueType::Names, |value| match value {
            Value::String(text) => {
                Some(text.split(',').map(|name| name.trim().to_owned()).collect())
            }
            Value::Array(items) => {
                items.iter().map(|item| item.as_str().map(|name| name.trim().to_owned())).collect()
            }
            _ => None,
        });
        let names: Vec<String> = names?;
        Some(names.into_iter().filter(|name| !name.is_empty()).collect())
    }

    /// Reads a list of rules. Commas inside of brackets belong to a rule.
    pub fn rules(&mut self, key: &'static str) -> Vec<String> {
        let rules = self.read(key, ValueType::Rules, |value| match value {
            Value::String(text) => Some(split_rules(text)),
            Value::Array(items) => {
                items.iter().map(|item| item.as_str().map(str::to_owned)).collect()
            }
            _ => None,
        });
        let rules = rules.unwrap_or_default().into_iter();
        rules.map(|rule| rule.trim().to_owned()).filter(|rule| !rule.is_empty()).collect()
    }

    /// Reads a value that `fits` accepts, with its lines.
    pub fn value(
        &mut self,
        key: &'static str,
        wanted: &'static str,
        fits: impl FnOnce(&Value) -> bool,
    ) -> Option<FrontMatter> {
        let found = self.values.get(key).cloned();
        self.read(key, ValueType::Json(wanted), |value| fits(value).then_some(())).and(found)
    }

    /// Reads the JSON Schema of a result.
    pub fn result_schema(&mut self) -> Option<Value> {
        const KEY: &str = "result_schema";
        let schema = self.value(KEY, "a JSON Schema: { type: object, … }", Value::is_object)?.value;
        match result_schemas::check(&schema) {
            Ok(()) => Some(schema),
            Err(error) => {
                self.fail(KEY, error.to_string(), "a JSON Schema in one piece, of draft 2020-12");
                None
            }
        }
    }

    /// Reports a key that is wrong for a reason beyond its type.
    pub fn fail(&mut self, key: &'static str, message: impl Into<String>, fix: impl Into<String>) {
        let line = self.line(key).or(self.item_line);
        let problem = Problem::of_file(self.file, message, fix);
        self.problems.push(Problem { line, key: Some(key.to_owned()), ..problem });
    }

    /// Reports a line that is wrong.
    pub fn fail_at(
        &mut self,
        line: usize,
        key: &str,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        let problem = Problem::of_file(self.file, message, fix);
        let (line, key) = (Some(line), Some(key.to_owned()));
        self.problems.push(Problem { line, key, ..problem });
    }

    /// Reports a problem of the file beyond its keys.
    pub fn fail_file(&mut self, message: impl Into<String>, fix: impl Into<String>) {
        self.problems.push(Problem::of_file(self.file, message, fix));
    }

    /// Checks that the text behind the front matter is neither empty nor too long.
    pub fn check_text(&mut self, what: &'static str, text: &str, max_bytes: usize, fix: &str) {
        if let Err(error) = text::check(what, text, max_bytes) {
            self.fail_file(error.to_string(), fix);
        }
    }

    /// Reads the name, which has to be that of the file.
    pub fn name(&mut self, expected: &str) -> String {
        let name = self.required("name", expected);
        if name.is_empty() {
            return name;
        }
        if !is_name(&name) {
            let fix = "lower-case letters, digits, - and _, at most 64";
            self.fail("name", format!("`{name}` is not a valid name"), fix);
        } else if name != expected {
            let fix = format!("name: {expected}, or rename the file");
            self.fail("name", format!("is `{name}`, but the file says `{expected}`"), fix);
        }
        name
    }

    /// Returns the keys that were read so far, in the order of reading.
    pub fn into_keys(self) -> Vec<Key> {
        self.keys
    }

    pub fn line(&self, key: &str) -> Option<usize> {
        self.lines.get(key).copied()
    }

    /// Returns the lines of the keys that were read and are set.
    pub fn lines(&self) -> BTreeMap<&'static str, usize> {
        self.lines.clone()
    }

    /// Reports the unknown keys. Call it once every known key has been read.
    pub fn reject_unknown(&mut self) {
        for (key, found) in std::mem::take(&mut self.values) {
            let near = nearest(&key, self.keys.iter().map(|key| key.name));
            let fix = match near {
                Some(near) => format!("{near} (the closest match)"),
                None => {
                    let known: Vec<_> = self.keys.iter().map(|key| key.name).collect();
                    format!("nothing, or one of: {}", known.join(", "))
                }
            };
            self.fail_at(found.line, &key, "unknown key", fix);
        }
    }

    /// Returns the value, or every problem of the file, including its unknown keys.
    pub fn finish<T>(self, read: T) -> Result<T, Vec<Problem>> {
        let problems = self.into_problems();
        if problems.is_empty() { Ok(read) } else { Err(problems) }
    }

    /// Returns every problem of the file, including its unknown keys.
    pub fn into_problems(mut self) -> Vec<Problem> {
        self.reject_unknown();
        self.problems.sort_by_key(|problem| problem.line);
        self.problems
    }

    fn read<T>(
        &mut self,
        key: &'static str,
        wanted: ValueType,
        take: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        let wanted_text = wanted.to_string();
        self.keys.push(Key { name: key, value: wanted });
        let found = self.values.remove(key)?;
        self.lines.insert(key, found.line);
        // A key without a value is a key that is not set.
        if found.value.is_null() {
            return None;
        }
        let taken = take(&found.value);
        if taken.is_none() {
            self.fail(key, format!("is {}", found.value), format!("{key}: {wanted_text}"));
        }
        taken
    }
}

fn split_rules(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let is_end = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    text.split(is_end).map(str::to_owned).collect()
}
