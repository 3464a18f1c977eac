//! Pages that share an entry of the rail, with tabs between them.

use maud::Markup;

use super::parts::{Tab, tabs};

const ACCESS: &[(&str, &str)] =
    &[("API keys", "/keys"), ("Sign-ins", "/sign-ins"), ("Audit log", "/audit")];
const DATA: &[(&str, &str)] =
    &[("Cleanup", "/cleanup"), ("Erasures", "/erasures"), ("Users", "/users")];
const HEALTH: &[(&str, &str)] = &[("Doctor", "/doctor"), ("Installation", "/installation")];

/// Links between keys, sign-ins and the audit log.
pub(super) fn access(here: &str) -> Markup {
    group("Access", here, ACCESS)
}

/// Links between cleanups, erasures and users.
pub(super) fn data(here: &str) -> Markup {
    group("Data", here, DATA)
}

/// Links between the doctor and the installation.
pub(super) fn health(here: &str) -> Markup {
    group("Health", here, HEALTH)
}

fn group(label: &str, here: &str, pages: &[(&'static str, &'static str)]) -> Markup {
    let tab = |(words, path): &(&'static str, &'static str)| Tab {
        words,
        key: path,
        target: (*path).to_owned(),
        count: None,
    };
    tabs(label, here, &pages.iter().map(tab).collect::<Vec<_>>())
}
