//! `dalsegno agent`, and services with invalid files.

use dalsegno::domain::{agent_pauses::Pause, feed};
use serde_json::{Value, json};

use super::{CommandOutput, Fixture, text};
use crate::{app::noon, conversations::world::TurnSettings};

const THREE_ERRORS: &str = "---\nname: writer\ndescripton: Writes\nwindow_tokens: many\nprovider: olama\n---\nYou write.\n";

fn write_agent_file(fixture: &Fixture, content: &str) {
    let folder = fixture.path().join("config/agents");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("writer.md"), content).unwrap();
}

#[tokio::test]
async fn the_built_in_agents_are_listed() {
    let fixture = Fixture::new().await;
    let agents = fixture.json(&["agent", "ls"]).await;
    let names: Vec<_> = agents.as_array().unwrap().iter().map(|agent| &agent["name"]).collect();
    assert_eq!(names, ["copywriter", "planner", "reviewer"]);
    assert!(agents[0]["prompt"].is_null(), "prompts are not printed");
    let output = fixture.run(&["agent", "ls"]).await;
    let line = output.stdout.lines().find(|line| line.starts_with("copywriter")).unwrap();
    assert_eq!(line.split_whitespace().nth(1), Some("sim/sim-1"), "{output:?}");
    let output = fixture.run(&["agent", "check"]).await;
    assert_eq!(
        (output.code, output.has("3 agents and their skills are in order")),
        (0, true),
        "{output:?}"
    );
    assert!(output.has("`dalsegno flow check` checks the flow templates"), "{output:?}");
    assert!(output.has("built in, because there is no folder"), "{output:?}");
    assert!(!output.has("not of the server"), "{output:?}");
}

#[tokio::test]
async fn every_problem_of_a_file_is_listed_with_line_and_fix() {
    let fixture = Fixture::new().await;
    write_agent_file(&fixture, THREE_ERRORS);
    let output = fixture.run(&["agent", "check"]).await;
    assert_eq!(output.code, 2, "{output:?}");
    for words in [
        "writer.md:3: descripton:",
        "writer.md:4: window_tokens: is",
        "writer.md:5: provider:",
        "write: ",
    ] {
        assert!(output.stdout.contains(words), "{words}: {output:?}");
    }
    let problems = fixture.run(&["agent", "check", "config", "--json"]).await.json();
    let lines: Vec<_> = problems.as_array().unwrap().iter().map(|found| &found["line"]).collect();
    // The first problem is a missing key.
    assert_eq!(lines, [1, 3, 4, 5]);
    let doctor = fixture.run(&["doctor", "--json"]).await;
    let findings = doctor.json();
    let agents = findings.as_array().unwrap().iter().find(|f| f["check"] == "agents").unwrap();
    assert_eq!((doctor.code, &agents["status"]), (8, &"fail".into()));
    assert!(agents["what"].as_str().unwrap().contains("writer.md:5"), "{agents}");

    write_agent_file(&fixture, "---\nname: writer\ndescription: Writes\n---\nYou write.\n");
    let output = fixture.run(&["agent", "check"]).await;
    assert_eq!((output.code, output.has("1 agent and its skills")), (0, true), "{output:?}");
    // Only the agents have a folder.
    let findings = fixture.run(&["doctor", "--json"]).await.json();
    let agents = findings.as_array().unwrap().iter().find(|f| f["check"] == "agents").unwrap();
    let what = text(&agents["what"]);
    assert!(what.starts_with("1 agent in ") && what.contains("; 1 node built in"), "{what}");
}

