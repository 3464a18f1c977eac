//! `dalsegno campaign`.

use serde_json::{Value, json};

use super::{Ground, text};
use crate::conversations::world::Now;

#[tokio::test]
async fn a_campaign_is_created_from_files_and_shown() {
    let ground = Ground::new().await;
    std::fs::write(ground.path().join("brief.md"), "Ten parts about the harbour.\n").unwrap();
    let created = ground
        .json(&[
            "campaign",
            "create",
            "Spring",
            "--brief-file",
            "brief.md",
            "--client-context",
            "Warm.",
            "--budget-money",
            "5.25",
            "--budget-tokens",
            "1000",
        ])
        .await;
    assert_eq!(created["name"], "Spring");
    assert_eq!(created["brief"], "Ten parts about the harbour.\n");
    assert_eq!(created["client_context"], "Warm.");
    assert_eq!(created["status"], "active");
    assert_eq!(created["budget"]["limit"], json!({ "micros": 5_250_000, "tokens": 1000 }));
    assert_eq!(created["budget"]["spent"], json!({ "micros": 0, "tokens": 0 }));
    let shown = ground.json(&["campaign", "show", text(&created["id"])]).await;
    assert_eq!(shown, created);
    let said = ground.run(&["campaign", "show", text(&created["id"])]).await;
    assert!(said.has("money") && said.has("5.25") && said.has("Spring"), "{said:?}");
    let newer = ground.json(&["campaign", "create", "Summer"]).await;
    let listed = ground.json(&["campaign", "ls"]).await;
    let names = listed.as_array().unwrap().iter().map(|c| &c["name"]);
    // The ground's own campaign has an id from this process's clock, which tests move.
    let names: Vec<&Value> = names.filter(|name| *name != "Harbour").collect();
    assert_eq!(names, ["Summer", "Spring"]);
    let after = text(&newer["id"]);
    let rest = ground.json(&["campaign", "ls", "--after", after, "--limit", "1"]).await;
    assert_eq!((rest.as_array().unwrap().len(), &rest[0]["name"]), (1, &json!("Spring")));
}

#[tokio::test]
async fn a_campaign_shows_what_it_has_cost_and_who_talks() {
    let ground = Ground::new().await;
    ground.world.turn("Part one.", Now::default()).await;
    let shown = ground.json(&["campaign", "show", &ground.campaign()]).await;
    assert_eq!(shown["sessions"][0]["agent"], "copywriter");
    assert_eq!(shown["usage"][0]["calls"], 1);
    assert_eq!(shown["usage"][0]["input_tokens"], 30);
    assert_eq!(shown["budget"]["spent"], json!({ "micros": 500, "tokens": 40 }));
    let said = ground.run(&["campaign", "show", &ground.campaign()]).await;
    assert!(said.has("copywriter ") && said.has("0.0005"), "{said:?}");
}

#[tokio::test]
async fn a_campaign_is_paused_resumed_and_closed() {
    let ground = Ground::new().await;
    let id = ground.campaign();
    let status = |value: &Value| text(&value["status"]).to_owned();
    let paused = ground.json(&["campaign", "pause", &id, "--reason", "the client thinks"]).await;
    assert_eq!(status(&paused), "paused");
    let task = ground.add("Part one.", &[]).await;
    let explained = ground.json(&["task", "explain", text(&task["id"])]).await;
    assert!(text(&explained["because"]).contains("`Harbour` is paused"), "{explained}");
    assert!(text(&explained["next"]).contains(&format!("campaign resume {id}")), "{explained}");
    assert_eq!(status(&ground.json(&["campaign", "resume", &id]).await), "active");
    assert_eq!(status(&ground.json(&["campaign", "close", &id]).await), "closed");
    let said = ground.run(&["campaign", "resume", &id]).await;
    assert_eq!((said.code, said.has("is closed: create a new one")), (5, true), "{said:?}");
}

#[tokio::test]
async fn limits_change_one_by_one() {
    let ground = Ground::new().await;
    let id = ground.campaign();
    let limit = async |arguments: &[&str]| {
        let set = [&["campaign", "budget", &id], arguments].concat();
        ground.json(&set).await["limit"].clone()
    };
    assert_eq!(limit(&["--money", "2"]).await, json!({ "micros": 2_000_000, "tokens": null }));
    assert_eq!(limit(&["--tokens", "7"]).await, json!({ "micros": 2_000_000, "tokens": 7 }));
    assert_eq!(limit(&["--no-money"]).await, json!({ "micros": null, "tokens": 7 }));
    assert_eq!(limit(&[]).await, json!({ "micros": null, "tokens": 7 }));
    for wrong in [["--money", "0"], ["--tokens", "-1"], ["--money", "1e3"]] {
        let said = ground.run(&[&["campaign", "budget", id.as_str()], &wrong[..]].concat()).await;
        assert_eq!(said.code, 2, "{said:?}");
    }
}

#[tokio::test]
async fn a_campaign_may_be_given_by_its_name() {
    let ground = Ground::new().await;
    let spring = ground.json(&["campaign", "create", "Spring series"]).await;
    let shown = ground.json(&["campaign", "show", "Spring series"]).await;
    assert_eq!(shown["id"], spring["id"]);
    let add = ["task", "add", "--campaign", "Spring series", "--agent", "copywriter", "Write."];
    assert_eq!(ground.json(&add).await["campaign_id"], spring["id"]);
    let end = &text(&spring["id"])[28..];
    let posted =
        ground.json(&["board", "post", "--campaign", end, "For all", "--to", "operator"]).await;
    let post = &text(&posted["id"])[28..];
    let answer = [
        "board",
        "post",
        "--campaign",
        "Spring series",
        "Noted",
        "--to",
        "operator",
        "--reply-to",
        post,
    ];
    assert_eq!(ground.json(&answer).await["reply_to"], posted["id"]);

    let other = ground.json(&["campaign", "create", "Spring series"]).await;
    let said = ground.run(&["campaign", "close", "Spring series"]).await;
    assert_eq!(
        (said.code, said.has("more than one campaign matches `Spring series`")),
        (2, true),
        "{said:?}"
    );
    for id in [text(&spring["id"]), text(&other["id"])] {
        assert!(said.stderr.contains(&format!("{id}  active, created 20")), "{said:?}");
    }
    ground.json(&["campaign", "close", text(&other["id"])]).await;
    let shown = ground.json(&["campaign", "show", "Spring series"]).await;
    assert_eq!(shown["id"], spring["id"], "the other one is closed");
    ground.json(&["campaign", "close", "Spring series"]).await;
    let said = ground.run(&["campaign", "show", "Spring series"]).await;
    assert!(said.code == 2 && said.has("closed, created 20"), "{said:?}");
    let said = ground.run(&["campaign", "show", "Sprnig"]).await;
    assert_eq!((said.code, said.has("there is no campaign Sprnig")), (3, true), "{said:?}");
}

/// The name is one of the first things that are erased.
#[tokio::test]
async fn an_erasure_that_goes_on_is_asked_for_by_its_id() {
    let ground = Ground::new().await;
    let created = ground.json(&["campaign", "create", "Autumn"]).await;
    let id = text(&created["id"]);
    let said = ground.run(&["campaign", "erase", "Autumn", "--yes"]).await;
    assert_eq!(said.code, 0, "{said:?}");
    let again = format!("`dalsegno campaign erase {id}` shows its progress");
    assert!(said.has(&again), "{said:?}");
    let receipt = ground.json(&["campaign", "erase", id]).await;
    assert_eq!(receipt["campaign_id"], id);
}
