//! Sessions whose turns tell about the next turn of a conversation.

use serde_json::Value;
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::StatementError;

/// A session of the same agent on the same model.
#[derive(Debug, Clone, PartialEq)]
pub struct AlikeSession {
    pub id: Uuid,
    pub is_of_conversation: bool,
    pub calibration: Option<Value>,
}

/// A conversation on a model.
#[derive(Debug, Clone, Copy)]
pub struct AlikeQuery<'a> {
    pub campaign_id: Uuid,
    pub agent: &'a str,
    pub instance: &'a str,
    pub provider: &'a str,
    pub model: &'a str,
}

/// Lists the newest sessions of the conversation, then those of its agent elsewhere. Looks for the latter among the newest sessions only, so
/// that the query is as fast for an agent without any.
pub async fn alike(
    executor: impl PgExecutor<'_>,
    query: &AlikeQuery<'_>,
) -> Result<Vec<AlikeSession>, StatementError> {
    sqlx::query_as!(
        AlikeSession,
        r#"(select id as "id!", true as "is_of_conversation!", calibration from dalsegno.sessions
             where campaign_id = $1 and agent_type = $2 and instance = $3 and provider = $4 and model = $5 order by id desc limit 8)
           union all
           (select s.id, false, s.calibration
              from (select id, campaign_id, agent_type, instance, provider, model, calibration
                      from dalsegno.sessions order by id desc limit 500) as s
             where s.agent_type = $2 and s.provider = $4 and s.model = $5 and (s.campaign_id <> $1 or s.instance <> $3)
             order by s.id desc limit 16)"#,
        query.campaign_id,
        query.agent,
        query.instance,
        query.provider,
        query.model,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list sessions of the agent on its model"))
}

/// Returns the calibration of the session on this model that was opened last.
pub async fn newest_calibration(
    executor: impl PgExecutor<'_>,
    provider: &str,
    model: &str,
) -> Result<Option<Value>, StatementError> {
    sqlx::query_scalar!(
        r#"select s.calibration as "calibration!"
             from (select id, provider, model, calibration from dalsegno.sessions order by id desc limit 500) as s
            where s.provider = $1 and s.model = $2 and s.calibration is not null order by s.id desc limit 1"#,
        provider,
        model,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("find a calibration of the model"))
}
