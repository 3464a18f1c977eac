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
    /// The most bytes of text that are read.
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
    /// Still older ones behind the cursor; counted up to 1000.
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
    /// Its text, or those of the newer ones together, are too long.
    Long,
}

/// Beyond it, nobody wants to know how many.
const MAX_COUNTED: i64 = 1000;

/// The newest posts that the session has not seen, at most as many as the window holds. Where some of those that were found are
/// not shown, older ones take their places.
pub async fn unseen(conn: &mut PgConnection, look: &Look<'_>) -> Result<Unseen, Failed> {
    let mut unseen = page(&mut *conn, look, i64::MAX, look.window).await?;
    // A new session begins with the newest, whether or not it holds some of them already.
    while look.session.context_tokens > 0 && unseen.n_older > 0 {
        let n_shown = i64::try_from(unseen.posts.len()).unwrap_or(i64::MAX);
        let is_full = unseen.not_shown.iter().any(|(_, why)| *why == Unshown::Long);
        if n_shown >= look.window || is_full {
            break;
        }
        let first = unseen.first_seq();
        let older = page(&mut *conn, look, first, look.window - n_shown).await?;
        unseen.n_older = older.n_older;
        unseen.posts.splice(0..0, older.posts);
        unseen.not_shown.splice(0..0, older.not_shown);
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
}

async fn page(
    conn: &mut PgConnection,
    look: &Look<'_>,
    before_seq: i64,
    limit: i64,
) -> Result<Unseen, Failed> {
    let session = look.session;
    let is_new = session.context_tokens == 0;
    let after_seq = if is_new { 0 } else { session.board_cursor };
    let rows = sqlx::query_file!(
        "src/domain/turns/unseen.sql",
        session.campaign_id,
        look.viewer.column(),
        session.id,
        session.agent,
        session.instance,
        after_seq,
        before_seq,
        limit,
        is_new,
        look.max_bytes,
        MAX_COUNTED,
        look.task_id,
    )
    .fetch_all(conn)
    .await
    .map_err(Failed::to("look for posts that a session has not seen"))?;
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
            (why, _) => unseen.not_shown.push((seq, why.unwrap_or(Unshown::Long))),
        }
    }
    Ok(unseen)
}
