//! A host that is out of reach, comes back, or sends its callers away; and callers that give up.

use std::time::{Duration, Instant};

use dalsegno::providers::{Class, EventSink, Provider, Scope, ollama::Ollama};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{
    asking::{RETRY, ask, fail, request},
    fake_ollama::{FakeOllama, Play, Step, config},
    ollama_answers::says,
};

#[tokio::test]
async fn a_dead_host_is_left_alone_until_one_call_finds_it_alive() {
    // Bound once, so that nothing else listens there.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    drop(listener);
    let client = Ollama::new(config(&format!("http://{addr}"))).unwrap();
    for _ in 0..5 {
        let (error, _) = fail(&client, request("Write.")).await;
        assert_eq!((error.code, error.class), ("ollama.connect", RETRY), "{error}");
    }
    let (error, took) = fail(&client, request("Write.")).await;
    assert_eq!(error.code, "ollama.breaker_open");
    let Class::Snooze { after, scope: Scope::Host } = error.class else { panic!("{error:?}") };
    assert!(after <= Duration::from_secs(1) && took < Duration::from_millis(500));

    let fake = FakeOllama::start_at(addr).await;
    let deadline = Instant::now() + Duration::from_secs(10);
    while ask(&client, request("Write.")).await.is_err() {
        assert!(Instant::now() < deadline, "the breaker never let a probe through");
        tokio::task::yield_now().await;
    }
    ask(&client, request("Write.")).await.unwrap();
    assert_eq!(fake.chats().len(), 2);
}

#[tokio::test]
async fn a_host_that_answers_is_not_left_alone_however_badly_it_answers() {
    let plays = (0..8).map(|_| Play::Status(500, "", r#"{"error":"out of memory"}"#));
    let fake = FakeOllama::playing(plays).await;
    let client = fake.client();
    for _ in 0..8 {
        assert_eq!(fail(&client, request("Write.")).await.0.code, "ollama.failed");
    }
    ask(&client, request("Write.")).await.unwrap();
}

#[tokio::test]
async fn connections_that_break_open_the_breaker_too() {
    let fake = FakeOllama::playing((0..5).map(|_| Play::HangsUp)).await;
    let client = fake.client();
    for _ in 0..5 {
        assert_eq!(fail(&client, request("Write.")).await.0.code, "ollama.broken");
    }
    assert_eq!(fail(&client, request("Write.")).await.0.code, "ollama.breaker_open");
}

#[tokio::test]
async fn a_conversation_is_not_sent_where_a_redirect_points() {
    let elsewhere = FakeOllama::start().await;
    let location = format!("location: http://{}/api/chat\r\n", elsewhere.addr).leak();
    let fake = FakeOllama::playing([Play::Status(307, location, "")]).await;
    let (error, _) = fail(&fake.client(), request("Write.")).await;
    assert_eq!((error.code, error.class), ("ollama.redirected", Class::Fail));
    assert_eq!(elsewhere.chats().len(), 0);
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once_and_the_server_learns_of_it() {
    let midway = vec![Step::Bytes(says("Once")), Step::Stall];
    for play in [Play::NeverBegins, Play::Stream(midway)] {
        let fake = FakeOllama::playing([play]).await;
        let client = fake.client();
        let cancel = CancellationToken::new();
        let call = client.run(request("Write."), EventSink::discard(), cancel.clone());
        let canceller = async {
            fake.asked(1).await;
            cancel.cancel();
            Instant::now()
        };
        let (result, cancelled_at) = tokio::join!(call, canceller);
        assert!(cancelled_at.elapsed() < Duration::from_millis(500));
        assert_eq!(result.unwrap_err().class, Class::Cancelled);
        fake.gone(1).await;
    }
}

#[tokio::test]
async fn a_call_that_was_cancelled_before_it_began_sends_nothing() {
    let fake = FakeOllama::start().await;
    let client = fake.client();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let error = client.run(request("Write."), EventSink::discard(), cancel).await.unwrap_err();
    assert_eq!(error.class, Class::Cancelled);
    assert_eq!(fake.chats().len(), 0);
}

#[tokio::test]
async fn cancelled_calls_say_nothing_about_the_host() {
    let fake = FakeOllama::playing((0..6).map(|_| Play::NeverBegins)).await;
    let client = fake.client();
    for n in 1..=6 {
        let cancel = CancellationToken::new();
        let call = client.run(request("Write."), EventSink::discard(), cancel.clone());
        let canceller = async {
            fake.asked(n).await;
            cancel.cancel();
        };
        assert!(tokio::join!(call, canceller).0.is_err());
    }
    ask(&client, request("Write.")).await.unwrap();
}

#[tokio::test]
async fn an_address_with_tls_builds_a_client_that_knows_whom_to_trust() {
    let client = Ollama::new(config("https://127.0.0.1:9"));
    assert!(client.is_ok(), "{client:?}");
}
