//! `dalsegno flow`.

use serde_json::json;

use super::{Fixture, text};

#[tokio::test]
async fn an_input_list_given_once_has_one_item() {
    let fixture = Fixture::new().await;
    let campaign = fixture.campaign();
    let start = ["flow", "start", "article-series", "--campaign", &campaign];
    let start = async |inputs: &[&str]| fixture.json(&[&start, inputs].concat()).await;
    let flow = start(&["--input", "topic=The harbour", "--input", "parts=Moles"]).await;
    assert_eq!(flow["inputs"], json!({ "topic": "The harbour", "parts": ["Moles"] }));
    let parts = ["--input", "parts=Moles", "--input", "parts=Cranes"];
    let two = start(&[&["--input", "topic=a=b"], &parts[..]].concat()).await;
    assert_eq!(two["inputs"], json!({ "topic": "a=b", "parts": ["Moles", "Cranes"] }));
    let shown = fixture.json(&["flow", "show", text(&two["id"])]).await;
    let drafts = shown["steps"].as_array().unwrap().iter().filter(|step| step["step"] == "draft");
    assert_eq!(drafts.count(), 2);
    let flows = fixture.json(&["flow", "ls", "--campaign", &campaign]).await;
    assert_eq!(flows.as_array().unwrap().len(), 2);
    // A text input that is given twice is invalid.
    let base = ["flow", "start", "article-series", "--campaign", &campaign];
    let topics = ["--input", "topic=a", "--input", "topic=b", "--input", "parts=Moles"];
    let refused = fixture.run(&[&base, &topics[..]].concat()).await;
    assert!(refused.code == 2 && refused.has("topic"), "{refused:?}");
}
