//! The layers, flattened to `dotted.key → value` so that each value keeps its origin.

use std::{collections::BTreeMap, path::PathBuf};

use config::{FileFormat, Source as _, Value, ValueKind};
use serde::de::DeserializeOwned;

use super::{
    Environment, Flags, Origin, Problem, Problems,
    check::{nearest, toml},
    named_sections::{NamedSections, is_pattern},
    sources::{
        FILE_VARIABLE, database_variables, flatten, own_variables, parse_defaults, parse_file,
        read_content, string, unreadable_variables,
    },
    wrong_value,
};

/// Words of key names whose values are secret, compared as whole words: `max_tokens` and `idempotency_keys_days` are public.
const SECRET_WORDS: [&str; 7] =
    ["password", "secret", "token", "key", "url", "dsn", "authorization"];

/// All layers merged, each value with its origin.
#[derive(Debug)]
pub struct Layers {
    /// The file that was read, if one was given.
    pub file: Option<PathBuf>,
    defaults: BTreeMap<String, Value>,
    values: BTreeMap<String, (Value, Origin)>,
    named: NamedSections,
}

impl Layers {
    /// Reads and merges all layers. `defaults` is the text of the documented defaults: only keys in it exist.
    pub fn read(
        defaults: &str,
        environment: &Environment,
        flags: &Flags,
        problems: &mut Problems,
    ) -> Self {
        let mut defaults = flatten(parse_defaults(defaults, problems));
        let named = NamedSections::take_from(&mut defaults);
        let file = flags.file.clone().or_else(|| environment.get(FILE_VARIABLE).map(Into::into));
        let values = BTreeMap::new();
        let mut layers = Self { file, defaults: defaults.clone(), values, named };
        // Without a value, so lists of keys show it only if a test sets it.
        #[cfg(feature = "test-fakes")]
        for key in
            ["queue.crash_at", "queue.panic_at", "worker.crash_turns_at", "worker.fail_turns_at"]
        {
            layers.defaults.insert(key.to_owned(), string(""));
        }
        layers.add(defaults.into_iter().map(|(k, v)| (k, v, Origin::Default)), problems);
        if let Some(path) = layers.file.clone() {
            let origin = Origin::File(path.display().to_string());
            let values = flatten(parse_file(&path, problems));
            layers.add(values.into_iter().map(|(k, v)| (k, v, origin.clone())), problems);
        }
        unreadable_variables(environment).for_each(|problem| problems.push(problem));
        layers.add(database_variables(environment), problems);
        let own = own_variables(environment, &layers.defaults, problems);
        layers.add(own, problems);
        let set = flags.set.iter().map(|(k, v)| (k.clone(), string(v), Origin::Flag));
        layers.add(set, problems);
        layers
    }

    /// Removes keys that the defaults do not have, and reports each with the closest known key.
    pub fn reject_unknown(&mut self, problems: &mut Problems) {
        let unknown: Vec<String> =
            self.values.keys().filter(|key| !self.defaults.contains_key(*key)).cloned().collect();
        for key in unknown {
            if let Some((_, origin)) = self.values.remove(&key) {
                problems.push(self.unknown(key, &origin));
            }
        }
    }

    fn unknown(&self, key: String, origin: &Origin) -> Problem {
        let above = self.defaults.keys().find(|known| key.starts_with(&format!("{known}.")));
        let (message, fix) = if self.is_section(&key) {
            ("is a section, not a value".to_owned(), format!("[{key}], and its keys below"))
        } else if let Some(above) = above {
            (
                "is inside a setting that is not a section".to_owned(),
                format!("{above} = a value, not a section"),
            )
        } else {
            let fix = match nearest(&key, self.defaults.keys()) {
                Some(near) => format!("{near} (the closest match)"),
                None => "a key that `dalsegno config template` lists".to_owned(),
            };
            ("unknown setting".to_owned(), fix)
        };
        Problem { key, origin: origin.to_string(), message, fix }
    }

    fn is_section(&self, key: &str) -> bool {
        let inside = format!("{key}.");
        self.defaults.keys().any(|known| known.starts_with(&inside))
    }

    /// Lists the named sections below a section: `providers.local` for `[providers.local]`.
    pub fn named_sections(&self, above: &str) -> Vec<String> {
        self.named.below(above).map(str::to_owned).collect()
    }

