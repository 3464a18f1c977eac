//! `/v1/tasks`, without its stream.

use serde_json::{Value, json};
use uuid::Uuid;

use super::Fixture;
use crate::conversations::world::TurnSettings;

fn id(task: &Value) -> Uuid {
    task["id"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_task_is_added_shown_cancelled_and_retried() {
    let fixture = Fixture::new().await;
    let ask = json!({
        "agent": "copywriter", "prompt": "Part one.", "session": "none", "instance": "second",
        "budget": { "tokens": 500 }, "priority": 3, "run_at": "2099-01-01T00:00:00Z",
    });
    let reply = fixture.post(&fixture.tasks(), &ask).await;
    let task = reply.expect(201);
    let path = format!("/v1/tasks/{}", id(&task));
    assert!(reply.head.contains(&format!("location: {path}")), "{reply:?}");
    let fields = ["state", "session_mode", "instance", "budget_tokens"].map(|field| &task[field]);
    assert_eq!(fields, [&json!("queued"), &json!("none"), &json!("second"), &json!(500)]);
    assert_eq!(fixture.get(&path).await.expect(200)["turns"], json!([]));
    let told = fixture.get(&format!("{path}/explain")).await.expect(200);
    assert!(told["because"].as_str().unwrap().contains("not start before 2099-01-01"), "{told}");

    let cancelled = fixture.post(&format!("{path}/cancel"), &json!({ "reason": "no" })).await;
    assert_eq!(cancelled.expect(200)["cancel"], "at_once");
    fixture.post(&format!("{path}/cancel"), &json!({})).await.problem(409, "task_ended");
    let retry = async || fixture.post(&format!("{path}/retry"), &json!({})).await;
    assert_eq!(retry().await.expect(200)["state"], "queued");
    retry().await.problem(409, "task_not_ended");
}

#[tokio::test]
async fn the_same_key_and_input_return_the_same_task() {
    let fixture = Fixture::new().await;
    let ask = json!({ "agent": "copywriter", "prompt": "Part one." });
    let key = [("Idempotency-Key", "order-4711")];
    let first = fixture.post_with(&fixture.tasks(), &ask, &key).await;
    let second = fixture.post_with(&fixture.tasks(), &ask, &key).await;
    assert_eq!(id(&first.expect(201)), id(&second.expect(200)));
    assert!(second.head.contains("idempotent-replayed: true"), "{second:?}");
    assert!(!first.head.contains("idempotent-replayed"), "{first:?}");
    let other = json!({ "agent": "copywriter", "prompt": "Part two." });
    let words = fixture.post_with(&fixture.tasks(), &other, &key).await;
    assert!(words.problem(409, "idempotency_conflict").contains("`order-4711`"));
    let empty = fixture.post_with(&fixture.tasks(), &ask, &[("Idempotency-Key", " ")]).await;
    empty.problem(400, "bad_idempotency_key");
    let listed = fixture.get("/v1/tasks").await.expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn concurrent_requests_with_one_key_create_one_task() {
    let fixture = Fixture::new().await;
    let ask = json!({ "agent": "copywriter", "prompt": "Part one." });
    let path = fixture.tasks();
    let posts = (0..20).map(|_| fixture.post_with(&path, &ask, &[("Idempotency-Key", "k")]));
    let replies = futures_util::future::join_all(posts).await;
    let created = replies.iter().filter(|reply| reply.status == 201).count();
    let found = replies.iter().filter(|reply| reply.status == 200).count();
    assert_eq!((created, found), (1, 19), "{replies:?}");
    assert!(replies.iter().all(|reply| id(&reply.json()) == id(&replies[0].json())));
}

#[tokio::test]
async fn a_list_is_paged_without_a_gap() {
    let fixture = Fixture::new().await;
    let mut added = Vec::new();
    for n in 0..5 {
        added.push(fixture.world.add(&format!("Part {n}.")).await.id);
    }
    added.reverse();
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = fixture.get(&format!("/v1/tasks?limit=2{cursor}")).await.expect(200);
        let ids: Vec<Uuid> = page["items"].as_array().unwrap().iter().map(id).collect();
        assert!((1..=2).contains(&ids.len()), "{page}");
        seen.extend(ids);
        // New tasks do not shift the rest of the list.
        fixture.world.add("Later.").await;
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, added);
}

#[tokio::test]
async fn tasks_are_filtered() {
    let fixture = Fixture::new().await;
    fixture.world.turn("Done.", TurnSettings::default()).await;
    fixture.world.add("Queued.").await;
    let count = async |query: &str| {
        let listed = fixture.get(&format!("/v1/tasks?{query}")).await.expect(200);
        listed["items"].as_array().unwrap().len()
    };
    assert_eq!(count("").await, 2);
    assert_eq!(count("state=done").await, 1);
    assert_eq!(count("agent=planner").await, 0);
    assert_eq!(count(&format!("campaign_id={}&state=queued", fixture.world.campaign.id)).await, 1);
    assert_eq!(count(&format!("campaign_id={}", Uuid::nil())).await, 0);
}

#[tokio::test]
async fn waiting_ends_with_the_task_or_the_timeout() {
    let fixture = Fixture::new().await;
    let task = fixture.world.add("Part one.").await;
    let path = format!("/v1/tasks/{}", task.id);
    assert_eq!(fixture.get(&format!("{path}?wait=1s")).await.expect(200)["state"], "queued");
    let long = format!("{path}?wait=3600s");
    let answered = async {
        let now = TurnSettings::default();
        let (_, begun) = fixture.world.begin(&task, fixture.world.lease(), now).await;
        fixture.world.commit(&begun, "The harbour at dawn.", now).await.unwrap();
    };
    let waited = async { tokio::time::timeout(crate::app::SOON, fixture.get(&long)).await };
    let (waited, ()) = tokio::join!(waited, answered);
    assert_eq!(waited.unwrap().expect(200)["result"], "The harbour at dawn.");
}

#[tokio::test]
async fn a_stopping_service_answers_waiting_requests() {
    let fixture = Fixture::new().await;
    let task = fixture.world.add("Part one.").await;
    let path = format!("/v1/tasks/{}?wait=3600s", task.id);
    let address = fixture.app.address;
    let waiting =
        tokio::spawn(async move { super::client::send(address, "GET", &path, &[], "").await });
    let Fixture { app, world } = fixture;
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
    let fixture = Fixture::new().await;
    let asked = async |body: Value| fixture.post(&fixture.tasks(), &body).await;
    let task = asked(json!({ "agent": "copywriter_2", "prompt": "Part one." })).await.expect(201);
    assert_eq!((&task["agent"], &task["instance"]), (&json!("copywriter"), &json!("2")));
    let node = json!({ "agent": "copywriter", "node": "meta-analysis", "prompt": "Look back." });
    let at_node = asked(node).await.expect(201);
    let shown = fixture.get(&format!("/v1/tasks/{}", id(&at_node))).await.expect(200);
    assert_eq!(shown["node"], "meta-analysis");
    let nowhere = json!({ "agent": "copywriter", "node": "meta-analysys", "prompt": "Look back." });
    let words = asked(nowhere).await.problem(404, "unknown_node");
    assert!(words.contains("did you mean `meta-analysis`?"), "{words}");
    let both = json!({ "agent": "copywriter_2", "instance": "3", "prompt": "Part one." });
    asked(both).await.problem(404, "unknown_agent");
    let many = json!([{ "agent": "copywriter/2", "prompt": "Part two." }]);
    let placed = fixture.post(&format!("{}/bulk", fixture.tasks()), &many).await.expect(201);
    let placed = fixture.get(&format!("/v1/tasks/{}", id(&placed["items"][0]))).await.expect(200);
    assert_eq!((&placed["agent"], &placed["instance"]), (&json!("copywriter"), &json!("2")));
}
