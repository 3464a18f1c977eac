//! The tools over the Model Context Protocol: `/mcp/{id}` of the service for people and other systems, and `/mcp` of
//! each worker for the turns that it runs.
//!
//! A worker has its own listener, on loopback and on a port that the system chooses. A turn therefore reaches its tools
//! on each host, independent of the service's address, until its worker has ended it.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{StatusCode, header::CONTENT_TYPE},
    middleware,
    response::{IntoResponse as _, Response},
    routing::{any, post},
};
use secrecy::SecretString;
use tokio::net::TcpListener;

use super::{
    Config, Problem, RouterState, auth, guard, input::Id, limits::check_declared_length, metrics,
    reach::Reach, serve,
};
use crate::{
    app::App,
    causes::causes,
    domain::{audit::Actor, campaigns, turn_tokens},
    mcp::{self, Service, Session},
    tools::{self, Caller, Operator, Tools},
};

const JSON: &str = "application/json";
/// Most bytes of the text about an invalid message.
const MOST_WORDS_BYTES: usize = 4096;

pub(super) fn routes(config: &Config) -> Router<RouterState> {
    let service = mcp::service(config.max_body_bytes);
    let served =
        async move |app: App, actor: Actor, reach: Reach, Id(campaign_id): Id, request: Request| {
            let operator = Operator { campaign_id, actor, is_bound: reach.campaigns().is_some() };
            operate(&service, app, operator, request).await
        };
    Router::new().route("/mcp/{id}", post(served))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(operate))]
pub(super) struct ApiDoc;

/// Serves the tools of operators in a campaign over the Model Context Protocol (2026-07-28 and 2025-11-25).
///
/// A call that a tool refuses is an answer of the tool with `isError`. A caller without a key is an operator where no key is required.
#[utoipa::path(
    post,
    path = "/mcp/{id}",
    operation_id = "speak_mcp",
    tag = "mcp",
    params(("id" = Uuid, Path, description = "The campaign of all calls")),
    request_body(content = Object, description = "A JSON-RPC message"),
    responses(
        (status = 200, body = Object, description = "The JSON-RPC response"),
        (status = 202, description = "A message without a response"),
        (status = 400, description = "`no_message`"),
        (status = 404, description = "`unknown_campaign`"),
        (status = 406, description = "`no_message`"),
        (status = 413, description = "`no_message`"),
        (status = 415, description = "`no_message`"),
    ),
)]
async fn operate(
    service: &Service,
    app: App,
    operator: Operator,
    request: Request,
) -> Result<Response, Problem> {
    check_declared_length(&request, "http.max_body_bytes")?;
    campaigns::get(&app.pool, operator.campaign_id).await?;
    let caller = Caller::Operator(operator);
    let tools = Tools { pool: app.pool, settings: app.tools };
    Ok(answer(service, Session { tools, caller }, request).await)
}

/// The only path of a worker's listener.
const OF_TURNS: &str = "/mcp";

/// State of a worker's listener.
#[derive(Clone)]
struct Turns {
    tools: Tools,
    service: Service,
}

/// Serves the tools to the turns of this process until `stop`.
pub async fn run_turns(
    config: &Config,
    tools: Tools,
    listener: TcpListener,
    stop: impl Future<Output = ()>,
) {
    let timeout = Duration::from_secs(config.request_timeout_secs);
    let turns = Turns { tools, service: mcp::service(config.max_body_bytes) };
    metrics::describe();
    let router = Router::new()
        .route(OF_TURNS, any(of_turn))
        .fallback(super::problem::not_found)
        .layer(middleware::from_fn(guard::refuse_foreign_origin))
        .layer(middleware::from_fn_with_state(guard::Names::of(config), guard::check_host))
        .layer(middleware::from_fn(guard::refuse_repeated_headers))
        .layer(middleware::from_fn_with_state(timeout, guard::limit_time))
        .layer(middleware::from_fn(metrics::measure))
        .with_state(turns);
    serve::serve(listener, router, config.header_timeout(), stop).await;
}

/// Opens a loopback listener on a free port.
pub async fn bind_turns() -> std::io::Result<TcpListener> {
    let loopback: [SocketAddr; 2] =
        [([127, 0, 0, 1], 0).into(), ([0, 0, 0, 0, 0, 0, 0, 1], 0).into()];
    TcpListener::bind(&loopback[..]).await
}

async fn of_turn(State(turns): State<Turns>, request: Request) -> Response {
    let token = auth::bearer(request.headers())
        .filter(|token| token.starts_with(turn_tokens::PREFIX))
        .map(SecretString::from);
    let Some(token) = token else { return no_turn().into_response() };
    match tools::turn_of(&turns.tools, &token).await {
        Ok(Some(turn)) => {
            let session = Session { tools: turns.tools, caller: Caller::Turn(turn) };
            answer(&turns.service, session, request).await
        }
        Ok(None) => no_turn().into_response(),
        Err(error) => {
            tracing::error!(error = causes(&error), "cannot look up the token of a turn");
            let detail = "the database does not answer: try again";
            Problem::unavailable("database_unreachable", detail).into_response()
        }
    }
}

async fn answer(service: &Service, session: Session, mut request: Request) -> Response {
    request.extensions_mut().insert(Arc::new(session));
    let response = service.handle(request).await.map(Body::new);
    let is_plain = response.headers().get(CONTENT_TYPE).is_none_or(|kind| kind != JSON);
    match response.status().is_client_error() && is_plain {
        true => to_problem_response(response).await,
        false => response,
    }
}

/// Turns a plain-text refusal of the protocol library into a problem document.
async fn to_problem_response(response: Response) -> Response {
    let status = response.status();
    let words = axum::body::to_bytes(response.into_body(), MOST_WORDS_BYTES).await;
    let words = String::from_utf8_lossy(&words.unwrap_or_default()).into_owned();
    Problem::new(status, "no_message", words).into_response()
}

fn no_turn() -> Problem {
    let detail = "tools at this path need the token of a running turn; people use /mcp/{campaign} of the service";
    Problem::new(StatusCode::UNAUTHORIZED, "no_turn", detail)
}