    pub fn is_default(&self, key: &str) -> bool {
        self.values.get(key).is_some_and(|(_, origin)| *origin == Origin::Default)
    }

    /// Returns true if the value of a key equals its default, even if a layer repeats it.
    pub fn has_default_value(&self, key: &str) -> bool {
        match (self.values.get(key), self.defaults.get(key)) {
            (Some((value, _)), Some(default)) => toml(value) == toml(default),
            _ => false,
        }
    }

    /// Reads one section. Replaces each value of the wrong type by its default, and reports it, until the section can
    /// be read. So one wrong value does not hide the next.
    pub fn section<T: DeserializeOwned>(
        &mut self,
        name: &str,
        problems: &mut Problems,
    ) -> Option<T> {
        loop {
            // Goes through JSON, because serde_json's errors name the choices and the expected type.
            let value: serde_json::Value = self.build(name)?.get(name).ok()?;
            let error = match serde_path_to_error::deserialize::<_, T>(value) {
                Ok(section) => return Some(section),
                Err(error) => error,
            };
            let path = format!("{name}.{}", error.path());
            // An item of a list is part of the value of its key: `prices.models[0].input`.
            let key = path.split('[').next().unwrap_or(&path).to_owned();
            let Some((_, origin)) = self.values.get(&key).filter(|_| key == path) else {
                problems.push(Problem {
                    origin: match self.values.get(&key) {
                        Some((_, origin)) => origin.to_string(),
                        None => "all layers".to_owned(),
                    },
                    key: path,
                    message: wrong_value::describe(&error.into_inner().to_string()),
                    fix: "a value as in `dalsegno config template`".to_owned(),
                });
                // Without the section, no other check would run.
                match self.reset_to_defaults(name, &key) {
                    true => continue,
                    false => return None,
                }
            };
            let default = self.defaults.get(&key).cloned();
            // An empty default gives no example of a valid value.
            let example = default.as_ref().map(toml).filter(|text| text != "\"\"");
            let fix = match example {
                Some(example) => format!("for example: {key} = {example}"),
                None => "text in quotes; `dalsegno config template` explains the values".to_owned(),
            };
            let message = match is_secret(&key) {
                true => "cannot be read".to_owned(),
                false => wrong_value::describe(&error.into_inner().to_string()),
            };
            problems.push(Problem { message, origin: origin.to_string(), fix, key: key.clone() });
            // A default that does not fit its own section would loop for ever.
            if *origin == Origin::Default {
                return None;
            }
            self.values.insert(key, (default?, Origin::Default));
        }
    }

    /// Replaces the value of a key by its default; without such a key, those of the whole section. Returns false if all were defaults.
    fn reset_to_defaults(&mut self, section: &str, key: &str) -> bool {
        let prefix = format!("{section}.");
        let is_meant = |name: &str| match self.defaults.contains_key(key) {
            true => name == key,
            false => name.starts_with(&prefix),
        };
        let mut has_changed = false;
        for (name, (value, origin)) in &mut self.values {
            if is_meant(name)
                && *origin != Origin::Default
                && let Some(default) = self.defaults.get(name)
            {
                (*value, *origin) = (default.clone(), Origin::Default);
                has_changed = true;
            }
        }
        has_changed
    }

    /// Returns the origin of a key; for `a.b[0].c`, that of the whole list.
    pub fn origin(&self, key: &str) -> String {
        let key = key.split('[').next().unwrap_or(key);
        self.values.get(key).map(|(_, origin)| origin.to_string()).unwrap_or_default()
    }

    pub fn values(&self) -> impl Iterator<Item = (&str, &Value, &Origin)> {
        self.values.iter().map(|(key, (value, origin))| (key.as_str(), value, origin))
    }

