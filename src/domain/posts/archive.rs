//! The archive of a board: its oldest posts, up to a place. Turns no longer show them; people and the tool `board_history` read them as before.
//!
//! The summary of an archive says who wrote how many posts and when, for one reader. It has no text, so it needs no model and reveals nothing
//! that the reader may not see.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Config, Viewer};
use crate::domain::StatementError;

/// A board with posts that are too old or too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueBoard {
    pub campaign_id: Uuid,
    /// The last place of the archive.
    pub archived_seq: i64,
    /// The last place that the settings would archive.
    pub due_seq: i64,
}

/// The archive of a board, as one reader sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = BoardArchive)]
pub struct Archive {
    /// The last archived place of the board; 0 if nothing was archived.
    pub archived_seq: i64,
    /// Time of the last change. Null if nothing was archived.
    pub archived_at: Option<DateTime<Utc>>,
    /// Number of archived posts that the reader sees.
    pub posts: i64,
    /// Their senders, by name.
    pub senders: Vec<ArchivedSender>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ArchivedSender {
    pub sender: String,
    pub posts: i64,
    pub first_at: DateTime<Utc>,
    pub last_at: DateTime<Utc>,
}

/// Lists boards with posts to archive, in the order of their campaigns.
pub async fn list_due(
    executor: impl PgExecutor<'_>,
    config: &Config,
    after: Uuid,
    limit: i64,
    now: DateTime<Utc>,
) -> Result<Vec<DueBoard>, StatementError> {
    sqlx::query_file_as!(
        DueBoard,
        "src/domain/posts/archive_due.sql",
        after,
        limit,
        i64::from(config.keep_posts),
        config.old_before(now),
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list boards with old posts"))
}

/// Locks a board until the transaction ends, so that no post is added, and returns the last place of its archive. `None`: there is no board
/// any more, or its campaign is erased.
pub async fn lock_board(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<Option<i64>, StatementError> {
    sqlx::query_scalar!(
        "select archived_seq from dalsegno.boards where campaign_id = $1 and not dalsegno.is_erased(campaign_id) for update",
        campaign_id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("lock a board"))
}

/// Archives the posts between two places. The caller has locked the board.
pub async fn archive(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    (from_seq, to_seq): (i64, i64),
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query_file!("src/domain/posts/archive.sql", campaign_id, from_seq, to_seq, now)
        .execute(executor)
        .await
        .map(drop)
        .map_err(StatementError::to("archive the posts of a board"))
}

/// Returns the first place after `seq` that the viewer sees.
pub async fn first_visible_after(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    viewer: Viewer<'_>,
    seq: i64,
) -> Result<Option<i64>, StatementError> {
    sqlx::query_scalar!(
        r#"select seq as "seq!" from dalsegno.visible_posts_from($1, $2, $3, 1) as seq"#,
        campaign_id,
        viewer.column(),
        seq,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("find the next post of a reader"))
}

/// Returns the first place of these posts.
pub async fn first_place_of(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    ids: &[Uuid],
) -> Result<Option<i64>, StatementError> {
    sqlx::query_scalar!(
        "select min(seq) from dalsegno.posts where campaign_id = $1 and id = any ($2)",
        campaign_id,
        ids,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("find the places of posts"))
}

/// Reads the archive as a viewer sees it.
pub async fn archive_of(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    viewer: Viewer<'_>,
) -> Result<Archive, StatementError> {
    let board = sqlx::query!(
        "select archived_seq, archived_at from dalsegno.boards where campaign_id = $1",
        campaign_id
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(StatementError::to("read the archive of a board"))?;
    let (archived_seq, archived_at) =
        board.map_or((0, None), |board| (board.archived_seq, board.archived_at));
    let senders = sqlx::query_as!(
        ArchivedSender,
        r#"select sender, sum(n_posts)::bigint as "posts!", min(first_at) as "first_at!", max(last_at) as "last_at!"
             from dalsegno.board_archives
            where campaign_id = $1 and viewer = any (case when $2::text is null then array['operator'] else array['all', $2] end)
            group by sender order by sender"#,
        campaign_id,
        viewer.column(),
    )
    .fetch_all(conn)
    .await
    .map_err(StatementError::to("read the summary of an archive"))?;
    let posts = senders.iter().map(|sender| sender.posts).sum();
    Ok(Archive { archived_seq, archived_at, posts, senders })
}

/// Removes the summary of an erased campaign's archive.
pub async fn remove_archive(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<(), StatementError> {
    sqlx::query!("delete from dalsegno.board_archives where campaign_id = $1", campaign_id)
        .execute(executor)
        .await
        .map(drop)
        .map_err(StatementError::to("remove the summary of an archive"))
}
