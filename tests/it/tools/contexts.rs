//! Operators read turns and their contexts.

use dalsegno::{
    domain::audit::Actor,
    tools::{Caller, Operator},
};
use serde_json::json;

use super::Setup;

#[tokio::test]
async fn an_operator_finds_a_turn_reads_its_context_and_compares_it() {
    let setup = Setup::new().await;
    let fixture = &setup.fixture;
    let worker = fixture.start_worker().await;
    for prompt in ["Count the boats.", "Count the cranes."] {
        fixture.done(&fixture.add_for("helper", "main", prompt).await).await;
    }
    worker.stop().await;
    let operator = setup.operator();
    let listed = setup.call_tool(&operator, "turns_list", json!({ "agent": "helper" })).await;
    let numbers: Vec<_> =
        listed["turns"].as_array().unwrap().iter().map(|it| &it["turn"]).collect();
    assert_eq!(
        (numbers, &listed["turns"][0]["state"]),
        (vec![&json!(2), &json!(1)], &json!("done"))
    );
    let session = &listed["session_id"];

    let place = json!({ "session_id": session, "turn": 1 });
    let shown = setup.call_tool(&operator, "context_show", place).await;
    assert!(shown["system"].as_str().unwrap().starts_with("You help."), "{shown}");
    assert!(shown["messages"].to_string().contains("Count the boats."), "{shown}");
    let task = shown["parts"].as_array().unwrap().iter().find(|part| part["kind"] == "task");
    assert_eq!(task.unwrap()["reason"], "belongs to this turn", "{shown}");

    let pair = json!({ "session_id": session, "from": 1, "to": 2 });
    let compared = setup.call_tool(&operator, "context_diff", pair.clone()).await;
    assert!(compared["parts"].to_string().contains("cranes."), "{compared}");
    assert!(compared["shared_bytes"].as_i64() > Some(0), "{compared}");

    let words = setup.fail_tool(&operator, "turns_list", json!({ "agent": "clerk" })).await;
    assert!(words.contains("`clerk` has no session"), "{words}");
    let words = setup.fail_tool(&operator, "turns_list", json!({})).await;
    assert!(words.contains("either an `agent` or a `session_id`"), "{words}");
    let place = json!({ "session_id": session, "call": 2 });
    let words = setup.fail_tool(&operator, "context_show", place).await;
    assert!(words.contains("none with the number 2"), "{words}");

    let place = json!({ "session_id": session });
    let of = |campaign_id, is_bound| {
        Caller::Operator(Operator { campaign_id, actor: Actor::cli("ann", "host"), is_bound })
    };
    let (bound, foreign) = (of(fixture.campaign.id, true), of(setup.world.campaign.id, false));
    for (tool, arguments) in [("context_show", &place), ("context_diff", &pair)] {
        let words = setup.fail_tool(&bound, tool, arguments.clone()).await;
        assert!(words.contains("bound to campaigns"), "{words}");
    }
    setup.call_tool(&bound, "turns_list", place.clone()).await;
    for (tool, arguments) in
        [("turns_list", &place), ("context_show", &place), ("context_diff", &pair)]
    {
        let words = setup.fail_tool(&foreign, tool, arguments.clone()).await;
        assert!(words.contains("no session"), "{words}");
    }
}