    fn add(
        &mut self,
        layer: impl IntoIterator<Item = (String, Value, Origin)>,
        problems: &mut Problems,
    ) {
        let by_key = layer.into_iter().map(|(key, value, origin)| (key, (value, origin)));
        let layer: BTreeMap<_, _> = by_key.collect();
        for (key, (value, origin)) in &layer {
            if self.is_in_pattern(key, value, origin, problems) {
                continue;
            }
            let is_empty = matches!(&value.kind, ValueKind::Table(table) if table.is_empty());
            if is_empty && self.is_section(key) {
                continue;
            }
            let Some(stem) = self.file_key(key) else {
                self.insert(key.clone(), value.clone(), origin.clone());
                continue;
            };
            if layer.contains_key(&stem) {
                problems.push(Problem {
                    key: stem.clone(),
                    origin: origin.to_string(),
                    message: format!("is given twice: as {stem} and as {key}"),
                    fix: "only one of the two".to_owned(),
                });
                continue;
            }
            match read_content(key, value, origin) {
                Ok((value, origin)) => self.insert(stem, value, origin),
                Err(problem) => problems.push(problem),
            }
        }
    }

    /// Adds the defaults of the named section that a key belongs to. Returns true if the key is in the section that describes the others:
    /// the file may begin as a copy of the documented defaults.
    fn is_in_pattern(
        &mut self,
        key: &str,
        value: &Value,
        origin: &Origin,
        problems: &mut Problems,
    ) -> bool {
        let section = self.named.section_of(key, value);
        let Some(section) = section.filter(|section| !self.defaults.contains_key(section)) else {
            return false;
        };
        if is_pattern(&section) {
            if self.named.pattern_value(key).is_none_or(|default| toml(default) != toml(value)) {
                problems.push(Problem {
                    key: key.to_owned(),
                    origin: origin.to_string(),
                    message: format!("is in [{section}], which only describes sections like it"),
                    fix: "a section with a name in small letters in place of NAME".to_owned(),
                });
            }
            return true;
        }
        for (key, default) in self.named.open(&section) {
            self.defaults.insert(key.clone(), default.clone());
            self.values.entry(key).or_insert((default, Origin::Default));
        }
        false
    }

    /// Stores a value. Variables, flags and contents of files are text. If the default is a number, a switch or a list,
    /// they are parsed as one. Unparsable text stays text, and is reported with its section.
    fn insert(&mut self, key: String, value: Value, origin: Origin) {
        let text = match (&value.kind, &origin) {
            (ValueKind::String(text), Origin::Variable(_) | Origin::Flag) => Some(text),
            (ValueKind::String(text), Origin::Content { .. }) => Some(text),
            _ => None,
        };
        let kind = text.zip(self.defaults.get(&key)).and_then(|(text, default)| {
            Some(match default.kind {
                ValueKind::I64(_) => ValueKind::I64(text.parse().ok()?),
                ValueKind::Float(_) => ValueKind::Float(text.parse().ok()?),
                ValueKind::Boolean(_) => ValueKind::Boolean(text.parse().ok()?),
                ValueKind::Array(_) => list(text)?,
                _ => return None,
            })
        });
        let value = kind.map_or(value, |kind| Value::new(None, kind));
        self.values.insert(key, (value, origin));
    }

    /// Returns `database.url` for `database.url_file`, if the first is a key and the second is not.
    fn file_key(&self, key: &str) -> Option<String> {
        let stem = key.strip_suffix("_file")?;
        (self.defaults.contains_key(stem) && !self.defaults.contains_key(key))
            .then(|| stem.to_owned())
    }

    /// Builds the values of one section. Each key is parsed as a path, and all keys for each section would take most of a start.
    fn build(&self, section: &str) -> Option<config::Config> {
        let is_in = |key: &str| {
            key.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let mut builder = config::Config::builder();
        let is_own = |key: &str| is_in(key) && !self.named.is_below(section, key);
        for (key, (value, _)) in self.values.iter().filter(|(key, _)| is_own(key)) {
            builder = builder.set_override(key, value.clone()).ok()?;
        }
        builder.build().ok()
    }
}

/// Returns true for keys whose values are never printed. It goes by the name, so that a new key is safe by default.
pub fn is_secret(key: &str) -> bool {
    let leaf = key.rsplit('.').next().unwrap_or(key);
    leaf.split('_').any(|word| SECRET_WORDS.contains(&word))
}

/// Parses a list in TOML syntax.
fn list(text: &str) -> Option<ValueKind> {
    let file = config::File::from_str(&format!("list = {text}"), FileFormat::Toml);
    let mut values = file.collect().ok()?;
    values.remove("list").map(|value| value.kind).filter(|kind| matches!(kind, ValueKind::Array(_)))
}
