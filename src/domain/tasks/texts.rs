//! Full-text search in the prompts and results of tasks.

use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::{
    StatementError,
    text_query::{MAX_MATCHES, Span, TextQuery, TextRow},
};

/// Open tasks, and tasks of the backlog, whose texts a search reads: the newest.
const MAX_READ: i64 = 1_000;

/// Finds tasks that have ended and are in the index, the newest first.
pub async fn find_ended_texts(
    executor: impl PgExecutor<'_>,
    query: &TextQuery<'_>,
    span: &Span,
) -> Result<Vec<TextRow>, StatementError> {
    sqlx::query_as!(
        TextRow,
        r#"with near as materialized (
             select t.id, t.created_at from dalsegno.search_words as w join dalsegno.tasks as t on t.id = w.task_id
              where w.words @@ case when $2::text is null then dalsegno.text_query($1) else dalsegno.text_query($1) && $2::text::tsquery end
                and ($3::uuid is null or t.campaign_id = $3) and ($4::uuid[] is null or t.campaign_id = any ($4))
                and ($5::text is null or t.agent = $5) and ($6::text is null or t.instance = $6)
                and ($7::timestamptz is null or t.created_at >= $7) and (t.created_at, t.id) < ($8, $9)
              limit $10),
           newest as materialized (select id from near order by created_at desc, id desc limit $11)
           select t.id, t.campaign_id, t.created_at as at, t.session_id, null::bigint as seq,
                  case when t.instance = 'main' then t.agent else t.agent || '/' || t.instance end as "author!",
                  dalsegno.text_snippet(t.prompt || E'\n' || coalesce(t.result, ''), dalsegno.text_query($1)) as "snippet!"
             from newest as n join dalsegno.tasks as t on t.id = n.id
            order by t.created_at desc, t.id desc"#,
        query.words,
        span.weeks,
        query.campaign_id,
        query.within,
        query.agent,
        query.instance,
        query.since,
        span.before.at,
        span.before.id,
        MAX_MATCHES,
        query.limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("search the texts of tasks"))
}

/// Finds tasks that are not in the index, the newest first: open ones, and those that have ended shortly before. A task without `part` in
/// its texts is left out before its words are compared.
pub async fn find_fresh_texts(
    executor: impl PgExecutor<'_>,
    query: &TextQuery<'_>,
    part: &str,
) -> Result<Vec<TextRow>, StatementError> {
    sqlx::query_as!(
        TextRow,
        // By job: the index of open tasks has this order.
        r#"with ids as materialized (
             (select id from dalsegno.tasks
               where ended_at is null
                 and ($2::uuid is null or campaign_id = $2) and ($3::uuid[] is null or campaign_id = any ($3))
               order by job_id desc limit $9)
             union
             (select task_id from dalsegno.search_backlog order by task_id desc limit $9)),
           fresh as materialized (
             select t.id, t.campaign_id, t.created_at, t.session_id, t.agent, t.instance, t.prompt, t.result,
                    t.prompt || coalesce(E'\n' || t.result, '') as text
               from ids join dalsegno.tasks as t on t.id = ids.id
              where ($2::uuid is null or t.campaign_id = $2) and ($3::uuid[] is null or t.campaign_id = any ($3))
                and ($4::text is null or t.agent = $4) and ($5::text is null or t.instance = $5)
                and ($6::timestamptz is null or t.created_at >= $6) and (t.created_at, t.id) < ($7, $8))
           select f.id, f.campaign_id, f.created_at as at, f.session_id, null::bigint as seq,
                  case when f.instance = 'main' then f.agent else f.agent || '/' || f.instance end as "author!",
                  dalsegno.text_snippet(f.text, dalsegno.text_query($1)) as "snippet!"
             from fresh as f
            where strpos(lower(f.text), lower($10)) > 0
              and dalsegno.task_words(f.prompt, f.result, f.created_at) @@ dalsegno.text_query($1)
            order by f.created_at desc, f.id desc limit $11"#,
        query.words,
        query.campaign_id,
        query.within,
        query.agent,
        query.instance,
        query.since,
        query.before.at,
        query.before.id,
        MAX_READ,
        part,
        query.limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("search the texts of the newest tasks"))
}

/// Computes the words of up to `limit` ended tasks for the search. Returns the number of tasks that were taken from the backlog.
pub async fn index_words(executor: impl PgExecutor<'_>, limit: i64) -> Result<i64, StatementError> {
    sqlx::query_file_scalar!("src/domain/tasks/index_words.sql", limit)
        .fetch_one(executor)
        .await
        .map_err(StatementError::to("compute the words of ended tasks"))
}

/// Lets the words of a campaign's ended tasks be computed, which were written with their end.
pub async fn await_index(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<(), StatementError> {
    sqlx::query!(
        "insert into dalsegno.search_backlog (task_id)
         select id from dalsegno.tasks where campaign_id = $1 and ended_at is not null on conflict do nothing",
        campaign_id,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("let the words of a campaign be computed"))
}

/// Returns true if the words of some ended tasks are not computed yet.
pub async fn has_search_backlog(executor: impl PgExecutor<'_>) -> Result<bool, StatementError> {
    sqlx::query_scalar!(r#"select exists (select from dalsegno.search_backlog) as "exists!""#)
        .fetch_one(executor)
        .await
        .map_err(StatementError::to("look for ended tasks without words"))
}
