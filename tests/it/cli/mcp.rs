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
        let output = fixture.run_with(&["mcp", "--campaign", &campaign], input).await;
        assert_eq!(output.code, 0, "{output:?}");
        let lines: Vec<Value> =
            output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(
            lines.len(),
            usize::from(!input.is_empty()),
            "standard output has other lines than answers: {output:?}"
        );
    }
}

#[tokio::test]
async fn an_unknown_campaign_is_reported_where_a_client_shows_it() {
    let fixture = Fixture::new().await;
    let unknown = "00000000-0000-4000-8000-000000000000";
    let output = fixture.run_with(&["mcp", "--campaign", unknown], &initialize()).await;
    assert!(output.code != 0 && output.stdout.is_empty(), "{output:?}");
    assert!(output.stderr.contains(unknown), "{output:?}");
}
