//! Named points of a turn at which a test may abort the process or fail the step.
//!
//! `DALSEGNO_WORKER__CRASH_TURNS_AT` aborts as `kill -9` would. `DALSEGNO_WORKER__FAIL_TURNS_AT` fails once per
//! process, as an unreachable database would. Both exist only with the feature `test-fakes`.

#[cfg(feature = "test-fakes")]
use std::sync::atomic::{AtomicBool, Ordering};

/// A point between two steps of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "test-fakes", derive(serde::Deserialize))]
#[cfg_attr(feature = "test-fakes", serde(rename_all = "snake_case"))]
pub enum CrashPoint {
    /// Task, agent and campaign are read; nothing is written.
    BeforeResolve,
    /// The session is found or opened, in a transaction that is not committed.
    AfterResolve,
    /// Everything before the call is written, but not committed.
    BeforeBeginCommit,
    /// The turn has begun; the provider was not called yet.
    AfterBegin,
    /// The batch of the call is stored; it was not sent yet.
    BeforeBatch,
    /// The batch was sent; its id is not stored yet.
    AfterBatch,
    /// The tools of a round have run; the model was not called again yet.
    BetweenRounds,
    /// The answer has arrived; nothing of it is written.
    AfterCall,
    /// Everything but the end of the job is written; not committed.
    BeforeJobEnd,
}

#[derive(Debug, Default)]
pub struct CrashPoints {
    #[cfg(feature = "test-fakes")]
    crash_at: Option<CrashPoint>,
    #[cfg(feature = "test-fakes")]
    fail_at: Option<CrashPoint>,
    #[cfg(feature = "test-fakes")]
    failed: AtomicBool,
}

/// Error of a step that a test fails.
#[derive(Debug, thiserror::Error)]
#[error("the step failed, as the test requested")]
pub struct ToldToFail;

impl CrashPoints {
    /// Arms up to one point of each kind.
    #[cfg(feature = "test-fakes")]
    pub fn armed(crash_at: Option<CrashPoint>, fail_at: Option<CrashPoint>) -> Self {
        Self { crash_at, fail_at, failed: AtomicBool::new(false) }
    }

    /// Aborts or fails, if this point is armed.
    #[cfg(feature = "test-fakes")]
    pub fn pass(&self, here: CrashPoint) -> Result<(), ToldToFail> {
        if self.crash_at == Some(here) {
            std::process::abort();
        }
        if self.fail_at == Some(here) && !self.failed.swap(true, Ordering::Relaxed) {
            return Err(ToldToFail);
        }
        Ok(())
    }

    /// Does nothing in a build without test fakes.
    #[cfg(not(feature = "test-fakes"))]
    #[inline(always)]
    pub fn pass(&self, _here: CrashPoint) -> Result<(), ToldToFail> {
        Ok(())
    }
}
