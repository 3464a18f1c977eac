//! What the private Postgres takes from the environment of the service, which is very little.
//!
//! Every `PG*` variable, every locale and every secret stays behind: the children get a cleared
//! environment with the few names below. One variable cannot be kept out: sqlx copies `PGOPTIONS`
//! into each `PgConnectOptions` and offers no way to take it out again, so a start with it is refused.
//!
//! These are no settings of ours, so they are not handed down from the configuration: whoever starts the server, a
//! service or a test, gets the same ones.

use std::ffi::OsString;

use dalsegno_base::settings::Environment;

/// What a server needs to find its own libraries and temporary files.
const KEPT: [&str; 5] =
    ["PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "TMPDIR"];

/// The environment of the server's processes.
#[derive(Debug, Clone)]
pub(super) struct Ambient {
    pub path: OsString,
    pub kept: Vec<(&'static str, OsString)>,
}

impl Ambient {
    pub fn read() -> Self {
        let environment = Environment::capture();
        let kept: Vec<_> = KEPT
            .into_iter()
            .filter_map(|name| Some((name, environment.get_os(name)?.to_owned())))
            .collect();
        let path = kept
            .iter()
            .find(|(name, _)| *name == "PATH")
            .map(|(_, value)| value.clone())
            .unwrap_or_default();
        Self { path, kept }
    }
}

/// Whether sqlx would hand a `PGOPTIONS` of the environment to each connection.
pub(super) fn leaks_options() -> bool {
    sqlx::postgres::PgConnectOptions::new_without_pgpass()
        .get_options()
        .is_some_and(|options| !options.trim().is_empty())
}
