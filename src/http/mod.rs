//! The HTTP server of the service.
//!
//! `run` takes its listener and its shutdown from the caller, so that tests own sockets and signals. Each error is
//! answered as problem+json (RFC 9457).

mod auth;
mod config;
mod downloads;
mod guard;
mod health;
mod idempotency;
mod input;
mod limits;
mod mcp;
mod metrics;
mod multipart;
mod openapi;
mod operations;
pub mod pages;
mod parameters;
mod problem;
pub mod reach;
mod request_id;
mod router;
pub mod scopes;
mod serve;
mod streams;
mod waiters;

use std::{net::SocketAddr, time::Duration};

use axum::{Extension, Router, extract::DefaultBodyLimit, middleware, routing::get};
use chrono::{DateTime, Utc};
use sqlx::PgPool;
use tokio::net::TcpListener;

use self::{
    auth::Gate, limits::BodyLimit, operations::CallState, pages::Pages, parameters::Parameters,
};
pub use self::{
    config::Config,
    downloads::download_response,
    limits::LIMITS,
    mcp::{bind_turns, run_turns},
    metrics::METRICS,
    openapi::document,
    problem::Problem,
    router::RouterState,
};
pub use crate::operations::FieldError;
use crate::{
    domain::{self, StatementError},
    shutdown::Shutdown,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "cannot listen on {address}: another process, such as a running `dalsegno serve`, uses this address; stop that process, or choose another address with --set {key}=127.0.0.1:0"
    )]
    InUse { key: &'static str, address: SocketAddr },
    #[error(
        "cannot listen on {address}; use an address of this machine and, without root, a port over 1023: --set {key}=127.0.0.1:7770"
    )]
    Bind { key: &'static str, address: SocketAddr, source: std::io::Error },
    #[error(
        "http.listen is {address}, which other hosts can reach, but no API key exists. Create one on this database with `dalsegno key create NAME --scope admin`; or set http.admin_key_file to a file with a key of 32 characters or more; \
         or listen on 127.0.0.1; or set http.allow_unauthenticated = true, if a proxy in front authenticates the callers"
    )]
    NoKey { address: SocketAddr },
    #[error(transparent)]
    Keys(#[from] StatementError),
}

/// Opens a listener. `key` is the setting with the address, for errors.
pub async fn bind(key: &'static str, address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|source| match source.kind() {
        std::io::ErrorKind::AddrInUse => Error::InUse { key, address },
        _ => Error::Bind { key, address, source },
    })
}

/// Refuses to listen on a public address until an API key exists. Without a key, all requests would be refused, and the
/// operator would have to disable authentication.
pub async fn check_keys(config: &Config, pool: &PgPool, now: DateTime<Utc>) -> Result<(), Error> {
    let needs_one = config.asks_for_keys() && !config.listen.ip().is_loopback();
    if needs_one && config.admin_key.is_none() && !domain::keys::any_usable(pool, now).await? {
        return Err(Error::NoKey { address: config.listen });
    }
    Ok(())
}

/// Serves until the soft shutdown, then lets open requests end until the hard one.
pub async fn run(config: &Config, shutdown: Shutdown, router: Router, listener: TcpListener) {
    let stop = shutdown.soft.clone().cancelled_owned();
    let served = serve::serve(listener, router, config.header_timeout(), stop);
    shutdown.until_hard(served).await;
}

/// Serves probes and metrics of a worker process. Never ends by itself, so that metrics include the last turn.
pub async fn run_probes(header_timeout: Duration, front: RouterState, listener: TcpListener) {
    metrics::describe();
    let router = probes()
        .layer(middleware::from_fn(request_id::assign))
        .layer(middleware::from_fn(metrics::measure))
        .with_state(front);
    serve::serve(listener, router, header_timeout, std::future::pending()).await;
}

/// Builds the router of the API alone.
pub fn router(config: &Config, front: RouterState) -> Router {
    let (gate, calls) = (Gate::new(config, front.clone()), CallState::new(config));
    guarded(config, api(config, gate, calls)).with_state(front)
}

/// Builds the router of the API and of the pages of a console.
pub fn router_with_pages(config: &Config, front: RouterState, pages: Pages) -> Router {
    let (gate, calls) = (Gate::new(config, front.clone()), CallState::new(config));
    let show = pages.show_problem;
    let pages = pages.routes(config, front.clone(), gate.clone(), calls.clone());
    guarded(config, api(config, gate, calls).merge(pages))
        .layer(middleware::from_fn_with_state(show, pages::show_problems))
        .with_state(front)
}

fn api(config: &Config, gate: Gate, calls: CallState) -> Router<RouterState> {
    probes()
        .merge(operations::routes(config, calls))
        .merge(mcp::routes(config))
        .merge(openapi::routes())
        .fallback(problem::not_found)
        .method_not_allowed_fallback(problem::method_not_allowed)
        .layer(DefaultBodyLimit::max(config.max_body_bytes))
        .layer(middleware::from_fn_with_state(
            Parameters::from_document(),
            parameters::refuse_unknown_parameters,
        ))
        .layer(Extension(BodyLimit(config.max_body_bytes)))
        .layer(middleware::from_fn_with_state(config.max_header_bytes, limits::limit_head_size))
        .layer(middleware::from_fn_with_state(gate, auth::gate))
}

/// Adds the checks that apply to all routes.
fn guarded(config: &Config, router: Router<RouterState>) -> Router<RouterState> {
    metrics::describe();
    let timeout = Duration::from_secs(config.request_timeout_secs);
    router
        .layer(middleware::from_fn(guard::refuse_foreign_origin))
        .layer(middleware::from_fn_with_state(guard::Names::of(config), guard::check_host))
        .layer(middleware::from_fn(guard::refuse_repeated_headers))
        .layer(middleware::from_fn_with_state(timeout, guard::limit_time))
        .layer(middleware::from_fn(request_id::assign))
        .layer(middleware::from_fn(metrics::measure))
}

fn probes() -> Router<RouterState> {
    Router::new()
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::metrics))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_used_address_is_named_with_the_reason_and_the_setting() {
        let first = bind("http.listen", ([127, 0, 0, 1], 0).into()).await.unwrap();
        let address = first.local_addr().unwrap();
        let error = bind("http.listen", address).await.unwrap_err().to_string();
        for part in [&*address.to_string(), "another process", "--set http.listen="] {
            assert!(error.contains(part), "{error}");
        }
    }
}
