//! Full-text search in the prompts and results of tasks.

use sqlx::PgExecutor;

use crate::domain::{
    StatementError,
    text_query::{MAX_MATCHES, Span, TextQuery, TextRow},
};

/// Open tasks whose prompts a search reads: the newest. They are not in the index.
const MAX_OPEN: i64 = 1_000;

/// Finds tasks that have ended, the newest first.
pub async fn find_ended_texts(
    executor: impl PgExecutor<'_>,
    query: &TextQuery<'_>,
    span: &Span,
) -> Result<Vec<TextRow>, StatementError> {
    sqlx::query_as!(
        TextRow,
        r#"with near as materialized (
             select id, created_at from dalsegno.tasks
              where ended_at is not null
                and dalsegno.task_words(prompt, result, created_at)
                    @@ case when $2::text is null then dalsegno.text_query($1) else dalsegno.text_query($1) && $2::text::tsquery end
                and ($3::uuid is null or campaign_id = $3) and ($4::uuid[] is null or campaign_id = any ($4))
                and ($5::text is null or agent = $5) and ($6::text is null or instance = $6)
                and ($7::timestamptz is null or created_at >= $7) and (created_at, id) < ($8, $9)
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

/// Finds tasks that have not ended, the newest first. A task without `part` in its prompt is left out before its words are compared.
pub async fn find_open_texts(
    executor: impl PgExecutor<'_>,
    query: &TextQuery<'_>,
    part: &str,
) -> Result<Vec<TextRow>, StatementError> {
    sqlx::query_as!(
        TextRow,
        r#"with open as materialized (
             select id, campaign_id, created_at, session_id, agent, instance, prompt from dalsegno.tasks
              where ended_at is null
                and ($2::uuid is null or campaign_id = $2) and ($3::uuid[] is null or campaign_id = any ($3))
                and ($4::text is null or agent = $4) and ($5::text is null or instance = $5)
                and ($6::timestamptz is null or created_at >= $6) and (created_at, id) < ($7, $8)
              order by id desc limit $9)
           select o.id, o.campaign_id, o.created_at as at, o.session_id, null::bigint as seq,
                  case when o.instance = 'main' then o.agent else o.agent || '/' || o.instance end as "author!",
                  dalsegno.text_snippet(o.prompt, dalsegno.text_query($1)) as "snippet!"
             from open as o
            where strpos(lower(o.prompt), lower($10)) > 0
              and dalsegno.task_words(o.prompt, null, o.created_at) @@ dalsegno.text_query($1)
            order by o.created_at desc, o.id desc limit $11"#,
        query.words,
        query.campaign_id,
        query.within,
        query.agent,
        query.instance,
        query.since,
        query.before.at,
        query.before.id,
        MAX_OPEN,
        part,
        query.limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("search the prompts of open tasks"))
}
