//! Posts that a reader of the board does not see.

use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::StatementError;

/// A post that an agent does not see, because it is addressed to others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HiddenPost {
    pub seq: i64,
    pub sender: String,
    pub audience: Vec<String>,
}

/// Lists the newest posts after one place, up to another, that a reader does not see. The oldest comes first.
pub async fn list_hidden(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    reader: &str,
    (after, up_to): (i64, i64),
    limit: i64,
) -> Result<Vec<HiddenPost>, StatementError> {
    sqlx::query_as!(
        HiddenPost,
        r#"with newest as (
             select p.seq, p.sender, p.audience from dalsegno.posts as p
              where p.campaign_id = $1 and p.seq > $3 and p.seq <= $4
                and not exists (select from dalsegno.post_viewers as v
                                 where v.campaign_id = $1 and v.seq = p.seq and v.viewer in ($2, 'all'))
              order by p.seq desc limit $5)
           select seq, sender, audience from newest order by seq"#,
        campaign_id,
        reader,
        after,
        up_to,
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the posts that an agent does not see"))
}
