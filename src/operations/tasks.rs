//! Tasks: reads, cancellations and retries.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Call, Change, ChangeOutput, ChangeResult, Listing, Method, Operation, Refusal, Spec,
    TOO_MANY_WAITING, TOO_MANY_WAITING_PER_CLIENT, WaitLimit, by_request, page_limit,
};
use crate::domain::{
    Page,
    audit::Action,
    class::{BAD_ARGUMENT, Kind, NUL_IN_TEXT},
    explanations::{self, Explanation},
    keys::Scope,
    labels,
    tasks::{
        self, CancelledTask, Detail, Error, ListedTask, State, Task, TaskFilter, TaskPriority,
    },
    timestamp,
};

const TAG: &str = "tasks";
/// Scopes for reading tasks. A key without `read` sees only the tasks that keys of its name have added.
pub(super) const READ_OR_ENQUEUE: &[Scope] = &[Scope::Read, Scope::Enqueue];

/// Lists tasks, the newest first.
///
/// Filters by agent, time, text and the state `done` check each task. A page checks at most 2,000 tasks that match otherwise: it may have
/// fewer items than `limit`, or none, and a `next`.
#[derive(Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListTasks {
    pub campaign_id: Option<Uuid>,
    /// An agent with all its instances, or one instance of it: `curator_2`, `curator/eu`.
    pub agent: Option<String>,
    pub instance: Option<String>,
    #[schema(inline)]
    pub state: Option<State>,
    /// Only those that were added at this moment or later.
    #[serde(default, deserialize_with = "timestamp::optional")]
    pub created_after: Option<DateTime<Utc>>,
    /// Only those that were added earlier.
    #[serde(default, deserialize_with = "timestamp::optional")]
    pub created_before: Option<DateTime<Utc>>,
    /// Only those that ended at this moment or later.
    #[serde(default, deserialize_with = "timestamp::optional")]
    pub ended_after: Option<DateTime<Utc>>,
    /// Only those whose prompt contains this text, whether in capitals or not.
    #[schema(min_length = 1, max_length = 200)]
    pub text: Option<String>,
    /// Only those with all of these tags; commas between them.
    pub tags: Option<String>,
    /// Only those with all of these keys and values: a JSON object, such as `{"customer":"acme"}`.
    pub metadata: Option<String>,
    pub cursor: Option<Uuid>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Shows a task with its attempts; with `wait`, waits for its end first.
///
/// An API key with the scope `enqueue` alone finds the tasks that keys of its name have added.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowTask {
    pub id: Uuid,
    /// Longest wait for the end of the task: `30s`, `5m`, `500ms`. A wait that is longer than a request may take
    /// (`http.request_timeout_secs`) ends with the request, and shows the task as it is then.
    #[schema(inline)]
    pub wait: Option<WaitLimit>,
}

/// Cancels a task: at once if it waits, through its worker if it runs.
///
/// The tasks that depend on it are cancelled, too, even if the task itself had ended.
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

/// Changes the priority of a waiting task. The tasks of a conversation keep their order.
///
/// Retries keep the new priority.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PriorityChange)]
pub struct ChangeTaskPriority {
    pub id: Uuid,
    /// 0 is the most urgent; 100 is the default.
    #[schema(minimum = 0, maximum = 32767)]
    pub priority: i32,
}

/// Explains why a task is in its state, and what has to happen next.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainTask {
    pub id: Uuid,
}

impl Operation for ListTasks {
    const SPEC: Spec = Spec::read("list_tasks", "/v1/tasks", "task ls")
        .tag(TAG)
        .for_bound_keys()
        .refuses(&[NUL_IN_TEXT]);
    type Output = Listing<ListedTask>;

    async fn run(self, call: &Call) -> Result<Listing<ListedTask>, Refusal> {
        let limit = page_limit(self.limit)?;
        let page = Page { after: self.cursor, limit: limit + 1 };
        let filter = self.filter(call)?;
        let mut transaction = call.begin_search().await?;
        let within = call.reach.campaigns();
        let found = tasks::search(&mut transaction, &filter, within, page).await?;
        let listing = Listing::of(found.tasks, limit, |listed| listed.task.id);
        let next = listing.next.or(found.looked_up_to.map(|id| id.to_string()));
        Ok(Listing { next, ..listing })
    }
}

impl ListTasks {
    fn filter(self, call: &Call) -> Result<TaskFilter, Refusal> {
        let mut filter = TaskFilter {
            campaign_id: self.campaign_id,
            except_campaign_id: None,
            agent: self.agent,
            instance: self.instance,
            state: self.state,
            created_before: self.created_before,
            created_after: self.created_after,
            ended_after: self.ended_after,
            text: self.text,
            tags: self.tags.as_deref().map(labels::tags_of).unwrap_or_default(),
            metadata: match self.metadata {
                Some(metadata) => labels::metadata_of(&metadata)?,
                None => Map::new(),
            },
        };
        let wrong = |words: String| Refusal::new(Kind::Malformed, "bad_query", words);
        filter.check().map_err(|error| wrong(error.to_string()))?;
        if filter.agent.is_some() {
            let catalogue = call.catalogue()?;
            filter.split_agent(&catalogue).map_err(|error| wrong(error.to_string()))?;
        }
        Ok(filter)
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
        Ok(ChangeOutput::of(task_id, output, json!({ "reason": reason })))
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
        Ok(ChangeOutput::of(self.id, output, json!({})))
    }
}

impl Change for ChangeTaskPriority {
    const SPEC: Spec =
        Spec::change("change_task_priority", "/v1/tasks/{id}/priority", "task priority")
            .tag(TAG)
            .by(Method::Patch)
            .refuses(&[
                Error::UNKNOWN,
                Error::ENDED,
                Error::NOT_WAITING,
                Error::REQUEUED,
                BAD_ARGUMENT,
            ]);
    const ACTION: Action = Action::TaskPriority;
    type Output = TaskPriority;

    async fn change(self, conn: &mut PgConnection, _: &Call) -> ChangeResult<TaskPriority> {
        let output = tasks::change_priority(conn, self.id, self.priority).await?;
        if output.priority == output.before {
            return Ok(ChangeOutput::nothing(self.id, output));
        }
        let data = json!({ "priority": output.priority, "before": output.before });
        Ok(ChangeOutput::of(self.id, output, data))
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
