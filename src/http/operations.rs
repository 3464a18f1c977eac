//! Operations as routes: reads the input of a request, runs the operation, answers with its output.

use axum::{
    Extension, Router,
    extract::{FromRequestParts as _, Query, RawPathParams, Request, State},
    http::{
        HeaderValue, StatusCode, Uri,
        header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION},
        request::Parts,
    },
    response::{IntoResponse as _, Response},
    routing::{MethodFilter, on},
};
use serde_json::Value;

use super::{Front, Problem, auth::past_the_door, input::json, transaction::limits};
use crate::operations::{self, Admission, Call, Entry, Fields, Method, Success};

pub(super) fn routes(admission: Admission) -> Router<Front> {
    let routes = operations::ALL.iter().fold(Router::new(), |router, entry| {
        let answer =
            move |State(front): State<Front>, request: Request| answer(entry, front, request);
        router.route(entry.spec.path, on(filter(entry.spec.method), answer))
    });
    routes.layer(Extension(admission))
}

async fn answer(
    entry: &'static Entry,
    front: Front,
    request: Request,
) -> Result<Response, Problem> {
    let app = front.app()?;
    let (mut parts, body) = request.into_parts();
    let path = path_fields(entry, &mut parts, &front).await?;
    let fields = match entry.spec.method.has_body() {
        true => {
            let body = json(Request::from_parts(parts.clone(), body), &front).await?;
            Fields { path, json: Some(body.to_vec()), ..Fields::default() }
        }
        false => Fields { path, query: query_fields(&parts.uri)?, json: None },
    };
    let call = Call {
        pool: app.pool.clone(),
        config: app.config.clone(),
        actor: extension(&parts)?,
        reach: extension(&parts)?,
        limits: Some(limits(&app)),
        admission: extension(&parts)?,
        now: app.clock.now(),
        agents: std::sync::Arc::new(move || Ok(app.agents.current())),
    };
    let output = (entry.run)(fields, call).await?;
    let status = StatusCode::from_u16(entry.spec.success as u16).unwrap_or_default();
    let mut response = match (entry.spec.success, entry.spec.location) {
        (Success::NoContent, _) => status.into_response(),
        (_, None) => (status, JSON, output).into_response(),
        (_, Some(path)) => {
            (status, JSON, [(LOCATION, filled(path, &output))], output).into_response()
        }
    };
    if entry.spec.has_secret {
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    Ok(response)
}

/// A path with fields of the output in it.
fn filled(path: &str, output: &[u8]) -> String {
    let output: Value = serde_json::from_slice(output).unwrap_or_default();
    let part = |part: &str| match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
        Some(name) => match &output[name] {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        },
        None => part.to_owned(),
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
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
        Method::Patch => MethodFilter::PATCH,
        Method::Delete => MethodFilter::DELETE,
    }
}
