//! Full-text search in the blackboards of all campaigns.

use sqlx::PgExecutor;

use crate::domain::{
    StatementError,
    text_query::{MAX_MATCHES, Span, TextQuery, TextRow},
};

/// Finds current blackboards, the newest first. Of an agent: those whose latest change it made.
pub async fn find_texts(
    executor: impl PgExecutor<'_>,
    query: &TextQuery<'_>,
    span: &Span,
) -> Result<Vec<TextRow>, StatementError> {
    sqlx::query_as!(
        TextRow,
        r#"with near as materialized (
             select b.campaign_id, b.changed_at, c.actor
               from dalsegno.blackboards as b
               left join dalsegno.blackboard_changes as c on c.campaign_id = b.campaign_id and c.version = b.version
              where dalsegno.text_words(b.document::text, b.changed_at)
                    @@ case when $2::text is null then dalsegno.text_query($1) else dalsegno.text_query($1) && $2::text::tsquery end
                and ($3::uuid is null or b.campaign_id = $3) and ($4::uuid[] is null or b.campaign_id = any ($4))
                and ($5::text is null or c.agent is not null and split_part(c.actor, '/', 1) = $5)
                and ($6::text is null or c.actor = case when $6 = 'main' then $5 else $5 || '/' || $6 end)
                and ($7::timestamptz is null or b.changed_at >= $7) and (b.changed_at, b.campaign_id) < ($8, $9)
              limit $10),
           newest as materialized (select campaign_id, actor from near order by changed_at desc, campaign_id desc limit $11)
           select b.campaign_id as id, b.campaign_id as "campaign_id?", b.changed_at as at, null::uuid as session_id, b.version as "seq?",
                  coalesce(n.actor, '') as "author!", dalsegno.text_snippet(b.document::text, dalsegno.text_query($1)) as "snippet!"
             from newest as n join dalsegno.blackboards as b on b.campaign_id = n.campaign_id
            order by b.changed_at desc, b.campaign_id desc"#,
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
    .map_err(StatementError::to("search the texts of blackboards"))
}
