//! What a turn shows of the board.
//!
//! Each session gets every post that its agent may see once: in the turn that comes after it, or, where the session is new, with
//! the window that it begins with. Once means in its transcript. So these are not shown: an answer that the session holds as its
//! answer, a post that it held when it took a transcript over, and a post that is a task of this agent. That one is the task's
//! prompt, now or when its turn comes, and goes with the task if somebody cancels it before. One whose task has a session of its own
//! is a post for all others.
//!
//! Race: posts that are added meanwhile are behind `to_seq`, because places are in the order of commits.

use sqlx::PgConnection;
use uuid::Uuid;

use crate::domain::{
    Failed,
    posts::{Origin, Post, Viewer},
    sessions::Live,
};

/// Who looks, and how much of it.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    pub session: &'a Live,
    /// Whose turn it is.
    pub task_id: Uuid,
    pub viewer: Viewer<'a>,
    /// The most posts at once.
    pub window: i64,
    /// The most bytes of text that are read, of one post and of all.
    pub max_bytes: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unseen {
    /// The last place of the board: the session's cursor once the turn is committed.
    pub to_seq: i64,
    /// In order.
    pub posts: Vec<Post>,
    /// In order, with the reasons.
    pub not_shown: Vec<(i64, Unshown)>,
    /// Still older ones behind the cursor that nobody looked at; counted up to 1000.
    pub n_older: i64,
}

/// Why a post is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, sqlx::Type)]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum Unshown {
    /// Said in this conversation.
    Own,
    /// This or another task of the agent.
    Task,
    /// Held by the transcript that was taken over.
    Shown,
    /// Its text alone is too long.
    Long,
    /// Its text and those of the newer ones together are too long.
    Full,
}

/// Beyond it, nobody wants to know how many.
const MAX_COUNTED: i64 = 1000;

/// Of the posts that are looked at beyond the window.
const PAGE_MIN: i64 = 64;
const PAGE_MAX: i64 = 1024;

/// The newest posts that the session has not seen, at most as many as the window holds. Where some of those that were found are
/// not shown, older ones take their places, however many have to be passed over. A session that begins is also shown what its
/// predecessor has seen and it did not take over, but only among the newest.
pub async fn unseen(conn: &mut PgConnection, look: &Look<'_>) -> Result<Unseen, Failed> {
    let begins = look.session.context_tokens == 0;
    let after_seq = if begins { 0 } else { look.session.board_cursor };
    let whole = Stretch { after_seq, before_seq: i64::MAX, limit: look.window };
    let Page { mut unseen, mut goes_on } = page(&mut *conn, look, whole, look.max_bytes).await?;
    let mut limit = PAGE_MIN;
    while goes_on && unseen.room(look) > 0 {
        let older =
            Stretch { after_seq: look.session.board_cursor, before_seq: unseen.first_seq(), limit };
        let max_bytes = look.max_bytes.saturating_sub(unseen.bytes());
        let next = page(&mut *conn, look, older, max_bytes).await?;
        goes_on = next.goes_on;
        unseen.put_in_front(next.unseen, look);
        limit = (limit * 2).min(PAGE_MAX);
    }
    Ok(unseen)
}

impl Unseen {
    /// The oldest that was looked at.
    pub fn first_seq(&self) -> i64 {
        let posts = self.posts.first().map(|post| post.seq);
        let not_shown = self.not_shown.first().map(|(seq, _)| *seq);
        posts.into_iter().chain(not_shown).min().unwrap_or(0)
    }

    /// How many more the window holds.
    fn room(&self, look: &Look<'_>) -> i64 {
        look.window.saturating_sub(count(&self.posts))
    }

    fn bytes(&self) -> i64 {
        self.posts.iter().map(|post| i64::try_from(post.text.len()).unwrap_or(i64::MAX)).sum()
    }

    fn put_in_front(&mut self, mut older: Self, look: &Look<'_>) {
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

/// A part of the board: the newest so many between two places.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    after_seq: i64,
    before_seq: i64,
    limit: i64,
}

struct Page {
    unseen: Unseen,
    /// There may be older ones, and there is room for their texts.
    goes_on: bool,
}

async fn page(
    conn: &mut PgConnection,
    look: &Look<'_>,
    stretch: Stretch,
    max_bytes: i64,
) -> Result<Page, Failed> {
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
    .map_err(Failed::to("look for posts that a session has not seen"))?;
    let is_whole = count(&rows) < stretch.limit;
    let mut unseen = Unseen::default();
    for row in rows.into_iter().rev() {
        (unseen.to_seq, unseen.n_older) = (row.last_seq, row.n_older);
        let (Some(seq), Some(id), Some(sender), Some(origin), Some(audience), Some(posted_at)) =
            (row.seq, row.id, row.sender, row.origin, row.audience, row.posted_at)
        else {
            continue;
        };
        match (row.why, row.text) {
            (None, Some(text)) => unseen.posts.push(Post {
                id,
                seq,
                sender,
                origin,
                audience,
                reply_to: row.reply_to,
                posted_at,
                task_id: row.task_id,
                session_id: row.session_id,
                turn: row.turn,
                text,
            }),
            (why, _) => unseen.not_shown.push((seq, why.unwrap_or(Unshown::Full))),
        }
    }
    let is_full = unseen.not_shown.iter().any(|(_, why)| *why == Unshown::Full);
    Ok(Page { unseen, goes_on: !is_whole && !is_full })
}
