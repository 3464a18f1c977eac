//! Turns as the API shows them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Error, Turn, find, of_session};
use crate::{
    domain::{
        StatementError,
        agents::Agent,
        feed::{self, ToolRun},
        manifests::{self, CallContext},
        messages,
        posts::{self, HiddenPost},
        sessions::{self, Session},
        usage::{self, LedgerCall},
    },
    queue::admin,
};

/// Most posts to others of a turn: the newest.
const MAX_HIDDEN_POSTS: i64 = 20;

/// A turn, with the agent and the model of its session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ListedTurn {
    #[serde(flatten)]
    pub turn: Turn,
    pub agent: String,
    pub instance: String,
    pub provider: String,
    pub model: String,
    /// True if the cost is 0 only because no price was set for the model.
    #[serde(default)]
    pub is_unpriced: bool,
    /// The version of the agent's prompt: the hash with which the session was made. Empty if an older version has answered.
    #[serde(default)]
    pub prompt_hash: String,
}

/// A turn with its calls, and what each of them was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = TurnDetail)]
pub struct Detail {
    #[serde(flatten)]
    pub turn: ListedTurn,
    /// Place of the prompt in the transcript of the session. Null if the turn ended before it was stored.
    pub prompt_seq: Option<i64>,
    /// The turn that stored the prompt. It is earlier if the turn repeats a task.
    pub prompt_turn: Option<i32>,
    /// Time at which the worker claimed the job for this run. Null while it runs, and after `queue.keep.runs_days`.
    #[serde(default)]
    pub claimed_at: Option<DateTime<Utc>>,
    /// The tools that the service ran, in the order of their ends, at most 200. Empty if the provider ran its own tools, and after
    /// the events of the turn were removed from the feed.
    #[serde(default)]
    pub tools: Vec<ToolRun>,
    /// The rows of the ledger. Calls for summaries and facts are charged to the turn before them, and are not part of its counters.
    pub ledger: Vec<LedgerCall>,
    /// The contexts of the calls for the answer, stored with the end of the turn. Empty while it runs, and if its worker was lost.
    pub contexts: Vec<CallContext>,
    /// Posts since the turn before that the agent did not see, because they are addressed to others: the newest 20.
    #[serde(default)]
    pub hidden_posts: Vec<HiddenPost>,
}

impl ListedTurn {
    fn of(turn: Turn, session: &Session, has_unpriced_calls: bool) -> Self {
        Self {
            is_unpriced: has_unpriced_calls && turn.cost_micros == 0,
            turn,
            agent: session.agent.clone(),
            instance: session.instance.clone(),
            provider: session.provider.clone(),
            model: session.model.clone(),
            prompt_hash: session.prompt_hash.clone(),
        }
    }
}

/// Lists the turns of a session before the given number, the newest first.
pub async fn list(
    conn: &mut PgConnection,
    session_id: Uuid,
    before: Option<i32>,
    limit: i64,
) -> Result<Vec<ListedTurn>, Error> {
    let session = sessions::get(&mut *conn, session_id).await?;
    let turns = of_session(&mut *conn, session_id, before, limit).await?;
    let unpriced = unpriced_turns(conn, session.campaign_id, &turns).await?;
    let listed = |turn: Turn| {
        let is_unpriced = unpriced.contains(&turn.number);
        ListedTurn::of(turn, &session, is_unpriced)
    };
    Ok(turns.into_iter().map(listed).collect())
}

/// Returns the numbers of those of a session's turns whose calls have no price.
pub async fn unpriced_turns(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    turns: &[Turn],
) -> Result<Vec<i32>, StatementError> {
    let called = turns.iter().filter(|turn| turn.calls > 0 && turn.cost_micros == 0);
    let called: Vec<_> = called.map(Turn::place).collect();
    let unpriced = usage::unpriced_calls(executor, campaign_id, &called).await?;
    Ok(unpriced.into_iter().map(|calls| calls.turn).collect())
}

/// Reads a turn with its calls. The lead is the agent that sees all posts.
pub async fn detail(
    conn: &mut PgConnection,
    session_id: Uuid,
    number: i32,
    lead: Option<&Agent>,
) -> Result<Detail, Error> {
    let session = sessions::get(&mut *conn, session_id).await?;
    let turn = find(&mut *conn, session_id, number).await?;
    let turn = turn.ok_or(Error::Unknown { session_id, number })?;
    let prompt = messages::find_prompt(&mut *conn, session_id, turn.task_id).await?;
    let runs = admin::runs_of(&mut *conn, turn.job_id).await?;
    let run = runs.into_iter().find(|run| run.lease == turn.lease);
    let sees_all = lead.is_some_and(|it| it.name == session.agent && it.leads(&session.instance));
    let board = if sees_all { None } else { board_of(&mut *conn, session_id, number).await? };
    let reader = posts::reader(&session.agent, &session.instance);
    let hidden_posts = match board {
        Some(places) => {
            let (campaign, limit) = (session.campaign_id, MAX_HIDDEN_POSTS);
            posts::list_hidden(&mut *conn, campaign, &reader, places, limit).await?
        }
        None => Vec::new(),
    };
    let ledger = usage::of_turn(&mut *conn, session.campaign_id, session_id, number).await?;
    let is_unpriced = ledger.iter().any(LedgerCall::is_unpriced);
    Ok(Detail {
        hidden_posts,
        claimed_at: run.and_then(|run| run.started_at),
        tools: feed::tools_of_turn(&mut *conn, turn.task_id, number).await?,
        ledger,
        contexts: manifests::of_turn(conn, session_id, number).await?,
        prompt_seq: prompt.map(|prompt| prompt.seq),
        prompt_turn: prompt.map(|prompt| prompt.turn),
        turn: ListedTurn::of(turn, &session, is_unpriced),
    })
}

/// Returns the places on the board up to which the turn before, and this turn had seen it. None: the turn did not end with an answer.
async fn board_of(
    conn: &mut PgConnection,
    session_id: Uuid,
    number: i32,
) -> Result<Option<(i64, i64)>, StatementError> {
    let row = sqlx::query!(
        r#"select t.board_cursor as "board_cursor!",
                  coalesce((select max(e.board_cursor) from dalsegno.turns as e where e.session_id = $1 and e.number < $2), 0) as "earlier!"
             from dalsegno.turns as t where t.session_id = $1 and t.number = $2 and t.board_cursor is not null"#,
        session_id,
        number,
    )
    .fetch_optional(conn)
    .await
    .map_err(StatementError::to("read the place of a turn on the board"))?;
    Ok(row.map(|row| (row.earlier, row.board_cursor)))
}
