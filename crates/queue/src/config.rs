//! Settings for claiming, leasing and ending jobs.

use std::time::Duration;

use serde::Deserialize;

#[cfg(feature = "test-fakes")]
use super::crash_points::CrashPoint;
use super::retention::Keep;
use dalsegno_base::settings::Checks;

/// Settings for claiming, leasing and ending jobs: the `[queue]` table of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Queues to claim from, set by the pool. Empty: the queues that the policies of the registered kinds name.
    #[serde(skip)]
    pub queues: Vec<String>,
    /// Number of jobs that run concurrently in this process, set by the pool.
    #[serde(skip)]
    pub slots: u32,
    /// Seconds that a claim lives without a heartbeat.
    pub lease_secs: u32,
    /// Seconds between two renewals of the lease.
    pub heartbeat_secs: u32,
    /// Seconds before the end of a lease that cannot be renewed at which its runs are stopped. They need this time to
    /// stop their children before another worker starts the same jobs.
    pub lease_margin_secs: u32,
    /// Milliseconds between polls while there is work and no notification comes, or while notifications do not arrive.
    pub poll_busy_ms: u64,
    /// Milliseconds between polls while notifications arrive and the last poll found no work.
    pub poll_idle_ms: u64,
    /// Listens for notifications, if the connections keep their session.
    pub listen: bool,
    /// Seconds of silence after which the listening connection is probed.
    pub listen_ping_secs: u32,
    /// Seconds between looks for due jobs, lanes without a head, and lost workers.
    pub upkeep_secs: u32,
    /// Seconds that runs may continue after the first signal: `shutdown.drain_timeout_secs`.
    #[serde(skip)]
    pub drain_timeout_secs: u64,
    /// Seconds that a run may take to stop after it was told to.
    pub cancel_grace_secs: u32,
    /// Largest number of ends in one statement. A batch also holds at most a third of the slots, or 32 if that is more.
    pub end_batch_rows: usize,
    /// Number of such statements in flight at once.
    pub end_batches_in_flight: usize,
    /// Milliseconds that an end waits for others to share its statement while other jobs run.
    pub end_linger_ms: u64,
    /// Number of waiting jobs of one queue at which HTTP accepts no more. 0: no limit.
    pub max_waiting: u64,
    /// Retention times.
    pub keep: Keep,
    /// Place at which a test makes this process abort.
    #[cfg(feature = "test-fakes")]
    pub crash_at: Option<CrashPoint>,
    /// Place at which a test makes a part of this worker panic.
    #[cfg(feature = "test-fakes")]
    pub panic_at: Option<CrashPoint>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            queues: Vec::new(),
            slots: 16,
            lease_secs: 30,
            heartbeat_secs: 5,
            lease_margin_secs: 10,
            poll_busy_ms: 1_000,
            poll_idle_ms: 5_000,
            listen: true,
            listen_ping_secs: 10,
            upkeep_secs: 1,
            drain_timeout_secs: 60,
            cancel_grace_secs: 10,
            end_batch_rows: 256,
            end_batches_in_flight: 3,
            end_linger_ms: 5,
            max_waiting: 0,
            keep: Keep::default(),
            #[cfg(feature = "test-fakes")]
            crash_at: None,
            #[cfg(feature = "test-fakes")]
            panic_at: None,
        }
    }
}

/// A setting with an invalid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("queue.{key} {problem}; write {fix}")]
pub struct Invalid {
    /// The setting.
    pub key: &'static str,
    /// Reason why it is invalid.
    pub problem: &'static str,
    /// A valid value.
    pub fix: &'static str,
}

impl Config {
    /// Refuses settings that cannot work together.
    pub fn validate(&self) -> Result<(), Invalid> {
        self.rules()
            .into_iter()
            .find_map(|(holds, invalid)| (!holds).then_some(invalid))
            .map_or(Ok(()), Err)
    }

    /// Reports all invalid settings.
    pub fn check(&self, checks: &mut Checks<'_>) {
        for (_, invalid) in self.rules().into_iter().filter(|(holds, _)| !holds) {
            checks.fail(&format!("queue.{}", invalid.key), invalid.problem, invalid.fix);
        }
    }

    fn rules(&self) -> [(bool, Invalid); 9] {
        let rule = |holds, key, problem, fix| (holds, Invalid { key, problem, fix });
        [
            rule(self.slots > 0, "slots", "is 0, so no job would run", "at least 1"),
            rule(
                self.slots <= 1_000,
                "slots",
                "is over 1000, the maximum of one claim",
                "at most 1000, in more processes",
            ),
            rule(self.heartbeat_secs > 0, "heartbeat_secs", "is 0", "a sixth of queue.lease_secs"),
            rule(
                self.lease_margin_secs + 2 * self.heartbeat_secs <= self.lease_secs,
                "lease_secs",
                "leaves no room for two heartbeats before queue.lease_margin_secs begins",
                "at least queue.lease_margin_secs + 2 * queue.heartbeat_secs",
            ),
            rule(
                self.cancel_grace_secs <= self.lease_margin_secs,
                "cancel_grace_secs",
                "is longer than queue.lease_margin_secs, so runs could outlive their lease",
                "at most queue.lease_margin_secs",
            ),
            rule(self.end_batch_rows > 0, "end_batch_rows", "is 0", "at least 1"),
            rule(self.end_batches_in_flight > 0, "end_batches_in_flight", "is 0", "at least 1"),
            rule(self.upkeep_secs > 0, "upkeep_secs", "is 0", "at least 1"),
            rule(self.listen_ping_secs > 0, "listen_ping_secs", "is 0", "at least 1"),
        ]
    }

    pub(super) fn lease(&self) -> Duration {
        Duration::from_secs(self.lease_secs.into())
    }

    pub(super) fn lease_margin(&self) -> Duration {
        Duration::from_secs(self.lease_margin_secs.into())
    }

    pub(super) fn heartbeat(&self) -> Duration {
        Duration::from_secs(self.heartbeat_secs.into())
    }

    pub(super) fn listen_ping(&self) -> Duration {
        Duration::from_secs(self.listen_ping_secs.into())
    }

    pub(super) fn cancel_grace(&self) -> Duration {
        Duration::from_secs(self.cancel_grace_secs.into())
    }

    pub(super) fn drain_timeout(&self) -> Duration {
        Duration::from_secs(self.drain_timeout_secs)
    }
}
