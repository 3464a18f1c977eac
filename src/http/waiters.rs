//! Limits on waiting and streaming requests. Each polls the database, so their number is limited in all and per client. The streams of pages
//! share one reader of the feed; they have a limit of their own, per client.

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
pub(super) struct Waiters {
    places: Arc<Semaphore>,
    max: usize,
    shares: Arc<Shares>,
    max_per_client: usize,
}

/// The place of a waiting request, released on drop.
#[derive(Debug)]
pub(super) struct WaitPlace {
    _share: Share,
    _permit: OwnedSemaphorePermit,
}

/// The streams of open pages.
#[derive(Debug, Clone)]
pub(super) struct PageStreams {
    shares: Arc<Shares>,
    max_per_client: usize,
}

/// A place of a client, released on drop.
#[derive(Debug)]
pub(super) struct Share {
    shares: Arc<Shares>,
    holder: Holder,
}

/// Number of places that each client holds; clients without a place have no entry.
#[derive(Debug, Default)]
struct Shares(Mutex<HashMap<Holder, usize>>);

impl Waiters {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            places: Arc::new(Semaphore::new(config.max_waiting.min(Semaphore::MAX_PERMITS))),
            max: config.max_waiting,
            shares: Arc::default(),
            max_per_client: config.max_waiting_per_client,
        }
    }

    pub(super) fn take_place(&self, holder: Holder) -> Result<WaitPlace, Refusal> {
        let share = Shares::take(&self.shares, holder, self.max_per_client);
        let share = share.ok_or_else(|| self.share_used_up(holder))?;
        let permit = Arc::clone(&self.places).try_acquire_owned().map_err(|_| self.all_taken())?;
        Ok(WaitPlace { _share: share, _permit: permit })
    }

    fn share_used_up(&self, holder: Holder) -> Refusal {
        let client = client_name(holder);
        let detail = format!(
            "{client} has {} waiting or streaming requests, the limit: end one of them, follow /v1/feed instead of each task, ask without `wait`, or raise http.max_waiting_per_client",
            self.max_per_client
        );
        refusal(TOO_MANY_WAITING_PER_CLIENT, detail)
    }

    fn all_taken(&self) -> Refusal {
        let detail = format!(
            "{} requests already wait for tasks, the limit: try again in some seconds, ask without `wait`, or raise http.max_waiting",
            self.max
        );
        refusal(TOO_MANY_WAITING, detail)
    }
}

impl PageStreams {
    pub(super) fn new(config: &Config) -> Self {
        Self { shares: Arc::default(), max_per_client: config.max_page_streams_per_client }
    }

    pub(super) fn take_place(&self, holder: Holder) -> Result<Share, Refusal> {
        let used_up = || {
            let detail = format!(
                "{} has {} page streams open, the limit: close some pages, or raise http.max_page_streams_per_client",
                client_name(holder),
                self.max_per_client
            );
            refusal(TOO_MANY_WAITING_PER_CLIENT, detail)
        };
        Shares::take(&self.shares, holder, self.max_per_client).ok_or_else(used_up)
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
