//! `POST /v1/campaigns/{id}/tasks/bulk`: many tasks in one transaction, all or none.
//!
//! A mistake in one of them is pointed at, so that a client can mend them all before it asks again.

use std::fmt;

use axum::{
    Extension, Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, FromRequest, Request},
    http::{HeaderValue, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{
    Config, Front, Problem, Wrong,
    input::{Id, bytes, media_type},
    limits::BodyLimit,
    reach::Reach,
    tasks::REPLAYED,
    transaction::begin,
};
use crate::{
    app::App,
    domain::{
        audit::Actor,
        class::Classify as _,
        tasks::{self, BulkError, Line, MAX_TASKS, New, Placed},
    },
    operations::Admission,
};

const NDJSON: &str = "application/x-ndjson";
/// Whoever has more wrong ones has one mistake many times.
const MAX_WRONG: usize = 100;

pub(super) fn routes(config: &Config, admission: Admission) -> Router<Front> {
    Router::new()
        .route("/v1/campaigns/{id}/tasks/bulk", post(add_many))
        .layer(DefaultBodyLimit::max(config.max_bulk_bytes))
        .layer(Extension(BodyLimit(config.max_bulk_bytes)))
        .layer(Extension(admission))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(add_many))]
pub(super) struct Described;

/// In the order of the request.
#[derive(Serialize, utoipa::ToSchema)]
struct AddedMany {
    /// How many are new.
    created: usize,
    items: Vec<Placed>,
}

/// The tasks of a body.
struct Lines(Vec<Line>);

/// Asks agents to do many things: at most 10,000, in one transaction, all or none.
///
/// The body is a JSON array, or one object per line (NDJSON). Each task may have an idempotency_key of its own, so that the same
/// request can be sent again. Where tasks are refused, `errors` points at each of them, up to a hundred.
#[utoipa::path(
    post,
    path = "/v1/campaigns/{id}/tasks/bulk",
    operation_id = "add_many_tasks",
    tag = "tasks",
    params(("id" = Uuid, Path, description = "The campaign")),
    request_body(content(
        (Vec<Line> = "application/json"),
        (String = "application/x-ndjson"),
    )),
    responses(
        (status = 201, body = AddedMany),
        (
            status = 200,
            body = AddedMany,
            description = "Earlier requests with these keys made all of them",
            headers(("Idempotent-Replayed" = String, description = "`true`")),
        ),
        (status = 404, description = "`unknown_campaign`"),
        (status = 409, description = "`campaign_closed`, `budget_exceeded`, `idempotency_conflict`"),
        (status = 413, description = "`too_many_tasks`"),
        (status = 422, description = "`bad_items`, `no_tasks`, `bad_argument`, `bad_value`"),
        (status = 503, description = "`queue_full`", headers(("Retry-After" = i32, description = "Seconds"))),
    ),
)]
async fn add_many(
    app: App,
    who: Actor,
    reach: Reach,
    Id(campaign_id): Id,
    Extension(admission): Extension<Admission>,
    Lines(lines): Lines,
) -> Result<Response, Problem> {
    let (catalogue, added_by) = (app.agents.current(), who.label());
    let asked =
        lines.iter().map(|line| line.asked_of(campaign_id, &catalogue, &added_by, reach.only_of()));
    let news: Vec<New<'_>> = all(asked, |error| Wrong {
        code: Some(error.class().code),
        pointer: format!("/{}", error.noun().as_str()),
        detail: error.to_string(),
    })?;
    let room = admission.admit(&app.pool, app.config.max_waiting, news.len() as u64).await?;
    let mut tx = begin(&app).await?;
    let (config, now) = (&app.config.tasks, app.clock.now());
    let items = tasks::add_many(&mut tx, config, campaign_id, &news, now).await.map_err(refused)?;
    tx.commit().await?;
    let created = items.iter().filter(|item| item.created).count();
    room.used(created as u64);
    let answer = Json(AddedMany { created, items });
    Ok(match created {
        0 => ([(REPLAYED, HeaderValue::from_static("true"))], answer).into_response(),
        _ => (StatusCode::CREATED, answer).into_response(),
    })
}

impl FromRequest<Front> for Lines {
    type Rejection = Problem;

