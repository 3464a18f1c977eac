//! Hosts that are unreachable, recover, or refuse calls; and callers that cancel.

use std::time::Duration;

use dalsegno::providers::{Class, EventSink, Provider, Scope, ollama::Ollama};
use tokio::net::TcpSocket;
use tokio_util::sync::CancellationToken;

use super::{
    fake_ollama::{FakeOllama, Play, Step, config},
    ollama_answers::says,
    requests::{RETRY, ask, fail, request},
};

/// `breaker_open_secs` of the tests' configuration.
const OPEN_FOR: Duration = Duration::from_secs(600);

#[tokio::test]
async fn an_unreachable_host_gets_no_calls_until_a_probe_succeeds() {
    // Bound and not listening: connections are refused, and the port stays taken.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let client = Ollama::new(config(&format!("http://{}", socket.local_addr().unwrap()))).unwrap();
    for _ in 0..5 {
        let error = fail(&client, request("Write.")).await;
        assert_eq!((error.code, error.class), ("ollama.connect", RETRY), "{error}");
    }
    let error = fail(&client, request("Write.")).await;
    assert_eq!(error.code, "ollama.breaker_open");
    let Class::Snooze { after, scope: Scope::Host } = error.class else { panic!("{error:?}") };
    assert!(after <= OPEN_FOR, "{after:?}");

    let fake = FakeOllama::start_on(socket.listen(16).unwrap());
    let error = fail(&client, request("Write.")).await;
    assert_eq!(error.code, "ollama.breaker_open", "the host is not called before its time");
    tokio::time::pause();
    tokio::time::advance(OPEN_FOR).await;
    tokio::time::resume();
    ask(&client, request("Write.")).await.unwrap();
    ask(&client, request("Write.")).await.unwrap();
    assert_eq!(fake.chats().len(), 2);
}

#[tokio::test]
async fn a_host_that_answers_with_errors_still_gets_calls() {
    let plays = (0..8).map(|_| Play::Status(500, "", r#"{"error":"out of memory"}"#));
    let fake = FakeOllama::playing(plays).await;
    let client = fake.client();
    for _ in 0..8 {
        assert_eq!(fail(&client, request("Write.")).await.code, "ollama.failed");
    }
    ask(&client, request("Write.")).await.unwrap();
}

#[tokio::test]
async fn broken_connections_open_the_breaker_too() {
    let fake = FakeOllama::playing((0..5).map(|_| Play::HangsUp)).await;
    let client = fake.client();
    for _ in 0..5 {
        assert_eq!(fail(&client, request("Write.")).await.code, "ollama.broken");
    }
    assert_eq!(fail(&client, request("Write.")).await.code, "ollama.breaker_open");
}

#[tokio::test]
async fn a_conversation_is_not_sent_to_a_redirect_target() {
    let elsewhere = FakeOllama::start().await;
    let location = format!("location: http://{}/api/chat\r\n", elsewhere.addr).leak();
    let fake = FakeOllama::playing([Play::Status(307, location, "")]).await;
    let error = fail(&fake.client(), request("Write.")).await;
    assert_eq!((error.code, error.class), ("ollama.redirected", Class::Fail));
    assert_eq!(elsewhere.chats().len(), 0);
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once_and_closes_the_connection() {
    let midway = vec![Step::Bytes(says("Once")), Step::Stall];
    for play in [Play::NeverBegins, Play::Stream(midway)] {
        let fake = FakeOllama::playing([play]).await;
        let client = fake.client();
        let cancel = CancellationToken::new();
        let call = client.run(request("Write."), EventSink::discard(), cancel.clone());
        let canceller = async {
            fake.wait_for_chats(1).await;
            cancel.cancel();
        };
        let (result, ()) = tokio::join!(call, canceller);
        assert_eq!(result.unwrap_err().class, Class::Cancelled);
        fake.wait_for_disconnects(1).await;
    }
}

#[tokio::test]
async fn a_call_cancelled_before_it_began_sends_nothing() {
    let fake = FakeOllama::start().await;
    let client = fake.client();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let error = client.run(request("Write."), EventSink::discard(), cancel).await.unwrap_err();
    assert_eq!(error.class, Class::Cancelled);
    assert_eq!(fake.chats().len(), 0);
}

#[tokio::test]
async fn cancelled_calls_do_not_count_for_the_breaker() {
    let fake = FakeOllama::playing((0..6).map(|_| Play::NeverBegins)).await;
    let client = fake.client();
    for n in 1..=6 {
        let cancel = CancellationToken::new();
        let call = client.run(request("Write."), EventSink::discard(), cancel.clone());
        let canceller = async {
            fake.wait_for_chats(n).await;
            cancel.cancel();
        };
        assert!(tokio::join!(call, canceller).0.is_err());
    }
    ask(&client, request("Write.")).await.unwrap();
}

#[tokio::test]
async fn a_tls_address_builds_a_client_with_trusted_roots() {
    let client = Ollama::new(config("https://127.0.0.1:9"));
    assert!(client.is_ok(), "{client:?}");
}
