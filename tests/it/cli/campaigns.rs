//! `dalsegno campaign`.

use serde_json::{Value, json};

use super::{Fixture, text};
use crate::conversations::world::TurnSettings;

#[tokio::test]
async fn a_campaign_is_created_from_files_and_shown() {
    let fixture = Fixture::new().await;
    std::fs::write(fixture.path().join("brief.md"), "Ten parts about the harbour.\n").unwrap();
    let created = fixture
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
    let shown = fixture.json(&["campaign", "show", text(&created["id"])]).await;
    assert_eq!(shown, created);
    let output = fixture.run(&["campaign", "show", text(&created["id"])]).await;
    assert!(output.has("money") && output.has("5.25") && output.has("Spring"), "{output:?}");
    let newer = fixture.json(&["campaign", "create", "Summer"]).await;
    let output = fixture.run(&["campaign", "show", "Summer"]).await;
    assert!(
        output.stdout.lines().any(|line| line.split_whitespace().eq(["brief", "-"])),
        "{output:?}"
    );
    let listed = fixture.json(&["campaign", "ls"]).await;
    let names = listed.as_array().unwrap().iter().map(|c| &c["name"]);
    // The ground's own campaign has an id from this process's clock, which tests move.
    let names: Vec<&Value> = names.filter(|name| *name != "Harbour").collect();
    assert_eq!(names, ["Summer", "Spring"]);
    let after = text(&newer["id"]);
    let rest = fixture.json(&["campaign", "ls", "--after", after, "--limit", "1"]).await;
    assert_eq!((rest.as_array().unwrap().len(), &rest[0]["name"]), (1, &json!("Spring")));
}

#[tokio::test]
async fn a_campaign_is_edited_and_its_versions_are_printed() {
    let fixture = Fixture::new().await;
    let id = fixture.campaign();
    let edit = ["campaign", "edit", &id, "--client-context", "Likes short texts."];
    let edited = fixture.run(&edit).await;
    assert!(edited.has("is at version 2: the next call of each agent"), "{edited:?}");
    std::fs::write(fixture.path().join("brief.md"), "Nine parts.").unwrap();
    let edit = ["campaign", "edit", &id, "--brief-file", "brief.md", "--expected-version", "2"];
    assert_eq!(fixture.json(&edit).await["version"], 3);
    let stale = fixture.run(&edit).await;
    assert!(stale.code == 5 && stale.stderr.contains("is at version 3, not at 2"), "{stale:?}");
    let same = fixture.run(&["campaign", "edit", &id, "--brief", "Nine parts."]).await;
    assert!(same.has("nothing changed"), "{same:?}");
    assert_eq!(fixture.run(&["campaign", "edit", &id]).await.code, 2);

    let listed = fixture.run(&["campaign", "versions", &id]).await;
    let rows: Vec<&str> = listed.stdout.lines().skip(1).collect();
    assert!(rows.len() == 3 && rows[0].contains(" on the command line of "), "{listed:?}");
    let shown = fixture.run(&["campaign", "versions", &id, "--show", "2"]).await;
    assert!(shown.has("Brief:\n  Ten parts.") && shown.has("  Likes short texts."), "{shown:?}");
    let diff = fixture.run(&["campaign", "versions", &id, "--diff", "1"]).await;
    assert!(diff.has("[-Ten-]{+Nine+} parts."), "{diff:?}");
    assert!(diff.has("{+Likes short texts.+}"), "{diff:?}");
    let diff = fixture.run(&["campaign", "versions", &id, "--diff", "1", "--to", "1"]).await;
    assert!(diff.has("are the same"), "{diff:?}");
}

#[tokio::test]
async fn a_campaign_shows_its_cost_and_sessions() {
    let fixture = Fixture::new().await;
    fixture.world.turn("Part one.", TurnSettings::default()).await;
    let shown = fixture.json(&["campaign", "show", &fixture.campaign()]).await;
    assert_eq!(shown["sessions"][0]["agent"], "copywriter");
    assert_eq!(shown["usage"][0]["calls"], 1);
    assert_eq!(shown["usage"][0]["input_tokens"], 30);
    assert_eq!(shown["budget"]["spent"], json!({ "micros": 500, "tokens": 40 }));
    let output = fixture.run(&["campaign", "show", &fixture.campaign()]).await;
    assert!(output.has("copywriter ") && output.has("0.0005"), "{output:?}");
}

#[tokio::test]
async fn a_campaign_is_paused_resumed_and_closed() {
    let fixture = Fixture::new().await;
    let id = fixture.campaign();
    let status = |value: &Value| text(&value["status"]).to_owned();
    let paused = fixture.json(&["campaign", "pause", &id, "--reason", "the client thinks"]).await;
    assert_eq!(status(&paused), "paused");
    let shown = fixture.json(&["campaign", "show", &id]).await;
    assert_eq!(text(&shown["pause_reason"]), "the client thinks");
    let shown = fixture.run(&["campaign", "show", &id]).await;
    assert!(
        shown.has("paused: the client thinks") && shown.has(" on the command line of "),
        "{shown:?}"
    );
    let task = fixture.add("Part one.", &[]).await;
    let explained = fixture.json(&["task", "explain", text(&task["id"])]).await;
    let why = "`Harbour` is paused: the client thinks.";
    assert!(text(&explained["because"]).contains(why), "{explained}");
    assert!(text(&explained["because"]).contains(" It was paused at "), "{explained}");
    assert!(text(&explained["next"]).contains(&format!("campaign resume {id}")), "{explained}");
    assert_eq!(status(&fixture.json(&["campaign", "resume", &id]).await), "active");
    assert!(fixture.json(&["campaign", "show", &id]).await["pause_reason"].is_null());
    let again = fixture.run(&["campaign", "resume", &id]).await;
    assert!(again.code == 0 && again.stderr.contains("was not paused"), "{again:?}");
    assert_eq!(status(&fixture.json(&["campaign", "close", &id]).await), "closed");
    let output = fixture.run(&["campaign", "resume", &id]).await;
    assert_eq!((output.code, output.has("is closed: create a new one")), (5, true), "{output:?}");
}

