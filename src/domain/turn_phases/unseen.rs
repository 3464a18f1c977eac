//! The posts that a turn shows of the board.
//!
//! Each session gets every post that its agent may see exactly once: in the next turn, or, for a new session, with its first window. A
//! post counts as shown once it is in the session's transcript. These posts are therefore left out:
//! - an answer that the session itself gave,
//! - a post in the part of the transcript that the session inherited,
//! - a post that led to a task of this agent. It is the prompt of that task, now or later, and is lost if the task is cancelled before.
//!   If the task has an ephemeral session, the post is shown in all other sessions.
//!
//! Race: posts that are added meanwhile come after `to_seq`, because places are in the order of commits.

use sqlx::PgConnection;
use uuid::Uuid;

use crate::domain::{
    StatementError,
    posts::{Origin, Post, Trust, Viewer},
    sessions::SessionRow,
};

/// A query for unseen posts.
#[derive(Debug, Clone, Copy)]
pub struct UnseenQuery<'a> {
    pub session: &'a SessionRow,
    /// The task of the turn.
    pub task_id: Uuid,
    pub viewer: Viewer<'a>,
    /// Maximum number of posts.
    pub window: i64,
    /// Maximum size of the texts in bytes, of one post and of all together.
    pub max_bytes: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnseenPosts {
    /// The last place of the board: the session's cursor once the turn is committed.
    pub to_seq: i64,
    /// The posts, in order.
    pub posts: Vec<Post>,
    /// Places of posts that are left out, in order, with the reasons.
    pub not_shown: Vec<(i64, OmissionReason)>,
    /// Number of still older posts that were not read, counted up to 1000. Without archived ones.
    pub n_older: i64,
    /// The last place of the board's archive.
    pub archived_seq: i64,
}

/// The reason why a post is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, sqlx::Type)]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum OmissionReason {
    /// An answer of this conversation.
    Own,
    /// The prompt of this or another task of the agent.
    Task,
    /// Already in the inherited part of the transcript.
    Shown,
    /// Its text alone is too long.
    Long,
    /// Its text and those of the newer posts together are too long.
    Full,
}

/// Limit of the count of older posts.
const MAX_COUNTED: i64 = 1000;

/// Page sizes of reads beyond the window.
const PAGE_MIN: i64 = 64;
const PAGE_MAX: i64 = 1024;

/// Finds the newest posts that the session has not seen, at most as many as the window holds. If some are left out, older ones take their
/// places, however many have to be skipped. A new session also gets posts that its predecessor has seen and that it did not inherit, but
/// only among the newest.
pub async fn find_unseen_posts(
    conn: &mut PgConnection,
    look: &UnseenQuery<'_>,
) -> Result<UnseenPosts, StatementError> {
    let begins = look.session.context_tokens == 0;
    let after_seq = if begins { 0 } else { look.session.board_cursor };
    let whole = BoardRange { after_seq, before_seq: i64::MAX, limit: look.window };
    let Page { mut unseen, mut goes_on } = page(&mut *conn, look, whole, look.max_bytes).await?;
    let mut limit = PAGE_MIN;
    while goes_on && unseen.room(look) > 0 {
        let older = BoardRange {
            after_seq: look.session.board_cursor,
            before_seq: unseen.first_seq(),
            limit,
        };
        let max_bytes = look.max_bytes.saturating_sub(unseen.bytes());
        let next = page(&mut *conn, look, older, max_bytes).await?;
        goes_on = next.goes_on;
        unseen.put_in_front(next.unseen, look);
        limit = (limit * 2).min(PAGE_MAX);
    }
    Ok(unseen)
}

impl UnseenPosts {
    /// Returns the place of the oldest post that was read.
    pub fn first_seq(&self) -> i64 {
        let posts = self.posts.first().map(|post| post.seq);
        let not_shown = self.not_shown.first().map(|(seq, _)| *seq);
        posts.into_iter().chain(not_shown).min().unwrap_or(0)
    }

    /// Returns how many more posts the window holds.
    fn room(&self, look: &UnseenQuery<'_>) -> i64 {
        look.window.saturating_sub(count(&self.posts))
    }

    fn bytes(&self) -> i64 {
        self.posts.iter().map(|post| i64::try_from(post.text.len()).unwrap_or(i64::MAX)).sum()
    }

    fn put_in_front(&mut self, mut older: Self, look: &UnseenQuery<'_>) {
        let too_many = usize::try_from(count(&older.posts) - self.room(look)).unwrap_or(0);
        if let Some(oldest) = older.posts.get(too_many).filter(|_| too_many > 0) {
            let (first_seq, n_found) = (oldest.seq, count(&older.posts) + count(&older.not_shown));
            older.posts.drain(..too_many);
            older.not_shown.retain(|(seq, _)| *seq > first_seq);
            let n_left = count(&older.posts) + count(&older.not_shown);
            older.n_older = (older.n_older + n_found - n_left).min(MAX_COUNTED);
        }
        self.n_older = older.n_older;
        self.posts.splice(0..0, older.posts);
        self.not_shown.splice(0..0, older.not_shown);
    }
}

fn count<T>(found: &[T]) -> i64 {
    i64::try_from(found.len()).unwrap_or(i64::MAX)
}

/// A part of the board: the newest `limit` posts between two places.
#[derive(Debug, Clone, Copy)]
struct BoardRange {
    after_seq: i64,
    before_seq: i64,
    limit: i64,
}

struct Page {
    unseen: UnseenPosts,
    /// True if there may be older posts, and space for their texts.
    goes_on: bool,
}

async fn page(
    conn: &mut PgConnection,
    look: &UnseenQuery<'_>,
    stretch: BoardRange,
    max_bytes: i64,
) -> Result<Page, StatementError> {
    let session = look.session;
    let rows = sqlx::query_file!(
        "src/domain/turn_phases/unseen.sql",
        session.campaign_id,
        look.viewer.column(),
        session.id,
        session.agent,
        session.instance,
        stretch.after_seq,
        stretch.before_seq,
        stretch.limit,
        session.context_tokens == 0,
        look.max_bytes,
        MAX_COUNTED,
        look.task_id,
        max_bytes,
        session.board_cursor,
    )
    .fetch_all(conn)
    .await
    .map_err(StatementError::to("list unseen posts of a session"))?;
    let is_whole = count(&rows) < stretch.limit;
    let mut unseen = UnseenPosts::default();
    for row in rows.into_iter().rev() {
        (unseen.to_seq, unseen.n_older) = (row.last_seq, row.n_older);
        unseen.archived_seq = row.archived_seq;
        let (
            Some(seq),
            Some(id),
            Some(sender),
            Some(origin),
            Some(trust),
            Some(audience),
            Some(posted_at),
        ) = (row.seq, row.id, row.sender, row.origin, row.trust, row.audience, row.posted_at)
        else {
            continue;
        };
        match (row.why, row.text) {
            (None, Some(text)) => unseen.posts.push(Post {
                id,
                seq,
                sender,
                origin,
                trust,
                author: row.author,
                audience,
                reply_to: row.reply_to,
                posted_at,
                task_id: row.task_id,
                session_id: row.session_id,
                turn: row.turn,
                text,
            }),
            (why, _) => unseen.not_shown.push((seq, why.unwrap_or(OmissionReason::Full))),
        }
    }
    let is_full = unseen.not_shown.iter().any(|(_, why)| *why == OmissionReason::Full);
    Ok(Page { unseen, goes_on: !is_whole && !is_full })
}
