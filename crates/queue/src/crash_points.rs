//! Named places at which a test may kill the process.
//!
//! A test names a place in [`Config::crash_at`](super::Config), with `DALSEGNO_QUEUE__CRASH_AT`. The process aborts
//! there without destructors and without flushing anything, as after `kill -9`. A place in
//! [`Config::panic_at`](super::Config) panics. Without the feature `test-fakes` the functions are empty and the
//! configuration has no such keys.

/// A place between two steps of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "test-fakes", derive(serde::Deserialize))]
#[cfg_attr(feature = "test-fakes", serde(rename_all = "snake_case"))]
pub enum CrashPoint {
    /// The claim is committed; no handler has seen the job.
    AfterClaim,
    /// The handler is about to be called.
    BeforeRun,
    /// The handler has returned; its end is not written.
    BeforeEnd,
    /// The end is written inside a transaction that is not committed.
    AfterEndWriteBeforeCommit,
    /// The end is committed; the process has not acted on it.
    AfterCommit,
    /// A renewal of the lease of some runs is committed; the process has not acted on its answer.
    AfterRenew,
    /// Jobs of a lost worker were rescued.
    AfterRescue,
}

/// The places at which this process aborts or panics, if any.
#[derive(Debug, Clone, Copy, Default)]
pub struct CrashPoints {
    #[cfg(feature = "test-fakes")]
    armed: Option<CrashPoint>,
    #[cfg(feature = "test-fakes")]
    panics: Option<CrashPoint>,
}

impl CrashPoints {
    /// Arms one place for an abort, and one for a panic.
    #[cfg(feature = "test-fakes")]
    pub fn armed(armed: Option<CrashPoint>, panics: Option<CrashPoint>) -> Self {
        Self { armed, panics }
    }

    /// Aborts or panics if this place is armed.
    #[cfg(feature = "test-fakes")]
    pub fn pass(self, here: CrashPoint) {
        if self.armed == Some(here) {
            std::process::abort();
        }
        assert!(self.panics != Some(here), "told to panic at {here:?}");
    }

    /// Does nothing in a build without test fakes.
    #[cfg(not(feature = "test-fakes"))]
    #[inline(always)]
    pub fn pass(self, _here: CrashPoint) {}
}
