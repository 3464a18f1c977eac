//! Sessions as the API shows them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Error, Reason, State};
use crate::domain::{
    Page, StatementError,
    ids::{self, PartialId},
};

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Session {
    pub id: Uuid,
    pub campaign_id: Uuid,
    pub agent: String,
    pub instance: String,
    pub provider: String,
    pub model: String,
    pub external_session_id: Option<String>,
    /// SHA-256 of the prompt of the agent's file, for the lead together with the roster. Another one opens another session.
    #[serde(default)]
    pub prompt_hash: String,
    pub state: State,
    pub ephemeral: bool,
    pub opened_because: Reason,
    pub rebuild_because: Option<Reason>,
    pub closed_because: Option<Reason>,
    /// The session that this one continues. Null also if that one was removed.
    pub predecessor_id: Option<Uuid>,
    pub successor_id: Option<Uuid>,
    /// The session of which this one is a fork: it began with the messages up to `forked_at_turn`. That session may be gone.
    pub forked_from_session: Option<Uuid>,
    pub forked_at_turn: Option<i32>,
    pub turns: i32,
    pub token_count: i64,
    /// Cost of all calls of the session, also for summaries, facts and reruns, as the ledger records it. In millionths of the currency.
    #[serde(default)]
    pub cost_micros: i64,
    pub context_tokens: i64,
    pub generation: i32,
    /// Turns whose messages are not sent again. The provider has rejected their prompt, or a later prompt before it had answered
    /// anything.
    pub rejected_turns: Vec<i32>,
    pub created_at: DateTime<Utc>,
    pub used_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    pub closed_at: Option<DateTime<Utc>>,
}

/// A filter for lists of sessions. Unset fields match everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter<'a> {
    pub campaign_id: Option<Uuid>,
    pub agent: Option<&'a str>,
    pub instance: Option<&'a str>,
    pub open_only: bool,
    /// Only those that began at this moment or later.
    pub created_after: Option<DateTime<Utc>>,
    /// Limits the list to these campaigns.
    pub within: Option<&'a [Uuid]>,
}

/// Resolves the id of a session that a person has given.
pub async fn find(
    executor: impl PgExecutor<'_>,
    given: &PartialId,
    within: Option<&[Uuid]>,
) -> Result<Uuid, ids::NotFound> {
    ids::find_id!(
        executor,
        given,
        within,
        ("session", "session ls"),
        "dalsegno.sessions",
        "campaign_id",
        "t.agent_type || '/' || t.instance || ', ' || t.state"
    )
}

/// Selects sessions as the API shows them; `$rest` follows the table's name. Removed predecessors and successors become null.
macro_rules! sessions {
    ($rest:literal, $($argument:expr),+ $(,)?) => {
        sqlx::query_as!(
            Session,
            r#"select id, campaign_id, agent_type as agent, instance, provider, model, external_session_id, prompt_hash, state as "state: State",
                      ephemeral, opened_because as "opened_because: Reason", rebuild_because as "rebuild_because: Reason",
                      closed_because as "closed_because: Reason",
                      (select b.id from dalsegno.sessions as b where b.id = s.predecessor_id) as predecessor_id,
                      (select a.id from dalsegno.sessions as a where a.id = s.successor_id) as successor_id, forked_from_session, forked_at_turn,
                      turn_count as turns, token_count, context_tokens, generation, rejected_turns, created_at, used_at, expires_at, closed_at,
                      dalsegno.session_cost(s.campaign_id, s.id) as "cost_micros!"
                 from dalsegno.sessions as s "# + $rest,
            $($argument),+
        )
    };
}

