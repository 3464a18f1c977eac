//! `dalsegno agent`, and what a service makes of bad files.

use super::Ground;
use crate::service::SERVE;

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
    // The first is what is missing.
    assert_eq!(lines, [1, 3, 4, 5]);
    for command in [
        &["agent", "ls"][..],
        &["task", "add", "--campaign", "ab", "--agent", "writer", "x"],
        &SERVE,
    ] {
        let said = ground.run(command).await;
        assert_eq!((said.code, said.has("writer.md:4")), (2, true), "{command:?}: {said:?}");
    }
    let doctor = ground.run(&["doctor", "--json"]).await;
    let findings = doctor.json();
    let agents = findings.as_array().unwrap().iter().find(|f| f["check"] == "agents").unwrap();
    assert_eq!((doctor.code, &agents["status"]), (8, &"fail".into()));
    assert!(agents["what"].as_str().unwrap().contains("writer.md:5"), "{agents}");

    lay(&ground, "---\nname: writer\ndescription: Writes\n---\nYou write.\n");
    let said = ground.run(&["agent", "check"]).await;
    assert_eq!((said.code, said.has("1 agents")), (0, true), "{said:?}");
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_no_folder_in_order() {
    let ground = Ground::new().await;
    let said = ground.run(&["agent", "check", "no/where"]).await;
    assert_eq!((said.code, said.has("there is no folder no/where")), (3, true), "{said:?}");
}
