//! `/v1/tasks`, without its stream.

use serde_json::{Value, json};
use uuid::Uuid;

use super::Ground;
use crate::conversations::world::Now;

fn id(task: &Value) -> Uuid {
    task["id"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_task_is_added_shown_cancelled_and_retried() {
    let ground = Ground::new().await;
    let ask = json!({
        "agent": "copywriter", "prompt": "Part one.", "session": "none", "instance": "second",
        "budget": { "tokens": 500 }, "priority": 3, "run_at": "2099-01-01T00:00:00Z",
    });
    let reply = ground.post(&ground.tasks(), &ask).await;
    let task = reply.expect(201);
    let path = format!("/v1/tasks/{}", id(&task));
    assert!(reply.head.contains(&format!("location: {path}")), "{reply:?}");
    let fields = ["state", "session_mode", "instance", "budget_tokens"].map(|field| &task[field]);
    assert_eq!(fields, [&json!("queued"), &json!("none"), &json!("second"), &json!(500)]);
    assert_eq!(ground.get(&path).await.expect(200)["turns"], json!([]));
    let told = ground.get(&format!("{path}/explain")).await.expect(200);
    assert!(told["because"].as_str().unwrap().contains("enqueued for later"), "{told}");

    let cancelled = ground.post(&format!("{path}/cancel"), &json!({ "reason": "no" })).await;
    assert_eq!(cancelled.expect(200)["cancel"], "at_once");
    ground.post(&format!("{path}/cancel"), &json!({})).await.problem(409, "task_ended");
    let retry = async || ground.post(&format!("{path}/retry"), &json!({})).await;
    assert_eq!(retry().await.expect(200)["state"], "queued");
    retry().await.problem(409, "task_not_ended");
}

#[tokio::test]
async fn the_same_key_and_input_return_the_same_task() {
    let ground = Ground::new().await;
    let ask = json!({ "agent": "copywriter", "prompt": "Part one." });
    let key = [("Idempotency-Key", "order-4711")];
    let first = ground.post_with(&ground.tasks(), &ask, &key).await;
    let second = ground.post_with(&ground.tasks(), &ask, &key).await;
    assert_eq!(id(&first.expect(201)), id(&second.expect(200)));
    assert!(second.head.contains("idempotent-replayed: true"), "{second:?}");
    assert!(!first.head.contains("idempotent-replayed"), "{first:?}");
    let other = json!({ "agent": "copywriter", "prompt": "Part two." });
    let words = ground.post_with(&ground.tasks(), &other, &key).await;
    assert!(words.problem(409, "idempotency_conflict").contains("`order-4711`"));
    let empty = ground.post_with(&ground.tasks(), &ask, &[("Idempotency-Key", " ")]).await;
    empty.problem(400, "bad_idempotency_key");
    let listed = ground.get("/v1/tasks").await.expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn concurrent_requests_with_one_key_create_one_task() {
    let ground = Ground::new().await;
    let ask = json!({ "agent": "copywriter", "prompt": "Part one." });
    let path = ground.tasks();
    let posts = (0..20).map(|_| ground.post_with(&path, &ask, &[("Idempotency-Key", "k")]));
    let replies = futures_util::future::join_all(posts).await;
    let created = replies.iter().filter(|reply| reply.status == 201).count();
    let found = replies.iter().filter(|reply| reply.status == 200).count();
    assert_eq!((created, found), (1, 19), "{replies:?}");
    assert!(replies.iter().all(|reply| id(&reply.json()) == id(&replies[0].json())));
}

#[tokio::test]
async fn a_list_is_paged_without_a_gap() {
    let ground = Ground::new().await;
    let mut added = Vec::new();
    for n in 0..5 {
        added.push(ground.world.add(&format!("Part {n}.")).await.id);
    }
    added.reverse();
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = ground.get(&format!("/v1/tasks?limit=2{cursor}")).await.expect(200);
        let ids: Vec<Uuid> = page["items"].as_array().unwrap().iter().map(id).collect();
        assert!((1..=2).contains(&ids.len()), "{page}");
        seen.extend(ids);
        // New tasks do not shift the rest of the list.
        ground.world.add("Later.").await;
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, added);
}

#[tokio::test]
async fn tasks_are_filtered() {
    let ground = Ground::new().await;
    ground.world.turn("Done.", Now::default()).await;
    ground.world.add("Queued.").await;
    let count = async |query: &str| {
        let listed = ground.get(&format!("/v1/tasks?{query}")).await.expect(200);
        listed["items"].as_array().unwrap().len()
    };
    assert_eq!(count("").await, 2);
    assert_eq!(count("state=done").await, 1);
    assert_eq!(count("agent=planner").await, 0);
    assert_eq!(count(&format!("campaign_id={}&state=queued", ground.world.campaign.id)).await, 1);
    assert_eq!(count(&format!("campaign_id={}", Uuid::nil())).await, 0);
}

#[tokio::test]
async fn waiting_ends_with_the_task_or_the_timeout() {
    let ground = Ground::new().await;
    let task = ground.world.add("Part one.").await;
    let path = format!("/v1/tasks/{}", task.id);
    assert_eq!(ground.get(&format!("{path}?wait=1s")).await.expect(200)["state"], "queued");
    let long = format!("{path}?wait=3600s");
    let answered = async {
        let now = Now::default();
        let (_, begun) = ground.world.begin(&task, ground.world.lease(), now).await;
        ground.world.commit(&begun, "The harbour at dawn.", now).await.unwrap();
    };
    let waited = async { tokio::time::timeout(crate::app::SOON, ground.get(&long)).await };
    let (waited, ()) = tokio::join!(waited, answered);
    assert_eq!(waited.unwrap().expect(200)["result"], "The harbour at dawn.");
}

#[tokio::test]
async fn a_stopping_service_answers_waiting_requests() {
    let ground = Ground::new().await;
    let task = ground.world.add("Part one.").await;
    let path = format!("/v1/tasks/{}?wait=3600s", task.id);
    let address = ground.app.address;
    let waiting =
        tokio::spawn(async move { super::client::send(address, "GET", &path, &[], "").await });
    let Ground { app, world } = ground;
    crate::app::eventually("the request is being served", async || {
        let idle = "select count(*) from pg_stat_activity
                     where datname = current_database() and query like '%dalsegno.tasks where id%'";
        let n: i64 = sqlx::query_scalar(idle).fetch_one(&world.pool).await.unwrap();
        (n > 1).then_some(())
    })
    .await;
    app.stop().await;
    assert_eq!(waiting.await.unwrap().expect(200)["state"], "queued");
}

#[tokio::test]
async fn a_name_with_a_number_addresses_that_instance() {
    let ground = Ground::new().await;
    let asked = async |body: Value| ground.post(&ground.tasks(), &body).await;
    let task = asked(json!({ "agent": "copywriter_2", "prompt": "Part one." })).await.expect(201);
    assert_eq!((&task["agent"], &task["instance"]), (&json!("copywriter"), &json!("2")));
    let node = json!({ "agent": "copywriter", "node": "meta-analysis", "prompt": "Look back." });
    let at_node = asked(node).await.expect(201);
    let shown = ground.get(&format!("/v1/tasks/{}", id(&at_node))).await.expect(200);
    assert_eq!(shown["node"], "meta-analysis");
    let nowhere = json!({ "agent": "copywriter", "node": "meta-analysys", "prompt": "Look back." });
    let words = asked(nowhere).await.problem(404, "unknown_node");
    assert!(words.contains("did you mean `meta-analysis`?"), "{words}");
    let both = json!({ "agent": "copywriter_2", "instance": "3", "prompt": "Part one." });
    asked(both).await.problem(404, "unknown_agent");
    let many = json!([{ "agent": "copywriter/2", "prompt": "Part two." }]);
    let placed = ground.post(&format!("{}/bulk", ground.tasks()), &many).await.expect(201);
    let placed = ground.get(&format!("/v1/tasks/{}", id(&placed["items"][0]))).await.expect(200);
    assert_eq!((&placed["agent"], &placed["instance"]), (&json!("copywriter"), &json!("2")));
}
