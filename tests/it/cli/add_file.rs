//! `task add --file`: many tasks in batches, repeatable.

use serde_json::json;

use super::Fixture;

fn lines(range: std::ops::Range<usize>) -> String {
    let line = |n: usize| json!({ "agent": "copywriter", "prompt": format!("Part {n}.") });
    range.map(|n| format!("{}\n", line(n))).collect()
}

#[tokio::test]
async fn the_tasks_of_a_file_are_added_and_a_second_run_adds_the_missing_ones() {
    let fixture = Fixture::new().await;
    let campaign = fixture.campaign();
    let file = fixture.path().join("tasks.ndjson");
    let name = file.display().to_string();
    let add =
        ["task", "add", "--campaign", &campaign, "--file", &name, "--idempotency-key", "harbour"];
    std::fs::write(&file, lines(0..1_500)).unwrap();
    assert_eq!(fixture.json(&add).await, json!({ "tasks": 1_500, "created": 1_500 }));
    std::fs::write(&file, lines(0..2_500)).unwrap();
    assert_eq!(fixture.json(&add).await, json!({ "tasks": 2_500, "created": 1_000 }));
    let output = fixture.run(&add).await;
    assert!(output.has("0 tasks are added, 2500 had been added before"), "{output:?}");
    // Without a terminal, no progress is printed.
    assert!(!output.stderr.contains('\u{1b}'), "{output:?}");
    let newest = fixture.json(&["task", "ls", "--limit", "1"]).await;
    assert_eq!(newest[0]["prompt"], "Part 2499.");
}

#[tokio::test]
async fn an_error_names_its_line_and_the_tasks_before_it_stay() {
    let fixture = Fixture::new().await;
    let campaign = fixture.campaign();
    let add = ["task", "add", "--campaign", &campaign, "--file", "-"];
    let wrong = format!("{}\n{{\"agent\": \"copywriter\", \"promt\": \"x\"}}\n", lines(0..1_000));
    let output = fixture.run_with(&add, &wrong).await;
    assert_eq!(output.code, 2, "{output:?}");
    assert!(output.stderr.contains("line 1002 at /promt: unknown field `promt`"), "{output:?}");
    assert!(output.stderr.contains("1000 tasks before it were added"), "{output:?}");
    let many = format!("{}{}", "{}\n".repeat(22), lines(0..1));
    let output = fixture.run_with(&add, &many).await;
    assert_eq!(output.code, 2, "{output:?}");
    for words in ["line 1", "line 20", "\nand 2 more"] {
        assert!(output.stderr.contains(words), "{words}: {output:?}");
    }
    assert!(!output.stderr.contains("line 21"), "{output:?}");
    let output = fixture.run_with(&add, "{\"agent\": \"copywritter\", \"prompt\": \"x\"}\n").await;
    assert_eq!(output.code, 2, "{output:?}");
    assert!(
        output.stderr.contains("line 1: ") && output.stderr.contains("copywriter"),
        "{output:?}"
    );
    let two = "{\"agent\": \"copywriter\", \"prompt\": \" \"}\n\n{\"agent\": \"copywriter\", \"prompt\": \"x\", \"priority\": -1}\n";
    let output = fixture.run_with(&add, two).await;
    assert_eq!(output.code, 2, "{output:?}");
    assert!(output.stderr.contains("line 1: the prompt is empty"), "{output:?}");
    assert!(output.stderr.contains("line 3: the priority -1 is out of range"), "{output:?}");
    let output =
        fixture.run(&["task", "add", "--campaign", &campaign, "--file", "none.ndjson"]).await;
    assert!(output.code == 2 && output.stderr.contains("none.ndjson"), "{output:?}");
    let output =
        fixture.run(&["task", "add", "--campaign", &campaign, "--file", "x", "--agent", "y"]).await;
    assert!(output.code == 2 && output.stderr.contains("--agent"), "{output:?}");
}
