//! Full-text search in posts.

use sqlx::PgExecutor;

use crate::domain::{
    StatementError,
    text_query::{MAX_MATCHES, Span, TextQuery, TextRow},
};

/// Finds posts, the newest first.
pub async fn find_texts(
    executor: impl PgExecutor<'_>,
    query: &TextQuery<'_>,
    span: &Span,
) -> Result<Vec<TextRow>, StatementError> {
    sqlx::query_as!(
        TextRow,
        r#"with near as materialized (
             select campaign_id, seq, id, posted_at from dalsegno.posts
              where dalsegno.text_words(text, posted_at)
                    @@ case when $2::text is null then dalsegno.text_query($1) else dalsegno.text_query($1) && $2::text::tsquery end
                and ($3::uuid is null or campaign_id = $3) and ($4::uuid[] is null or campaign_id = any ($4))
                and ($5::text is null or split_part(sender, '/', 1) = $5)
                and ($6::text is null or sender = case when $6 = 'main' then $5 else $5 || '/' || $6 end)
                and ($7::timestamptz is null or posted_at >= $7) and (posted_at, id) < ($8, $9)
              limit $10),
           newest as materialized (select campaign_id, seq from near order by posted_at desc, id desc limit $11)
           select p.id, p.campaign_id, p.posted_at as at, null::uuid as session_id, p.seq as "seq?", p.sender as author,
                  dalsegno.text_snippet(p.text, dalsegno.text_query($1)) as "snippet!"
             from newest as n join dalsegno.posts as p on p.campaign_id = n.campaign_id and p.seq = n.seq
            order by p.posted_at desc, p.id desc"#,
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
    .map_err(StatementError::to("search the texts of posts"))
}
