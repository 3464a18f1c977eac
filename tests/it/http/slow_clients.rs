//! Slow clients.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, interval},
};

use super::Fixture;
use crate::app::SOON;

#[tokio::test]
async fn a_client_that_sends_a_request_byte_by_byte_is_disconnected() {
    let fixture = Fixture::with(&[("http.header_timeout_secs", "1")]).await;
    let (mut read, mut write) = TcpStream::connect(fixture.app.address).await.unwrap().into_split();
    let (began, mut pace) = (Instant::now(), interval(Duration::from_millis(100)));
    write.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n").await.unwrap();
    let dripping = async {
        loop {
            pace.tick().await;
            if write.write_all(b"X-More: of it\r\n").await.is_err() {
                break;
            }
        }
    };
    let mut got = Vec::new();
    let hung_up = async {
        // The response may contain a reason, and then ends.
        let _ = read.read_to_end(&mut got).await;
    };
    tokio::time::timeout(SOON, async {
        tokio::select! { () = dripping => {}, () = hung_up => {} }
    })
    .await
    .unwrap();
    assert!(began.elapsed() >= Duration::from_millis(900), "{:?}", began.elapsed());
    assert!(!got.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&got));
}

/// The timeout is for the headers only.
#[tokio::test]
async fn an_answer_may_take_longer_than_the_header_timeout() {
    let fixture = Fixture::with(&[("http.header_timeout_secs", "2")]).await;
    let task = fixture.world.add("Part one.").await;
    let shown = fixture.get(&format!("/v1/tasks/{}?wait=2500ms", task.id)).await.expect(200);
    assert_eq!(shown["state"], "queued");
}
