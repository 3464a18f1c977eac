//! Sections that a configuration may have several of. `[providers.NAME]` in the defaults describes each `[providers.<name>]`.

use std::collections::{BTreeMap, BTreeSet};

use config::{Value, ValueKind};

/// The keys and defaults of such sections, and the sections that the layers have.
#[derive(Debug, Default)]
pub(super) struct NamedSections {
    /// By the section above the name: the keys below it, with their defaults.
    patterns: BTreeMap<String, BTreeMap<String, Value>>,
    found: BTreeSet<String>,
}

/// Part of a key in the defaults that stands for any name.
const ANY_NAME: &str = "NAME";

impl NamedSections {
    /// Takes the keys with [`ANY_NAME`] out of the defaults.
    pub(super) fn take_from(defaults: &mut BTreeMap<String, Value>) -> Self {
        let mut sections = Self::default();
        let marker = format!(".{ANY_NAME}.");
        defaults.retain(|key, value| match key.split_once(&marker) {
            Some((above, leaf)) => {
                let pattern = sections.patterns.entry(above.to_owned()).or_default();
                pattern.insert(leaf.to_owned(), value.clone());
                false
            }
            None => true,
        });
        sections
    }

    /// Returns the named section that a key belongs to, such as `providers.local`.
    pub(super) fn section_of(&self, key: &str, value: &Value) -> Option<String> {
        self.patterns.keys().find_map(|above| {
            let rest = key.strip_prefix(above.as_str())?.strip_prefix('.')?;
            let name = match rest.split_once('.') {
                Some((name, _)) => name,
                // A section without keys.
                None => Some(rest).filter(|_| matches!(value.kind, ValueKind::Table(_)))?,
            };
            Some(format!("{above}.{name}"))
        })
    }

    /// Adds a section, and returns its keys with their defaults; none if it was added before.
    pub(super) fn open(&mut self, section: &str) -> Vec<(String, Value)> {
        if is_pattern(section) || !self.found.insert(section.to_owned()) {
            return Vec::new();
        }
        let above = section.rsplit_once('.').map_or(section, |(above, _)| above);
        let pattern = self.patterns.get(above).into_iter().flatten();
        pattern.map(|(leaf, value)| (format!("{section}.{leaf}"), value.clone())).collect()
    }

    /// Returns the default of a key of the section that describes the others.
    pub(super) fn pattern_value(&self, key: &str) -> Option<&Value> {
        let (above, leaf) = key.split_once(&format!(".{ANY_NAME}."))?;
        self.patterns.get(above)?.get(leaf)
    }

    /// Lists the sections below this one.
    pub(super) fn below<'a>(&'a self, above: &'a str) -> impl Iterator<Item = &'a str> {
        let is_below = move |section: &&str| {
            section.strip_prefix(above).is_some_and(|rest| rest.starts_with('.'))
        };
        self.found.iter().map(String::as_str).filter(is_below)
    }

    /// Returns true if the key is in a named section below `section`, and so not one of its own.
    pub(super) fn is_below(&self, section: &str, key: &str) -> bool {
        self.below(section).any(|below| {
            key.strip_prefix(below).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }
}

/// Returns true for the section that describes the others.
pub(super) fn is_pattern(section: &str) -> bool {
    section.ends_with(&format!(".{ANY_NAME}"))
}
