//! Tasks: reading, cancelling and retrying them.

use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Call, Change, ChangeResult, Changed, Listing, Operation, Patience, Refusal, Spec,
    TOO_MANY_WAITING, TOO_MANY_WAITING_PER_CLIENT, by_request, page_limit,
};
use crate::domain::{
    Page,
    audit::Action,
    class::{BAD_ARGUMENT, NUL_IN_TEXT},
    explanations::{self, Explanation},
    keys::Scope,
    tasks::{self, CancelledTask, Detail, Error, Filter, State, Task},
};

const TAG: &str = "tasks";
/// A key that may not read sees the tasks of its own name.
pub(super) const READ_OR_ENQUEUE: &[Scope] = &[Scope::Read, Scope::Enqueue];

/// Lists tasks, the newest first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListTasks {
    pub campaign_id: Option<Uuid>,
    pub agent: Option<String>,
    #[schema(inline)]
    pub state: Option<State>,
    pub cursor: Option<Uuid>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Shows a task with its attempts; waits for its end first, if asked to.
///
/// An API key with the scope `enqueue` alone finds the tasks that keys of its name have added.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowTask {
    pub id: Uuid,
    /// How long to wait for the end of the task: `30s`, `500ms`. At most as long as a request may take.
    #[schema(inline)]
    pub wait: Option<Patience>,
}

/// Cancels a task: at once if it does not run, through its worker if it does.
///
/// The tasks that depend on it are cancelled, too, also where the task itself had ended.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelTask {
    pub id: Uuid,
    #[serde(default = "by_request")]
    pub reason: String,
}

/// Puts a failed or cancelled task on the queue again.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryTask {
    pub id: Uuid,
}

/// Says in words why a task is in its state, and what has to happen next.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainTask {
    pub id: Uuid,
}

impl Operation for ListTasks {
    const SPEC: Spec = Spec::read("list_tasks", "/v1/tasks", "task ls").tag(TAG).for_bound_keys();
    type Output = Listing<Task>;

    async fn run(self, call: &Call) -> Result<Listing<Task>, Refusal> {
        let limit = page_limit(self.limit)?;
        let filter = Filter {
            campaign_id: self.campaign_id,
            agent: self.agent.as_deref(),
            state: self.state,
            within: call.reach.campaigns(),
        };
        let page = Page { after: self.cursor, limit: limit + 1 };
        let tasks = tasks::list(&call.pool, filter, page).await?;
        Ok(Listing::of(tasks, limit, |task| task.id))
    }
}

impl Operation for ShowTask {
    const SPEC: Spec = Spec::read("show_task", "/v1/tasks/{id}", "task show")
        .tag(TAG)
        .needs(READ_OR_ENQUEUE)
        .refuses(&[Error::UNKNOWN, TOO_MANY_WAITING_PER_CLIENT, TOO_MANY_WAITING]);
    type Output = Detail;

    async fn run(self, call: &Call) -> Result<Detail, Refusal> {
        if let Some(patience) = self.wait.filter(|patience| !patience.0.is_zero()) {
            call.wait(patience, |limit| tasks::wait(&call.pool, self.id, limit)).await?;
        }
        let mut transaction = call.begin_read().await?;
        Ok(tasks::detail(&mut transaction, self.id).await?)
    }
}

impl Change for CancelTask {
    const SPEC: Spec = Spec::change("cancel_task", "/v1/tasks/{id}/cancel", "task cancel")
        .tag(TAG)
        .refuses(&[Error::UNKNOWN, Error::ENDED, Error::REQUEUED, NUL_IN_TEXT, BAD_ARGUMENT]);
    const ACTION: Action = Action::TaskCancel;
    type Output = CancelledTask;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<CancelledTask> {
        let Self { id: task_id, reason } = self;
        let cancellation = tasks::cancel(conn, task_id, &reason, call.now).await?;
        let output = CancelledTask { task_id, cancellation };
        Ok(Changed { output, subject: task_id.to_string(), data: json!({ "reason": reason }) })
    }
}

impl Change for RetryTask {
    const SPEC: Spec = Spec::change("retry_task", "/v1/tasks/{id}/retry", "task retry")
        .tag(TAG)
        .refuses(&[Error::UNKNOWN, Error::ENDED, Error::NOT_ENDED, Error::ERASED]);
    const ACTION: Action = Action::TaskRetry;
    type Output = Task;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<Task> {
        let output = tasks::retry(conn, self.id, call.now).await?;
        Ok(Changed { output, subject: self.id.to_string(), data: json!({}) })
    }
}

impl Operation for ExplainTask {
    const SPEC: Spec = Spec::read("explain_task", "/v1/tasks/{id}/explain", "task explain")
        .tag(TAG)
        .needs(READ_OR_ENQUEUE)
        .refuses(&[Error::UNKNOWN]);
    type Output = Explanation;

    async fn run(self, call: &Call) -> Result<Explanation, Refusal> {
        let mut transaction = call.begin_read().await?;
        Ok(match call.reach.only_of() {
            Some(_) => explanations::explain_alone(&mut transaction, self.id).await?,
            None => explanations::explain(&mut transaction, self.id).await?,
        })
    }
}
