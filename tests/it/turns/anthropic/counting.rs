//! Prompts that are counted by the server, because by their estimate they do not fit.

use super::{Fixture, PART, contexts, fixture, turns};
use crate::providers::conformance::{
    dialects::{Anthropic, COUNT},
    server::ScriptedServer,
};

const CALL: &str = "POST /v1/messages";
const COMPACTIONS: &str = "select count(*) from dalsegno.compactions";

/// Returns the number of prompts that the server was asked to count.
fn n_counted(server: &ScriptedServer) -> usize {
    server.requests().iter().filter(|request| *request == COUNT).count()
}

/// Runs a turn, and one whose prompt seems longer than it is.
async fn opaque_prompt(server: &ScriptedServer, first: &str) -> Fixture {
    let fixture = fixture(server, 16_384).await;
    let worker = fixture.start_worker().await;
    fixture.done(&fixture.add(first).await).await;
    assert_eq!(n_counted(server), 0, "a call that fits is not counted");
    let prompt = ["letters".repeat(2_000), PART.repeat(400)].concat();
    fixture.done(&fixture.add(&prompt).await).await;
    worker.stop().await;
    fixture
}

#[tokio::test]
async fn a_call_that_seems_too_long_is_counted_before_anything_is_folded() {
    let server = ScriptedServer::playing(&Anthropic, []).await;
    let fixture = opaque_prompt(&server, &PART.repeat(100)).await;
    assert_eq!(n_counted(&server), 1);
    assert_eq!((turns(&server).len(), server.calls().len()), (2, 2), "no call for a summary");
    assert_eq!(fixture.count(COMPACTIONS).await, 0);
    let worker = fixture.start_worker().await;
    // The count of the last call is better than an estimate.
    fixture.done(&fixture.add("Write part three.").await).await;
    worker.stop().await;
    assert_eq!(n_counted(&server), 1);
    contexts::assert_exact(&fixture.pool).await;
}

#[tokio::test]
async fn a_call_that_is_too_long_by_its_count_is_compacted() {
    let server = ScriptedServer::playing(&Anthropic, []).await;
    let fixture = opaque_prompt(&server, &PART.repeat(620)).await;
    assert_eq!(n_counted(&server), 1);
    assert_eq!(fixture.count(COMPACTIONS).await, 1);
    // The conversation is folded between the count and the call, by an extract: the turn is sent once, with the summary in it.
    let requests: Vec<String> = server.requests();
    let calls = requests.iter().filter(|request| request.starts_with("POST"));
    let calls: Vec<&str> = calls.map(String::as_str).collect();
    assert_eq!(calls, [CALL, COUNT, CALL]);
    let turns = turns(&server);
    assert_eq!(turns.len(), 2, "the server has refused no call as too long");
    let outcomes: Vec<(String, Option<String>)> =
        sqlx::query_as("select outcome, rung from dalsegno.compactions")
            .fetch_all(&fixture.pool)
            .await
            .unwrap();
    assert_eq!(outcomes[0].0, "applied", "{outcomes:?}");
    let second = turns[1].to_string();
    assert!(second.contains("Earlier conversation, summarised"), "{second}");
    contexts::assert_exact(&fixture.pool).await;
}

#[tokio::test]
async fn a_server_that_does_not_count_costs_no_turn() {
    let server = ScriptedServer::playing(&Anthropic, []).await;
    server.lack(COUNT);
    let fixture = opaque_prompt(&server, &PART.repeat(100)).await;
    assert_eq!(n_counted(&server), 1);
    assert_eq!(fixture.count(COMPACTIONS).await, 1);
}
