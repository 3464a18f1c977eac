//! `POST /v1/campaigns/{id}/posts`. `/v1/feed` tells of each post as `post.added`.

use axum::{
    Json, Router,
    http::{HeaderMap, HeaderValue, StatusCode},
    response::{IntoResponse as _, Response},
    routing::post,
};
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::{
    Front, Problem,
    idempotency::{REPLAYED, key},
    input::{Body, Id},
    transaction::begin,
};
use crate::{
    app::App,
    domain::{
        audit::{self, Action, Actor},
        mentions::{self, Posted},
    },
};

pub(super) fn routes() -> Router<Front> {
    Router::new().route("/v1/campaigns/{id}/posts", post(add))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(add))]
pub(super) struct Described;

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewPost, example = json!({ "audience": ["copywriter"], "text": "Mind the tides." }))]
struct New {
    #[schema(min_length = 1)]
    text: String,
    /// Who sees it besides those whom the text mentions: agents, their other instances as `curator_2` or `curator/2`, `operator`, or `all`.
    /// Without it and without a mention, the lead is asked.
    #[schema(max_items = 200)]
    audience: Option<Vec<String>>,
    /// The post that it answers.
    reply_to: Option<Uuid>,
}

/// Posts as the operator.
///
/// Each agent that the text mentions as `@name` gets a task, `@all` means all of them; its answer is a post that answers. Whom a post
/// is addressed to sees it with the next turn; the operator and the lead see everything. The same Idempotency-Key and question give
/// the same post again, with 200, for as long as the campaign is there; another question under the key is a conflict.
#[utoipa::path(
    post,
    path = "/v1/campaigns/{id}/posts",
    operation_id = "add_post",
    tag = "board",
    params(
        ("id" = Uuid, Path, description = "The campaign"),
        ("Idempotency-Key" = Option<String>, Header, description = "At most 195 visible ASCII characters", max_length = 195, pattern = "^[!-~][ -~]*$"),
    ),
    request_body = New,
    responses(
        (status = 201, body = Posted),
        (
            status = 200,
            body = Posted,
            description = "An earlier request with this key made it",
            headers(("Idempotent-Replayed" = String, description = "`true`")),
        ),
        (status = 400, description = "`bad_idempotency_key`"),
        (status = 404, description = "`unknown_campaign`, `unknown_post`"),
        (status = 409, description = "`campaign_closed`, `budget_exceeded`, `idempotency_conflict`"),
        (status = 413, description = "`text_too_long`, `too_many_names`"),
        (status = 422, description = "`empty_text`, `nul_in_text`, `unknown_names`, `no_audience`, `bad_idempotency_key`"),
    ),
)]
async fn add(
    app: App,
    who: Actor,
    Id(campaign_id): Id,
    headers: HeaderMap,
    Body(asked): Body<New>,
) -> Result<Response, Problem> {
    let (catalogue, added_by, now) = (app.agents.current(), who.label(), app.clock.now());
    let new = mentions::Asked {
        campaign_id,
        text: &asked.text,
        to: asked.audience.as_deref(),
        reply_to: asked.reply_to,
        idempotency_key: key(&headers)?,
        added_by: &added_by,
    };
    let limits = (&app.config.mentions, &app.config.tasks);
    let mut tx = begin(&app).await?;
    let posted = mentions::post(&mut tx, &catalogue, limits, &new, now).await?;
    if !posted.created {
        let replayed = [(REPLAYED, HeaderValue::from_static("true"))];
        return Ok((replayed, Json(posted)).into_response());
    }
    let post = &posted.post;
    let data = json!({ "post_id": post.id, "seq": post.seq, "audience": post.audience });
    audit::write(&mut *tx, &who, Action::PostAdd, campaign_id, data, now).await?;
    tx.commit().await?;
    Ok((StatusCode::CREATED, Json(posted)).into_response())
}
