//! Explanations of a session: the state of its conversation, the reason, and what happens next.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::explain;
use crate::{
    domain::{
        agents::{Catalogue, Provider},
        compactions::{self, CompactSession},
        sessions::{self, Reason, Session, SessionRow, State},
        statuses::{self, RunningTool},
        tasks::{self, Error},
        turns::{self, Turn},
    },
    queue::{self, Job as _, admin},
};

/// The explanation of a session's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SessionExplanation {
    pub session_id: Uuid,
    pub state: State,
    /// The reason of the state.
    pub because: String,
    /// The next step, and who takes it.
    pub next: String,
}

/// The facts about a session at one moment.
#[derive(Debug, Clone)]
pub(super) struct SessionFacts {
    pub(super) session: Session,
    pub(super) now: DateTime<Utc>,
    pub(super) last_turn: Option<Turn>,
    /// The queue's explanation of the job of its running turn.
    pub(super) running: Option<admin::Explanation>,
    /// The tool that its running turn is calling.
    pub(super) tool: Option<RunningTool>,
    /// The first task that waits for it.
    pub(super) waiting: Option<WaitingTask>,
    /// Number of tasks that wait, including the first one.
    pub(super) n_waiting: usize,
    /// The reason for a rebuild that follows from the agent's file as it is now.
    pub(super) file: AgentFile,
    /// The generation of a compaction that is ready.
    pub(super) prepared: Option<i32>,
    /// The job of a compaction that waits or runs, with its state.
    pub(super) compacting: Option<(i64, String)>,
}

#[derive(Debug, Clone)]
pub(super) struct WaitingTask {
    pub(super) id: Uuid,
    pub(super) because: String,
    pub(super) next: String,
}

/// The file of the session's agent, compared with the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AgentFile {
    Same,
    /// The next task rebuilds the session for this reason.
    Differs(Reason),
    /// No turn of the agent can begin.
    Unusable,
}

pub async fn explain_session(
    conn: &mut PgConnection,
    id: Uuid,
    catalogue: &Catalogue,
    now: DateTime<Utc>,
) -> Result<SessionExplanation, Error> {
    let session = sessions::get(&mut *conn, id).await?;
    let live = sessions::read_live(&mut *conn, id).await?;
    let last_turn = turns::of_session(&mut *conn, id, None, 1).await?.pop();
    let running = match last_turn.as_ref().filter(|turn| turn.state == turns::State::Running) {
        Some(turn) => Some(admin::explain(&mut *conn, turn.job_id).await?),
        None => None,
    };
    let tool = match last_turn.as_ref().filter(|_| running.is_some()) {
        Some(turn) => statuses::running_tool(&mut *conn, turn.task_id).await?,
        None => None,
    };
    let mut open = open_tasks(&mut *conn, &session).await?;
    if let Some(turn) = last_turn.as_ref().filter(|_| running.is_some()) {
        open.retain(|id| *id != turn.task_id);
    }
    let facts = SessionFacts {
        now,
        running,
        tool,
        waiting: waiting(&mut *conn, open.first().copied()).await?,
        n_waiting: open.len(),
        file: compare_file(catalogue, &live),
        prepared: compactions::newest_prepared(&mut *conn, id, live.generation).await?,
        compacting: compacting(&mut *conn, id).await?,
        session,
        last_turn,
    };
    Ok(facts.explain())
}

/// Lists the open tasks that the session is for: those of its conversation, or the one that it was made for.
async fn open_tasks(conn: &mut PgConnection, session: &Session) -> Result<Vec<Uuid>, Error> {
    if session.closed_at.is_some() || session.ephemeral {
        return Ok(Vec::new());
    }
    let Session { campaign_id, agent, instance, .. } = session;
    Ok(tasks::open_of_conversation(conn, *campaign_id, agent, instance).await?)
}

async fn waiting(
    conn: &mut PgConnection,
    first: Option<Uuid>,
) -> Result<Option<WaitingTask>, Error> {
    let Some(id) = first else { return Ok(None) };
    let told = explain(conn, id).await?;
    Ok(Some(WaitingTask { id, because: told.because, next: told.next }))
}

/// Compares a session with its agent's file, as the next task will. Provider and model that the file leaves to the
/// configuration, or to a chain, are not compared.
fn compare_file(catalogue: &Catalogue, live: &SessionRow) -> AgentFile {
    let Ok(agent) = catalogue.agent(&live.agent) else { return AgentFile::Unusable };
    let only = match agent.chain.as_slice() {
        [only] => Some(only),
        _ => None,
    };
    let provider = only.and_then(|only| only.provider.as_ref()).map(Provider::as_str);
    let model = only.and_then(|only| only.model.as_deref());
    if provider.is_some_and(|provider| provider != live.provider) {
        AgentFile::Differs(Reason::ProviderChanged)
    } else if model.is_some_and(|model| model != live.model) {
        AgentFile::Differs(Reason::ModelChanged)
    } else if catalogue.prompt_hash(agent, &live.instance) != live.prompt_hash {
        AgentFile::Differs(Reason::PromptChanged)
    } else {
        AgentFile::Same
    }
}

/// Finds the compaction that waits or runs.
async fn compacting(conn: &mut PgConnection, id: Uuid) -> Result<Option<(i64, String)>, Error> {
    let lane = match admin::find_lane(conn, &compactions::lane(id)).await {
        Err(queue::Error::UnknownLane { .. }) => return Ok(None),
        lane => lane?,
    };
    let job = lane.members.into_iter().find(|job| job.kind == CompactSession::KIND);
    Ok(job.map(|job| (job.id, job.state)))
}
