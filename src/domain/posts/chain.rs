//! The chain of posts that led to a post, and repeated texts.

use chrono::{DateTime, Utc};
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::StatementError;

/// A query for the answers behind a post, back to a person's post.
#[derive(Debug, Clone, Copy)]
pub struct AnswerChainQuery {
    pub campaign_id: Uuid,
    pub post_id: Uuid,
    /// Maximum number of posts to follow.
    pub max_depth: i64,
}

/// A text whose repetitions are counted.
#[derive(Debug, Clone, Copy)]
pub struct RepeatedText<'a> {
    pub campaign_id: Uuid,
    pub sender: &'a str,
    pub text: &'a str,
    pub since: DateTime<Utc>,
}

/// Returns the sender of a post. `None`: the post does not exist any more.
pub async fn sender_of(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    post_id: Uuid,
) -> Result<Option<String>, StatementError> {
    sqlx::query_scalar!(
        "select sender from dalsegno.posts where campaign_id = $1 and id = $2",
        campaign_id,
        post_id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("find the author of a post"))
}

/// The chain behind a post: answers of agents, each to the one before, back to the post that began it.
#[derive(Debug, Clone, Copy)]
pub struct AnswerChain {
    pub n_answers: i64,
    /// The person's post that began the chain. If it is deeper than `max_depth`, the furthest post that was read.
    pub first: Uuid,
}

pub async fn load_ancestry(
    executor: impl PgExecutor<'_>,
    past: AnswerChainQuery,
) -> Result<AnswerChain, StatementError> {
    let found = sqlx::query!(
        r#"with recursive past as (
             select p.id, p.reply_to, p.origin, 1::bigint as n from dalsegno.posts as p where p.campaign_id = $1 and p.id = $2
             union all
             select p.id, p.reply_to, p.origin, past.n + 1
               from past join dalsegno.posts as p on p.campaign_id = $1 and p.id = past.reply_to
              where past.origin = 'agent' and past.n <= $3
           )
           select count(*) filter (where origin = 'agent') as "n_answers!", (array_agg(id order by n desc))[1] as first from past"#,
        past.campaign_id,
        past.post_id,
        past.max_depth,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("find the origin of a post"))?;
    Ok(AnswerChain { n_answers: found.n_answers, first: found.first.unwrap_or(past.post_id) })
}

/// Counts the posts in which the sender used exactly this text since then.
pub async fn count_repetitions(
    executor: impl PgExecutor<'_>,
    repeated: RepeatedText<'_>,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        r#"select count(*) as "n!" from dalsegno.posts
            where campaign_id = $1 and sender = $2 and origin = 'agent' and posted_at > $3 and text = $4"#,
        repeated.campaign_id,
        repeated.sender,
        repeated.since,
        repeated.text,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("find identical posts"))
}
