//! The process environment, which only this module reads.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
};

/// A copy of the process environment. All code that depends on a variable takes it from here.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    pub fn capture() -> Self {
        Self { variables: std::env::vars_os().collect() }
    }

    /// Returns the value of a variable if it is set, not empty and valid Unicode.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.get_os(name)?.to_str().filter(|v| !v.is_empty())
    }

    /// Returns the value of a variable as the system has it.
    pub fn get_os(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Returns the set variables among these.
    pub fn only(&self, names: &[String]) -> Vec<(OsString, OsString)> {
        let found = names.iter().filter_map(|name| Some((name, self.get_os(name)?)));
        found.map(|(name, value)| (name.into(), value.to_owned())).collect()
    }

    /// Lists the names of the variables whose name or value is not valid Unicode, with replacement characters.
    pub(super) fn not_unicode(&self) -> impl Iterator<Item = String> {
        let unreadable = self
            .variables
            .iter()
            .filter(|(name, value)| name.to_str().is_none() || value.to_str().is_none());
        unreadable.map(|(name, _)| name.to_string_lossy().into_owned())
    }

    /// Lists the variables whose names and values are valid Unicode.
    pub(super) fn unicode(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)))
    }
}

impl std::fmt::Debug for Environment {
    /// Prints names only: values may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}

impl<K: Into<OsString>, V: Into<OsString>, const N: usize> From<[(K, V); N]> for Environment {
    fn from(variables: [(K, V); N]) -> Self {
        Self { variables: variables.map(|(k, v)| (k.into(), v.into())).into_iter().collect() }
    }
}