#[tokio::test]
async fn a_broken_file_refuses_the_tasks_of_its_agent_and_no_others() {
    let fixture = Fixture::new().await;
    write_agent_file(&fixture, THREE_ERRORS);
    let folder = fixture.path().join("config/agents");
    let fine = "---\nname: editor\ndescription: Edits\n---\nYou edit.\n";
    std::fs::write(folder.join("editor.md"), fine).unwrap();
    let campaign = fixture.campaign();
    let add = async |agent: &str| {
        fixture.run(&["task", "add", "--campaign", &campaign, "--agent", agent, "Write."]).await
    };
    let taken = add("editor").await;
    assert_eq!(taken.code, 0, "{taken:?}");
    assert!(!taken.stderr.contains("writer"), "it does not use the broken file: {taken:?}");
    let refused = add("writer").await;
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(
        refused.stderr.contains("agent `writer` is refused") && refused.has("writer.md:"),
        "{refused:?}"
    );
    let file = fixture.path().join("tasks");
    let line = json!({ "agent": "writer", "prompt": "Write." }).to_string();
    std::fs::write(&file, line).unwrap();
    let file = file.display().to_string();
    let many = fixture.run(&["task", "add", "--campaign", &campaign, "--file", &file]).await;
    assert!(many.code == 2 && many.has("line 1: agent `writer` is refused"), "{many:?}");
    let pause = ["agent", "pause", "writer", "--everywhere", "--reason", "its file is broken"];
    let paused = fixture.run(&pause).await;
    assert_eq!(paused.code, 0, "{paused:?}");
    let listed = fixture.run(&["agent", "ls"]).await;
    assert!(listed.code == 0 && listed.stdout.contains("editor"), "{listed:?}");
}

#[tokio::test]
async fn only_commands_that_show_agents_warn_of_broken_files() {
    let fixture = Fixture::new().await;
    write_agent_file(&fixture, "---\nname: [writer\n---\nYou write.\n");
    let folder = fixture.path().join("config/agents");
    let fine = "---\nname: editor\ndescription: Edits\n---\nYou edit.\n";
    std::fs::write(folder.join("editor.md"), fine).unwrap();
    let is_warning =
        |output: &CommandOutput| output.stderr.contains("warning: the files of agents");
    for command in [
        "overview",
        "search harbour",
        "cleanup --dry-run",
        "session ls --agent editor",
        "task ls --agent editor",
        "board post --campaign Harbour Hello.",
        "task add --campaign Harbour --agent editor Write.",
    ] {
        let output = fixture.run(&command.split(' ').collect::<Vec<_>>()).await;
        assert!(output.code == 0 && !is_warning(&output), "{command}: {output:?}");
    }
    for command in ["agent ls", "agent files", "agent status --campaign Harbour", "flow templates"]
    {
        let output = fixture.run(&command.split(' ').collect::<Vec<_>>()).await;
        assert!(output.code == 0 && is_warning(&output), "{command}: {output:?}");
    }
    let doctor = fixture.run(&["doctor"]).await;
    assert!(doctor.stdout.contains("writer.md:") && !is_warning(&doctor), "{doctor:?}");
}

#[tokio::test]
async fn the_pause_of_an_instance_is_refused_and_its_agent_is_named() {
    let fixture = Fixture::new().await;
    let refused = fixture.run(&["agent", "pause", "copywriter_2", "--everywhere"]).await;
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.has("covers all instances of an agent; name `copywriter`"), "{refused:?}");
}

#[tokio::test]
async fn the_explanation_of_a_job_of_a_paused_agent_names_the_command_that_resumes_it() {
    let fixture = Fixture::new().await;
    let paused = fixture.json(&["agent", "pause", "copywriter", "--campaign", "Harbour"]).await;
    let job = fixture.add("Part one.", &[]).await["job_id"].to_string();
    let behind = fixture.add("Part two.", &[]).await["job_id"].to_string();
    // As a worker holds it.
    let pause: Pause = serde_json::from_value(paused).unwrap();
    fixture.json(&["job", "hold", &job, "--reason", &pause.hold_reason()]).await;
    let resume = format!("`dalsegno agent resume copywriter --campaign {}`", fixture.campaign());
    for job in [&job, &behind] {
        let explained = fixture.json(&["job", "explain", job]).await;
        assert!(text(&explained["next"]).contains(&resume), "{explained}");
        let because = text(&explained["because"]);
        let whose = format!(
            "agent `copywriter` is paused in campaign {} by {}",
            fixture.campaign(),
            pause.paused_by
        );
        assert!(because.contains(&whose), "{because}");
        assert!(!because.contains(&pause.id.to_string()), "{because}");
    }
}

