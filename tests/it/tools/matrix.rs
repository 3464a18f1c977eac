//! The committed table matches the code: every role, every tool.

use std::collections::BTreeSet;

use dalsegno::tools::{self, Caller, Line};
use serde_json::json;

use super::Setup;

/// Returns the meaning of a table cell for an agent.
fn is_yes(cell: &str, is_named: bool, has_paths: bool) -> bool {
    match cell {
        "yes" => true,
        "no" => false,
        "if its file names it" => is_named,
        "if its file grants a path" | "if its file has writes_facts" => has_paths,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn tool_access_matches_the_table_and_a_denied_call_is_logged_without_effect() {
    let setup = Setup::new().await;
    let table = tools::table();
    let all: Vec<String> =
        table.iter().map(|line| format!("mcp__dalsegno__{}", line.tool)).collect();
    let paths = "blackboard: { read: [/], write: [/] }\nwrites_facts: true\n";
    let agent = |name: &str, tools: &str, more: &str| {
        format!("---\nname: {name}\ndescription: D\ntools: {tools}\n{more}---\nYou.\n")
    };
    let files = [
        ("plain", "mcp__dalsegno".to_owned(), "", false, false),
        ("named", all.join(", "), "", true, false),
        ("painter", "mcp__dalsegno__*".to_owned(), paths, false, true),
        ("bare", "Read".to_owned(), paths, false, true),
        ("taken", "mcp__dalsegno\ndisallowedTools: mcp__dalsegno".to_owned(), paths, false, true),
    ];
    for (name, tools, more, ..) in &files {
        setup.fixture.write_agent(name, &agent(name, tools, more));
    }
    setup.fixture.write_agent("chief", &agent("chief", "mcp__dalsegno", "lead: true\n"));
    setup.fixture.remove_agent("boss");
    let mut callers = vec![(
        setup.operator(),
        Box::new(|line: &Line| line.operator == "yes") as Box<dyn Fn(&Line) -> bool>,
    )];
    callers.push((setup.caller("chief").await, Box::new(|line| is_yes(line.lead, false, false))));
    for (name, _, _, is_named, has_paths) in files {
        let has_none = name == "bare" || name == "taken";
        let may = move |line: &Line| !has_none && is_yes(line.agent, is_named, has_paths);
        callers.push((setup.caller(name).await, Box::new(may)));
    }
    // A copy of the lead counts as another agent.
    let copy = Caller::Turn(setup.turn("chief", "2").await);
    callers.push((copy, Box::new(|line| is_yes(line.agent, false, false))));
    let mut n_denied = 0;
    for (caller, may) in &callers {
        let offered: BTreeSet<String> =
            tools::list_offered(caller).iter().map(|spec| spec.name.clone()).collect();
        for line in &table {
            assert_eq!(offered.contains(line.tool), may(line), "{} for {caller:?}", line.tool);
            if may(line) {
                continue;
            }
            let before = setup.state().await;
            let words = setup.fail_tool(caller, line.tool, json!({})).await;
            assert!(words.contains("you have no tool"), "{words}");
            assert_eq!(setup.state().await, before);
            n_denied += 1;
        }
        assert!(
            offered.iter().all(
                |name| table.iter().any(|line| line.tool == name) || name.starts_with("trial_")
            )
        );
    }
    let audit = setup.audit().await;
    assert_eq!(audit.len(), n_denied);
    assert!(n_denied > 20 && audit.iter().all(|line| line.starts_with("tool.deny ")), "{audit:?}");
}
