//! Limits on waiting and streaming requests, in all and per client. Each polls the database. The streams of pages share one reader of the
//! feed, and hold a file descriptor each; they have limits of their own.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Config, auth::Holder};
use crate::{
    domain::class::Class,
    operations::{Refusal, TOO_MANY_WAITING, TOO_MANY_WAITING_PER_CLIENT},
};

/// Tasks take seconds to minutes, so places become free at about that rate.
const RETRY_AFTER_SECS: u32 = 5;

#[derive(Debug, Clone)]
pub(super) struct Waiters(Places);

/// The streams of open pages.
#[derive(Debug, Clone)]
pub(super) struct PageStreams(Places);

/// Places of open requests, limited in all and per client.
#[derive(Debug, Clone)]
struct Places {
    permits: Arc<Semaphore>,
    max: usize,
    shares: Arc<Shares>,
    max_per_client: usize,
}

/// The place of an open request, released on drop.
#[derive(Debug)]
pub(super) struct WaitPlace {
    _share: Share,
    _permit: OwnedSemaphorePermit,
}

/// The limit that leaves no place for a request.
enum ReachedLimit {
    Total,
    Client,
}

/// A place of a client, released on drop.
#[derive(Debug)]
struct Share {
    shares: Arc<Shares>,
    holder: Holder,
}

/// Number of places that each client holds; clients without a place have no entry.
#[derive(Debug, Default)]
struct Shares(Mutex<HashMap<Holder, usize>>);

impl Waiters {
    pub(super) fn new(config: &Config) -> Self {
        Self(Places::new(config.max_waiting, config.max_waiting_per_client))
    }

    pub(super) fn take_place(&self, holder: Holder) -> Result<WaitPlace, Refusal> {
        self.0.take(holder).map_err(|reached| match reached {
            ReachedLimit::Client => self.share_used_up(holder),
            ReachedLimit::Total => self.all_taken(),
        })
    }

    fn share_used_up(&self, holder: Holder) -> Refusal {
        let client = client_name(holder);
        let detail = format!(
            "{client} has {} waiting or streaming requests, the limit: end one of them, follow /v1/feed instead of each task, ask without `wait`, or raise http.max_waiting_per_client",
            self.0.max_per_client
        );
        refusal(TOO_MANY_WAITING_PER_CLIENT, detail)
    }

    fn all_taken(&self) -> Refusal {
        let detail = format!(
            "{} requests already wait for tasks, the limit: try again in some seconds, ask without `wait`, or raise http.max_waiting",
            self.0.max
        );
        refusal(TOO_MANY_WAITING, detail)
    }
}

impl PageStreams {
    pub(super) fn new(config: &Config) -> Self {
        Self(Places::new(config.max_page_streams, config.max_page_streams_per_client))
    }

    pub(super) fn take_place(&self, holder: Holder) -> Result<WaitPlace, Refusal> {
        self.0.take(holder).map_err(|reached| match reached {
            ReachedLimit::Client => self.share_used_up(holder),
            ReachedLimit::Total => self.all_taken(),
        })
    }

    fn share_used_up(&self, holder: Holder) -> Refusal {
        let detail = format!(
            "{} has {} page streams open, the limit: close some pages, or raise http.max_page_streams_per_client",
            client_name(holder),
            self.0.max_per_client
        );
        refusal(TOO_MANY_WAITING_PER_CLIENT, detail)
    }

    fn all_taken(&self) -> Refusal {
        let detail = format!(
            "{} page streams are open, the limit of all clients together: close some pages, or raise http.max_page_streams",
            self.0.max
        );
        refusal(TOO_MANY_WAITING, detail)
    }
}

impl Places {
    fn new(max: usize, max_per_client: usize) -> Self {
        let permits = Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS)));
        Self { permits, max, shares: Arc::default(), max_per_client }
    }

    fn take(&self, holder: Holder) -> Result<WaitPlace, ReachedLimit> {
        let share = Shares::take(&self.shares, holder, self.max_per_client);
        let share = share.ok_or(ReachedLimit::Client)?;
        let permit = Arc::clone(&self.permits).try_acquire_owned();
        let permit = permit.map_err(|_| ReachedLimit::Total)?;
        Ok(WaitPlace { _share: share, _permit: permit })
    }
}

fn client_name(holder: Holder) -> &'static str {
    match holder {
        Holder::Key(_) | Holder::AdminKey => "this API key",
        Holder::Peer(_) => "this address, without an API key,",
    }
}

fn refusal(class: Class, detail: String) -> Refusal {
    let refusal = Refusal::new(class.kind, class.code, detail);
    Refusal { retry_after_secs: Some(RETRY_AFTER_SECS), ..refusal }
}

impl Shares {
    /// Takes a place, if the client has fewer than `max`.
    fn take(shares: &Arc<Self>, holder: Holder, max: usize) -> Option<Share> {
        let mut counts = shares.lock_counts();
        let n_held = counts.entry(holder).or_default();
        if *n_held >= max {
            return None;
        }
        *n_held += 1;
        Some(Share { shares: Arc::clone(shares), holder })
    }

    fn lock_counts(&self) -> MutexGuard<'_, HashMap<Holder, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut shares = self.shares.lock_counts();
        match shares.get_mut(&self.holder) {
            Some(n_held) if *n_held > 1 => *n_held -= 1,
            _ => _ = shares.remove(&self.holder),
        }
    }
}
