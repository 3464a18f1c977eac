//! Checks of query parameters: a route accepts those in its description, and refuses all others.
//!
//! Ignoring a parameter would be worse: `?dry_run=true` on a route without it would do the work.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    extract::{MatchedPath, Query, Request, State},
    http::{Method, StatusCode},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use serde_json::Value;

use super::{Problem, openapi};

/// Query parameters of each route, by path and lower-case method.
#[derive(Debug, Clone)]
pub(super) struct Parameters(Arc<BTreeMap<String, BTreeMap<String, Vec<String>>>>);

/// Refuses requests with a query parameter that their route does not have.
pub(super) async fn refuse_unknown_parameters(
    State(parameters): State<Parameters>,
    request: Request,
    next: Next,
) -> Response {
    match parameters.check(&request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

impl Parameters {
    /// Reads the parameters from the API document.
    pub(super) fn from_document() -> Self {
        let document: Value = serde_json::from_str(openapi::document()).unwrap_or_default();
        let paths = document["paths"].as_object().into_iter().flatten();
        let routes = paths.map(|(path, operations)| {
            let operations = operations.as_object().into_iter().flatten();
            let names = operations.map(|(method, about)| (method.clone(), query_names(about)));
            (path.clone(), names.collect())
        });
        Self(Arc::new(routes.collect()))
    }

    fn check(&self, request: &Request) -> Result<(), Problem> {
        let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
        // Unknown routes are left to the router.
        let Some(methods) = path.and_then(|path| self.0.get(path)) else { return Ok(()) };
        let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
        let Some(known) = methods.get(&method.as_str().to_ascii_lowercase()) else { return Ok(()) };
        let sent = Query::<Vec<(String, String)>>::try_from_uri(request.uri());
        let Query(sent) = sent.map_err(|error| {
            Problem::new(StatusCode::BAD_REQUEST, "bad_query", error.body_text())
        })?;
        match sent.into_iter().find(|(name, _)| !known.contains(name)) {
            Some((name, _)) => Err(unknown(&name, known)),
            None => Ok(()),
        }
    }
}

fn query_names(operation: &Value) -> Vec<String> {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let in_query = parameters.filter(|parameter| parameter["in"] == "query");
    in_query.filter_map(|parameter| parameter["name"].as_str().map(str::to_owned)).collect()
}

fn unknown(name: &str, known: &[String]) -> Problem {
    let advice = match known {
        [] => "this route has none".to_owned(),
        known => format!("this route has `{}`", known.join("`, `")),
    };
    let detail = format!("unknown query parameter `{name}`: {advice}");
    Problem::new(StatusCode::BAD_REQUEST, "bad_query", detail)
}