#[tokio::test]
async fn limits_change_one_by_one() {
    let fixture = Fixture::new().await;
    let id = fixture.campaign();
    let limit = async |arguments: &[&str]| {
        let set = [&["campaign", "budget", &id], arguments].concat();
        fixture.json(&set).await["limit"].clone()
    };
    assert_eq!(limit(&["--money", "2"]).await, json!({ "micros": 2_000_000, "tokens": null }));
    assert_eq!(limit(&["--tokens", "7"]).await, json!({ "micros": 2_000_000, "tokens": 7 }));
    assert_eq!(limit(&["--no-money"]).await, json!({ "micros": null, "tokens": 7 }));
    assert_eq!(limit(&[]).await, json!({ "micros": null, "tokens": 7 }));
    for wrong in [["--money", "0"], ["--tokens", "-1"], ["--money", "1e3"]] {
        let output =
            fixture.run(&[&["campaign", "budget", id.as_str()], &wrong[..]].concat()).await;
        assert_eq!(output.code, 2, "{output:?}");
    }
}

#[tokio::test]
async fn a_campaign_may_be_named_instead_of_its_id() {
    let fixture = Fixture::new().await;
    let spring = fixture.json(&["campaign", "create", "Spring series"]).await;
    let shown = fixture.json(&["campaign", "show", "Spring series"]).await;
    assert_eq!(shown["id"], spring["id"]);
    let add = ["task", "add", "--campaign", "Spring series", "--agent", "copywriter", "Write."];
    assert_eq!(fixture.json(&add).await["campaign_id"], spring["id"]);
    let end = &text(&spring["id"])[28..];
    let posted =
        fixture.json(&["board", "post", "--campaign", end, "For all", "--to", "operator"]).await;
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
    assert_eq!(fixture.json(&answer).await["reply_to"], posted["id"]);

    let other = fixture.json(&["campaign", "create", "Spring series"]).await;
    let output = fixture.run(&["campaign", "close", "Spring series"]).await;
    assert_eq!(
        (output.code, output.has("more than one campaign matches `Spring series`")),
        (2, true),
        "{output:?}"
    );
    for id in [text(&spring["id"]), text(&other["id"])] {
        assert!(output.stderr.contains(&format!("{id}  active, created 20")), "{output:?}");
    }
    fixture.json(&["campaign", "close", text(&other["id"])]).await;
    let shown = fixture.json(&["campaign", "show", "Spring series"]).await;
    assert_eq!(shown["id"], spring["id"], "the other one is closed");
    fixture.json(&["campaign", "close", "Spring series"]).await;
    let output = fixture.run(&["campaign", "show", "Spring series"]).await;
    assert!(output.code == 2 && output.has("closed, created 20"), "{output:?}");
    let output = fixture.run(&["campaign", "show", "Sprnig"]).await;
    assert_eq!((output.code, output.has("there is no campaign Sprnig")), (3, true), "{output:?}");
}

/// The name is one of the first things that are erased.
#[tokio::test]
async fn a_running_erasure_is_queried_by_its_id() {
    let fixture = Fixture::new().await;
    let created = fixture.json(&["campaign", "create", "Autumn"]).await;
    let id = text(&created["id"]);
    let output = fixture.run(&["campaign", "erase", "Autumn", "--yes"]).await;
    assert_eq!(output.code, 0, "{output:?}");
    let again = format!("`dalsegno campaign erase {id}` shows its progress");
    assert!(output.has(&again), "{output:?}");
    let receipt = fixture.json(&["campaign", "erase", id]).await;
    assert_eq!(receipt["campaign_id"], id);
    let output = fixture.run(&["campaign", "erase", "Winter"]).await;
    assert!(output.code == 3 && output.has("`dalsegno erasure ls` lists the ids"), "{output:?}");
}

#[tokio::test]
async fn each_line_of_the_csv_of_costs_ends_with_crlf() {
    let fixture = Fixture::new().await;
    fixture.world.turn("Part one.", TurnSettings::default()).await;
    for arguments in [&["cost", "--by", "agent", "--csv"][..], &["cost", "-o", "csv"]] {
        let output = fixture.run(arguments).await;
        assert_eq!(output.code, 0, "{output:?}");
        let lines: Vec<&str> = output.stdout.split_inclusive('\n').collect();
        assert!(lines.len() > 1, "{output:?}");
        let is_whole = |line: &&str| line.ends_with("\r\n") && line.matches('\r').count() == 1;
        assert!(lines.iter().all(is_whole), "{output:?}");
    }
}
