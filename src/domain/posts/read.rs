//! Reading the board.

use sqlx::PgExecutor;
use uuid::Uuid;

use super::{Origin, Post, Trust, Viewer};
use crate::domain::{
    StatementError,
    ids::{self, PartialId},
};

/// The direction of a list of posts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListDirection {
    /// Posts after this place, the oldest first.
    After(i64),
    /// Posts before this place, the newest first.
    Before(i64),
}

/// Lists a page of the board, for people and other systems.
pub async fn list_page(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    viewer: Viewer<'_>,
    along: ListDirection,
    limit: i64,
) -> Result<Vec<Post>, StatementError> {
    let (after, before) = match along {
        ListDirection::After(seq) => (Some(seq), None),
        ListDirection::Before(seq) => (None, Some(seq)),
    };
    sqlx::query_as!(
        Post,
        r#"with seen as materialized (
             select seq from dalsegno.visible_posts_from($1, $2, $3, $5) as seq where $3::bigint is not null
             union all
             select seq from dalsegno.visible_posts($1, $2, 0, $4, $5) as seq where $4::bigint is not null)
           select p.id, p.seq, p.sender, p.origin as "origin: Origin",
                  dalsegno.trust_of_post(p.origin, p.author) as "trust!: Trust", p.author, p.audience, p.reply_to, p.posted_at, p.task_id, p.session_id,
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
    .map_err(StatementError::to("list the posts of a campaign"))
}

/// Lists posts before a place, the newest first, up to a size. Stops after the post that reaches `max_bytes`.
pub async fn list_before(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    viewer: Viewer<'_>,
    before: i64,
    (limit, max_bytes): (i64, i64),
) -> Result<Vec<Post>, StatementError> {
    sqlx::query_as!(
        Post,
        r#"with seen as materialized (
             select seq from dalsegno.visible_posts($1, $2, 0, $3, $4) as seq),
           sized as (
             select s.seq, sum(octet_length(p.text)) over (order by s.seq desc) - octet_length(p.text) as bytes_before
               from seen as s join dalsegno.posts as p on p.campaign_id = $1 and p.seq = s.seq)
           select p.id, p.seq, p.sender, p.origin as "origin: Origin",
                  dalsegno.trust_of_post(p.origin, p.author) as "trust!: Trust", p.author, p.audience, p.reply_to, p.posted_at, p.task_id, p.session_id,
                  p.turn, p.text
             from sized as s join dalsegno.posts as p on p.campaign_id = $1 and p.seq = s.seq
            where s.bytes_before < $5
            order by s.seq desc"#,
        campaign_id,
        viewer.column(),
        before,
        limit,
        max_bytes,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list some posts of a campaign"))
}

/// Resolves the id of a post that a person has given.
pub async fn find(
    executor: impl PgExecutor<'_>,
    given: &PartialId,
    within: Option<&[Uuid]>,
) -> Result<Uuid, ids::NotFound> {
    ids::find_id!(
        executor,
        given,
        within,
        ("post", "board history"),
        "dalsegno.posts",
        "campaign_id",
        "t.sender || ': ' || left(t.text, 60)"
    )
}
