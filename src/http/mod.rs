//! The HTTP side of the service.
//!
//! `run` gets its listener and its shutdown from the caller, so that tests own sockets and signals. Every error
//! leaves as problem+json (RFC 9457).

mod admission;
mod agents;
mod bulk;
mod bulk_actions;
mod campaigns;
mod cleanups;
mod events;
mod feed;
mod front;
mod guard;
mod health;
mod input;
mod jobs;
mod lanes;
mod limits;
mod openapi;
mod page;
mod problem;
mod queues;
mod schedules;
mod sessions;
mod tasks;
mod waiters;
mod workers;

use std::{net::SocketAddr, time::Duration};

use axum::{Router, extract::DefaultBodyLimit, middleware, routing::get};
use serde::Deserialize;
use tokio::net::TcpListener;

use self::{admission::Admission, waiters::Waiters};
pub use self::{
    front::Front,
    openapi::document,
    problem::{Problem, Wrong},
};
use crate::config::Checks;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub listen: SocketAddr,
    pub allow_unauthenticated: bool,
    /// Names with commas between them.
    pub allowed_hosts: String,
    pub request_timeout_secs: u64,
    pub max_waiting: usize,
    pub max_body_bytes: usize,
    pub max_header_bytes: usize,
    /// Of a body with many tasks.
    pub max_bulk_bytes: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{address} is taken; free it, or choose another with --set http.listen=127.0.0.1:0")]
    InUse { address: SocketAddr },
    #[error(
        "{address} cannot be listened on; name an address of this machine, with a port over 1023 unless root, with --set http.listen=127.0.0.1:7770"
    )]
    Bind { address: SocketAddr, source: std::io::Error },
    #[error("the HTTP server failed")]
    Serve(#[source] std::io::Error),
}

pub async fn bind(config: &Config) -> Result<TcpListener, Error> {
    let address = config.listen;
    TcpListener::bind(address).await.map_err(|source| match source.kind() {
        std::io::ErrorKind::AddrInUse => Error::InUse { address },
        _ => Error::Bind { address, source },
    })
}

/// Serves until the soft shutdown, then lets open requests end until the hard one.
pub async fn run(config: &Config, front: Front, listener: TcpListener) -> Result<(), Error> {
    let shutdown = front.shutdown.clone();
    let soft = shutdown.soft.clone();
    let server = axum::serve(listener, router(config, front));
    let server = server.with_graceful_shutdown(soft.cancelled_owned());
    match shutdown.until_hard(server.into_future()).await {
        Some(ended) => ended.map_err(Error::Serve),
        None => Ok(()),
    }
}

pub fn router(config: &Config, front: Front) -> Router {
    let timeout = Duration::from_secs(config.request_timeout_secs);
    let waiters = Waiters::up_to(config.max_waiting);
    let admission = Admission::default();
    Router::new()
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::metrics))
        .merge(campaigns::routes())
        .merge(tasks::routes(waiters.clone(), admission.clone()))
        .merge(feed::routes(waiters))
        .merge(bulk::routes(config, admission))
        .merge(sessions::routes())
        .merge(agents::routes())
        .merge(schedules::routes())
        .merge(cleanups::routes())
        .merge(bulk_actions::routes())
        .merge(queues::routes())
        .merge(jobs::routes())
        .merge(lanes::routes())
        .merge(workers::routes())
        .merge(openapi::routes())
        .fallback(problem::not_found)
        .method_not_allowed_fallback(problem::method_not_allowed)
        .layer(DefaultBodyLimit::max(config.max_body_bytes))
        .layer(middleware::from_fn_with_state(config.max_header_bytes, limits::short_enough))
        .layer(middleware::from_fn(guard::from_here))
        .layer(middleware::from_fn_with_state(guard::Names::of(config), guard::for_us))
        .layer(middleware::from_fn_with_state(timeout, guard::in_time))
        .with_state(front)
}

impl Config {
    fn names(&self) -> impl Iterator<Item = &str> {
        self.allowed_hosts.split(',').map(str::trim).filter(|name| !name.is_empty())
    }

    pub fn check(&self, checks: &mut Checks<'_>) {
        checks.secs("http.request_timeout_secs", self.request_timeout_secs, 1);
        checks.at_least("http.max_waiting", self.max_waiting as u64, 1);
        checks.at_least("http.max_body_bytes", self.max_body_bytes as u64, 1024);
        checks.at_least("http.max_header_bytes", self.max_header_bytes as u64, 1024);
        checks.at_least("http.max_bulk_bytes", self.max_bulk_bytes as u64, 1024);
        for name in self.names().filter(|name| !guard::is_name(name)) {
            let fix = "names alone, without scheme, port and path: dalsegno.internal, dalsegno";
            checks.fail(
                "http.allowed_hosts",
                format!("has `{name}`, which is no name of a host"),
                fix,
            );
        }
        if !self.listen.ip().is_loopback() && !self.allow_unauthenticated {
            let message = format!(
                "is {}, which others can reach, and the API asks nobody who they are",
                self.listen
            );
            let fix = "a loopback address such as 127.0.0.1:7770; or http.allow_unauthenticated = true, if something in front \
                       lets only the right ones through";
            checks.fail("http.listen", message, fix);
        }
    }
}
