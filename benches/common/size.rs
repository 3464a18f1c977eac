//! The size of a run: full for figures, tiny to check that every scenario works.

use std::sync::LazyLock;

/// True for `cargo bench`, which passes this argument; `cargo test --bench '*'` does not.
static IS_FOR_FIGURES: LazyLock<bool> =
    LazyLock::new(|| std::env::args().any(|arg| arg == "--bench"));

/// Returns `full` for figures, else `tiny`.
pub fn of<T>(full: T, tiny: T) -> T {
    if *IS_FOR_FIGURES { full } else { tiny }
}
