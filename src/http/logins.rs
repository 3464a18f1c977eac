//! `/v1/logins`.

use axum::{
    Json, Router,
    routing::{get, post},
};
use serde::Serialize;
use serde_json::json;

use super::{
    Front, Problem,
    input::{Body, Name},
    tasks::Nothing,
    transaction::{begin, begin_read, commit},
};
use crate::{
    app::App,
    domain::{
        audit::{self, Action, Actor},
        logins::{self, Login},
    },
};

pub(super) fn routes() -> Router<Front> {
    Router::new().route("/v1/logins", get(list)).route("/v1/logins/{name}/resume", post(resume))
}

/// There are a handful: all of them are one page.
#[derive(utoipa::OpenApi)]
#[openapi(paths(list, resume))]
pub(super) struct Described;

#[derive(Serialize, utoipa::ToSchema)]
struct Logins {
    items: Vec<Login>,
}

#[derive(Serialize, utoipa::ToSchema)]
struct ResumedLogin {
    login: String,
    woken_tasks: i64,
}

/// Lists logins of providers, and which of them rest.
#[utoipa::path(
    get,
    path = "/v1/logins",
    operation_id = "list_logins",
    tag = "logins",
    responses((status = 200, body = Logins)),
)]
async fn list(app: App) -> Result<Json<Logins>, Problem> {
    let configured = app.config.logins.iter();
    let configured: Vec<_> = configured.map(|(on, name)| (on.as_str(), name.as_str())).collect();
    let mut tx = begin_read(&app).await?;
    let items = logins::list(&mut tx, &configured, app.clock.now()).await?;
    Ok(Json(Logins { items }))
}

/// Ends a login's rest before its time.
#[utoipa::path(
    post,
    path = "/v1/logins/{name}/resume",
    operation_id = "resume_login",
    tag = "logins",
    params(("name" = String, Path)),
    request_body = Nothing,
    responses(
        (status = 200, body = ResumedLogin),
        (status = 404, description = "`login_not_resting`"),
        (status = 422, description = "`bad_value`"),
    ),
)]
async fn resume(
    app: App,
    who: Actor,
    Name(name): Name,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<ResumedLogin>, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let n_woken = logins::resume(&mut tx, &name, now).await?;
    let data = json!({ "woken_tasks": n_woken });
    audit::write(&mut *tx, &who, Action::LoginResume, &name, data, now).await?;
    commit(tx).await?;
    Ok(Json(ResumedLogin { login: name, woken_tasks: n_woken }))
}
