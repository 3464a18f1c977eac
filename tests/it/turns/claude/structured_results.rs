//! Structured results on the real CLI, which has the model call a tool of its own for them.

use serde_json::json;

use super::Setup;
use crate::{providers::claude::api::Play, turns::structured_results::ask};

#[tokio::test]
async fn a_correction_continues_the_session_of_the_cli() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let says = |text: &str| Play::Says(vec![text.to_owned()], "end_turn");
    // The CLI asks once more itself before it ends with words.
    let structured = Play::Calls("StructuredOutput", json!({ "title": "One" }));
    setup.api.plays([says("Title: One"), says("Title: One"), structured]);
    let worker = setup.fixture.start_worker().await;
    let task = ask(&setup.fixture, "Write.").await;
    let task = setup.fixture.done(&task).await;
    worker.stop().await;
    assert_eq!(task.result_json, Some(json!({ "title": "One" })));
    assert_eq!(setup.fixture.turns(&task).await.len(), 2);
    let messages = setup.api.last_messages();
    let place = |text: &str| messages.iter().position(|message| message.contains(text));
    let (asked, said) = (place("<task ").unwrap(), place("Title: One").unwrap());
    let corrected = place("Your last answer cannot be used").unwrap();
    assert!(asked < said && said < corrected, "{messages:?}");
}
