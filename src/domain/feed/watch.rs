//! Following the feed as a whole, or a part of it.
//!
//! Polls the table instead of using `LISTEN`, so that it works behind every pooler. Holds at most one small page, for events of any size,
//! so that a stalled reader costs little.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use sqlx::{PgExecutor, PgPool};
use tokio::time::sleep;
use uuid::Uuid;

use super::{Event, Horizon, read_ahead};
use crate::domain::StatementError;

/// The first and the longest pause between two reads. An event that only waits for a commit comes soon. A quiet feed is read four times a
/// second, which a person does not notice.
const FIRST_PAUSE: Duration = Duration::from_millis(15);
const MAX_PAUSE: Duration = Duration::from_millis(250);
/// Events in one read.
const PAGE: i64 = 100;
/// Their bytes in one read, unless the first event alone has more. Together with the buffers of the connection they stay below 64 KiB.
const PAGE_BYTES: i64 = 16 * 1024;
/// Events of several pages that are read at once.
const MAX_READ: usize = 1_000;

/// A filter of the events to follow. Empty fields match everything.
#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    pub campaign_id: Option<Uuid>,
    /// Only events of these campaigns.
    pub within: Option<Arc<[Uuid]>>,
    pub kinds: Option<Vec<String>>,
    pub session_id: Option<Uuid>,
    pub agent: Option<String>,
    /// Only events about this instance of the agent, or about all of its instances.
    pub instance: Option<String>,
}

#[derive(Debug)]
pub enum FeedItem {
    /// The start, if the reader named no id. A reader that comes back with this id misses nothing.
    Begun(i64),
    Event(Event),
}

/// A reader of the feed, which gets each event once. A reader that comes back with the last id that it got goes on from there.
#[derive(Debug)]
pub struct Watch {
    pool: PgPool,
    watched: EventFilter,
    horizon: Horizon,
    /// The id up to which the reader has everything. `None`: the start is not known yet.
    told: Option<i64>,
    /// The newest id when a reader came without one.
    newest: i64,
    coming: VecDeque<Event>,
    pause: Duration,
}

impl Watch {
    /// Begins to follow the feed. `after` is the last id that the reader got before; without one, it begins now. It also begins now if the
    /// feed has not drawn this id: the database was restored, or a standby has taken over without the end of the log.
    pub async fn begin(
        pool: &PgPool,
        watched: EventFilter,
        after: Option<i64>,
    ) -> Result<Self, StatementError> {
        let after = match after {
            Some(after) if after > newest_drawn(pool).await? => None,
            after => after.map(|after| after.max(0)),
        };
        let (horizon, newest) = match after {
            Some(after) => (Horizon::at(after), after),
            None => now(pool).await?,
        };
        let pool = pool.clone();
        Ok(Self {
            pool,
            watched,
            horizon,
            told: after,
            newest,
            coming: VecDeque::new(),
            pause: FIRST_PAUSE,
        })
    }

    /// Waits for the next event, or for the start.
    pub async fn next(&mut self) -> Result<FeedItem, StatementError> {
        if self.told.is_none() {
            return Ok(FeedItem::Begun(self.settle().await?));
        }
        loop {
            if let Some(event) = self.coming.pop_front() {
                self.pause = FIRST_PAUSE;
                self.told = Some(event.id);
                return Ok(FeedItem::Event(event));
            }
            let settled = self.horizon.settled();
            self.coming = self.read_page().await?.into();
            // If the horizon has moved, there may be more behind it.
            if self.coming.is_empty() && self.horizon.settled() == settled {
                self.sleep_pause().await;
            }
        }
    }

    /// Reads the events that have come since the last read, without a wait. `next` goes on after them.
    pub async fn read(&mut self) -> Result<Vec<Event>, StatementError> {
        let mut events = Vec::new();
        loop {
            let page = self.read_page().await?;
            self.told = page.last().map(|last| last.id).or(self.told);
            events.extend(page);
            // A page has few events, and a commit often many.
            if self.told >= Some(self.horizon.settled()) || events.len() >= MAX_READ {
                return Ok(events);
            }
        }
    }

    /// Reads one page beyond the last event. If it is empty, no event up to the horizon matches the filter.
    async fn read_page(&mut self) -> Result<Vec<Event>, StatementError> {
        let told = match self.told {
            Some(told) => told,
            None => self.settle().await?,
        };
        let sight = read_ahead(&self.pool, &self.horizon, PAGE).await?;
        self.horizon.advance(&sight);
        let up_to = self.horizon.settled();
        if up_to <= told {
            return Ok(Vec::new());
        }
        let events = page(&self.pool, &self.watched, told, up_to).await?;
        if events.is_empty() {
            self.told = Some(up_to);
        }
        Ok(events)
    }

    /// Waits until the start is known: smaller ids that are drawn and not committed yet would appear later.
    async fn settle(&mut self) -> Result<i64, StatementError> {
        while self.horizon.settled() < self.newest {
            self.horizon.advance(&read_ahead(&self.pool, &self.horizon, 0).await?);
            if self.horizon.settled() < self.newest {
                self.sleep_pause().await;
            }
        }
        self.told = Some(self.newest);
        Ok(self.newest)
    }

    async fn sleep_pause(&mut self) {
        sleep(self.pause).await;
        self.pause = MAX_PAUSE.min(self.pause * 2);
    }
}

/// Returns the last id that was drawn, committed or not.
pub(super) async fn newest_drawn(pool: &PgPool) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        r#"select coalesce(pg_sequence_last_value('dalsegno.feed_id_seq'), 0) as "newest!""#
    )
    .fetch_one(pool)
    .await
    .map_err(StatementError::to("find the last id of the feed"))
}

/// Returns the newest id, and a horizon that reaches it as soon as all transactions have ended that may still fill a gap below.
async fn now(pool: &PgPool) -> Result<(Horizon, i64), StatementError> {
    let newest =
        sqlx::query_scalar!(r#"select coalesce(max(id), 0) as "newest!" from dalsegno.feed"#)
            .fetch_one(pool)
            .await
            .map_err(StatementError::to("find the end of the feed"))?;
    // Drawn after the read: each transaction that had an id by then has a smaller number.
    let mark = sqlx::query_scalar!(r#"select pg_current_xact_id()::text::bigint as "mark!""#)
        .fetch_one(pool)
        .await
        .map_err(StatementError::to("mark the end of the feed"))?;
    Ok((Horizon { settled: 0, waiting: Some((newest, mark)) }, newest))
}

/// Reads the next events for a reader.
async fn page(
    executor: impl PgExecutor<'_>,
    watched: &EventFilter,
    after: i64,
    up_to: i64,
) -> Result<Vec<Event>, StatementError> {
    sqlx::query_file_as!(
        Event,
        "src/domain/feed/page.sql",
        after,
        up_to,
        watched.campaign_id,
        watched.kinds.as_deref(),
        PAGE,
        PAGE_BYTES,
        watched.within.as_deref(),
        watched.session_id,
        watched.agent,
        watched.instance,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read the next events of the feed"))
}