/// Lists sessions, the newest first.
pub async fn list(
    executor: impl PgExecutor<'_>,
    filter: Filter<'_>,
    page: Page,
) -> Result<Vec<Session>, StatementError> {
    sessions!(
        "where ($1::uuid is null or campaign_id = $1) and ($2::text is null or agent_type = $2)
            and (not $3 or closed_at is null)
            and id < coalesce($4, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
            and ($6::uuid[] is null or campaign_id = any($6)) and ($7::text is null or instance = $7)
            and id >= $8 and ($9::timestamptz is null or created_at >= $9)
          order by id desc limit $5",
        filter.campaign_id,
        filter.agent,
        filter.open_only,
        page.after,
        page.limit,
        filter.within,
        filter.instance,
        filter.created_after.map_or(Uuid::nil(), ids::least_at),
        filter.created_after,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the sessions"))
}

pub async fn get(executor: impl PgExecutor<'_>, id: Uuid) -> Result<Session, Error> {
    sessions!("where id = $1", id,)
        .fetch_optional(executor)
        .await
        .map_err(StatementError::to("read a session"))?
        .ok_or(Error::Unknown(id))
}

/// Reads a session and the credential that it runs on.
pub async fn with_credential(
    conn: &mut PgConnection,
    id: Uuid,
) -> Result<(Session, Option<String>), Error> {
    let session = get(&mut *conn, id).await?;
    let credential =
        sqlx::query_scalar!("select credential from dalsegno.sessions where id = $1", id)
            .fetch_optional(conn)
            .await
            .map_err(StatementError::to("read the credential of a session"))?;
    Ok((session, credential.flatten()))
}

/// Returns the hash of the prompt that a session was made with. `None`: the session was removed.
pub async fn prompt_hash(
    executor: impl PgExecutor<'_>,
    id: Uuid,
) -> Result<Option<String>, StatementError> {
    sqlx::query_scalar!("select prompt_hash from dalsegno.sessions where id = $1", id)
        .fetch_optional(executor)
        .await
        .map_err(StatementError::to("read the prompt of a session"))
}

/// Returns the open session of a conversation.
pub async fn of_conversation(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    agent: &str,
    instance: &str,
) -> Result<Option<Session>, StatementError> {
    sessions!(
        "where campaign_id = $1 and agent_type = $2 and instance = $3 and closed_at is null and not ephemeral",
        campaign_id,
        agent,
        instance,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("find the session of a conversation"))
}

/// Lists a session and the sessions before it that still exist, back to one that began without a memory: predecessors, and those that
/// were forked. Each with the last turn that belongs to the conversation of `id`.
pub async fn lineage(
    executor: impl PgExecutor<'_>,
    id: Uuid,
) -> Result<Vec<(Uuid, i32)>, StatementError> {
    sqlx::query!(
        r#"with recursive lineage as (
               select id, coalesce(predecessor_id, forked_from_session) as before, forked_at_turn, opened_because,
                      2147483647 as last_turn
                 from dalsegno.sessions where id = $1
               union all
               select b.id, coalesce(b.predecessor_id, b.forked_from_session), b.forked_at_turn, b.opened_because,
                      least(a.last_turn, a.forked_at_turn)
                 from lineage as a join dalsegno.sessions as b on b.id = a.before and a.opened_because <> 'fresh')
           select id as "id!", last_turn as "last_turn!" from lineage"#,
        id,
    )
    .map(|row| (row.id, row.last_turn))
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("find the predecessor of a session"))
}

/// Lists the sessions that continue a session, up to the open one.
pub async fn successors(
    executor: impl PgExecutor<'_>,
    id: Uuid,
) -> Result<Vec<Uuid>, StatementError> {
    sqlx::query_scalar!(
        r#"with recursive later as (
               select successor_id as id from dalsegno.sessions where id = $1
               union all
               select s.successor_id from later as l join dalsegno.sessions as s on s.id = l.id)
           select id as "id!" from later where id is not null"#,
        id,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("find the successors of a session"))
}

/// Lists the turns of these sessions whose messages are not sent again because the provider has rejected the prompt.
pub async fn rejected_turns(
    executor: impl PgExecutor<'_>,
    ids: &[Uuid],
) -> Result<Vec<(Uuid, i32)>, StatementError> {
    sqlx::query!(
        r#"select s.id, r.turn as "turn!" from dalsegno.sessions as s, unnest(s.rejected_turns) as r (turn)
            where s.id = any($1)"#,
        ids,
    )
    .map(|row| (row.id, row.turn))
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list rejected turns"))
}

/// Returns the history in the generation that is shown, as one JSON array for other systems.
pub async fn history(executor: impl PgExecutor<'_>, id: Uuid) -> Result<Value, Error> {
    sqlx::query_scalar!(
        r#"select message_history as "history!" from dalsegno.session_histories where id = $1"#,
        id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read the history of a session"))?
    .ok_or(Error::Unknown(id))
}
