//! `/v1/logins`.

use axum::{
    Json, Router,
    routing::{get, post},
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Front, Problem,
    input::{Body, Name},
    tasks::Nothing,
};
use crate::{
    app::App,
    domain::{
        audit::{self, Action, Actor},
        logins::{self, Login},
        transaction::{begin, commit},
    },
};

pub(super) fn routes() -> Router<Front> {
    Router::new().route("/v1/logins", get(list)).route("/v1/logins/{name}/resume", post(resume))
}

/// There are a handful: all of them are one page.
#[derive(Serialize)]
struct Logins {
    items: Vec<Login>,
}

async fn list(app: App) -> Result<Json<Logins>, Problem> {
    let configured: Vec<_> = app.config.logins().collect();
    let mut tx = begin(&app.pool).await?;
    let items = logins::list(&mut tx, &configured, app.clock.now()).await?;
    Ok(Json(Logins { items }))
}

/// Ends its rest before its time.
async fn resume(
    app: App,
    who: Actor,
    Name(name): Name,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Value>, Problem> {
    let (mut tx, now) = (begin(&app.pool).await?, app.clock.now());
    let n_woken = logins::resume(&mut tx, &name, now).await?;
    let data = json!({ "woken_tasks": n_woken });
    audit::write(&mut *tx, &who, Action::LoginResume, &name, data, now).await?;
    commit(tx).await?;
    Ok(Json(json!({ "login": name, "woken_tasks": n_woken })))
}
