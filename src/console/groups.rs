//! Pages that share an entry of the rail, with tabs between them.

use maud::Markup;

use super::parts::{Tab, tabs};

const KEYS: &[(&str, &str)] =
    &[("API keys", "/keys"), ("Sign-ins", "/sign-ins"), ("Audit log", "/audit")];
const CLEANUP: &[(&str, &str)] = &[("Cleanup", "/cleanup"), ("Erasures", "/erasures")];
const DOCTOR: &[(&str, &str)] = &[("Doctor", "/doctor"), ("Installation", "/installation")];

/// Links between keys, sign-ins and the audit log.
pub(super) fn keys(here: &str) -> Markup {
    group("API keys", here, KEYS)
}

/// Links between cleanups and erasures.
pub(super) fn cleanup(here: &str) -> Markup {
    group("Cleanup", here, CLEANUP)
}

/// Links between the doctor and the installation.
pub(super) fn doctor(here: &str) -> Markup {
    group("Doctor", here, DOCTOR)
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
