//! `dalsegno blackboard`.

use serde_json::json;

use super::Fixture;

#[tokio::test]
async fn a_blackboard_is_written_read_and_its_history_listed() {
    let fixture = Fixture::new().await;
    let campaign = fixture.campaign();
    let run = async |arguments: &[&str]| {
        fixture.run(&[&["blackboard", arguments[0], &campaign], &arguments[1..]].concat()).await
    };
    let shown = run(&["show"]).await;
    assert_eq!((shown.stdout.trim(), shown.stderr.trim()), ("{}", "version 0"));
    let set = run(&["set", "--expected-version", "0", r#"{"plan":{"parts":10}}"#]).await;
    assert!(set.code == 0 && set.has("is at version 1"), "{set:?}");
    let late = run(&["set", "--expected-version", "0", "{}"]).await;
    assert!(late.code == 5 && late.has("is at version 1, not at 0"), "{late:?}");
    let file = fixture.path().join("patch.json");
    std::fs::write(&file, r#"{"plan":{"parts":9}}"#).unwrap();
    let patch = run(&["patch", "--file", file.to_str().unwrap()]).await;
    assert!(patch.code == 0 && patch.has("is at version 2"), "{patch:?}");
    let wrong = run(&["patch", "{"]).await;
    assert!(wrong.code == 2 && wrong.has("is not valid JSON"), "{wrong:?}");

    let shown = fixture.json(&["blackboard", "show", &campaign]).await;
    assert_eq!(
        (&shown["version"], &shown["document"]),
        (&json!(2), &json!({ "plan": { "parts": 9 } }))
    );
    let earlier = fixture.json(&["blackboard", "show", &campaign, "--version", "1"]).await;
    assert_eq!(earlier["document"], json!({ "plan": { "parts": 10 } }));
    assert_eq!(run(&["show", "--version", "3"]).await.code, 3);
    let history = run(&["history"]).await;
    assert!(
        history.code == 0 && history.has("/plan/parts") && history.has(" on the command line of "),
        "{history:?}"
    );
    let before = fixture.json(&["blackboard", "history", &campaign, "--before", "2"]).await;
    assert_eq!((before.as_array().unwrap().len(), &before[0]["version"]), (1, &json!(1)));
}
