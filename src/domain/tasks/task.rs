//! Tasks and their states.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::domain::{agents::SessionMode as Mode, turns::TaskWithoutTurn};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Task {
    pub id: Uuid,
    pub campaign_id: Uuid,
    pub agent: String,
    pub instance: String,
    pub session_mode: Mode,
    pub state: State,
    pub prompt: String,
    /// The answer. Of a failed task: its last answer, which does not match the schema.
    pub result: Option<String>,
    /// The answer as JSON, if the task has a result schema and the answer matches it.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub result_json: Option<Value>,
    pub error: Option<String>,
    pub budget_micros: Option<i64>,
    pub budget_tokens: Option<i64>,
    pub spent_micros: i64,
    pub spent_tokens: i64,
    pub job_id: i64,
    pub session_id: Option<Uuid>,
    pub turn: Option<i32>,
    pub created_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = TaskState)]
pub enum State {
    Queued,
    Running,
    Done,
    Failed,
    Cancelled,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

#[cfg(test)]
impl Task {
    /// Builds a queued task for tests.
    pub fn example() -> Self {
        Self {
            id: Uuid::from_u128(1),
            campaign_id: Uuid::from_u128(2),
            agent: "copywriter".to_owned(),
            instance: "main".to_owned(),
            session_mode: Mode::Continue,
            state: State::Queued,
            prompt: "Part one.".to_owned(),
            result: None,
            result_json: None,
            error: None,
            budget_micros: None,
            budget_tokens: None,
            spent_micros: 0,
            spent_tokens: 0,
            job_id: 7,
            session_id: None,
            turn: None,
            created_at: DateTime::UNIX_EPOCH,
            started_at: None,
            ended_at: None,
        }
    }
}

impl Task {
    /// Returns the ids of the task, for its end or a wait without another turn.
    pub fn without_turn(&self) -> TaskWithoutTurn {
        TaskWithoutTurn {
            task_id: self.id,
            campaign_id: self.campaign_id,
            session_id: self.session_id,
            session_mode: self.session_mode,
        }
    }
}
