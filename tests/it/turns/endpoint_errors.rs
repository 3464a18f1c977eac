//! Errors of endpoints as tasks show them, for each kind: what failed, why, and the next step. Nothing is lost.

use dalsegno::domain::tasks::{self, State, Task};
use serde_json::json;

use super::Fixture;
use crate::providers::{
    certificate::UntrustedServer,
    conformance::{
        dialects::{Answer, Anthropic, Dialect, OpenAi},
        server::{Play, ScriptedServer},
    },
};

const WRITER: &str =
    "---\nname: writer\ndescription: Writes\nprovider: far\nmodel: qwen3:8b\n---\nYou write.\n";
const KINDS: [&dyn Dialect; 2] = [&OpenAi, &Anthropic];
const HTML: &str =
    "<!DOCTYPE html>\n<html><head><title>Sign in</title></head>\n<body>Sign in</body></html>\n";

async fn fixture(kind: &dyn Dialect, base_url: &str) -> Fixture {
    let settings = [
        ("providers.far.kind", kind.name()),
        ("providers.far.base_url", base_url),
        ("providers.far.window_tokens", "16384"),
        ("providers.far.credential_variable", "FAR_KEY"),
    ];
    let fixture = Fixture::new(&settings).await.with_variable("FAR_KEY", "sk-of-the-test");
    fixture.write_agent("writer", WRITER);
    fixture
}

/// Returns the error of a task that must have failed.
fn error_of(task: &Task) -> &str {
    assert_eq!(task.state, State::Failed, "{task:?}");
    let error = task.error.as_deref().unwrap();
    assert!(!error.contains("sk-of-the-test"), "{error}");
    error
}

fn assert_has(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "{part}: {error}");
    }
}

/// Returns answers that fail a task, and the words of its error.
fn answers(kind: &dyn Dialect) -> Vec<(u16, String, Vec<&'static str>)> {
    let key = vec!["refuses the key", "correct the key in providers.far.credential_variable"];
    let no_key = "invalid x-api-key";
    let model = vec!["the model qwen3:8b", "correct `model` in the agent's file"];
    let html = vec!["not as the API", "correct providers.far.base_url"];
    let (missing_status, missing) = kind.missing_model();
    vec![
        (401, kind.refusal(no_key), [key, vec![no_key]].concat()),
        (missing_status, missing, model),
        (200, HTML.to_owned(), html.clone()),
        (404, HTML.to_owned(), html),
    ]
}

#[tokio::test]
async fn each_error_names_the_next_step_and_the_task_succeeds_after_it() {
    for kind in KINDS {
        let server = ScriptedServer::playing(kind, []).await;
        let base_url = format!("{}/v1", server.base_url());
        let fixture = fixture(kind, &base_url).await;
        let worker = fixture.start_worker().await;
        for (number, (status, body, words)) in answers(kind).into_iter().enumerate() {
            server.play(Play::status(status, body));
            let task = fixture.add(&format!("Write part {number}.")).await;
            let failed = fixture.ended(&task).await;
            let host = server.addr.to_string();
            assert_has(error_of(&failed), &[&["far", host.as_str()], words.as_slice()].concat());
            let mut tx = fixture.pool.begin().await.unwrap();
            tasks::retry(&mut tx, task.id, fixture.clock_now()).await.unwrap();
            tx.commit().await.unwrap();
            let again = fixture.done(&task).await;
            assert_eq!(again.result.as_deref(), Some("A good answer."));
        }
        worker.stop().await;
        let last = server.calls().last().unwrap()["messages"].to_string();
        for number in 0..answers(kind).len() {
            assert_eq!(last.matches(&format!("Write part {number}.")).count(), 1, "{last}");
        }
    }
}

#[tokio::test]
async fn a_turn_that_is_refused_as_too_long_after_its_tools_names_the_refusal() {
    for kind in KINDS {
        let call = Play::Answers(Answer::of(&[]).calls(Some("call_0"), "status", json!({})));
        let (status, body) = kind.overflows().remove(0);
        // The call is made shorter until nothing is left to shorten.
        let refusals = (0..4).map(|_| Play::status(status, body.clone()));
        let server = ScriptedServer::playing(kind, [call].into_iter().chain(refusals)).await;
        let fixture = fixture(kind, &format!("{}/v1", server.base_url())).await;
        let tools = "tools: mcp__dalsegno__status\n---\nYou";
        fixture.write_agent("writer", &WRITER.replace("---\nYou", tools));
        let worker = fixture.start_worker().await;
        let failed = fixture.ended(&fixture.add("Write.").await).await;
        worker.stop().await;
        let words =
            ["no longer fit", "the provider refused the last call", "does not fit into the window"];
        assert_has(error_of(&failed), &words);
    }
}

#[tokio::test]
async fn an_expired_certificate_is_named_with_the_next_step() {
    for kind in KINDS {
        let server = UntrustedServer::start();
        let fixture = fixture(kind, &format!("{}/v1", server.base_url())).await;
        let worker = fixture.start_worker().await;
        let failed = fixture.ended(&fixture.add("Write.").await).await;
        worker.stop().await;
        let words =
            ["the certificate of endpoint far", "renew it, or correct providers.far.base_url"];
        assert_has(error_of(&failed), &words);
    }
}
