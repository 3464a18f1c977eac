//! `POST /v1/tasks/{id}/children`: a task hands work out and takes it up again, in one request.

use axum::{
    Extension, Json, Router,
    http::{HeaderMap, HeaderValue, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use serde::{Deserialize, Serialize};

use super::{
    Front, Problem, Wrong,
    input::{Body, Id},
    reach::Reach,
    tasks::{REPLAYED, key},
    transaction::begin,
};
use crate::{
    app::App,
    domain::{
        audit::Actor,
        class::Classify,
        tasks::{self, BulkError, Children, Line, New, Placed, child_key},
    },
    operations::Admission,
};

pub(super) fn routes(admission: Admission) -> Router<Front> {
    Router::new().route("/v1/tasks/{id}/children", post(hand_out)).layer(Extension(admission))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(hand_out))]
pub(super) struct Described;

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewChildren, example = json!({
    "children": [
        { "agent": "copywriter", "instance": "part_1", "prompt": "Write part one." },
        { "agent": "copywriter", "instance": "part_2", "prompt": "Write part two." },
    ],
    "continuation": { "prompt": "Put the parts together." },
}))]
struct Handed {
    #[schema(min_items = 1, max_items = 1000)]
    children: Vec<Line>,
    continuation: Continuation,
}

/// What the agent of the task is asked, in its own conversation, when all children have ended.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct Continuation {
    #[schema(min_length = 1)]
    prompt: String,
}

#[derive(Serialize, utoipa::ToSchema)]
struct HandedOut {
    /// In the order of the request.
    children: Vec<Placed>,
    continuation: Placed,
}

/// Hands work out to children, and has the task's own agent go on when all of them have ended.
///
/// All of it is added or nothing. The continuation is a task of the same agent and instance; it is told what each child came to, failures
/// included, in the order of the request. Whoever cancels the task cancels its children and its continuation. The same
/// Idempotency-Key and question give the same tasks again, with 200; a child without a key of its own gets one of that. An API key
/// with the scope `enqueue` alone hands out from tasks that keys of its name have added.
#[utoipa::path(
    post,
    path = "/v1/tasks/{id}/children",
    operation_id = "hand_out",
    tag = "tasks",
    params(
        ("id" = Uuid, Path, description = "The task: one that runs or is done"),
        ("Idempotency-Key" = Option<String>, Header, description = "At most 190 visible ASCII characters", max_length = 190, pattern = "^[!-~][ -~]*$"),
    ),
    request_body = Handed,
    responses(
        (status = 201, body = HandedOut),
        (
            status = 200,
            body = HandedOut,
            description = "An earlier request with this key made all of them",
            headers(("Idempotent-Replayed" = String, description = "`true`")),
        ),
        (status = 400, description = "`bad_idempotency_key`"),
        (status = 404, description = "`unknown_task`, `unknown_agent`, `unknown_node`, `unknown_predecessor`"),
        (status = 409, description = "`no_parent`, `campaign_closed`, `budget_exceeded`, `broken_agent`, `broken_node`"),
        (status = 422, description = "`bad_items`, `bad_argument`, `bad_value`"),
        (status = 503, description = "`queue_full`", headers(("Retry-After" = i32, description = "Seconds"))),
    ),
)]
async fn hand_out(
    app: App,
    who: Actor,
    reach: Reach,
    Id(id): Id,
    Extension(admission): Extension<Admission>,
    headers: HeaderMap,
    Body(mut asked): Body<Handed>,
) -> Result<Response, Problem> {
    let (catalogue, added_by, key) = (app.agents.current(), who.label(), key(&headers)?);
    if let Some(key) = key {
        for (place, child) in asked.children.iter_mut().enumerate() {
            child.idempotency_key.get_or_insert_with(|| child_key(key, place));
        }
    }
    let parent = tasks::get(&app.pool, id).await?;
    let children: Vec<New<'_>> = asked
        .children
        .iter()
        .map(|child| child.asked_of(parent.campaign_id, &catalogue, &added_by, reach.only_of()))
        .collect::<Result<_, _>>()?;
    let what = Children {
        parent: &parent,
        agent: catalogue.agent(&parent.agent)?,
        children: &children,
        continuation: &asked.continuation.prompt,
        idempotency_key: key,
        added_by: Some(&added_by),
    };
    let room =
        admission.admit(&app.pool, app.config.max_waiting, children.len() as u64 + 1).await?;
    let mut tx = begin(&app).await?;
    let made = tasks::fan_out(&mut tx, &app.config.tasks, &what, app.clock.now()).await;
    let made = made.map_err(|error| refused(error, children.len()))?;
    tx.commit().await?;
    let all = made.children.iter().chain([&made.continuation]);
    let created = all.filter(|one| one.created).count();
    room.used(created as u64);
    let answer = Json(HandedOut { children: made.children, continuation: made.continuation });
    Ok(match created {
        0 => ([(REPLAYED, HeaderValue::from_static("true"))], answer).into_response(),
        _ => (StatusCode::CREATED, answer).into_response(),
    })
}

/// The one behind the children is their continuation.
fn refused(error: BulkError, n_children: usize) -> Problem {
    let wrong = match error {
        BulkError::All(error) => return error.into(),
        BulkError::Items(wrong) => wrong,
    };
    let detail = format!(
        "{} of the tasks cannot be taken in, and none was: `errors` points at them",
        wrong.len()
    );
    let point = |(place, error): (usize, tasks::Error)| Wrong {
        code: Some(error.class().code),
        pointer: match place < n_children {
            true => format!("/children/{place}"),
            false => "/continuation".to_owned(),
        },
        detail: error.to_string(),
    };
    let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_items", detail);
    Problem { errors: wrong.into_iter().map(point).collect(), ..problem }
}
