//! Operations as routes: reads the input of a request, runs the operation, answers with its output.

use axum::{
    Router,
    extract::{FromRequestParts as _, Query, RawPathParams, Request, State},
    http::{StatusCode, Uri, header::CONTENT_TYPE, request::Parts},
    response::{IntoResponse as _, Response},
    routing::{MethodFilter, on},
};

use super::{Front, Problem, auth::past_the_door, input::json, transaction::limits};
use crate::operations::{self, Call, Entry, Fields, Method, Success};

pub(super) fn routes() -> Router<Front> {
    operations::ALL.iter().fold(Router::new(), |router, entry| {
        let answer =
            move |State(front): State<Front>, request: Request| answer(entry, front, request);
        router.route(entry.spec.path, on(filter(entry.spec.method), answer))
    })
}

async fn answer(
    entry: &'static Entry,
    front: Front,
    request: Request,
) -> Result<Response, Problem> {
    let app = front.app()?;
    let (mut parts, body) = request.into_parts();
    let path = path_fields(entry, &mut parts, &front).await?;
    let call = Call {
        pool: app.pool.clone(),
        config: app.config.clone(),
        actor: extension(&parts)?,
        reach: extension(&parts)?,
        limits: Some(limits(&app)),
        now: app.clock.now(),
        agents: std::sync::Arc::new(move || Ok(app.agents.current())),
    };
    let fields = match entry.spec.method.has_body() {
        true => {
            let body = json(Request::from_parts(parts, body), &front).await?;
            Fields { path, json: Some(body.to_vec()), ..Fields::default() }
        }
        false => Fields { path, query: query_fields(&parts.uri)?, json: None },
    };
    let output = (entry.run)(fields, call).await?;
    Ok(match entry.spec.success {
        Success::NoContent => StatusCode::NO_CONTENT.into_response(),
        Success::Accepted => (StatusCode::ACCEPTED, JSON, output).into_response(),
        Success::Ok => (StatusCode::OK, JSON, output).into_response(),
    })
}

const JSON: [(axum::http::HeaderName, &str); 1] = [(CONTENT_TYPE, "application/json")];

async fn path_fields(
    entry: &Entry,
    parts: &mut Parts,
    front: &Front,
) -> Result<Vec<(&'static str, String)>, Problem> {
    let params = RawPathParams::from_request_parts(parts, front).await;
    let params = params.map_err(|error| {
        // Not UTF-8, so no id and no name.
        let code = if entry.spec.path.contains("{id}") { "bad_id" } else { "bad_name" };
        Problem::new(StatusCode::BAD_REQUEST, code, error.body_text())
    })?;
    let names = entry.spec.path_fields();
    Ok(names.zip(&params).map(|(name, (_, text))| (name, text.to_owned())).collect())
}

fn query_fields(uri: &Uri) -> Result<Vec<(String, String)>, Problem> {
    match Query::try_from_uri(uri) {
        Ok(Query(fields)) => Ok(fields),
        Err(error) => Err(Problem::new(StatusCode::BAD_REQUEST, "bad_query", error.body_text())),
    }
}

fn extension<T: Clone + Send + Sync + 'static>(parts: &Parts) -> Result<T, Problem> {
    parts.extensions.get::<T>().cloned().ok_or_else(past_the_door)
}

fn filter(method: Method) -> MethodFilter {
    match method {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Put => MethodFilter::PUT,
        Method::Delete => MethodFilter::DELETE,
    }
}
