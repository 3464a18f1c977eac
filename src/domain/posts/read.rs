//! Looking at the board.

use sqlx::PgExecutor;
use uuid::Uuid;

use super::{Origin, Post, Viewer};
use crate::domain::Failed;

/// What is counted of posts that a window leaves out: beyond it, nobody wants to know how many.
const MAX_COUNTED: i64 = 1000;

/// The newest posts behind a place, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Window {
    pub posts: Vec<Post>,
    /// Older ones behind that place for which there was no room; counted up to 1000.
    pub left_out: i64,
}

/// Which way a list of posts goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Along {
    /// Behind this place, the oldest first.
    After(i64),
    /// In front of this place, the newest first.
    Before(i64),
}

/// The newest `limit` posts behind `after_seq` that the viewer may see.
pub async fn window(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    viewer: Viewer<'_>,
    after_seq: i64,
    limit: i64,
) -> Result<Window, Failed> {
    let rows = sqlx::query!(
        r#"with seen as materialized (
             select seq from dalsegno.visible_posts($1, $2, $3, 9223372036854775807, $4) as seq
           ), left_out as materialized (
             select count(*) as n from dalsegno.visible_posts($1, $2, $3, coalesce((select min(seq) from seen), 0), $5) as seq
           )
           select p.id, p.seq, p.sender, p.origin as "origin: Origin", p.audience, p.reply_to, p.posted_at, p.task_id, p.session_id,
                  p.turn, p.text, l.n as "left_out!"
             from left_out as l, seen as s join dalsegno.posts as p on p.campaign_id = $1 and p.seq = s.seq
            order by s.seq"#,
        campaign_id,
        viewer.column(),
        after_seq,
        limit,
        MAX_COUNTED,
    )
    .fetch_all(executor)
    .await
    .map_err(Failed::to("read the board of a campaign"))?;
    let left_out = rows.first().map_or(0, |row| row.left_out);
    let posts = rows.into_iter().map(|row| Post {
        id: row.id,
        seq: row.seq,
        sender: row.sender,
        origin: row.origin,
        audience: row.audience,
        reply_to: row.reply_to,
        posted_at: row.posted_at,
        task_id: row.task_id,
        session_id: row.session_id,
        turn: row.turn,
        text: row.text,
    });
    Ok(Window { posts: posts.collect(), left_out })
}

/// A page of the board for people and other systems.
pub async fn along(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    viewer: Viewer<'_>,
    along: Along,
    limit: i64,
) -> Result<Vec<Post>, Failed> {
    let (after, before) = match along {
        Along::After(seq) => (Some(seq), None),
        Along::Before(seq) => (None, Some(seq)),
    };
    sqlx::query_as!(
        Post,
        r#"with seen as materialized (
             select seq from dalsegno.visible_posts_from($1, $2, $3, $5) as seq where $3::bigint is not null
             union all
             select seq from dalsegno.visible_posts($1, $2, 0, $4, $5) as seq where $4::bigint is not null)
           select p.id, p.seq, p.sender, p.origin as "origin: Origin", p.audience, p.reply_to, p.posted_at, p.task_id, p.session_id,
                  p.turn, p.text
             from seen as s join dalsegno.posts as p on p.campaign_id = $1 and p.seq = s.seq
            order by case when $4::bigint is null then s.seq else -s.seq end"#,
        campaign_id,
        viewer.column(),
        after,
        before,
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(Failed::to("list the posts of a campaign"))
}

/// The last place of a campaign's board; 0 while nobody has posted.
pub async fn last_seq(executor: impl PgExecutor<'_>, campaign_id: Uuid) -> Result<i64, Failed> {
    sqlx::query_scalar!("select last_seq from dalsegno.boards where campaign_id = $1", campaign_id)
        .fetch_optional(executor)
        .await
        .map(Option::unwrap_or_default)
        .map_err(Failed::to("look at the board of a campaign"))
}
