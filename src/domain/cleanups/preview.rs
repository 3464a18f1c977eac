//! The preview of a cleanup: counts of the rows that it would remove now, and why.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{KeepReason, KeptCounts, Walk, boards::count_due, group};
use crate::domain::{
    StatementError, facts, feed, memory,
    messages::{self, Size},
    session_summaries,
    sessions::{DueReason, DueSession},
    transcripts,
};

/// Sessions that are measured at once.
const PAGE: i64 = 1_000;

/// The records that a cleanup removes without counting them, each with the setting of its age.
pub const UNCOUNTED: &str = "Removed as well, but not counted: webhook deliveries (`webhooks.keep_days`), idempotency keys \
     (`keep.idempotency_keys_days`), lines of the audit log (`audit.keep_days`), replaced briefs (`sessions.keep_campaign_versions_days`), and contents of files \
     that no task has any more.";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = CleanupPreview)]
pub struct Preview {
    pub sessions: i64,
    pub messages: i64,
    /// Bytes of texts and stored transcripts.
    pub bytes: i64,
    /// Events of the feed that are old enough.
    pub events: i64,
    /// Items of memories that were revoked or have expired long enough ago.
    pub memory_items: i64,
    /// Expired sessions whose summary would be kept for their successors.
    pub summaries_kept: i64,
    /// Kept summaries that would be removed, because no task has used them in time.
    pub summaries_removed: i64,
    /// Old posts of boards that would be archived.
    #[serde(default)]
    pub posts_archived: i64,
    /// Old posts that would stay on their boards: an agent has not seen them or one before them, or an open task answers one.
    #[serde(default)]
    pub posts_held: i64,
    pub groups: Vec<Group>,
    /// Due sessions that would be kept, by reason.
    #[schema(value_type = BTreeMap<KeepReason, i64>)]
    pub kept: KeptCounts,
    pub keep_days: KeepDays,
}

/// Days for which things are kept after they have ended or expired.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct KeepDays {
    pub closed_sessions: u32,
    pub summaries: u32,
    pub events: u32,
    pub memory_items: u32,
}

/// Sessions of one provider that would be removed for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = CleanupGroup)]
pub struct Group {
    pub provider: String,
    pub because: DueReason,
    pub sessions: i64,
    pub messages: i64,
    pub bytes: i64,
    /// The earliest expiry or closing.
    pub oldest: DateTime<Utc>,
}

/// Counts everything that is due for removal. Changes nothing.
pub async fn preview(conn: &mut PgConnection, mut walk: Walk) -> Result<Preview, StatementError> {
    let mut preview = Preview { keep_days: walk.keep_days, ..Preview::default() };
    let mut groups = BTreeMap::new();
    while let Some(page) = walk.page(&mut *conn, PAGE).await? {
        for (_, kept) in page.kept {
            *preview.kept.entry(kept).or_default() += 1;
        }
        let ids: Vec<Uuid> = page.going.iter().map(|session| session.id).collect();
        let worth =
            session_summaries::worth_keeping(&mut *conn, &ids, walk.summaries_until).await?;
        preview.summaries_kept += i64::try_from(worth.len()).unwrap_or(i64::MAX);
        for ((provider, because), sessions) in group(&page.going) {
            let part = measure(&mut *conn, &provider, because, &sessions).await?;
            preview.sessions += part.sessions;
            preview.messages += part.messages;
            preview.bytes += part.bytes;
            groups
                .entry((provider, because))
                .and_modify(|group: &mut Group| group.add(&part))
                .or_insert(part);
        }
    }
    preview.events = feed::count_before(&mut *conn, walk.feed_until).await?;
    preview.summaries_removed =
        session_summaries::count_until(&mut *conn, walk.summaries_until).await?;
    let due = count_due(&mut *conn, &walk).await?;
    (preview.posts_archived, preview.posts_held) = (due.archived, due.held);
    preview.memory_items = memory::count_ended(&mut *conn, walk.memory_until).await?
        + facts::count_ended(conn, walk.memory_until).await?;
    preview.groups = groups.into_values().collect();
    Ok(preview)
}

async fn measure(
    conn: &mut PgConnection,
    provider: &str,
    because: DueReason,
    sessions: &[&DueSession],
) -> Result<Group, StatementError> {
    let ids: Vec<Uuid> = sessions.iter().map(|session| session.id).collect();
    let sizes = messages::measure(&mut *conn, &ids).await?;
    let sum = |count: fn(&Size) -> i64| sizes.iter().map(|(_, size)| count(size)).sum::<i64>();
    Ok(Group {
        provider: provider.to_owned(),
        because,
        sessions: i64::try_from(ids.len()).unwrap_or(i64::MAX),
        messages: sum(|size| size.messages),
        bytes: sum(|size| size.bytes) + transcripts::measure_all(conn, &ids).await?,
        oldest: sessions.iter().map(|session| session.since()).min().unwrap_or_default(),
    })
}

impl Group {
    fn add(&mut self, more: &Self) {
        self.sessions += more.sessions;
        self.messages += more.messages;
        self.bytes += more.bytes;
        self.oldest = self.oldest.min(more.oldest);
    }
}
