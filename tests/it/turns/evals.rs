//! Evals whose cases are reruns of a turn.

use std::path::PathBuf;

use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Fixture,
    reruns::{converse, on_ollama},
};
use crate::providers::fake_ollama::{FakeOllama, Play};

const VERDICT: &str = r#"{"pass": true, "reason": "It is."}"#;
const RERUNS: &str = "select count(*) from dalsegno.reruns";

fn write_eval(fixture: &Fixture, session: Uuid) -> PathBuf {
    let path = fixture.folder().join("two.toml");
    let eval = format!(
        r#"
        name = "two"
        times = 2
        judge = "judge"
        variants = [{{ name = "now", agent = "writer" }}, {{ name = "brief", agent = "writer", file = "brief.md" }}]
        [[cases]]
        name = "part-two"
        rerun = {{ session = "{session}", turn = 2 }}
        checks = [{{ contains = "lamp" }}, {{ judge = "It is short." }}]
        "#
    );
    std::fs::write(&path, eval).unwrap();
    path
}

fn write_brief(fixture: &Fixture, prompt: &str) {
    let file = format!(
        "---\nname: writer\ndescription: Writes\nprovider: ollama\nmodel: qwen3:8b\n---\n{prompt}\n"
    );
    std::fs::write(fixture.folder().join("brief.md"), file).unwrap();
}

async fn eval(fixture: &Fixture, arguments: &[&str]) -> (Option<i32>, String, String) {
    let campaign = fixture.campaign.id.to_string();
    let all = [&["eval"][..], arguments, &["--campaign", &campaign]].concat();
    let output = fixture.run_configured(&all).await;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[tokio::test]
async fn a_run_of_reruns_is_continued_judged_and_reported() {
    let answers = ["One.", "Two.", "A lamp.", "No light.", "The lamp.", "My lamp."];
    let verdicts = [VERDICT; 4];
    let plays = answers.into_iter().chain(verdicts).map(|words| Play::Says(Vec::leak(vec![words])));
    let fake = FakeOllama::playing(plays).await;
    let fixture = on_ollama(&fake, &[]).await;
    let judge =
        "---\nname: judge\ndescription: Judges\nprovider: ollama\nmodel: qwen3:8b\n---\nJudge.\n";
    fixture.write_agent("judge", judge);
    write_brief(&fixture, "You are brief.");
    let worker = fixture.start_worker().await;
    let session = converse(&fixture).await;
    worker.stop().await;
    let file = write_eval(&fixture, session);
    let file = file.to_str().unwrap();

    let (code, _, told) = eval(&fixture, &["run", file, "--timeout", "1s"]).await;
    assert_eq!((code, told.contains("begins with 4 answers")), (Some(6), true), "{told}");
    assert_eq!(fixture.count(RERUNS).await, 4);
    let worker = fixture.start_worker().await;
    let (code, table, told) = eval(&fixture, &["run", file]).await;
    assert!(told.contains(" goes on: 4 answers are missing"), "{told}");
    assert_eq!((code, fixture.count(RERUNS).await), (Some(8), 4), "{table}");
    for part in ["2 of 2", "1 of 2", "brief/part-two/1", "rerun 2 of turn 2", "turn reruns SESSION"]
    {
        assert!(table.contains(part), "{part}: {table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let chats = fake.chats();
    assert_eq!(chats.len(), 10, "two turns, four reruns, four verdicts");
    assert!(chats[3].to_string().contains("You are brief."), "the file of the variant");
    assert!(chats[2].to_string().contains("You write."), "the context as it was");
    let judged = chats.iter().skip(6).map(Value::to_string);
    assert!(judged.clone().all(|chat| chat.contains("Write part two.")), "{chats:?}");

    let (_, report, _) = eval(&fixture, &["report", file, "--json"]).await;
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["unfinished"], &report["failures"][0]["turn"]), (&json!(0), &json!(2)));
    assert!(report["variants"][0]["tokens"].as_i64() > Some(0), "{report}");
    // Another text of the agent file is another eval.
    write_brief(&fixture, "You are very brief.");
    let (_, _, told) = eval(&fixture, &["run", file, "--timeout", "1s"]).await;
    assert!(told.contains("begins with 4 answers"), "{told}");
    // Another campaign has runs of its own.
    let other = fixture.run_configured(&["campaign", "create", "Other", "--json"]).await;
    let other: Value = serde_json::from_slice(&other.stdout).unwrap();
    let report = ["eval", "report", file, "--campaign", other["id"].as_str().unwrap()];
    let output = fixture.run_configured(&report).await;
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("there is no run yet"), "{told}");
    worker.stop().await;
}
