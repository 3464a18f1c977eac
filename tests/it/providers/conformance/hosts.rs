//! Hosts that are unreachable, recover, or are not trusted; and callers that cancel.

use std::time::Duration;

use dalsegno::providers::{Class, EventSink, Scope};
use tokio::net::TcpSocket;
use tokio_util::sync::CancellationToken;

use super::{
    behaviours,
    dialects::{Answer, Dialect},
    server::{Play, ScriptedServer},
};
use crate::providers::{
    certificate::UntrustedServer,
    requests::{ask, fail, request},
    transport::Step,
};

behaviours![
    an_unreachable_host_gets_no_calls_until_a_probe_succeeds,
    a_host_that_answers_with_errors_still_gets_calls,
    a_host_that_does_not_describe_its_models_gets_calls,
    broken_connections_stop_the_calls_too,
    a_cancelled_call_ends_at_once_and_closes_the_connection,
    a_call_cancelled_before_it_began_sends_nothing,
    cancelled_calls_do_not_stop_further_calls,
    a_tls_address_builds_a_client_with_trusted_roots,
    an_untrusted_certificate_fails_with_a_reason,
];

/// `breaker_open_secs` of the dialects' configurations.
const OPEN_FOR: Duration = Duration::from_secs(600);

async fn an_unreachable_host_gets_no_calls_until_a_probe_succeeds(dialect: &'static dyn Dialect) {
    // Bound and not listening: connections are refused, and the port stays taken.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let provider = dialect.provider(&format!("http://{}", socket.local_addr().unwrap()));
    let code = |name: &str| format!("{}.{name}", dialect.codes());
    for _ in 0..5 {
        let error = fail(&*provider, request("Write.")).await;
        let put_off = Class::Snooze { after: Duration::ZERO, scope: Scope::Worker };
        assert_eq!((error.code, error.class), (&*code("connect"), put_off), "{error}");
        assert!(error.is_unasked, "nothing was sent");
    }
    let error = fail(&*provider, request("Write.")).await;
    assert_eq!(error.code, code("breaker_open"));
    let Class::Snooze { after, scope: Scope::Worker } = error.class else { panic!("{error:?}") };
    assert!(after <= OPEN_FOR, "{after:?}");

    let server = ScriptedServer::on(socket.listen(16).unwrap(), dialect, []);
    let error = fail(&*provider, request("Write.")).await;
    assert_eq!(error.code, code("breaker_open"), "the host is not called before its time");
    tokio::time::pause();
    tokio::time::advance(OPEN_FOR).await;
    tokio::time::resume();
    ask(&*provider, request("Write.")).await.unwrap();
    ask(&*provider, request("Write.")).await.unwrap();
    assert_eq!(server.bodies().len(), 2);
}

async fn a_host_that_answers_with_errors_still_gets_calls(dialect: &'static dyn Dialect) {
    let plays = (0..8).map(|_| Play::status(500, dialect.refusal("out of memory")));
    let server = ScriptedServer::playing(dialect, plays).await;
    let provider = server.provider();
    for _ in 0..8 {
        let error = fail(&*provider, request("Write.")).await;
        assert_eq!(error.code, format!("{}.failed", dialect.codes()));
    }
    ask(&*provider, request("Write.")).await.unwrap();
}

async fn a_host_that_does_not_describe_its_models_gets_calls(dialect: &'static dyn Dialect) {
    let server = ScriptedServer::playing(dialect, []).await;
    server.lack(dialect.description());
    let provider = server.provider();
    for _ in 0..2 {
        ask(&*provider, request("Write.")).await.unwrap();
    }
    let requests = server.requests();
    let n_described = requests.iter().filter(|it| it.as_str() == dialect.description()).count();
    assert_eq!(n_described, 1, "{requests:?}");
}

async fn broken_connections_stop_the_calls_too(dialect: &'static dyn Dialect) {
    let server = ScriptedServer::playing(dialect, (0..5).map(|_| Play::HangsUp)).await;
    let provider = server.provider();
    for _ in 0..5 {
        let error = fail(&*provider, request("Write.")).await;
        assert_eq!(error.code, format!("{}.broken", dialect.codes()));
    }
    let error = fail(&*provider, request("Write.")).await;
    assert_eq!(error.code, format!("{}.breaker_open", dialect.codes()));
}

async fn a_cancelled_call_ends_at_once_and_closes_the_connection(dialect: &'static dyn Dialect) {
    let events = dialect.events(&Answer::of(&["Once"]));
    let begun = events.into_iter().take(1).map(Step::Bytes);
    let midway = Play::Stream(begun.chain([Step::Stall]).collect());
    for play in [Play::NeverBegins, midway] {
        let server = ScriptedServer::playing(dialect, [play]).await;
        let provider = server.provider();
        let cancel = CancellationToken::new();
        let call = provider.run(request("Write."), EventSink::discard(), cancel.clone());
        let canceller = async {
            server.wait_for_calls(1).await;
            cancel.cancel();
        };
        let (result, ()) = tokio::join!(call, canceller);
        assert_eq!(result.unwrap_err().class, Class::Cancelled);
        server.state.transport.wait_for_disconnects(1).await;
    }
}

async fn a_call_cancelled_before_it_began_sends_nothing(dialect: &'static dyn Dialect) {
    let server = ScriptedServer::playing(dialect, []).await;
    let provider = server.provider();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let error = provider.run(request("Write."), EventSink::discard(), cancel).await.unwrap_err();
    assert_eq!(error.class, Class::Cancelled);
    assert!(server.bodies().is_empty());
}

async fn cancelled_calls_do_not_stop_further_calls(dialect: &'static dyn Dialect) {
    let server = ScriptedServer::playing(dialect, (0..6).map(|_| Play::NeverBegins)).await;
    let provider = server.provider();
    for n in 1..=6 {
        let cancel = CancellationToken::new();
        let call = provider.run(request("Write."), EventSink::discard(), cancel.clone());
        let canceller = async {
            server.wait_for_calls(n).await;
            cancel.cancel();
        };
        assert!(tokio::join!(call, canceller).0.is_err());
    }
    ask(&*provider, request("Write.")).await.unwrap();
}

async fn a_tls_address_builds_a_client_with_trusted_roots(dialect: &'static dyn Dialect) {
    let shown = format!("{:?}", dialect.provider("https://127.0.0.1:9"));
    assert!(shown.contains("127.0.0.1"), "{shown}");
}

async fn an_untrusted_certificate_fails_with_a_reason(dialect: &'static dyn Dialect) {
    let server = UntrustedServer::start();
    let error = fail(&*dialect.provider(&server.base_url()), request("Write.")).await;
    assert_eq!(error.code, format!("{}.certificate", dialect.codes()), "{error}");
    assert_eq!(error.class, Class::Fail);
    assert!(error.to_string().contains("base_url"), "{error}");
}
