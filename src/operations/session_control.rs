//! Resets, compactions and interruptions of sessions.

use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Call, Change, ChangeOutput, ChangeResult, Operation, Refusal, Spec, Success, by_request,
};
use crate::domain::{
    audit::Action,
    class::{BAD_ARGUMENT, NUL_IN_TEXT},
    compactions::{self, Answer, Cause},
    conversations,
    sessions::{self, Error, Session},
    tasks::{self, InterruptMode, InterruptResult},
};

const TAG: &str = "sessions";

/// Closes a session; the next task of its conversation opens a successor.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResetSession {
    pub id: Uuid,
    /// True: the successor remembers nothing.
    #[serde(default)]
    pub fresh: bool,
}

/// Compacts a session: a summary replaces its older messages.
///
/// A worker compacts it; `GET /v1/sessions/{id}/compaction` shows the outcome, and the session lists its compactions.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompactSession {
    pub id: Uuid,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AcceptedCompaction {
    pub session_id: Uuid,
    pub job_id: i64,
    /// The compaction that the session has shown so far; 0: its whole transcript.
    pub generation: i32,
}

/// Shows the outcome of a request to compact a session.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowCompaction {
    pub id: Uuid,
    /// The job of the request.
    pub job_id: i64,
    /// The compaction that the session showed before.
    pub generation: i32,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CompactionAnswer {
    pub session_id: Uuid,
    pub job_id: i64,
    /// Null: the job has not ended.
    pub answer: Option<Answer>,
}

/// Undoes the current compaction of a session.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UncompactSession {
    pub id: Uuid,
}

/// Stops the running turn of a session by cancelling its task.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InterruptSession {
    pub id: Uuid,
    #[serde(default = "by_request")]
    pub reason: String,
    #[serde(default)]
    pub how: InterruptMode,
}

impl Change for ResetSession {
    const SPEC: Spec = Spec::change("reset_session", "/v1/sessions/{id}/reset", "session reset")
        .tag(TAG)
        .refuses(&[Error::UNKNOWN, Error::CLOSED, Error::BUSY]);
    const ACTION: Action = Action::SessionReset;
    type Output = Session;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<Session> {
        let output = sessions::reset(conn, self.id, self.fresh, call.now).await?;
        let data = json!({ "fresh": self.fresh });
        Ok(ChangeOutput::of(self.id, output, data))
    }
}

impl Change for CompactSession {
    const SPEC: Spec =
        Spec::change("compact_session", "/v1/sessions/{id}/compact", "session compact")
            .tag(TAG)
            .answers(Success::Accepted)
            .refuses(&[Error::UNKNOWN, Error::CLOSED]);
    const ACTION: Action = Action::SessionCompact;
    type Output = AcceptedCompaction;

    async fn change(self, conn: &mut PgConnection, _: &Call) -> ChangeResult<AcceptedCompaction> {
        let session_id = self.id;
        let generation = sessions::get(&mut *conn, session_id).await?.generation;
        let job_id = compactions::request(conn, session_id, Cause::Manual).await?.job_id;
        let output = AcceptedCompaction { session_id, job_id, generation };
        Ok(ChangeOutput::of(session_id, output, json!({ "job_id": job_id })))
    }
}

impl Operation for ShowCompaction {
    const SPEC: Spec =
        Spec::read("show_compaction", "/v1/sessions/{id}/compaction", "session compact")
            .tag(TAG)
            .refuses(&[Error::UNKNOWN]);
    type Output = CompactionAnswer;

    async fn run(self, call: &Call) -> Result<CompactionAnswer, Refusal> {
        let Self { id: session_id, job_id, generation } = self;
        let answer = compactions::read_answer(&call.pool, (session_id, job_id, generation)).await?;
        Ok(CompactionAnswer { session_id, job_id, answer })
    }
}

impl Change for UncompactSession {
    const SPEC: Spec =
        Spec::change("uncompact_session", "/v1/sessions/{id}/uncompact", "session uncompact")
            .tag(TAG)
            .refuses(&[
                Error::UNKNOWN,
                compactions::Error::UNKNOWN,
                Error::CLOSED,
                Error::BUSY,
                compactions::Error::NOTHING_TO_UNDO,
            ]);
    const ACTION: Action = Action::SessionUncompact;
    type Output = Session;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<Session> {
        let output = conversations::uncompact(conn, self.id, call.now).await?;
        let data = json!({ "generation": output.generation });
        Ok(ChangeOutput::of(self.id, output, data))
    }
}

impl Change for InterruptSession {
    const SPEC: Spec =
        Spec::change("interrupt_session", "/v1/sessions/{id}/interrupt", "session interrupt")
            .tag(TAG)
            .refuses(&[
                Error::UNKNOWN,
                tasks::Error::UNKNOWN,
                tasks::Error::NOTHING_RUNS,
                Error::CLOSED,
                tasks::Error::ENDED,
                tasks::Error::REQUEUED,
                NUL_IN_TEXT,
                BAD_ARGUMENT,
            ]);
    const ACTION: Action = Action::SessionInterrupt;
    type Output = InterruptResult;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<InterruptResult> {
        let Self { id, reason, how } = self;
        let output = tasks::interrupt(conn, id, how, &reason, call.now).await?;
        let data = json!({ "task_id": output.task_id, "how": how, "reason": reason });
        Ok(ChangeOutput::of(id, output, data))
    }
}
