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
    let draft = shown["steps"].as_array().unwrap().iter().find(|step| step["step"] == "draft");
    let draft = text(&draft.unwrap()["task_id"]);
    fixture.json(&["task", "cancel", draft]).await;
    let retry = format!("`dalsegno flow retry {} --from draft`", text(&two["id"]));
    for command in ["show", "explain"] {
        let output = fixture.run(&["task", command, draft]).await;
        assert!(output.has(text(&two["id"])) && output.has(&retry), "{output:?}");
    }
    let lines = fixture.run(&["flow", "show", text(&two["id"])]).await.stdout;
    let line = |begin: &str| lines.lines().find(|line| line.starts_with(begin)).unwrap();
    let head = line("STEP ");
    let (from, to) = (head.find("AFTER").unwrap(), head.find("PATH").unwrap());
    let after = |step: &str| {
        let cell: String = line(step).chars().skip(from).take(to - from).collect();
        cell.trim().to_owned()
    };
    assert_eq!((after("plan "), after("review ")), (String::new(), "draft".to_owned()));
    assert_eq!(after("finish "), "draft, review");
    let n_marked = lines.lines().filter(|line| line.ends_with("  critical")).count();
    assert_eq!(n_marked, 4, "one of the two drafts is marked: {lines}");
    let words = lines.split_whitespace().collect::<Vec<_>>().join(" ");
    let path = "Critical path: plan → draft → review → finish, time unknown until a step has ended";
    assert!(words.ends_with(path), "{lines}");
    let lines = fixture.run(&["flow", "ls", "--campaign", &campaign]).await.stdout;
    let head: Vec<&str> = lines.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(head, ["ID", "STATE", "TEMPLATE", "TASKS", "CREATED", "(UTC)", "ENDED", "(UTC)"]);
    let flows = fixture.json(&["flow", "ls", "--campaign", &campaign]).await;
    assert_eq!(flows.as_array().unwrap().len(), 2);
    // A text input that is given twice is invalid.
    let base = ["flow", "start", "article-series", "--campaign", &campaign];
    let topics = ["--input", "topic=a", "--input", "topic=b", "--input", "parts=Moles"];
    let refused = fixture.run(&[&base, &topics[..]].concat()).await;
    assert!(refused.code == 2 && refused.has("topic"), "{refused:?}");
}

#[tokio::test]
async fn a_flow_is_estimated_step_by_step_and_not_started() {
    let fixture = Fixture::new().await;
    let start = ["flow", "start", "article-series", "--campaign", "Harbour", "--estimate"];
    let topic = ["--input", "topic=The harbour"];
    let parts = ["--input", "parts=Moles", "--input", "parts=Cranes", "--input", "parts=Boats"];
    let estimate = fixture.json(&[&start[..], &topic, &parts].concat()).await;
    let steps = estimate["steps"].as_array().unwrap();
    let draft = steps.iter().find(|step| step["step"] == "draft").unwrap();
    assert_eq!(draft["tasks"], 3);
    let sum = |of: &dyn Fn(&serde_json::Value) -> i64| steps.iter().map(of).sum::<i64>();
    assert_eq!(estimate["tasks"], sum(&|step| step["tasks"].as_i64().unwrap()));
    for side in ["low", "likely", "high"] {
        for field in ["calls", "input_tokens", "output_tokens", "cost_micros"] {
            let all = sum(&|step| step["charge"][side][field].as_i64().unwrap());
            assert_eq!(estimate["charge"][side][field], all, "{side} {field}");
        }
    }
    assert!(estimate["charge"]["likely"]["output_tokens"].as_i64().unwrap() > 0, "{estimate}");
    let one = fixture.json(&[&start[..], &topic, &parts[..2]].concat()).await;
    let input_of = |estimate: &serde_json::Value| {
        let steps = estimate["steps"].as_array().unwrap();
        let draft = steps.iter().find(|step| step["step"] == "draft").unwrap();
        draft["charge"]["likely"]["input_tokens"].as_i64().unwrap()
    };
    assert_eq!(input_of(&estimate), 3 * input_of(&one));
    let flows = fixture.json(&["flow", "ls", "--campaign", &fixture.campaign()]).await;
    assert_eq!(flows, json!([]), "nothing was started");
    let refused = fixture.run(&[&start[..], &topic].concat()).await;
    assert!(refused.code == 2 && refused.has("`--input parts=TEXT`"), "{refused:?}");
}

/// No worker runs here.
#[tokio::test]
async fn the_wait_for_a_flow_ends_with_its_time_and_leaves_the_flow() {
    let fixture = Fixture::new().await;
    let start = ["flow", "start", "reviewed-text", "--campaign", "Harbour", "--input", "task=Go."];
    let output = fixture.run(&[&start[..], &["--wait", "--timeout", "1s"]].concat()).await;
    assert!(output.code == 6 && output.has("STEP"), "{output:?}");
    let flows = fixture.json(&["flow", "ls", "--campaign", &fixture.campaign()]).await;
    assert_eq!(flows[0]["state"], "running", "{flows}");
    let output = fixture.run(&[&start[..], &["--timeout", "1s"]].concat()).await;
    assert!(output.code == 2 && output.has("--wait"), "{output:?}");
}

#[tokio::test]
async fn the_doctor_names_a_paused_flow_with_the_command_that_resumes_it() {
    let fixture = Fixture::new().await;
    let start = ["flow", "start", "article-series", "--campaign", "Harbour"];
    let inputs = ["--input", "topic=The harbour", "--input", "parts=Moles"];
    let flow = fixture.json(&[&start[..], &inputs].concat()).await;
    let id = text(&flow["id"]);
    fixture.json(&["flow", "pause", id]).await;
    let findings = fixture.run(&["doctor"]).await;
    for words in
        [format!("flow {id} (`article-series`) is paused"), format!("`dalsegno flow resume {id}`")]
    {
        assert!(findings.has(&words), "{words}: {findings:?}");
    }
}

#[tokio::test]
async fn problems_of_flow_templates_are_listed_with_an_exit_code() {
    let fixture = Fixture::new().await;
    let output = fixture.run(&["flow", "check"]).await;
    let is_fine = output.stdout.contains("2 flow templates are in order");
    assert_eq!((output.code, is_fine), (0, true), "{output:?}");
    let flows = fixture.path().join("config/flows");
    std::fs::create_dir_all(&flows).unwrap();
    let one = "---\nname: one\ndescription: One step\nsteps:\n  - step: only\n    agent: copywritter\n---\n## only\n\nGo.\n";
    std::fs::write(flows.join("one.md"), one).unwrap();
    for arguments in [&["flow", "check"][..], &["flow", "check", "config"]] {
        let output = fixture.run(arguments).await;
        let is_named = output.stdout.contains("one.md:6: agent: there is no agent `copywritter`");
        assert_eq!((output.code, is_named), (2, true), "{output:?}");
    }
    std::fs::write(flows.join("one.md"), one.replace("copywritter", "copywriter")).unwrap();
    let output = fixture.run(&["flow", "check", "config/flows"]).await;
    assert!(output.code == 0 && output.has("1 flow template is in order"), "{output:?}");
    let output = fixture.run(&["flow", "check", "no/where"]).await;
    assert!(output.code == 3 && output.has("there is no folder no/where"), "{output:?}");
}
