//! `/v1/sessions`.

use serde_json::json;

use super::Ground;
use crate::{cli::compact, conversations::world::Now};

#[tokio::test]
async fn a_session_is_listed_and_shown_with_its_transcript() {
    let ground = Ground::new().await;
    ground.world.turn("Part one.", Now::default()).await;
    let id = ground.world.turn("Part two.", Now::default()).await.session.id;
    let listed = ground.get("/v1/sessions?open=true&agent=copywriter&limit=1").await.expect(200);
    assert_eq!((&listed["items"][0]["id"], &listed["next"]), (&json!(id), &json!(null)));
    let path = format!("/v1/sessions/{id}");
    let shown = ground.get(&path).await.expect(200);
    assert_eq!((&shown["turns"], &shown["last_turns"][0]["number"]), (&json!(2), &json!(2)));

    let first = ground.get(&format!("{path}/messages?limit=3")).await.expect(200);
    assert_eq!((first["items"].as_array().unwrap().len(), &first["next"]), (3, &json!("3")));
    let rest = ground.get(&format!("{path}/messages?limit=3&cursor=3")).await.expect(200);
    assert_eq!(
        (&rest["items"][0]["text"], &rest["next"]),
        (&json!("Answer to: Part two."), &json!(null))
    );
    assert_eq!(rest["items"][0]["role"], "assistant");
    assert!(rest["items"][0].get("digest").is_none(), "{rest}");

    compact(&ground.world.pool, id).await;
    let view = ground.get(&format!("{path}/view")).await.expect(200);
    assert_eq!((view.as_array().unwrap().len(), &view[0]["role"]), (3, &json!("system")));
    let archives = ground.get(&format!("{path}/archives")).await.expect(200);
    let [archive] = archives["items"].as_array().unwrap().as_slice() else { panic!("{archives}") };
    assert_eq!((&archive["number"], &archive["trigger"]), (&json!(1), &json!("manual")));
    let opened = ground.get(&format!("{path}/archives/1?limit=1")).await.expect(200);
    assert_eq!(
        (&opened["messages"][0]["text"], &opened["next"]),
        (&json!("Part one."), &json!("1"))
    );
    let rest = ground.get(&format!("{path}/archives/1?cursor=1")).await.expect(200);
    assert_eq!((rest["messages"].as_array().unwrap().len(), &rest["next"]), (1, &json!(null)));
    assert_eq!(opened["replacement"]["summary"], "The first part is written.");
    ground.get(&format!("{path}/archives/7")).await.problem(404, "unknown_archive");
    ground.get(&format!("{path}/archives/x")).await.problem(400, "bad_id");
    let post = async |verb: &str, body| ground.post(&format!("{path}/{verb}"), &body).await;
    assert_eq!(post("uncompact", json!({})).await.expect(200)["generation"], 0);
    post("uncompact", json!({})).await.problem(409, "nothing_to_undo");
    assert!(post("compact", json!({})).await.expect(202)["job_id"].is_number());
    let reset = post("reset", json!({ "fresh": true })).await.expect(200);
    assert_eq!(reset["rebuild_because"], "fresh");
    post("interrupt", json!({})).await.problem(409, "nothing_runs");
}

#[tokio::test]
async fn interrupting_cancels_the_running_task() {
    let ground = Ground::new().await;
    let task = ground.world.add("Part one.").await;
    let (resolved, _) = ground.world.begin(&task, ground.world.lease(), Now::default()).await;
    let path = format!("/v1/sessions/{}/interrupt", resolved.session.id);
    let stopped = ground.post(&path, &json!({ "reason": "wrong direction" })).await.expect(200);
    assert_eq!(stopped["task_id"], json!(task.id));
    let task = ground.get(&format!("/v1/tasks/{}", task.id)).await.expect(200);
    assert_eq!(task["state"], "cancelled");
}
