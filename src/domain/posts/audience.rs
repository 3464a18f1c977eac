//! Addressees of a post.

use super::{Error, Viewer, reader_named};
use crate::domain::agents::{self, ALL, Catalogue, OPERATOR};

pub(super) const MAX_NAMES: usize = 200;

/// Known names, each once and in the given order; or `all`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audience(Vec<String>);

impl Audience {
    pub fn all() -> Self {
        Self(vec![ALL.to_owned()])
    }

    pub fn operator() -> Self {
        Self(vec![OPERATOR.to_owned()])
    }

    /// Builds the audience of a post without addressees: the lead.
    pub fn lead(name: Option<&str>) -> Result<Self, Error> {
        name.map(|name| Self(vec![name.to_owned()])).ok_or(Error::NoAudience)
    }

    /// Builds an audience from reader names, `operator` and `all`. `is_agent` knows the agents; any instance of one may be addressed. All
    /// unknown names are reported together. `all` replaces the other names.
    pub fn of<'a>(
        names: impl IntoIterator<Item = &'a str>,
        is_agent: impl Fn(&str) -> bool,
    ) -> Result<Self, Error> {
        let (mut known, mut unknown) = (Vec::<String>::new(), Vec::<String>::new());
        for name in names {
            let list = if is_known(name, &is_agent) { &mut known } else { &mut unknown };
            if !list.iter().any(|listed| listed == name) {
                list.push(name.to_owned());
            }
        }
        if !unknown.is_empty() {
            return Err(Error::UnknownNames(unknown));
        }
        if known.iter().any(|name| name == ALL) {
            return Ok(Self::all());
        }
        match known.len() {
            0 => Err(Error::NoAudience),
            n_names if n_names > MAX_NAMES => Err(Error::TooManyNames(n_names)),
            _ => Ok(Self(known)),
        }
    }

    /// Builds an audience from names in the spelling of people.
    pub fn from_names(catalogue: &Catalogue, names: &[String]) -> Result<Self, Error> {
        let names: Vec<String> = names.iter().map(|name| reader_named(catalogue, name)).collect();
        Self::of(names.iter().map(String::as_str), |name| catalogue.has_agent(name))
    }

    pub fn names(&self) -> &[String] {
        &self.0
    }
}

impl<'a> Viewer<'a> {
    /// Resolves the viewer that a person names. Without a name, the viewer who sees all posts.
    pub fn resolve(
        name: Option<&'a str>,
        lead: Option<&str>,
        is_agent: impl Fn(&str) -> bool,
    ) -> Result<Self, Error> {
        match name {
            None | Some(OPERATOR) => Ok(Self::All),
            name if name == lead => Ok(Self::All),
            Some(name) if is_reader(name, is_agent) => Ok(Self::Reader(name)),
            Some(name) => Err(Error::UnknownNames(vec![name.to_owned()])),
        }
    }
}

fn is_known(name: &str, is_agent: impl Fn(&str) -> bool) -> bool {
    name == ALL || name == OPERATOR || is_reader(name, is_agent)
}

fn is_reader(name: &str, is_agent: impl Fn(&str) -> bool) -> bool {
    match name.split_once('/') {
        // `agent/main` is refused: it would be a second name for the reader `agent`.
        Some((agent, instance)) => {
            is_agent(agent) && agents::is_name(instance) && instance != agents::MAIN
        }
        None => is_agent(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Result<Vec<String>, String> {
        let audience = Audience::of(names.iter().copied(), |name| ["ann", "anna"].contains(&name));
        audience.map(|audience| audience.0).map_err(|error| error.to_string())
    }

    #[test]
    fn each_name_counts_once_and_all_means_everyone() {
        assert_eq!(of(&["anna", "ann", "anna"]).unwrap(), ["anna", "ann"]);
        assert_eq!(of(&["ann", "all"]).unwrap(), ["all"]);
        assert_eq!(of(&["operator", "ann/2"]).unwrap(), ["operator", "ann/2"]);
    }

    #[test]
    fn unknown_names_are_reported_and_an_empty_audience_is_not_all() {
        let error = of(&["an", "ann", "", "ann/main", "bea/2", "system", "an"]).unwrap_err();
        assert!(error.contains("`an`, ``, `ann/main`, `bea/2`, `system`"), "{error}");
        assert!(of(&[]).unwrap_err().contains("no readers"));
    }
}
