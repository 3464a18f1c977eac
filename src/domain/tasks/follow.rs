//! Following a task until it has ended.
//!
//! Polls the tables instead of listening, so it works behind every pooler. A poll runs short statements that read whether the task has
//! ended and the new events. It does not read the task itself, because prompts and results are long.

use std::{collections::VecDeque, time::Duration};

use serde::Serialize;
use sqlx::PgPool;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::{Error, Task, get, has_ended};
use crate::domain::feed::{self, Event, Horizon};

/// Pause between two polls. Short enough for people, and long enough for a thousand followers.
const PAUSE: Duration = Duration::from_millis(250);
/// Maximum number of events of one poll.
const PAGE: i64 = 500;

/// An item for a follower: events as they come, then the end, once.
#[derive(Debug)]
pub enum TaskUpdate {
    Event(Event),
    Ended(Box<EndedTask>),
}

/// A task that has ended, with the part of its result that no event had.
#[derive(Debug, Serialize)]
pub struct EndedTask {
    #[serde(flatten)]
    pub task: Task,
    /// The whole result, if the texts of the events are not its begin.
    pub rest: String,
}

/// A follower of one task. Delivers every event exactly once. A client that resumes with the last id that it received continues from
/// there.
#[derive(Debug)]
pub struct Follow {
    pool: PgPool,
    task_id: Uuid,
    horizon: Horizon,
    /// The last id that was delivered.
    told: i64,
    coming: VecDeque<TaskUpdate>,
    is_over: bool,
}

/// Waits until a task has ended, or for `limit`, and returns the task as it is then.
pub async fn wait(pool: &PgPool, id: Uuid, limit: Duration) -> Result<Task, Error> {
    let started = Instant::now();
    loop {
        let has_ended = has_ended(pool, id).await?;
        let left = limit.saturating_sub(started.elapsed());
        if has_ended || left.is_zero() {
            let task = get(pool, id).await?;
            // A retry may have put it on the queue again since.
            if task.ended_at.is_some() || left.is_zero() {
                return Ok(task);
            }
        }
        sleep(PAUSE.min(left)).await;
    }
}

impl Follow {
    /// Begins to follow a task. `after` is the last id that the follower has received.
    pub async fn begin(pool: &PgPool, task_id: Uuid, after: Option<i64>) -> Result<Self, Error> {
        has_ended(pool, task_id).await?;
        let first = feed::first_of_task(pool, task_id).await?;
        // The task's first event was written in the transaction that added it, so none can precede it.
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

    /// Returns the last delivered id, or the id after which delivery began.
    pub fn last_delivered_id(&self) -> i64 {
        self.told
    }

    /// Waits for the next item. `None` after the end.
    pub async fn next(&mut self) -> Result<Option<TaskUpdate>, Error> {
        loop {
            if let Some(news) = self.coming.pop_front() {
                if let TaskUpdate::Event(event) = &news {
                    self.told = event.id;
                }
                return Ok(Some(news));
            }
            if self.is_over {
                return Ok(None);
            }
            self.read_news().await?;
        }
    }

    async fn read_news(&mut self) -> Result<(), Error> {
        let ended = has_ended(&self.pool, self.task_id).await?;
        let settled = self.horizon.settled();
        // The transaction that ended the task also wrote its last event, so no more can follow.
        let up_to = if ended { i64::MAX } else { self.move_horizon().await? };
        let events = feed::of_task(&self.pool, self.task_id, self.told, up_to, PAGE).await?;
        self.coming.extend(events.into_iter().map(TaskUpdate::Event));
        match self.coming.is_empty() {
            true if ended => {
                let task = get(&self.pool, self.task_id).await?;
                // A retry has put it on the queue again since: more events follow.
                if task.ended_at.is_none() {
                    return Ok(());
                }
                let rest = self.rest(&task).await?;
                self.coming.push_back(TaskUpdate::Ended(Box::new(EndedTask { task, rest })));
                self.is_over = true;
            }
            // Polls again at once while the horizon moves, because it may have more events.
            true if self.horizon.settled() == settled => sleep(PAUSE).await,
            _ => {}
        }
        Ok(())
    }

    /// Returns the part of the result that no event had. A text was cut, or a turn was repeated, if the events are not its begin.
    async fn rest(&self, task: &Task) -> Result<String, Error> {
        let result = task.result.as_deref().unwrap_or_default();
        let shown = feed::text_of_task(&self.pool, task.id).await?;
        Ok(result.strip_prefix(&shown).unwrap_or(result).to_owned())
    }

    async fn move_horizon(&mut self) -> Result<i64, Error> {
        let sight = feed::read_ahead(&self.pool, &self.horizon, PAGE).await?;
        self.horizon.advance(&sight);
        Ok(self.horizon.settled())
    }
}
