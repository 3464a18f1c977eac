//! `dalsegno mcp`: start and end.

use serde_json::{Value, json};

use super::Fixture;

fn initialize() -> String {
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let asked = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    format!("{asked}\n")
}

#[tokio::test]
async fn a_client_may_disconnect_at_any_time_without_an_error() {
    let fixture = Fixture::new().await;
    let campaign = fixture.campaign();
    for input in ["", &initialize()] {
        let said = fixture.run_with(&["mcp", "--campaign", &campaign], input).await;
        assert_eq!(said.code, 0, "{said:?}");
        let lines: Vec<Value> =
            said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(
            lines.len(),
            usize::from(!input.is_empty()),
            "standard output has other lines than answers: {said:?}"
        );
    }
}

#[tokio::test]
async fn an_unknown_campaign_is_reported_where_a_client_shows_it() {
    let fixture = Fixture::new().await;
    let unknown = "00000000-0000-4000-8000-000000000000";
    let said = fixture.run_with(&["mcp", "--campaign", unknown], &initialize()).await;
    assert!(said.code != 0 && said.stdout.is_empty(), "{said:?}");
    assert!(said.stderr.contains(unknown), "{said:?}");
}