#[tokio::test]
async fn the_explanation_of_a_job_of_a_paused_campaign_names_the_campaign() {
    let fixture = Fixture::new().await;
    let job = fixture.add("Part one.", &[]).await["job_id"].to_string();
    fixture.json(&["campaign", "pause", "Harbour", "--reason", "client call"]).await;
    let explained = fixture.json(&["job", "explain", &job]).await;
    let because = text(&explained["because"]);
    assert!(because.contains("its campaign `Harbour` is paused: client call"), "{because}");
    let resume = format!("`dalsegno campaign resume {}`", fixture.campaign());
    assert!(text(&explained["next"]).contains(&resume), "{explained}");
}

#[tokio::test]
async fn an_agent_with_two_pauses_shows_both_and_is_still_paused_after_the_end_of_one() {
    let fixture = Fixture::new().await;
    let place = ["--campaign", "Harbour"];
    let run = async |command: &str, more: &[&str]| {
        let output = fixture.run(&[&["agent", command, "reviewer"], more].concat()).await;
        assert_eq!(output.code, 0, "{output:?}");
        output.stdout
    };
    run("pause", &[&place[..], &["--reason", "client call"]].concat()).await;
    run("pause", &["--everywhere", "--reason", "too expensive"]).await;
    let status = fixture.run(&["agent", "status", "--campaign", "Harbour"]).await;
    assert!(status.has("client call; in all campaigns: too expensive"), "{status:?}");
    let line = status.stdout.lines().find(|line| line.starts_with("reviewer")).unwrap();
    assert_eq!(line.split_whitespace().nth(1), Some("paused"), "{status:?}");
    let pauses = fixture.run(&["agent", "status"]).await;
    let places = pauses.stdout.lines().filter_map(|line| line.split_whitespace().nth(1));
    assert_eq!(places.collect::<Vec<_>>(), ["CAMPAIGN", "all", "Harbour"], "{pauses:?}");
    let resumed = run("resume", &place).await;
    assert!(resumed.contains("still paused in all campaigns: too expensive"), "{resumed}");
    run("pause", &place).await;
    let resumed = run("resume", &["--everywhere"]).await;
    let left = format!("still paused in campaign {}", fixture.campaign());
    assert!(resumed.contains(&left), "{resumed}");
    assert!(!run("resume", &place).await.contains("still"));
}

#[tokio::test]
async fn a_warm_agent_without_a_benefit_is_reported() {
    let fixture = Fixture::new().await;
    let check = async |keys: &str| {
        let file =
            "---\nname: writer\ndescription: Writes\nwarm: true\nprovider: claude\nmodel: sonnet\n";
        write_agent_file(&fixture, &format!("{file}{keys}---\nYou write.\n"));
        let output = fixture.run(&["agent", "check"]).await;
        assert_eq!(output.code, 0, "{output:?}");
        output.stderr
    };
    assert_eq!(check("tools: Read\n").await, "");
    for (keys, why) in [
        ("tools: Read, mcp__dalsegno\n", "no effect together with mcp__dalsegno"),
        ("tools: mcp__dalsegno__status\n", "no effect together with mcp__dalsegno"),
        ("session: none\n", "no effect with `session: none`"),
    ] {
        let output = check(keys).await;
        assert!(output.contains("writer: ") && output.contains(why), "{keys}: {output}");
    }
    let file =
        "---\nname: writer\ndescription: Writes\nwarm: true\nprovider: sim\n---\nYou write.\n";
    write_agent_file(&fixture, file);
    let output = fixture.run(&["agent", "check"]).await;
    assert!(output.stderr.contains("only the Claude Code CLI can be prestarted"), "{output:?}");
}

