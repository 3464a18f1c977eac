//! Staying with a task until it has ended.
//!
//! Looks at the tables in steps instead of listening: it works behind every pooler. A look costs short statements that read
//! whether the task has ended and what is new, never the task itself: prompts and results are long.

use std::{collections::VecDeque, time::Duration};

use sqlx::PgPool;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::{Error, Task, get, has_ended};
use crate::domain::feed::{self, Event, Horizon};

/// Between two looks. A person does not notice it, and a thousand followers are no load.
const PAUSE: Duration = Duration::from_millis(250);
/// Events in one look.
const PAGE: i64 = 500;

/// What a follower is told, in this order: events as they come, then the end, once.
#[derive(Debug)]
pub enum News {
    Event(Event),
    Ended(Box<Task>),
}

/// One follower of one task. Misses no event and tells none twice; whoever comes back with the last id that it got goes on
/// from there.
#[derive(Debug)]
pub struct Follow {
    pool: PgPool,
    task_id: Uuid,
    horizon: Horizon,
    /// The last id that was told.
    told: i64,
    coming: VecDeque<News>,
    is_over: bool,
}

/// Waits until a task has ended, or for `limit`, and gives it as it is then.
pub async fn wait(pool: &PgPool, id: Uuid, limit: Duration) -> Result<Task, Error> {
    let started = Instant::now();
    loop {
        let has_ended = has_ended(pool, id).await?;
        let left = limit.saturating_sub(started.elapsed());
        if has_ended || left.is_zero() {
            let task = get(pool, id).await?;
            // It may have been put on the queue again since.
            if task.ended_at.is_some() || left.is_zero() {
                return Ok(task);
            }
        }
        sleep(PAUSE.min(left)).await;
    }
}

impl Follow {
    /// `after` is the last id that the follower has got before.
    pub async fn begin(pool: &PgPool, task_id: Uuid, after: Option<i64>) -> Result<Self, Error> {
        has_ended(pool, task_id).await?;
        let first = feed::first_of_task(pool, task_id).await?;
        // Nothing of the task can come before its first event, which was written by the transaction that made it.
        let told = after.unwrap_or(0).max(first.map_or(0, |first| first - 1));
        Ok(Self {
            pool: pool.clone(),
            task_id,
            horizon: Horizon::at(told),
            told,
            coming: VecDeque::new(),
            is_over: false,
        })
    }

    /// The last id that was told, or the one after which the telling began.
    pub fn told(&self) -> i64 {
        self.told
    }

    /// Waits for the next thing to tell. `None` after the end.
    pub async fn next(&mut self) -> Result<Option<News>, Error> {
        loop {
            if let Some(news) = self.coming.pop_front() {
                if let News::Event(event) = &news {
                    self.told = event.id;
                }
                return Ok(Some(news));
            }
            if self.is_over {
                return Ok(None);
            }
            self.look().await?;
        }
    }

    async fn look(&mut self) -> Result<(), Error> {
        let ended = has_ended(&self.pool, self.task_id).await?;
        let settled = self.horizon.settled();
        // What ended the task has also written its last event, so whatever is there now is all there is.
        let up_to = if ended { i64::MAX } else { self.move_horizon().await? };
        let events = feed::of_task(&self.pool, self.task_id, self.told, up_to, PAGE).await?;
        self.coming.extend(events.into_iter().map(News::Event));
        match self.coming.is_empty() {
            true if ended => {
                let task = get(&self.pool, self.task_id).await?;
                // Put on the queue again since: there is more to come.
                if task.ended_at.is_none() {
                    return Ok(());
                }
                self.coming.push_back(News::Ended(Box::new(task)));
                self.is_over = true;
            }
            // A horizon that moves has more behind it.
            true if self.horizon.settled() == settled => sleep(PAUSE).await,
            _ => {}
        }
        Ok(())
    }

    async fn move_horizon(&mut self) -> Result<i64, Error> {
        let sight = feed::look(&self.pool, &self.horizon, PAGE).await?;
        self.horizon.advance(&sight);
        Ok(self.horizon.settled())
    }
}
