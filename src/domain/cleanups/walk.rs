//! The walk over all sessions that are due for removal, page by page.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{BoardRules, KeepDays, KeepReason};
use crate::domain::{
    StatementError, memory,
    sessions::{Config, DueReason, DueSession, due_after},
    tasks,
};

/// The position of a cleanup, and the moments that decide what is due. Each session is visited once, also one that is kept.
#[derive(Debug, Clone)]
pub struct Walk {
    pub(super) now: DateTime<Utc>,
    pub(super) closed_until: DateTime<Utc>,
    pub(super) feed_until: DateTime<Utc>,
    pub(super) memory_until: DateTime<Utc>,
    pub(super) summaries_until: DateTime<Utc>,
    pub(super) keep_days: KeepDays,
    /// `None`: no post is archived.
    pub(super) boards: Option<BoardRules>,
    because: Option<DueReason>,
    place: (DateTime<Utc>, Uuid),
}

/// A page of due sessions: those to remove, and those to keep with the reason.
#[derive(Debug, Clone, Default)]
pub struct Page {
    pub going: Vec<DueSession>,
    pub kept: Vec<(DueSession, KeepReason)>,
}

const BEGINNING: (DateTime<Utc>, Uuid) = (DateTime::UNIX_EPOCH, Uuid::nil());

impl Walk {
    /// Begins a walk over everything that is due at `now`. A closed session is due `keep_closed_days` after its closing, and the summary of
    /// an expired one `keep_summary_days` after the expiry. Revoked and expired items of a memory, and facts that hold no longer, are due
    /// `memory.keep_days` after that.
    pub fn new(now: DateTime<Utc>, config: &Config, memory: &memory::Config) -> Self {
        let before = |days: u32| now - TimeDelta::days(days.into());
        Self {
            now,
            closed_until: before(config.keep_closed_days),
            feed_until: before(config.keep_feed_days),
            memory_until: now - memory.keep(),
            summaries_until: config.forgotten_until(now),
            keep_days: KeepDays {
                closed_sessions: config.keep_closed_days,
                summaries: config.keep_summary_days,
                events: config.keep_feed_days,
                memory_items: memory.keep_days,
            },
            boards: None,
            because: Some(DueReason::Expired),
            place: BEGINNING,
        }
    }

    /// Archives posts by these rules, too.
    pub fn archiving(self, rules: BoardRules) -> Self {
        Self { boards: Some(rules), ..self }
    }

    /// Reads the next page, of at most `limit` sessions; `None` at the end. Locks nothing.
    pub async fn page(
        &mut self,
        conn: &mut PgConnection,
        limit: i64,
    ) -> Result<Option<Page>, StatementError> {
        while let Some(because) = self.because {
            let until = match because {
                DueReason::Expired => self.now,
                DueReason::Closed => self.closed_until,
            };
            let due = due_after(&mut *conn, because, until, self.place, limit).await?;
            if let Some(last) = due.last() {
                self.place = (last.since(), last.id);
                return split_awaited(conn, due).await.map(Some);
            }
            self.place = BEGINNING;
            self.because = match because {
                DueReason::Expired => Some(DueReason::Closed),
                DueReason::Closed => None,
            };
        }
        Ok(None)
    }
}

/// Separates the sessions to remove from those to keep.
pub(super) async fn split_awaited(
    conn: &mut PgConnection,
    due: Vec<DueSession>,
) -> Result<Page, StatementError> {
    let awaited = tasks::filter_awaited(conn, &due).await?;
    let mut page = Page::default();
    for session in due {
        if session.is_running {
            page.kept.push((session, KeepReason::Running));
        } else if awaited.contains(&session.id) {
            page.kept.push((session, KeepReason::TaskWaiting));
        } else {
            page.going.push(session);
        }
    }
    Ok(page)
}
