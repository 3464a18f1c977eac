//! Why a task is in its state, and what has to happen next, in words.
//!
//! The queue knows why a job waits; this adds what only the domain knows: the campaign, the budget, the session, and what
//! the provider said the last time. The words are made by a pure function of the facts.

mod words;

use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Error, State, Task, get};
use crate::{
    domain::{
        Amount,
        amount::{Owner, Refusal},
        campaigns::{self, Campaign},
        sessions::{self, Session},
        turns::{self, Turn},
    },
    queue::admin,
};

/// The answer to "why?".
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    pub task_id: Uuid,
    pub state: State,
    /// Why it is in this state.
    pub because: String,
    /// What has to happen next, and who has to do it.
    pub next: String,
}

/// What is known about a task at one moment.
#[derive(Debug, Clone)]
struct Facts {
    task: Task,
    campaign: Campaign,
    /// Why its campaign pays for nothing more, if it does not.
    spent: Option<Refusal>,
    /// The open one of its conversation, or its own.
    session: Option<Session>,
    last_turn: Option<Turn>,
    job: admin::Explanation,
}

pub async fn explain(conn: &mut PgConnection, id: Uuid) -> Result<Explanation, Error> {
    let task = get(&mut *conn, id).await?;
    let campaign = campaigns::get(&mut *conn, task.campaign_id).await?;
    let budget = campaigns::budget(&mut *conn, campaign.id).await?;
    // One token or micro-unit: whether anything at all is left.
    let least = Amount { micros: 1, tokens: 1 };
    let spent = budget.and_then(|budget| {
        budget.limit.admit(Owner::Campaign, budget.spent, budget.reserved, least).err()
    });
    let facts = Facts {
        spent,
        session: session(&mut *conn, &task).await?,
        last_turn: turns::of_task(&mut *conn, id).await?.pop(),
        job: admin::explain(conn, task.job_id).await?,
        task,
        campaign,
    };
    Ok(facts.explain())
}

async fn session(conn: &mut PgConnection, task: &Task) -> Result<Option<Session>, Error> {
    if let Some(id) = task.session_id {
        return Ok(Some(sessions::get(conn, id).await?));
    }
    let filter = sessions::Filter {
        campaign_id: Some(task.campaign_id),
        agent: Some(&task.agent),
        open_only: true,
    };
    let open = sessions::list(conn, filter, Default::default()).await?;
    Ok(open.into_iter().find(|session| session.instance == task.instance && !session.ephemeral))
}
