//! `/v1/sessions/{id}/turns`.

use dalsegno::domain::manifests;
use serde_json::{Value, json};

use super::Fixture;
use crate::{app::noon, conversations::world::TurnSettings};

fn numbers(listed: &Value) -> Vec<i64> {
    let items = listed["items"].as_array().unwrap().iter();
    items.map(|turn| turn["number"].as_i64().unwrap()).collect()
}

#[tokio::test]
async fn turns_of_a_session_are_listed_in_pages_the_newest_first() {
    let fixture = Fixture::new().await;
    let mut id = None;
    for prompt in ["Part one.", "Part two.", "Part three."] {
        id = Some(fixture.world.turn(prompt, TurnSettings::default()).await.session.id);
    }
    let path = format!("/v1/sessions/{}/turns", id.unwrap());
    let first = fixture.get(&format!("{path}?limit=2")).await.expect(200);
    assert_eq!((numbers(&first), &first["next"]), (vec![3, 2], &json!("2")));
    let rest = fixture.get(&format!("{path}?limit=2&cursor=2")).await.expect(200);
    assert_eq!((numbers(&rest), &rest["next"]), (vec![1], &json!(null)));
    let turn = &first["items"][0];
    let task = fixture.world.tasks().await.remove(0);
    assert_eq!((&turn["task_id"], &turn["state"]), (&json!(task.id), &json!("done")));
    assert_eq!((&turn["agent"], &turn["instance"]), (&json!("copywriter"), &json!("main")));
    assert_eq!((&turn["provider"], &turn["model"]), (&json!("sim"), &json!("sim-1")));
    assert_eq!((&turn["calls"], &turn["cost_micros"]), (&json!(1), &json!(500)));
    fixture.get(&format!("{path}?limit=0")).await.problem(400, "bad_query");
}

#[tokio::test]
async fn a_turn_is_shown_with_its_calls_and_the_parts_of_their_contexts() {
    let fixture = Fixture::new().await;
    let id = fixture.world.turn("Part one.", TurnSettings::default()).await.session.id;
    let manifest = json!({ "parts": [
        { "kind": "agent_prompt", "sha256": "a1", "tokens": 30, "sent": true, "why": "every_call" },
        { "kind": "posts", "span": { "from_seq": 1, "to_seq": 5, "count": 5 }, "tokens": 0, "sent": false,
          "why": "beyond_window" },
    ]});
    let new = manifests::New {
        session_id: id,
        turn: 1,
        call: 0,
        manifest: &manifest,
        sha256: [1; 32],
        estimated_tokens: 42,
        real_tokens: Some(40),
    };
    manifests::insert(&fixture.world.pool, &new, noon()).await.unwrap();
    let path = format!("/v1/sessions/{id}/turns");
    let shown = fixture.get(&format!("{path}/1")).await.expect(200);
    assert_eq!((&shown["number"], &shown["attempt"]), (&json!(1), &json!(1)));
    assert_eq!((&shown["prompt_seq"], &shown["prompt_turn"]), (&json!(1), &json!(1)));
    assert_eq!(shown["calls"], 1);
    let [call] = shown["ledger"].as_array().unwrap().as_slice() else { panic!("{shown}") };
    assert_eq!((&call["purpose"], &call["outcome"]), (&json!("turn"), &json!("done")));
    assert_eq!((&call["input_tokens"], &call["output_tokens"]), (&json!(30), &json!(10)));
    assert_eq!((&call["cache_read_tokens"], &call["total_ms"]), (&json!(null), &json!(2)));
    assert!(call["id"].is_i64(), "{call}");
    let [context] = shown["contexts"].as_array().unwrap().as_slice() else { panic!("{shown}") };
    let counts = (&context["estimated_tokens"], &context["counted_tokens"]);
    assert_eq!((&context["call"], counts), (&json!(1), (&json!(42), &json!(40))));
    let [prompt, posts] = context["parts"].as_array().unwrap().as_slice() else { panic!() };
    assert_eq!((&prompt["sent"], &prompt["trust"]), (&json!(true), &json!("trusted")));
    assert_eq!((&prompt["sha256"], &prompt["tokens"]), (&json!("a1"), &json!(30)));
    assert_eq!((&posts["sent"], &posts["trust"]), (&json!(false), &json!("untrusted")));
    assert_eq!(posts["span"], json!({ "from_seq": 1, "to_seq": 5, "count": 5 }));
    assert_eq!(posts["why"], "beyond_window");
    assert_eq!(posts["reason"], "older than the window of the agent's file");

    let detail = fixture.get(&format!("{path}/7")).await.problem(404, "unknown_turn");
    assert!(detail.contains(&format!("`dalsegno turn ls {id}`")), "{detail}");
    fixture.get(&format!("{path}/x")).await.problem(400, "bad_id");
}

#[tokio::test]
async fn a_retried_task_has_a_turn_for_each_attempt() {
    let fixture = Fixture::new().await;
    let (world, now) = (&fixture.world, TurnSettings::default());
    let task = world.add("Part one.").await;
    world.begin(&task, world.lease(), now).await;
    let (resolved, begun) = world.begin(&task, world.lease(), now).await;
    world.commit(&begun, "Once ...", now).await.unwrap();
    let path = format!("/v1/sessions/{}/turns", resolved.session.id);
    let listed = fixture.get(&path).await.expect(200);
    let turns = listed["items"].as_array().unwrap().iter();
    let turns: Vec<_> = turns.map(|turn| (&turn["task_id"], &turn["state"])).collect();
    let id = json!(task.id);
    assert_eq!(turns, [(&id, &json!("done")), (&id, &json!("interrupted"))]);
    let retried = fixture.get(&format!("{path}/2")).await.expect(200);
    assert_eq!((&retried["prompt_seq"], &retried["prompt_turn"]), (&json!(1), &json!(1)));
    let lost = fixture.get(&format!("{path}/1")).await.expect(200);
    assert_eq!((&lost["ledger"], &lost["contexts"]), (&json!([]), &json!([])));
    assert!(lost["error"].is_string(), "{lost}");
}

#[tokio::test]
async fn a_call_for_a_summary_is_listed_with_the_turn_that_it_is_charged_to() {
    let fixture = Fixture::new().await;
    let id = fixture.world.turn("Part one.", TurnSettings::default()).await.session.id;
    fixture.world.turn("Part two.", TurnSettings::default()).await;
    let summary = "insert into dalsegno.usage (called_at, campaign_id, session_id, turn, cost_micros, purpose, outcome, agent, provider, model)
                   values ($1, $2, $3, 1, 7, 'summary', 'done', 'copywriter', 'sim', 'sim-2')";
    let query = sqlx::query(summary).bind(noon()).bind(fixture.world.campaign.id).bind(id);
    query.execute(&fixture.world.pool).await.unwrap();
    let purposes = async |number: i32| {
        let path = format!("/v1/sessions/{id}/turns/{number}");
        let shown = fixture.get(&path).await.expect(200);
        let calls = shown["ledger"].as_array().unwrap().iter();
        let purposes: Vec<_> = calls.map(|call| call["purpose"].clone()).collect();
        (purposes, shown["cost_micros"].clone())
    };
    assert_eq!(purposes(1).await, (vec![json!("turn"), json!("summary")], json!(500)));
    assert_eq!(purposes(2).await, (vec![json!("turn")], json!(500)));
}
