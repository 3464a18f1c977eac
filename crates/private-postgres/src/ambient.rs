//! The few variables that the private Postgres takes from the environment of the service.
//!
//! Every `PG*` variable, every locale and every secret stays behind: the children get a cleared environment with the
//! names below. One variable cannot be kept out: sqlx copies `PGOPTIONS` into each `PgConnectOptions` and has no way to
//! remove it. So a start with it is refused.
//!
//! These are not settings of the service, so the configuration does not pass them: a service and a test get the same ones.

use std::ffi::OsString;

use dalsegno_base::settings::Environment;

/// Variables that a server needs to find its libraries and temporary files.
const KEPT_VARIABLES: [&str; 5] =
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
        let kept: Vec<_> = KEPT_VARIABLES
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

/// Returns true if sqlx would pass a `PGOPTIONS` of the environment to each connection.
pub(super) fn leaks_options() -> bool {
    sqlx::postgres::PgConnectOptions::new_without_pgpass()
        .get_options()
        .is_some_and(|options| !options.trim().is_empty())
}
