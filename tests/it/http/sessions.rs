//! `/v1/sessions`.

use serde_json::json;

use super::Fixture;
use crate::{cli::compact, conversations::world::TurnSettings};

#[tokio::test]
async fn a_session_is_listed_and_shown_with_its_transcript() {
    let fixture = Fixture::new().await;
    fixture.world.turn("Part one.", TurnSettings::default()).await;
    let id = fixture.world.turn("Part two.", TurnSettings::default()).await.session.id;
    let listed = fixture.get("/v1/sessions?open=true&agent=copywriter&limit=1").await.expect(200);
    assert_eq!((&listed["items"][0]["id"], &listed["next"]), (&json!(id), &json!(null)));
    let path = format!("/v1/sessions/{id}");
    let shown = fixture.get(&path).await.expect(200);
    assert_eq!((&shown["turns"], &shown["last_turns"][0]["number"]), (&json!(2), &json!(2)));

    let first = fixture.get(&format!("{path}/messages?limit=3")).await.expect(200);
    assert_eq!((first["items"].as_array().unwrap().len(), &first["next"]), (3, &json!("3")));
    let rest = fixture.get(&format!("{path}/messages?limit=3&cursor=3")).await.expect(200);
    assert_eq!(
        (&rest["items"][0]["text"], &rest["next"]),
        (&json!("Answer to: Part two."), &json!(null))
    );
    assert_eq!(rest["items"][0]["role"], "assistant");
    assert!(rest["items"][0].get("digest").is_none(), "{rest}");

    compact(&fixture.world.pool, id).await;
    let view = fixture.get(&format!("{path}/view")).await.expect(200);
    assert_eq!((view.as_array().unwrap().len(), &view[0]["role"]), (3, &json!("system")));
    let archives = fixture.get(&format!("{path}/archives")).await.expect(200);
    let [archive] = archives["items"].as_array().unwrap().as_slice() else { panic!("{archives}") };
    assert_eq!((&archive["number"], &archive["trigger"]), (&json!(1), &json!("manual")));
    let opened = fixture.get(&format!("{path}/archives/1?limit=1")).await.expect(200);
    assert_eq!(
        (&opened["messages"][0]["text"], &opened["next"]),
        (&json!("Part one."), &json!("1"))
    );
    let rest = fixture.get(&format!("{path}/archives/1?cursor=1")).await.expect(200);
    assert_eq!((rest["messages"].as_array().unwrap().len(), &rest["next"]), (1, &json!(null)));
    assert_eq!(opened["replacement"]["summary"], "The first part is written.");
    fixture.get(&format!("{path}/archives/7")).await.problem(404, "unknown_archive");
    fixture.get(&format!("{path}/archives/x")).await.problem(400, "bad_id");
    let post = async |verb: &str, body| fixture.post(&format!("{path}/{verb}"), &body).await;
    assert_eq!(post("uncompact", json!({})).await.expect(200)["generation"], 0);
    post("uncompact", json!({})).await.problem(409, "nothing_to_undo");
    assert!(post("compact", json!({})).await.expect(202)["job_id"].is_number());
    let reset = post("reset", json!({ "fresh": true })).await.expect(200);
    assert_eq!(reset["rebuild_because"], "fresh");
    post("interrupt", json!({})).await.problem(409, "nothing_runs");
}

#[tokio::test]
async fn interrupting_cancels_the_running_task() {
    let fixture = Fixture::new().await;
    let task = fixture.world.add("Part one.").await;
    let (resolved, _) =
        fixture.world.begin(&task, fixture.world.lease(), TurnSettings::default()).await;
    let path = format!("/v1/sessions/{}/interrupt", resolved.session.id);
    let stopped = fixture.post(&path, &json!({ "reason": "wrong direction" })).await.expect(200);
    assert_eq!(stopped["task_id"], json!(task.id));
    let task = fixture.get(&format!("/v1/tasks/{}", task.id)).await.expect(200);
    assert_eq!(task["state"], "cancelled");
}

#[tokio::test]
async fn a_fork_is_created_at_its_own_address() {
    let fixture = Fixture::new().await;
    fixture.world.turn("Part one.", TurnSettings::default()).await;
    let id = fixture.world.turn("Part two.", TurnSettings::default()).await.session.id;
    fixture.world.keep_sessions().await;
    let path = format!("/v1/sessions/{id}/forks");
    let made = fixture.post(&path, &json!({ "turn": 1, "instance": "draft" })).await;
    let fork = made.expect(201);
    let own = format!("/v1/sessions/{}", fork["id"].as_str().unwrap());
    assert!(made.head.contains(&format!("location: {own}")), "{made:?}");
    let shown = fixture.get(&own).await.expect(200);
    assert_eq!((&shown["forked_from_session"], &shown["instance"]), (&json!(id), &json!("draft")));
    let said = fixture.get(&format!("{own}/messages")).await.expect(200);
    assert_eq!(said["items"].as_array().unwrap().len(), 2);
    let again = fixture.post(&path, &json!({ "instance": "draft" })).await;
    again.problem(409, "instance_taken");
    fixture.post(&path, &json!({ "instance": "No" })).await.problem(422, "bad_instance");
    fixture.post(&path, &json!({ "turn": 7 })).await.problem(404, "unknown_turn");
    fixture.post(&format!("{own}/forks"), &json!({})).await.problem(409, "turn_not_done");
}
