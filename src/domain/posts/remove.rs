//! The end of posts.

use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::Failed;

/// Removes the newest posts of a campaign, and says how many. The newest first, because answers refer to what is older; places are
/// not given out again. The transaction has to have announced it; see the trigger of the table.
pub async fn remove_some(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    limit: i64,
) -> Result<i64, Failed> {
    sqlx::query_scalar!(
        r#"with newest as (
             select seq, id, unnest(audience || sender || 'all'::text) as viewer from
               (select * from dalsegno.posts where campaign_id = $1 order by seq desc limit $2) as p
           ), unseen as (
             delete from dalsegno.post_viewers as v using newest as n where v.campaign_id = $1 and v.viewer = n.viewer and v.seq = n.seq
           ), unkeyed as (
             delete from dalsegno.post_keys as k using newest as n where k.campaign_id = $1 and k.post_id = n.id
           ), gone as (
             delete from dalsegno.posts where campaign_id = $1 and seq in (select seq from newest) returning 1)
           select count(*) as "n!" from gone"#,
        campaign_id,
        limit,
    )
    .fetch_one(executor)
    .await
    .map_err(Failed::to("remove the posts of a campaign"))
}
