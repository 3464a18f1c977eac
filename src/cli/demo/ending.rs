//! The data that a demo keeps.

/// The end of a demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DemoEnd {
    /// Everything is removed.
    Removed,
    /// The database stays.
    Kept,
    /// The demo goes on until Ctrl-C, with the console; the database stays.
    Open,
}
