//! Requests to read a session for facts, and their job.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{read_up_to, user_of};
use crate::{
    domain::{
        StatementError,
        messages::{self, PromptPlace},
        sessions::{self, DueSession},
    },
    queue::{self, Backoff, Job, Policy},
};

/// The job that reads people's requests in a session for facts. It names the tasks, so that it can run after the session is removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtractFacts {
    pub session_id: Uuid,
    pub campaign_id: Uuid,
    pub agent: String,
    pub provider: String,
    pub model: String,
    pub credential: Option<String>,
    /// The requests, in their order.
    pub asked: Vec<PromptPlace>,
}

/// Maximum number of requests that one job reads of a session: the newest.
const MAX_ASKED: i64 = 1_000;

impl Job for ExtractFacts {
    const KIND: &'static str = "extract_facts";

    fn policy() -> Policy {
        Policy {
            queue: "turns",
            max_attempts: 5,
            backoff: Backoff { first: Duration::from_secs(30), cap: Duration::from_secs(60 * 60) },
            deadline: Some(Duration::from_secs(30 * 60)),
            ..Policy::default()
        }
    }
}

/// The lane of a session's readings, which run one after the other. Turns go on meanwhile, because their lane is another one.
pub fn lane(session_id: Uuid) -> String {
    format!("facts/{session_id}")
}

/// Enqueues a reading of the requests since the last one, if the campaign has a user. The job checks if the agent's file allows it.
pub async fn request(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    session_id: Uuid,
) -> Result<(), StatementError> {
    match user_of(&mut *conn, campaign_id).await? {
        Some(_) => enqueue(conn, session_id).await,
        None => Ok(()),
    }
}

/// Does the same for sessions that are about to be removed. Closed ones were requested at their closing.
pub async fn request_of_ended(
    conn: &mut PgConnection,
    ended: &[DueSession],
) -> Result<(), StatementError> {
    let open = ended.iter().filter(|session| session.is_open());
    let campaigns: Vec<Uuid> = open.clone().map(|session| session.campaign_id).collect();
    if campaigns.is_empty() {
        return Ok(());
    }
    let with_user = sqlx::query_scalar!(
        // One index lookup for each: there are few, and the table may have many campaigns.
        r#"select c.id as "id!" from unnest($1::uuid[]) as c (id),
                  lateral (select from dalsegno.campaign_users as u where u.campaign_id = c.id limit 1) as u"#,
        &campaigns,
    )
    .fetch_all(&mut *conn)
    .await
    .map_err(StatementError::to("list campaigns with a user"))?;
    for session in open.filter(|session| with_user.contains(&session.campaign_id)) {
        enqueue(&mut *conn, session.id).await?;
    }
    Ok(())
}

async fn enqueue(conn: &mut PgConnection, session_id: Uuid) -> Result<(), StatementError> {
    let action = "enqueue the extraction of facts from a session";
    let (session, credential) = match sessions::with_credential(&mut *conn, session_id).await {
        Ok(found) => found,
        Err(sessions::Error::Database(failed)) => return Err(failed),
        // Cannot happen: the caller holds the session.
        Err(_) => return Ok(()),
    };
    let after = read_up_to(&mut *conn, session_id).await?;
    let of = (session_id, session.created_at);
    let asked =
        messages::list_prompts_after(&mut *conn, of, after, &session.rejected_turns, MAX_ASKED)
            .await?;
    if asked.is_empty() {
        return Ok(());
    }
    let job = ExtractFacts {
        session_id,
        campaign_id: session.campaign_id,
        agent: session.agent,
        provider: session.provider,
        model: session.model,
        credential,
        asked,
    };
    let enqueued = enqueue_reading(conn, &job).await;
    enqueued.map_err(|source| StatementError { action, source: sqlx::Error::Decode(source.into()) })
}

/// Enqueues a job: the first of a reading, or one that continues it.
pub async fn enqueue_reading(
    conn: &mut PgConnection,
    job: &ExtractFacts,
) -> Result<(), queue::Error> {
    let options = queue::Options {
        lane: Some(lane(job.session_id)),
        group_key: Some(job.campaign_id.to_string()),
        ..queue::Options::default()
    };
    queue::enqueue(conn, job, &options).await.map(|_| ())
}
