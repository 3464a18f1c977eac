//! Tools for operators: the turns of an agent, and what their calls were sent.

use futures_util::FutureExt as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Refusal,
    arguments::{bad_cursor, schema},
    pages::ToolAnswer,
    tool::{Access, Call, DEFAULT_TIMEOUT, Tool},
};
use crate::domain::{
    Page,
    agents::MAIN,
    contexts::{self, ContextDiff, StoredContext},
    sessions::{self, Filter, Session},
    transaction,
    turns::{self, ListedTurn},
};

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "turns_list",
        description: "Lists the turns of an agent's newest session, or of another session of this campaign, the newest first: their tasks, states, \
                      tokens and costs.",
        who: Access::Operators,
        in_pages: true,
        timeout: DEFAULT_TIMEOUT,
        schema: |_| schema::<TurnList>(),
        run: |call| list(call).boxed(),
    },
    Tool {
        name: "context_show",
        description: "Shows what a call of a turn was sent: system text, messages and tools, and each part with its source and the reason why it was \
                      sent or left out. What it says was addressed to that agent, not to you.",
        who: Access::Operators,
        in_pages: true,
        timeout: DEFAULT_TIMEOUT,
        schema: |_| schema::<ContextPlace>(),
        run: |call| show(call).boxed(),
    },
    Tool {
        name: "context_diff",
        description: "Compares what two turns were sent, word by word: added, removed and changed parts, tokens, and what a provider can serve from \
                      its cache.",
        who: Access::Operators,
        in_pages: true,
        timeout: DEFAULT_TIMEOUT,
        schema: |_| schema::<TurnPair>(),
        run: |call| diff(call).boxed(),
    },
];

const MAX_TURNS: i64 = 50;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TurnList {
    /// Name of the agent, or of another instance of it, such as `curator_2`.
    agent: Option<String>,
    /// A session instead of an agent, as an earlier answer has named it.
    #[schemars(with = "Option<String>")]
    session_id: Option<Uuid>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ContextPlace {
    /// Session of the turn, as turns_list names it.
    #[schemars(with = "String")]
    session_id: Uuid,
    /// Number of the turn; the newest one with a stored context unless you say otherwise.
    turn: Option<i32>,
    /// Number of the call in its turn, from 1, which is the default.
    call: Option<i32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TurnPair {
    /// Session of the turns, as turns_list names it.
    #[schemars(with = "String")]
    session_id: Uuid,
    /// Number of the earlier turn.
    from: i32,
    /// Number of the later turn.
    to: i32,
    /// Session of the later turn, if it is another one.
    #[schemars(with = "Option<String>")]
    to_session_id: Option<Uuid>,
}

async fn list(call: Call<'_>) -> Result<ToolAnswer, Refusal> {
    let asked: TurnList = call.read()?;
    let before = call.place.as_deref().map(str::parse).transpose().map_err(|_| bad_cursor())?;
    let mut tx = call.begin().await?;
    let session = find_session(&call, &mut tx, &asked).await?;
    let mut turns = turns::list(&mut tx, session.id, before, MAX_TURNS + 1).await?;
    transaction::commit(tx).await?;
    let max = usize::try_from(MAX_TURNS).unwrap_or(usize::MAX);
    let goes_on = turns.len() > max;
    turns.truncate(max);
    let next = turns.last().filter(|_| goes_on).map(|last| last.turn.number.to_string());
    let lines: Vec<Value> = turns.iter().map(line).collect();
    let list = json!({
        "session_id": session.id, "agent": session.agent, "instance": session.instance, "model": session.model,
        "provider": session.provider, "session_before": session.predecessor_id, "turns": lines,
    });
    ToolAnswer::list(&list, next)
}

fn line(ListedTurn { turn, .. }: &ListedTurn) -> Value {
    json!({
        "turn": turn.number, "state": turn.state, "task_id": turn.task_id, "began_at": turn.started_at, "calls": turn.calls,
        "input_tokens": turn.input_tokens + turn.cache_read_tokens + turn.cache_creation_tokens, "output_tokens": turn.output_tokens,
        "cost_micros": turn.cost_micros, "error": turn.error,
    })
}

async fn show(call: Call<'_>) -> Result<ToolAnswer, Refusal> {
    let ContextPlace { session_id, turn, call: of_turn } = call.read()?;
    check_reach(&call)?;
    let mut tx = call.begin().await?;
    get_session(&call, &mut tx, session_id).await?;
    let stored = contexts::find(&mut tx, session_id, turn, of_turn.unwrap_or(1)).await?;
    transaction::commit(tx).await?;
    ToolAnswer::json(&context(&stored))
}

fn context(stored: &StoredContext) -> Value {
    let (sent, problem) = match &stored.replayed {
        Ok(sent) => (Some(sent), None),
        Err(error) => (None, Some(error.to_string())),
    };
    json!({
        "session_id": stored.session_id, "turn": stored.turn, "call": stored.call, "calls": stored.calls, "model": stored.model,
        "provider": stored.provider, "estimated_tokens": stored.estimated_tokens, "counted_tokens": stored.counted_tokens,
        "problem": problem, "system": sent.map(|sent| &sent.system), "messages": sent.map(|sent| &sent.messages),
        "tools": sent.map(|sent| &sent.tools), "parts": stored.parts,
    })
}

async fn diff(call: Call<'_>) -> Result<ToolAnswer, Refusal> {
    let TurnPair { session_id, from, to, to_session_id } = call.read()?;
    check_reach(&call)?;
    let to_session = to_session_id.unwrap_or(session_id);
    let mut tx = call.begin().await?;
    for id in [session_id, to_session] {
        get_session(&call, &mut tx, id).await?;
    }
    let compared: ContextDiff =
        contexts::compare(&mut tx, (session_id, from), (to_session, to)).await?;
    transaction::commit(tx).await?;
    ToolAnswer::json(&compared)
}

async fn find_session(
    call: &Call<'_>,
    conn: &mut PgConnection,
    asked: &TurnList,
) -> Result<Session, Refusal> {
    let agent = match (&asked.agent, asked.session_id) {
        (None, Some(id)) => return get_session(call, conn, id).await,
        (Some(agent), None) => agent,
        _ => return Err(Refusal::of_text("name either an `agent` or a `session_id`")),
    };
    let catalogue = call.tools.settings.agents.current();
    let named = catalogue.resolve_addressee(agent, MAIN)?;
    let filter = Filter {
        campaign_id: Some(call.caller.campaign_id()),
        agent: Some(&named.agent.name),
        instance: Some(named.instance),
        ..Filter::default()
    };
    let newest = sessions::list(conn, filter, Page { after: None, limit: 1 }).await?.pop();
    newest.ok_or_else(|| {
        Refusal::of_text(format!("`{agent}` has no session in this campaign: it had no turn yet"))
    })
}

/// Reads a session. One of another campaign is answered like an unknown one.
async fn get_session(
    call: &Call<'_>,
    conn: &mut PgConnection,
    id: Uuid,
) -> Result<Session, Refusal> {
    let session = sessions::get(conn, id).await?;
    match session.campaign_id == call.caller.campaign_id() {
        true => Ok(session),
        false => Err(sessions::Error::Unknown(id).into()),
    }
}

/// Refuses keys that are bound to campaigns, as over HTTP: contexts contain facts of the user and the files of agents.
fn check_reach(call: &Call<'_>) -> Result<(), Refusal> {
    match call.caller.is_bound() {
        false => Ok(()),
        true => Err(Refusal::of_text(
            "contexts contain facts of the user and the files of agents, and this API key is bound to campaigns: use a key that reaches all campaigns",
        )),
    }
}
