//! Routes of the operations: each reads the input of a request, runs the operation, and answers with its output, stream
//! or file.

use std::{collections::BTreeMap, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Extension, Router,
    extract::{DefaultBodyLimit, FromRequestParts as _, Query, RawPathParams, Request, State},
    http::{
        HeaderName, HeaderValue, StatusCode, Uri,
        header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION},
        request::Parts,
    },
    response::{IntoResponse as _, Response},
    routing::{MethodFilter, MethodRouter, on},
};
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

use super::{
    Config, Problem, RouterState,
    auth::{KeyWatch, unauthenticated_fault},
    downloads::download_response,
    idempotency::{self, REPLAYED},
    input::{form, is_form, items, json, no_body},
    limits::BodyLimit,
    multipart::Form,
    streams,
    waiters::Waiters,
};
use crate::{
    app::App,
    operations::{
        self, Admission, Call, Entry, Fields, Intake, JsonOutput, Limits, Method, Run, Spec,
        Success, Waits,
    },
    traces,
};

/// Maximum number of requests that read whole tables at once.
const MAX_SCANS: usize = 2;
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// State that the calls of all requests share.
#[derive(Clone)]
pub(super) struct CallState {
    admission: Admission,
    intake: Intake,
    waiters: Waiters,
    scans: Arc<Semaphore>,
}

impl CallState {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            admission: Admission::default(),
            intake: Intake::default(),
            waiters: Waiters::new(config),
            scans: Arc::new(Semaphore::new(MAX_SCANS)),
        }
    }
}

pub(super) fn routes(config: &Config, calls: CallState) -> Router<RouterState> {
    let routes = operations::ALL.iter().fold(Router::new(), |router, entry| {
        let answer =
            move |State(front): State<RouterState>, request: Request| answer(entry, front, request);
        let mut route: MethodRouter<RouterState> = on(filter(entry.spec.method), answer);
        if entry.spec.has_long_body() {
            let limit = config.max_bulk_bytes;
            let limits = (DefaultBodyLimit::max(limit), Extension(BodyLimit(limit)));
            route = route.layer::<_, Infallible>(limits);
        }
        router.route(entry.spec.path, route)
    });
    routes.layer(Extension(calls))
}

async fn answer(
    entry: &'static Entry,
    front: RouterState,
    request: Request,
) -> Result<Response, Problem> {
    let app = front.app()?;
    let (mut parts, body) = request.into_parts();
    let path = path_fields(entry, &mut parts, &front).await?;
    let request = Request::from_parts(parts.clone(), body);
    let fields = match (entry.spec.items, entry.spec.method.has_body()) {
        (Some(_), _) => {
            Fields { path, items: Some(items(request, &front).await?), ..Fields::default() }
        }
        (None, true) if entry.spec.takes_files && is_form(&request) => {
            let Form { json, files } = form(request, &front, entry.spec.body_limit()).await?;
            Fields { path, json: Some(json), files, ..Fields::default() }
        }
        (None, true) => {
            let json = json(request, &front, entry.spec.body_limit()).await?;
            Fields { path, json: Some(json.into()), ..Fields::default() }
        }
        (None, false) => {
            no_body(request).await?;
            Fields { path, query: query_fields(&parts.uri)?, ..Fields::default() }
        }
    };
    let shared = extension::<CallState>(&parts)?;
    let call = call(&entry.spec, &app, &parts, &shared)?;
    match entry.run {
        Run::Once(run) => Ok(success_response(&entry.spec, run(fields, call).await?)),
        Run::Download(run) => Ok(download_response(run(fields, call).await?)),
        Run::Stream { open, .. } => {
            let last_id = parts.headers.get(LAST_EVENT_ID);
            let last_id = last_id.map(|id| id.to_str().unwrap_or_default().to_owned());
            let pass: KeyWatch = extension(&parts)?;
            let place = shared.waiters.take_place(pass.holder())?;
            let events = open(fields, call, last_id).await?;
            Ok(streams::stream_response(events, place, streams::wait_for_end(&app, pass)))
        }
    }
}

