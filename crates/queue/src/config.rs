//! How a worker claims, leases and ends.

use std::time::Duration;

use serde::Deserialize;

#[cfg(feature = "test-fakes")]
use super::crash_points::CrashPoint;
use super::retention::Keep;
use dalsegno_base::settings::Checks;

/// How a worker claims, leases and ends. The `[queue]` table of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The queues to claim from; the pool's. Empty means those that the policies of the registered kinds name.
    #[serde(skip)]
    pub queues: Vec<String>,
    /// How many jobs run at once in this process; the pool's.
    #[serde(skip)]
    pub slots: u32,
    /// How long a claim lives without a heartbeat.
    pub lease_secs: u32,
    /// How often the lease is renewed.
    pub heartbeat_secs: u32,
    /// How long before the end of a lease that cannot be renewed its runs are stopped. They need the time to stop
    /// their children before somebody else starts the same jobs.
    pub lease_margin_secs: u32,
    /// How often to look for work when nothing calls and the last look found some, or when notifications do not
    /// arrive.
    pub poll_busy_ms: u64,
    /// How often to look for work when nothing calls, notifications arrive, and the last look found none.
    pub poll_idle_ms: u64,
    /// Whether to listen for notifications, where connections keep their session.
    pub listen: bool,
    /// After how much silence the listening connection is probed.
    pub listen_ping_secs: u32,
    /// How often due jobs, forgotten lanes and lost workers are looked for.
    pub upkeep_secs: u32,
    /// How long runs may go on after the first signal: `shutdown.drain_timeout_secs`.
    #[serde(skip)]
    pub drain_timeout_secs: u64,
    /// How long a run may take to stop after it was told to.
    pub cancel_grace_secs: u32,
    /// How many ends are written in one statement, at most; never more than a third of the slots, or 32.
    pub end_batch_rows: usize,
    /// How many such statements may be on their way at once.
    pub end_batches_in_flight: usize,
    /// How long an end waits for company while other jobs run.
    pub end_linger_ms: u64,
    /// How many jobs of one queue may wait before no more are taken in over HTTP. 0: any number.
    pub max_waiting: u64,
    /// How long things are kept after their end.
    pub keep: Keep,
    /// Where a test wants this process to die.
    #[cfg(feature = "test-fakes")]
    pub crash_at: Option<CrashPoint>,
    /// Where a test wants a part of this worker to panic.
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

/// A setting that cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("queue.{key} {problem}; write {fix}")]
pub struct Invalid {
    /// The setting.
    pub key: &'static str,
    /// Why it cannot work.
    pub problem: &'static str,
    /// What would.
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

    /// Reports every setting that cannot work.
    pub fn check(&self, checks: &mut Checks<'_>) {
        for (_, invalid) in self.rules().into_iter().filter(|(holds, _)| !holds) {
            checks.fail(&format!("queue.{}", invalid.key), invalid.problem, invalid.fix);
        }
    }

    fn rules(&self) -> [(bool, Invalid); 8] {
        let rule = |holds, key, problem, fix| (holds, Invalid { key, problem, fix });
        [
            rule(self.slots > 0, "slots", "is 0, so nothing would ever run", "at least 1"),
            rule(
                self.slots <= 1_000,
                "slots",
                "is over 1000, the most that one claim takes",
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
            rule(
                self.upkeep_secs > 0 && self.listen_ping_secs > 0,
                "upkeep_secs",
                "or queue.listen_ping_secs is 0",
                "at least 1 each",
            ),
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
