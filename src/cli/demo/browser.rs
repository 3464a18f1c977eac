//! The browser of the desktop, if there is one.

use std::process::{Command, Stdio};

use crate::settings::Environment;

#[cfg(target_os = "macos")]
const OPENER: &str = "open";
#[cfg(not(target_os = "macos"))]
const OPENER: &str = "xdg-open";

/// Opens a page. Without a desktop, nothing happens: the address has been printed.
#[expect(clippy::disallowed_methods, reason = "the one place where a browser is opened")]
pub(super) fn open(page: &str, environment: &Environment) {
    let is_set = |name| environment.get_os(name).is_some_and(|value| !value.is_empty());
    if cfg!(not(target_os = "macos")) && !is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY") {
        return;
    }
    let mut command = Command::new(OPENER);
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = command.spawn() {
        tracing::warn!(%error, "cannot open a browser");
    }
}
