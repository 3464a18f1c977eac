//! How much a run does: all of it for figures, little where only every scenario has to work.

use std::sync::LazyLock;

/// `cargo bench` gives this argument, `cargo test --bench '*'` does not.
static IS_FOR_FIGURES: LazyLock<bool> =
    LazyLock::new(|| std::env::args().any(|arg| arg == "--bench"));

/// `full` for figures, else `tiny`.
pub fn of<T>(full: T, tiny: T) -> T {
    if *IS_FOR_FIGURES { full } else { tiny }
}
