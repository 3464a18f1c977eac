//! Forks of sessions.

use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Call, Change, ChangeOutput, ChangeResult, Spec, Success};
use crate::domain::{
    agents::{self, LookupError},
    audit::Action,
    campaigns,
    conversations::{self, ForkError, ForkRequest},
    sessions::{self, Session},
    tasks, turns,
};

/// Forks a session: a new conversation of its agent begins as this one was after a turn.
///
/// The fork has copies of the summary and the messages up to that turn, and is a new instance of the agent. Tasks of that instance continue
/// it. The session and its conversation are not changed.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkSession {
    pub id: Uuid,
    /// The last turn that the fork has, which must be done. Another session of the same conversation is searched for it, too: the numbers
    /// continue from session to session. A turn that a fork has taken over is forked from the session that ran it. Default: the last turn of
    /// the session that is done.
    pub turn: Option<i32>,
    /// Name of the new instance. Default: `main-fork-1` for a session of `main`, or the next free number, also if the turn is of another
    /// session.
    #[schema(max_length = 64)]
    pub instance: Option<String>,
}

impl Change for ForkSession {
    const SPEC: Spec = Spec::change("fork_session", "/v1/sessions/{id}/forks", "session fork")
        .tag("sessions")
        .answers(Success::Created)
        .located("/v1/sessions/{id}")
        .refuses(&[
            sessions::Error::UNKNOWN,
            turns::Error::UNKNOWN,
            ForkError::NOT_DONE,
            ForkError::EXPIRED,
            ForkError::INSTANCE_TAKEN,
            tasks::Error::BAD_INSTANCE,
            campaigns::Error::CLOSED,
            LookupError::UNKNOWN_AGENT,
            LookupError::BROKEN_AGENT,
        ]);
    const ACTION: Action = Action::SessionFork;
    type Output = Session;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<Session> {
        let Self { id, turn, instance } = self;
        if let Some(name) = instance.as_deref().filter(|name| !agents::is_name(name)) {
            return Err(tasks::Error::Instance(name.to_owned()).into());
        }
        let request = ForkRequest {
            session_id: id,
            turn,
            instance: instance.as_deref(),
            catalogue: &*call.catalogue()?,
            config: &call.config.sessions,
        };
        let fork = conversations::fork(conn, &request, call.now).await?;
        let data = json!({
            "fork": fork.id,
            "turn": fork.forked_at_turn,
            "instance": fork.instance,
        });
        Ok(ChangeOutput::of(fork.forked_from_session.unwrap_or(id), fork, data))
    }
}
