//! `memory facts`: facts about users, and changes of them.

use serde_json::json;

use super::{Fixture, text};

#[tokio::test]
async fn facts_are_stated_listed_searched_edited_revoked_and_forgotten() {
    let fixture = Fixture::new().await;
    let campaign = fixture.campaign();
    let facts = async |words: &[&str]| {
        let output = fixture.run(&[&["memory", "facts"], words].concat()).await;
        assert_eq!(output.code, 0, "{words:?}: {output:?}");
        output
    };
    let json_of =
        async |words: &[&str]| fixture.json(&[&["memory", "facts"], words].concat()).await;
    assert!(facts(&["user", "--campaign", &campaign]).await.has("has no user"));
    assert!(
        facts(&["user", "--campaign", &campaign, "ann@example.org"])
            .await
            .has("works for ann@example.org")
    );
    let user = "ann@example.org";
    facts(&["state", user, "Tone", "Wants short \u{202e}sentences."]).await;
    facts(&["state", user, "City", "Lives in Bergen."]).await;
    facts(&["state", user, "city", "Lives in Porto."]).await;
    let shown = facts(&["ls", user]).await;
    assert!(shown.has("Lives in Porto.") && !shown.has("Lives in Bergen."), "{shown:?}");
    assert!(shown.has("\\u{202e}sentences"), "{shown:?}");
    assert!(facts(&["ls", user, "--ended"]).await.has("Lives in Bergen."));
    let found = json_of(&["search", user, "sentences"]).await;
    assert_eq!((found.as_array().unwrap().len(), &found[0]["attribute"]), (1, &json!("Tone")));
    let id = text(&found[0]["id"]).to_owned();
    facts(&["edit", user, &id, "Wants long sentences."]).await;
    let before = facts(&["show", user, &id]).await;
    assert!(before.has("edited") && before.has("Wants short"), "{before:?}");
    let again = fixture.run(&["memory", "facts", "revoke", user, &id]).await;
    assert_ne!(again.code, 0, "{again:?}");
    let found = json_of(&["search", user, "sentences"]).await;
    facts(&["revoke", user, text(&found[0]["id"])]).await;
    assert_eq!(json_of(&["search", user, "sentences"]).await, json!([]));
    assert!(facts(&["readings", "--campaign", &campaign]).await.has("OUTCOME"));
    let asked = fixture.run(&["memory", "facts", "forget", user]).await;
    assert_eq!(asked.code, 2, "{asked:?}");
    assert!(facts(&["ls", user]).await.has("Lives in Porto."), "nothing was changed");
    let gone = facts(&["forget", user, "--yes"]).await;
    assert!(gone.has("4 facts about ann@example.org are permanently removed"), "{gone:?}");
    assert_eq!(json_of(&["ls", user, "--ended"]).await, json!([]));
    let odd = fixture.run(&["memory", "facts", "ls", "no/name"]).await;
    assert_ne!(odd.code, 0, "{odd:?}");
}
