//! One reader of the feed for all followers of a process.
//!
//! It reads at a constant pace, and sends the events of a read together: waking hundreds of followers costs more than anything else here.
//! The first follower starts the reader; it ends some time after the last one has left. The newest events stay in memory, so that followers
//! that come back continue after their last event without a read. Older events are read once, up to those in memory. A follower that is too
//! far behind is told so, and begins now.
//!
//! Race: a follower joins under the lock under which the reader appends and sends. Each event is therefore either in what the follower is
//! given at the start, or sent to it later, and never both.

use std::{
    collections::VecDeque,
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use sqlx::PgPool;
use tokio::{
    sync::broadcast::{Receiver, Sender, error::RecvError},
    time::{Instant, MissedTickBehavior, interval, sleep},
};

use super::{Event, EventFilter, FeedItem, Filter, Watch, list, watch::newest_drawn};
use crate::domain::StatementError;

/// Events in memory.
const MAX_IN_MEMORY: usize = 2_000;
/// Time for which an event stays in memory. Later, it is read again from the database, which has no events of erased campaigns.
const MAX_AGE: Duration = Duration::from_mins(5);
/// Events that a follower may have missed before it joins: those of ten minutes of a busy installation, in ten reads. They are for an
/// interruption or a restart of the service; a page that was away for longer, such as on a laptop that slept, is read again as a whole.
/// Ids count, which have gaps. Without this limit, each follower could read the whole feed.
const MAX_MISSED: i64 = 5_000;
/// Reads that a follower may be behind: about a minute. One that stalls for longer is dropped, and comes back with its last event.
const MAX_BEHIND: usize = 256;
/// Time between two reads. It is most of the time in which an event reaches a page.
const PACE: Duration = Duration::from_millis(200);
/// Time for which the reader goes on without a follower, for pages that are being changed.
const LINGER: Duration = Duration::from_secs(60);
/// Pause after an error of the database.
const RETRY_AFTER: Duration = Duration::from_secs(1);
const PAGE: i64 = 500;

/// The shared reader. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Hub(Arc<Mutex<State>>);

/// An event in memory. Its JSON is made once for all followers.
#[derive(Debug)]
pub struct SharedEvent {
    event: Event,
    json: OnceLock<String>,
    read_at: Instant,
}

/// The events of one read.
type Batch = Arc<[Arc<SharedEvent>]>;

#[derive(Debug)]
struct State {
    sender: Sender<Batch>,
    newest: VecDeque<Arc<SharedEvent>>,
    /// All events after this id are in memory. `None`: no reader runs.
    floor: Option<i64>,
}

/// A follower, which gets each event once.
#[derive(Debug)]
pub struct Follower {
    pool: PgPool,
    has_gap: bool,
    /// The events between these ids are read first.
    missed: Option<(i64, i64)>,
    /// Those that are read.
    earlier: VecDeque<Arc<SharedEvent>>,
    coming: VecDeque<Arc<SharedEvent>>,
    receiver: Receiver<Batch>,
}

#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    #[error("the feed cannot be followed any more: connect again with the last event")]
    Dropped,
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Default for State {
    fn default() -> Self {
        Self { sender: Sender::new(MAX_BEHIND), newest: VecDeque::new(), floor: None }
    }
}

impl Hub {
    /// Begins to follow after an event, or now. Returns the id at which the follower begins, too: now, if the event is too long ago.
    pub async fn follow(
        &self,
        pool: &PgPool,
        after: Option<i64>,
    ) -> Result<(i64, Follower), StatementError> {
        // An answered follower is told that the feed is read, so the database has to answer.
        newest_drawn(pool).await?;
        loop {
            // Read before the lock is taken, which no await may hold.
            let watch = if self.is_running() { None } else { Some(begin(pool, None).await?) };
            // `None`: the reader has ended between the two looks.
            if let Some(joined) = self.join(pool, after, watch) {
                return Ok(joined);
            }
        }
    }

    /// Adds a follower, and starts the reader with `watch` if none runs.
    fn join(
        &self,
        pool: &PgPool,
        after: Option<i64>,
        watch: Option<(Watch, i64)>,
    ) -> Option<(i64, Follower)> {
        let mut state = self.lock();
        if let (None, Some((watch, begun))) = (state.floor, watch) {
            state.floor = Some(begun);
            state.newest.clear();
            tokio::spawn(self.clone().read(pool.clone(), watch));
        }
        let (floor, now) = (state.floor?, state.last()?);
        let has_gap = after.is_some_and(|after| after < now - MAX_MISSED);
        let after = after.filter(|_| !has_gap).unwrap_or(now).min(now);
        let coming = state.newest.iter().filter(|event| event.id > after).cloned().collect();
        let missed = (after < floor).then_some((after, floor));
        let (pool, receiver) = (pool.clone(), state.sender.subscribe());
        let earlier = VecDeque::new();
        Some((after, Follower { pool, has_gap, missed, earlier, coming, receiver }))
    }

    /// Returns the id of the newest event that is read, while the reader runs.
    pub fn newest(&self) -> Option<i64> {
        self.lock().last()
    }

    /// Reads the feed and sends its events, until no follower is left.
    async fn read(self, pool: PgPool, mut watch: Watch) {
        let mut pace = interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut alone_since: Option<Instant> = None;
        loop {
            pace.tick().await;
            match watch.read().await {
                Ok(events) => {
                    self.append(events);
                    self.lock().forget_old();
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot read the feed for open pages; trying again");
                    self.hang_up();
                    sleep(RETRY_AFTER).await;
                    let last = self.newest();
                    if let Ok((again, _)) = begin(&pool, last).await {
                        watch = again;
                    }
                }
            }
            if self.end_if_alone(&mut alone_since) {
                return;
            }
        }
    }

    /// Ends all followers, so that their pages show the interruption. They come back with their last event.
    fn hang_up(&self) {
        self.lock().sender = Sender::new(MAX_BEHIND);
    }

    fn append(&self, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let batch: Batch = events.into_iter().map(|event| Arc::new(event.into())).collect();
        let mut state = self.lock();
        state.newest.extend(batch.iter().cloned());
        while state.newest.len() > MAX_IN_MEMORY {
            state.forget_first();
        }
        // Without a follower, the events stay in memory only.
        let _ = state.sender.send(batch);
    }

    /// Ends the reader if it has had no follower for some time. Decides under the lock, so that no follower joins an ended reader.
    fn end_if_alone(&self, alone_since: &mut Option<Instant>) -> bool {
        let mut state = self.lock();
        if state.sender.receiver_count() > 0 {
            *alone_since = None;
            return false;
        }
        let has_lingered = alone_since.get_or_insert_with(Instant::now).elapsed() >= LINGER;
        if has_lingered {
            state.floor = None;
            state.newest.clear();
        }
        has_lingered
    }

    fn is_running(&self) -> bool {
        self.lock().floor.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn last(&self) -> Option<i64> {
        let floor = self.floor?;
        Some(self.newest.back().map_or(floor, |event| event.id))
    }

    /// Forgets the events that were read long ago.
    fn forget_old(&mut self) {
        while self.newest.front().is_some_and(|event| event.read_at.elapsed() >= MAX_AGE) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some(event) = self.newest.pop_front() {
            self.floor = Some(event.id);
        }
    }
}

impl Follower {
    /// Returns true if events are missing between the last one of the follower and its begin.
    pub fn has_gap(&self) -> bool {
        self.has_gap
    }

    /// Waits for the next event.
    pub async fn next(&mut self) -> Result<Arc<SharedEvent>, FollowError> {
        loop {
            if let Some(event) = self.earlier.pop_front() {
                return Ok(event);
            }
            let Some((after, up_to)) = self.missed else { break };
            let filter = Filter { campaign_id: None, after, up_to, limit: PAGE };
            let events = list(&self.pool, filter).await?;
            self.missed = events.last().filter(|last| last.id < up_to).map(|last| (last.id, up_to));
            self.earlier.extend(events.into_iter().map(|event| Arc::new(event.into())));
        }
        loop {
            if let Some(event) = self.coming.pop_front() {
                return Ok(event);
            }
            match self.receiver.recv().await {
                Ok(batch) => self.coming.extend(batch.iter().cloned()),
                Err(RecvError::Lagged(_) | RecvError::Closed) => return Err(FollowError::Dropped),
            }
        }
    }
}

impl SharedEvent {
    pub fn json(&self) -> &str {
        self.json.get_or_init(|| serde_json::to_string(&self.event).unwrap_or_default())
    }
}

impl From<Event> for SharedEvent {
    fn from(event: Event) -> Self {
        Self { event, json: OnceLock::new(), read_at: Instant::now() }
    }
}

impl Deref for SharedEvent {
    type Target = Event;

    fn deref(&self) -> &Event {
        &self.event
    }
}

/// Begins to read after an event, or now; returns the id of the begin.
async fn begin(pool: &PgPool, after: Option<i64>) -> Result<(Watch, i64), StatementError> {
    let mut watch = Watch::begin(pool, EventFilter::default(), after).await?;
    match after {
        Some(after) => Ok((watch, after)),
        None => match watch.next().await? {
            FeedItem::Begun(id) => Ok((watch, id)),
            FeedItem::Event(event) => Ok((watch, event.id)),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(id: i64) -> Event {
        Event {
            id,
            created_at: chrono::DateTime::UNIX_EPOCH,
            campaign_id: None,
            task_id: None,
            session_id: None,
            agent: None,
            instance: None,
            kind: "task.queued".to_owned(),
            data: json!({}),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn events_that_were_read_long_ago_are_forgotten() {
        let hub = Hub::default();
        let in_memory = || {
            let state = hub.lock();
            (state.floor, state.newest.len())
        };
        hub.lock().floor = Some(6);
        hub.append(vec![event(7), event(8)]);
        tokio::time::advance(MAX_AGE / 2).await;
        hub.append(vec![event(9)]);
        hub.lock().forget_old();
        assert_eq!(in_memory(), (Some(6), 3));
        tokio::time::advance(MAX_AGE / 2).await;
        hub.lock().forget_old();
        assert_eq!(in_memory(), (Some(8), 1));
        tokio::time::advance(MAX_AGE).await;
        hub.lock().forget_old();
        assert_eq!(in_memory(), (Some(9), 0));
        assert_eq!(hub.newest(), Some(9), "the reader goes on behind it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_without_followers_leaves_no_events_in_memory() {
        let hub = Hub::default();
        hub.lock().floor = Some(6);
        hub.append(vec![event(7)]);
        let mut alone_since = None;
        assert!(!hub.end_if_alone(&mut alone_since));
        tokio::time::advance(LINGER).await;
        assert!(hub.end_if_alone(&mut alone_since));
        assert!(hub.lock().newest.is_empty());
    }
}
