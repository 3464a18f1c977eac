//! `task add --file`: many tasks in batches, repeatable.

use serde_json::json;

use super::Ground;

fn lines(range: std::ops::Range<usize>) -> String {
    let line = |n: usize| json!({ "agent": "copywriter", "prompt": format!("Part {n}.") });
    range.map(|n| format!("{}\n", line(n))).collect()
}

#[tokio::test]
async fn the_tasks_of_a_file_are_added_and_the_same_file_again_adds_what_is_missing() {
    let ground = Ground::new().await;
    let campaign = ground.campaign();
    let file = ground.path().join("tasks.ndjson");
    let name = file.display().to_string();
    let add =
        ["task", "add", "--campaign", &campaign, "--file", &name, "--idempotency-key", "harbour"];
    std::fs::write(&file, lines(0..1_500)).unwrap();
    assert_eq!(ground.json(&add).await, json!({ "tasks": 1_500, "created": 1_500 }));
    std::fs::write(&file, lines(0..2_500)).unwrap();
    assert_eq!(ground.json(&add).await, json!({ "tasks": 2_500, "created": 1_000 }));
    let said = ground.run(&add).await;
    assert!(said.has("0 tasks are added, 2500 had been added before"), "{said:?}");
    // Without a terminal, no progress is printed.
    assert!(!said.stderr.contains('\u{1b}'), "{said:?}");
    let newest = ground.json(&["task", "ls", "--limit", "1"]).await;
    assert_eq!(newest[0]["prompt"], "Part 2499.");
}

#[tokio::test]
async fn a_mistake_names_its_line_and_what_came_before_it_stays() {
    let ground = Ground::new().await;
    let campaign = ground.campaign();
    let add = ["task", "add", "--campaign", &campaign, "--file", "-"];
    let wrong = format!("{}\n{{\"agent\": \"copywriter\", \"promt\": \"x\"}}\n", lines(0..1_000));
    let said = ground.run_with(&add, &wrong).await;
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.stderr.contains("line 1002 at /promt: unknown field `promt`"), "{said:?}");
    assert!(said.stderr.contains("1000 tasks before it were added"), "{said:?}");
    let said = ground.run_with(&add, "{\"agent\": \"copywritter\", \"prompt\": \"x\"}\n").await;
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.stderr.contains("line 1: ") && said.stderr.contains("copywriter"), "{said:?}");
    let two = "{\"agent\": \"copywriter\", \"prompt\": \" \"}\n\n{\"agent\": \"copywriter\", \"prompt\": \"x\", \"priority\": -1}\n";
    let said = ground.run_with(&add, two).await;
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.stderr.contains("line 1: the prompt is empty"), "{said:?}");
    assert!(said.stderr.contains("line 3: the priority -1 is out of range"), "{said:?}");
    let said = ground.run(&["task", "add", "--campaign", &campaign, "--file", "none.ndjson"]).await;
    assert!(said.code == 2 && said.stderr.contains("none.ndjson"), "{said:?}");
    let said =
        ground.run(&["task", "add", "--campaign", &campaign, "--file", "x", "--agent", "y"]).await;
    assert!(said.code == 2 && said.stderr.contains("--agent"), "{said:?}");
}