fn call(spec: &Spec, app: &App, parts: &Parts, shared: &CallState) -> Result<Call, Problem> {
    let key = if spec.reads_key() { idempotency::key(&parts.headers)? } else { None };
    let call = base_call(app, parts, shared)?;
    Ok(Call { idempotency_key: key.map(str::to_owned), ..call })
}

/// Builds the context of a call without an idempotency key.
pub(super) fn base_call(app: &App, parts: &Parts, shared: &CallState) -> Result<Call, Problem> {
    let trace = parts.headers.get("traceparent").and_then(|header| header.to_str().ok());
    let (waiters, holder) = (shared.waiters.clone(), extension::<KeyWatch>(parts)?.holder());
    let waits = Waits {
        enter: Box::new(move || Ok(Box::new(waiters.take_place(holder)?))),
        stop: app.shutdown.soft.clone(),
    };
    let agents = Arc::clone(&app.agents);
    Ok(Call {
        pool: app.pool.clone(),
        config: app.config.clone(),
        actor: extension(parts)?,
        reach: extension(parts)?,
        limits: Some(limits(app, shared)),
        waits: Some(Arc::new(waits)),
        admission: shared.admission.clone(),
        intake: shared.intake.clone(),
        idempotency_key: None,
        traces: app.traces.clone(),
        trace: trace.and_then(traces::Context::parse),
        now: app.clock.now(),
        clock: app.clock.clone(),
        agents: Arc::new(move || Ok(agents.current())),
        previews: app.previews.clone(),
        rerun_routes: app.rerun_routes.clone(),
        examination: app.examination.clone(),
        meanings: Arc::clone(&app.tools.meanings),
    })
}

fn success_response(spec: &Spec, JsonOutput { json, is_replay }: JsonOutput) -> Response {
    // A replayed creation is answered 200 instead of 201.
    let is_there = is_replay && spec.success == Success::Created;
    let status = StatusCode::from_u16(if is_there { 200 } else { spec.success as u16 });
    let status = status.unwrap_or_default();
    let location = spec.location.map(|path| [(LOCATION, filled(path, &json))]);
    let mut response = match (spec.success, location) {
        (Success::NoContent, _) => status.into_response(),
        (_, None) => (status, JSON, json).into_response(),
        (_, Some(location)) => (status, JSON, location, json).into_response(),
    };
    let headers = response.headers_mut();
    if is_replay {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    }
    if spec.has_secret {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

fn limits(app: &App, shared: &CallState) -> Limits {
    let longest = Duration::from_secs(app.config.request_timeout_secs);
    Limits { places: app.places.clone(), scans: shared.scans.clone(), longest }
}

/// Fills the fields of an output into a path.
fn filled(path: &str, output: &[u8]) -> String {
    let output: BTreeMap<String, &RawValue> = serde_json::from_slice(output).unwrap_or_default();
    let part = |part: &str| match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
        Some(name) => {
            let value = output.get(name).map(|value| value.get()).unwrap_or_default();
            value.trim_matches('"').to_owned()
        }
        None => part.to_owned(),
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

const JSON: [(HeaderName, &str); 1] = [(CONTENT_TYPE, "application/json")];

async fn path_fields(
    entry: &Entry,
    parts: &mut Parts,
    front: &RouterState,
) -> Result<Vec<(&'static str, String)>, Problem> {
    let params = RawPathParams::from_request_parts(parts, front).await;
    let params = params.map_err(|error| {
        // The text is not UTF-8, so it is an invalid id or name.
        let code = if entry.spec.path.contains("id}") { "bad_id" } else { "bad_name" };
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

pub(super) fn extension<T: Clone + Send + Sync + 'static>(parts: &Parts) -> Result<T, Problem> {
    parts.extensions.get::<T>().cloned().ok_or_else(unauthenticated_fault)
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
