//! `dalsegno agent`, and services with invalid files.

use serde_json::json;

use super::Ground;

const THREE_ERRORS: &str = "---\nname: writer\ndescripton: Writes\nwindow_tokens: many\nprovider: olama\n---\nYou write.\n";

fn lay(ground: &Ground, content: &str) {
    let folder = ground.path().join("config/agents");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("writer.md"), content).unwrap();
}

#[tokio::test]
async fn the_agents_that_come_with_the_service_are_listed() {
    let ground = Ground::new().await;
    let agents = ground.json(&["agent", "ls"]).await;
    let names: Vec<_> = agents.as_array().unwrap().iter().map(|agent| &agent["name"]).collect();
    assert_eq!(names, ["copywriter", "planner", "reviewer"]);
    assert!(agents[0]["prompt"].is_null(), "prompts are long: they stay in their files");
    let said = ground.run(&["agent", "ls"]).await;
    let line = said.stdout.lines().find(|line| line.starts_with("copywriter")).unwrap();
    assert_eq!(line.split_whitespace().nth(1), Some("sim"), "{said:?}");
    let said = ground.run(&["agent", "check"]).await;
    assert_eq!(
        (said.code, said.has("3 agents and their skills are in order")),
        (0, true),
        "{said:?}"
    );
}

#[tokio::test]
async fn every_problem_of_a_file_is_listed_with_its_line_and_its_mend() {
    let ground = Ground::new().await;
    lay(&ground, THREE_ERRORS);
    let said = ground.run(&["agent", "check"]).await;
    assert_eq!(said.code, 2, "{said:?}");
    for words in [
        "writer.md:3: descripton:",
        "writer.md:4: window_tokens: is",
        "writer.md:5: provider:",
        "write: ",
    ] {
        assert!(said.stdout.contains(words), "{words}: {said:?}");
    }
    let problems = ground.run(&["agent", "check", "config", "--json"]).await.json();
    let lines: Vec<_> = problems.as_array().unwrap().iter().map(|found| &found["line"]).collect();
    // The first problem is a missing key.
    assert_eq!(lines, [1, 3, 4, 5]);
    let doctor = ground.run(&["doctor", "--json"]).await;
    let findings = doctor.json();
    let agents = findings.as_array().unwrap().iter().find(|f| f["check"] == "agents").unwrap();
    assert_eq!((doctor.code, &agents["status"]), (8, &"fail".into()));
    assert!(agents["what"].as_str().unwrap().contains("writer.md:5"), "{agents}");

    lay(&ground, "---\nname: writer\ndescription: Writes\n---\nYou write.\n");
    let said = ground.run(&["agent", "check"]).await;
    assert_eq!((said.code, said.has("1 agent and its skills")), (0, true), "{said:?}");
}

#[tokio::test]
async fn a_broken_file_refuses_the_tasks_of_its_agent_and_no_others() {
    let ground = Ground::new().await;
    lay(&ground, THREE_ERRORS);
    let folder = ground.path().join("config/agents");
    let fine = "---\nname: editor\ndescription: Edits\n---\nYou edit.\n";
    std::fs::write(folder.join("editor.md"), fine).unwrap();
    let campaign = ground.campaign();
    let add = async |agent: &str| {
        ground.run(&["task", "add", "--campaign", &campaign, "--agent", agent, "Write."]).await
    };
    let taken = add("editor").await;
    assert_eq!(taken.code, 0, "{taken:?}");
    assert!(taken.stderr.contains("refused until they are fixed: writer"), "{taken:?}");
    let refused = add("writer").await;
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(
        refused.stderr.contains("agent `writer` is refused") && refused.has("writer.md:"),
        "{refused:?}"
    );
    let file = ground.path().join("tasks");
    let line = json!({ "agent": "writer", "prompt": "Write." }).to_string();
    std::fs::write(&file, line).unwrap();
    let file = file.display().to_string();
    let many = ground.run(&["task", "add", "--campaign", &campaign, "--file", &file]).await;
    assert!(many.code == 2 && many.has("line 1: agent `writer` is refused"), "{many:?}");
    let pause = ["agent", "pause", "writer", "--everywhere", "--reason", "its file is broken"];
    let paused = ground.run(&pause).await;
    assert_eq!(paused.code, 0, "{paused:?}");
    let listed = ground.run(&["agent", "ls"]).await;
    assert!(listed.code == 0 && listed.stdout.contains("editor"), "{listed:?}");
}

#[tokio::test]
async fn a_warm_agent_that_gains_nothing_by_it_is_named() {
    let ground = Ground::new().await;
    let check = async |keys: &str| {
        let file =
            "---\nname: writer\ndescription: Writes\nwarm: true\nprovider: claude\nmodel: sonnet\n";
        lay(&ground, &format!("{file}{keys}---\nYou write.\n"));
        let said = ground.run(&["agent", "check"]).await;
        assert_eq!(said.code, 0, "{said:?}");
        said.stderr
    };
    assert_eq!(check("tools: Read\n").await, "");
    for (keys, why) in [
        ("tools: Read, mcp__dalsegno\n", "no effect together with mcp__dalsegno"),
        ("tools: mcp__dalsegno__status\n", "no effect together with mcp__dalsegno"),
        ("session: none\n", "no effect with `session: none`"),
    ] {
        let said = check(keys).await;
        assert!(said.contains("writer: ") && said.contains(why), "{keys}: {said}");
    }
    let file =
        "---\nname: writer\ndescription: Writes\nwarm: true\nprovider: sim\n---\nYou write.\n";
    lay(&ground, file);
    let said = ground.run(&["agent", "check"]).await;
    assert!(said.stderr.contains("only the Claude Code CLI can be prestarted"), "{said:?}");
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_no_folder_in_order() {
    let ground = Ground::new().await;
    let said = ground.run(&["agent", "check", "no/where"]).await;
    assert_eq!((said.code, said.has("there is no folder no/where")), (3, true), "{said:?}");
}

#[tokio::test]
async fn the_pauses_of_all_campaigns_are_shown_without_one() {
    let ground = Ground::new().await;
    ground.json(&["agent", "pause", "planner", "--campaign", "Harbour"]).await;
    ground.json(&["agent", "pause", "reviewer", "--everywhere"]).await;
    let pauses = ground.json(&["agent", "status"]).await;
    assert_eq!(
        (&pauses[0]["agent"], &pauses[0]["campaign_id"]),
        (&json!("planner"), &json!(ground.campaign()))
    );
    assert_eq!(
        (&pauses[1]["agent"], &pauses[1]["campaign_id"]),
        (&json!("reviewer"), &json!(null))
    );
    let said = ground.run(&["agent", "status"]).await;
    assert!(said.has(&ground.campaign()[24..]) && said.has("all"), "{said:?}");
    let statuses = ground.json(&["agent", "status", "--campaign", "Harbour"]).await;
    let paused = |name: &str| {
        statuses
            .as_array()
            .unwrap()
            .iter()
            .any(|one| one["agent"] == name && one["pause"].is_object())
    };
    assert!(paused("planner") && paused("reviewer") && !paused("copywriter"), "{statuses}");
}
