//! MCP clients written by others, with the token of a turn: the tools that only turns have, and those of a campaign's
//! lead.

use std::collections::BTreeSet;

use dalsegno::tools;
use futures_util::future::join_all;

use super::Setup;
use crate::clients::{
    mcp::{Client, VERSIONS, read_client_report},
    packages::mcp_clients,
};

/// Creates a campaign with the agents that the calls name.
async fn setup() -> Setup {
    let setup = Setup::new().await;
    setup.fixture.remove_agent("boss");
    for name in ["planner", "copywriter"] {
        let file = mcp_clients().join(format!("config/agents/{name}.md"));
        setup.fixture.write_agent(name, &std::fs::read_to_string(file).unwrap());
    }
    setup
}

async fn check_all_calls(client: Client, only: Option<&str>) {
    let setup = setup().await;
    let (endpoint, turn) = (setup.endpoint().await, setup.turn("planner", "main").await);
    if client.program(setup.fixture.folder()).is_none() {
        return;
    }
    let token = setup.token(&turn).await;
    let planner = tools::Caller::Turn(turn.clone());
    let first = serde_json::json!({ "name": "first", "title": "Whom to ask", "text": "The harbour master knows." });
    setup.call_tool(&planner, "journals_write", first).await;
    let url = format!("http://{}/mcp", endpoint.address);
    let sessions = VERSIONS.map(|version| {
        let mut program = client.program(setup.fixture.folder()).unwrap();
        program.args([&format!("turn-{version}"), version, &url]).env("MCP_KEY", &token);
        program.envs(only.map(|only| ("MCP_ONLY", only)));
        read_client_report(program)
    });
    let offered: BTreeSet<String> =
        tools::list_offered(&planner).iter().map(|spec| spec.name.clone()).collect();
    for spoken in join_all(sessions).await {
        assert_eq!(spoken.listed, offered);
        let only = only.map(|only| only.split(',').map(str::to_owned).collect());
        assert_eq!(spoken.called, only.unwrap_or_else(|| offered.clone()));
    }
    let sql = "select concat_ws(' ', owner, author, origin, task_id) from dalsegno.memory_items
                where kind = 'journal' and name like 'note-turn-%'";
    let written: Vec<String> = sqlx::query_scalar(sql).fetch_all(setup.pool()).await.unwrap();
    let expected = format!("planner planner agent {}", turn.task_id);
    assert_eq!(written, [expected.clone(), expected]);
    let audit = setup.audit().await;
    assert!(audit.iter().all(|line| line.ends_with(" agent planner")), "{audit:?}");
}

#[tokio::test]
async fn the_python_sdk_lists_and_calls_every_tool_of_the_lead() {
    check_all_calls(Client::Sdk, None).await;
}

#[tokio::test]
async fn the_inspector_lists_every_tool_of_the_lead_and_calls_those_that_operators_lack() {
    check_all_calls(Client::Inspector, Some("journals_write,search_transcript")).await;
}
