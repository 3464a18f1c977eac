//! Connections, each with a timeout for its headers.
//!
//! Without the timeout, clients that send requests byte by byte could use up the process's open files, without a key
//! and without a counted request. It also limits idle time between two requests; `http.request_timeout_secs` limits
//! requests.

use std::{net::SocketAddr, pin::pin, time::Duration};

use axum::{Router, body::Body, extract::ConnectInfo, http::Request, serve::Listener};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto::Builder, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceExt as _;

use crate::causes::causes;

/// Serves until `stop`, then lets open requests end.
pub(super) async fn serve(
    mut listener: TcpListener,
    router: Router,
    header_timeout: Duration,
    stop: impl Future<Output = ()>,
) {
    let open = GracefulShutdown::new();
    let mut stop = pin!(stop);
    loop {
        // `accept` pauses after an error, such as too many open files.
        let (stream, address) = tokio::select! {
            accepted = Listener::accept(&mut listener) => accepted,
            () = &mut stop => break,
        };
        let connection = connection(stream, address, router.clone(), header_timeout, &open);
        tokio::spawn(connection);
    }
    drop(listener);
    open.shutdown().await;
}

fn connection(
    stream: TcpStream,
    address: SocketAddr,
    router: Router,
    header_timeout: Duration,
    open: &GracefulShutdown,
) -> impl Future<Output = ()> + use<> {
    let mut http = Builder::new(TokioExecutor::new()).http1_only();
    http.http1().timer(TokioTimer::new()).header_read_timeout(header_timeout);
    let service = router.map_request(move |request: Request<_>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(address));
        request
    });
    let served = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    let served = open.watch(served.into_owned());
    async move {
        if let Err(error) = served.await {
            tracing::trace!(error = causes(&*error), "a connection was closed early");
        }
    }
}