    async fn from_request(request: Request, front: &Front) -> Result<Self, Problem> {
        let kind = media_type(&request).to_ascii_lowercase();
        let body: Bytes = bytes(request, front, "http.max_bulk_bytes").await?;
        let lines = match kind.as_str() {
            NDJSON => read_all(lines_of(&body)?.into_iter()),
            "application/json" => {
                let Items(items) = serde_json::from_slice(&body).map_err(|error| {
                    let detail = format!("the request body is not a valid JSON array: {error}");
                    Problem::new(StatusCode::BAD_REQUEST, "bad_json", detail)
                })?;
                read_all(items.into_iter().map(RawValue::get))
            }
            _ => {
                let detail = format!(
                    "send the tasks as a JSON array with `Content-Type: application/json`, or one per line with `{NDJSON}`"
                );
                Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", detail))
            }
        }?;
        Ok(Self(lines))
    }
}

/// The items of an array, one more than there may be at most: the rest is read over.
struct Items<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for Items<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Collect)
    }
}

struct Collect;

impl<'de> Visitor<'de> for Collect {
    type Value = Items<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array of tasks")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Items<'de>, A::Error> {
        let mut items = Vec::new();
        while items.len() <= MAX_TASKS {
            match seq.next_element()? {
                Some(item) => items.push(item),
                None => return Ok(Items(items)),
            }
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Items(items))
    }
}

fn lines_of(body: &[u8]) -> Result<Vec<&str>, Problem> {
    let text = std::str::from_utf8(body).map_err(|error| {
        let detail = format!("the body is no UTF-8: {error}");
        Problem::new(StatusCode::BAD_REQUEST, "bad_json", detail)
    })?;
    // One more than there may be is enough to say no; a body of nothing but ends of lines has millions.
    Ok(text.lines().filter(|line| !line.trim().is_empty()).take(MAX_TASKS + 1).collect())
}

fn read_all<'a>(texts: impl ExactSizeIterator<Item = &'a str>) -> Result<Vec<Line>, Problem> {
    match texts.len() {
        0 => {
            let detail = "there is no task in the body: send at least one";
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "no_tasks", detail))
        }
        n_tasks if n_tasks > MAX_TASKS => {
            let detail = format!(
                "more than {MAX_TASKS} tasks are too many for one request: send so many at a time"
            );
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_many_tasks", detail))
        }
        _ => all(texts.map(Line::read), |bad| Wrong {
            code: Some("bad_field"),
            pointer: bad.pointer,
            detail: bad.detail,
        }),
    }
}

/// All of them, or a problem that points at each that is wrong. `word` points within one.
fn all<T, E>(
    read: impl Iterator<Item = Result<T, E>>,
    word: impl Fn(E) -> Wrong,
) -> Result<Vec<T>, Problem> {
    let (mut items, mut wrong) = (Vec::new(), Vec::new());
    for (place, read) in read.enumerate() {
        match read {
            Ok(item) => items.push(item),
            Err(error) => {
                let found = word(error);
                wrong.push(Wrong { pointer: format!("/{place}{}", found.pointer), ..found });
            }
        }
    }
    if wrong.is_empty() { Ok(items) } else { Err(bad_items(wrong)) }
}

fn bad_items(mut wrong: Vec<Wrong>) -> Problem {
    let detail = format!(
        "{} of the tasks cannot be taken in, and none was: `errors` points at them",
        wrong.len()
    );
    wrong.truncate(MAX_WRONG);
    let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_items", detail);
    Problem { errors: wrong, ..problem }
}

fn refused(error: BulkError) -> Problem {
    match error {
        BulkError::All(error) => error.into(),
        BulkError::Items(wrong) => {
            let wrong = wrong.into_iter().map(|(place, error)| Wrong {
                code: Some(error.class().code),
                pointer: format!("/{place}"),
                detail: error.to_string(),
            });
            bad_items(wrong.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_body_with_too_many_tasks_one_more_than_allowed_is_kept() {
        let body = format!("[{}0]", "0,".repeat(3 * MAX_TASKS));
        let Items(items) = serde_json::from_str(&body).unwrap();
        assert_eq!(items.len(), MAX_TASKS + 1);
        let ends = "\n".repeat(10) + &"{}\n".repeat(3 * MAX_TASKS);
        assert_eq!(lines_of(ends.as_bytes()).unwrap().len(), MAX_TASKS + 1);
        // What comes behind is read over, not passed over: it has to be JSON all the same.
        assert!(serde_json::from_str::<Items<'_>>(&body.replace("0]", "x]")).is_err());
    }
}