#[tokio::test]
async fn keys_without_effect_off_claude_are_reported() {
    let fixture = Fixture::new().await;
    let check = async |provider: &str| {
        let keys = "workspace: true\npermissionMode: acceptEdits\n";
        let file = format!(
            "---\nname: writer\ndescription: Writes\nprovider: {provider}\nmodel: m\n{keys}---\nYou write.\n"
        );
        write_agent_file(&fixture, &file);
        let output = fixture.run(&["agent", "check"]).await;
        assert_eq!(output.code, 0, "{output:?}");
        output.stderr
    };
    assert_eq!(check("claude").await, "");
    let said = check("ollama").await;
    assert!(!said.contains("temperature"), "{said}");
    for words in ["writer: `workspace: true` has no", "writer: `permissionMode` has no effect"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[tokio::test]
async fn options_of_ollama_are_reported_on_other_providers() {
    let fixture = Fixture::new().await;
    let check = async |provider: &str| {
        let file = format!(
            "---\nname: writer\ndescription: Writes\n{provider}temperature: 0.5\nseed: 7\n---\nYou write.\n"
        );
        write_agent_file(&fixture, &file);
        let output = fixture.run(&["agent", "check"]).await;
        assert_eq!(output.code, 0, "{output:?}");
        output.stderr
    };
    let said = check("provider: claude\nmodel: sonnet\n").await;
    for words in ["writer: `temperature` has no effect: only Ollama", "`seed` has no effect"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!said.contains("top_p"), "{said}");
    for models in ["", "provider: ollama\nmodel: m\n", "model: [sim, ollama/m]\n"] {
        assert_eq!(check(models).await, "", "{models}");
    }
}

#[tokio::test]
async fn the_keys_that_a_list_of_models_replaces_are_read_and_reported_with_the_new_line() {
    let fixture = Fixture::new().await;
    let keys = "provider: sim\nfallback_provider: ollama\nfallback_model: qwen3:8b\n";
    let file = format!("---\nname: writer\ndescription: Writes\n{keys}---\nYou write.\n");
    write_agent_file(&fixture, &file);
    let output = fixture.run(&["agent", "check"]).await;
    assert_eq!(output.code, 2, "{output:?}");
    for words in ["writer.md:5", "writer.md:6", "model: [sim/sim-1, ollama/qwen3:8b]", "still read"]
    {
        assert!(output.stdout.contains(words), "{words}: {}", output.stdout);
    }
    let listed = fixture.run(&["agent", "ls"]).await;
    assert!(listed.stdout.contains("sim/sim-1, ollama/qwen3:8b"), "{}", listed.stdout);
}

#[tokio::test]
async fn a_budget_that_pays_for_no_call_is_a_problem() {
    let fixture = Fixture::new().await;
    let check = async |keys: &str| {
        let file = format!("---\nname: writer\ndescription: Writes\n{keys}---\nYou write.\n");
        write_agent_file(&fixture, &file);
        fixture.run(&["agent", "check"]).await
    };
    let output = check("reserve_tokens: 3000\ntask_budget_tokens: 3000\n").await;
    for words in [
        "writer.md:5: task_budget_tokens: is too small: a call needs at least 3",
        "3000 reserved for the answer",
        "write: task_budget_tokens: 4096",
    ] {
        assert!(output.code == 2 && output.stdout.contains(words), "{words}: {output:?}");
    }
    let output = check("reserve_tokens: 3000\ntask_budget_tokens: 4096\n").await;
    assert_eq!(output.code, 0, "{output:?}");
}

#[tokio::test]
async fn agents_that_cannot_run_are_problems() {
    let fixture = Fixture::new().await;
    let check = async |keys: &str, prompt: &str| {
        let file = format!("---\nname: writer\ndescription: Writes\n{keys}---\n{prompt}\n");
        write_agent_file(&fixture, &file);
        fixture.run(&["agent", "check"]).await
    };
    let tools = "tools: mcp__dalsegno__board_pots, mcp__dalsegno__status, mcp__dalsegno__*\n";
    let output = check(tools, "You write.").await;
    let words = "writer.md:4: tools: `mcp__dalsegno__board_pots` names an unknown tool";
    assert!(output.code == 2 && output.stdout.contains(words), "{output:?}");
    assert!(output.stdout.contains("mcp__dalsegno__board_post (the closest"), "{output:?}");
    assert!(output.stdout.contains("1 problem"), "{output:?}");
    let long = "You write about harbours. ".repeat(200);
    let output = check("window_tokens: 2048\n", &long).await;
    let words = "writer.md:4: window_tokens: is too small: the system part takes";
    assert!(output.code == 2 && output.stdout.contains(words), "{output:?}");
    let output = check("window_tokens: 2048\n", "You write.").await;
    assert_eq!(output.code, 0, "{output:?}");
    // The tools alone fill the window; Claude Code gets them in another way.
    let tools = "tools: mcp__dalsegno\nwindow_tokens: 2000\n";
    let output = check(tools, "You write.").await;
    assert_eq!(output.code, 2, "{output:?}");
    for words in ["writer.md:5: window_tokens: is too small", "reserve for the answer 1000"] {
        assert!(output.stdout.contains(words), "{words}: {output:?}");
    }
    let larger = output.stdout.rsplit("write: ").next().unwrap().trim();
    let output = check(&format!("tools: mcp__dalsegno\n{larger}\n"), "You write.").await;
    assert_eq!(output.code, 0, "{larger}: {output:?}");
    let on_claude = format!("provider: claude\nmodel: sonnet\n{tools}");
    let output = check(&on_claude, "You write.").await;
    assert_eq!(output.code, 0, "{output:?}");
}

#[tokio::test]
async fn rules_of_tools_without_effect_are_problems_besides_those_of_the_file() {
    let fixture = Fixture::new().await;
    let check = async |keys: &str| {
        let file = format!("---\nname: writer\ndescription: Writes\n{keys}---\nYou write.\n");
        write_agent_file(&fixture, &file);
        fixture.run(&["agent", "check"]).await
    };
    let servers = "mcpServers: { board: { type: http, url: \"https://board.example/mcp\" } }\n";
    let tools = "tools: mcp__dalsego__status, mcp__bord__post, mcp__board__post, mcp__dalsegno__edicts_publish, \
                 mcp__dalsegno__blackboard_read, mcp__dalsegno__blackboard_write, Webfetch\ndisallowedTools: mcp__chalk\n";
    let output = check(&format!("modle: x\n{servers}{tools}")).await;
    assert_eq!(output.code, 2, "{output:?}");
    for words in [
        "writer.md:4: modle: unknown key",
        "writer.md:6: tools: `mcp__dalsego__status` names the MCP server `dalsego`, which does not exist",
        "write: mcp__dalsegno__status (the closest match)",
        "write: mcp__board__post (the closest match)",
        "writer.md:6: tools: `mcp__dalsegno__edicts_publish` has no effect: only the lead may use",
        "writer.md:6: tools: `mcp__dalsegno__blackboard_read` has no effect: the file grants no path",
        "write: blackboard: { read: [/], write: [/plan] }",
        "writer.md:7: disallowedTools: `mcp__chalk` names the MCP server `chalk`, which does not",
        "write: a server `chalk` below `mcpServers`, or remove the rule",
        "writer.md:6: tools: `Webfetch` names an unknown tool of Claude Code",
        "write: WebFetch (the closest match)",
        "have 8 problems",
    ] {
        assert!(output.stdout.contains(words), "{words}: {output:?}");
    }
    let granted = "lead: true\nblackboard: { read: [/], write: [/plan] }\ntools: mcp__dalsegno__edicts_publish, \
                   mcp__dalsegno__blackboard_read, mcp__dalsegno__blackboard_write, mcp__board\n";
    let output = check(&format!("{servers}{granted}")).await;
    assert_eq!(output.code, 0, "{output:?}");
    // The names of the servers are unknown as long as the key has a problem.
    let output = check("mcpServers: nowhere.json\ntools: mcp__board__post\n").await;
    assert!(output.code == 2 && output.stdout.contains("1 problem"), "{output:?}");
}

#[tokio::test]
async fn checking_a_missing_folder_fails() {
    let fixture = Fixture::new().await;
    let output = fixture.run(&["agent", "check", "no/where"]).await;
    assert_eq!((output.code, output.has("there is no folder no/where")), (3, true), "{output:?}");
}

#[tokio::test]
async fn without_a_campaign_the_pauses_of_all_campaigns_are_listed() {
    let fixture = Fixture::new().await;
    fixture.json(&["agent", "pause", "planner", "--campaign", "Harbour"]).await;
    fixture.json(&["agent", "pause", "reviewer", "--everywhere"]).await;
    let pauses = fixture.json(&["agent", "status"]).await;
    assert_eq!(
        (&pauses[0]["agent"], &pauses[0]["campaign_id"]),
        (&json!("planner"), &json!(fixture.campaign()))
    );
    assert_eq!(
        (&pauses[1]["agent"], &pauses[1]["campaign_id"]),
        (&json!("reviewer"), &json!(null))
    );
    let output = fixture.run(&["agent", "status"]).await;
    assert!(output.has("planner   Harbour") && output.has("reviewer  all"), "{output:?}");
    let statuses = fixture.json(&["agent", "status", "--campaign", "Harbour"]).await;
    let paused = |name: &str| {
        statuses
            .as_array()
            .unwrap()
            .iter()
            .any(|one| one["agent"] == name && one["pause"].is_object())
    };
    assert!(paused("planner") && paused("reviewer") && !paused("copywriter"), "{statuses}");
}

#[tokio::test]
async fn a_working_agent_is_shown_with_the_tool_that_its_turn_is_calling() {
    let fixture = Fixture::new().await;
    let world = &fixture.world;
    let (task, lease) = (world.add("Part one.").await, world.lease());
    let claimed =
        "update dalsegno.jobs set state = 'running', lease = $2, wait_reason = null where id = $1";
    sqlx::query(claimed).bind(task.job_id).bind(lease).execute(&world.pool).await.unwrap();
    let (session, begun) = world.begin(&task, lease, TurnSettings::default()).await;
    let progress = async |turn: i32, tool: Value| {
        let event = feed::New {
            campaign_id: Some(task.campaign_id),
            task_id: Some(task.id),
            session_id: None,
            kind: feed::Kind::TurnProgress,
            data: json!({ "turn": turn, "tool": tool }),
        };
        feed::append(&world.pool, &[event], noon()).await.unwrap();
    };
    let status = ["agent", "status", "--campaign", &fixture.campaign()];
    let tool = async || {
        let all = fixture.json(&status).await;
        let mut agents = all.as_array().unwrap().iter();
        agents.find(|it| it["agent"] == "copywriter").unwrap()["tool"].clone()
    };
    assert_eq!(tool().await, json!(null));
    progress(begun.turn, json!("mcp__dalsegno__edicts_read")).await;
    assert_eq!(tool().await, "edicts_read");
    let printed = fixture.run(&status).await;
    assert!(printed.has("TOOL") && printed.has("edicts_read"), "{printed:?}");
    let told = fixture.json(&["session", "explain", &session.session.id.to_string()]).await;
    assert!(text(&told["because"]).contains("It calls the tool `edicts_read` since "), "{told}");
    progress(begun.turn, json!(null)).await;
    assert_eq!(tool().await, json!(null), "the tool has ended");
    progress(begun.turn - 1, json!("Bash")).await;
    assert_eq!(tool().await, json!(null), "the tool of an earlier turn, whose worker was lost");
}
