//! `/v1/tasks/{id}/events`: in order, without gaps or repetitions.

use dalsegno::domain::{
    feed::{self, Kind},
    tasks::Task,
};
use serde_json::{Value, json};
use sqlx::PgExecutor;

use super::{Fixture, Stream, client::ReceivedEvent};
use crate::{
    app::{eventually, noon},
    conversations::world::TurnSettings,
};

async fn append_event(executor: impl PgExecutor<'_>, task: &Task, n: i64) {
    let event = feed::New {
        campaign_id: Some(task.campaign_id),
        task_id: Some(task.id),
        session_id: None,
        kind: Kind::TurnStarted,
        data: json!({ "n": n }),
    };
    feed::append(executor, &[event], noon()).await.unwrap();
}

fn n(sent: &ReceivedEvent) -> i64 {
    let data: Value = serde_json::from_str(&sent.data).unwrap();
    data["data"]["n"].as_i64().unwrap_or_else(|| panic!("{sent:?}"))
}

impl Fixture {
    async fn stream(&self, task: &Task, last: Option<&str>) -> Stream {
        let path = format!("/v1/tasks/{}/events", task.id);
        Stream::open(self.app.address, &path, last).await.ok().unwrap()
    }

    async fn answer(&self, task: &Task) {
        let (_, begun) = self.world.begin(task, self.world.lease(), TurnSettings::default()).await;
        self.world.commit(&begun, "The harbour at dawn.", TurnSettings::default()).await.unwrap();
    }
}

#[tokio::test]
async fn a_stream_sends_all_events_and_then_the_end() {
    let fixture = Fixture::new().await;
    let task = fixture.world.add("Part one.").await;
    let other = fixture.world.add("Part two.").await;
    append_event(&fixture.world.pool, &task, 1).await;
    let mut stream = fixture.stream(&task, None).await;
    let first = stream.next().await.unwrap();
    assert_eq!(first.event, "task.queued");
    assert_eq!(n(&stream.next().await.unwrap()), 1);
    // An event of the campaign, but of another task.
    append_event(&fixture.world.pool, &other, 99).await;
    append_event(&fixture.world.pool, &task, 2).await;
    assert_eq!(n(&stream.next().await.unwrap()), 2);
    append_event(&fixture.world.pool, &task, 3).await;
    fixture.answer(&task).await;
    assert_eq!(n(&stream.next().await.unwrap()), 3);
    let end = stream.next().await.unwrap();
    let ended: Value = serde_json::from_str(&end.data).unwrap();
    assert_eq!((end.event.as_str(), &ended["result"]), ("end", &json!("The harbour at dawn.")));
    assert_eq!(ended["rest"], ended["result"], "no event had a part of it");
    assert_eq!(stream.next().await, None);

    // A client that has the end gets 204; one that missed it gets it.
    let path = format!("/v1/tasks/{}/events", task.id);
    let away = Stream::open(fixture.app.address, &path, Some(&end.id)).await.err().unwrap();
    assert_eq!(away.status, 204);
    let before_end = end.id.trim_end_matches(".end").to_owned();
    assert_eq!(fixture.stream(&task, Some(&before_end)).await.next().await.unwrap().event, "end");
}

/// Returns the data of the event `end` of a task whose turn has written these texts before its answer.
async fn end_after(texts: &[&str]) -> Value {
    let fixture = Fixture::new().await;
    let task = fixture.world.add("Part one.").await;
    let lease = fixture.world.lease();
    let (_, begun) = fixture.world.begin(&task, lease, TurnSettings::default()).await;
    let progress = |text: &&str| feed::New {
        campaign_id: Some(task.campaign_id),
        task_id: Some(task.id),
        session_id: Some(begun.session_id),
        kind: Kind::TurnProgress,
        data: json!({ "turn": begun.turn, "text": text }),
    };
    let events: Vec<_> = texts.iter().map(progress).collect();
    feed::append(&fixture.world.pool, &events, noon()).await.unwrap();
    fixture.world.commit(&begun, "The harbour at dawn.", TurnSettings::default()).await.unwrap();
    let mut stream = fixture.stream(&task, None).await;
    loop {
        let event = stream.next().await.unwrap();
        if event.event == "end" {
            return serde_json::from_str(&event.data).unwrap();
        }
    }
}

#[tokio::test]
async fn the_end_has_the_part_of_the_result_that_no_event_had() {
    let end = end_after(&["The ", "harbour ", ""]).await;
    assert_eq!(
        (&end["rest"], &end["result"]),
        (&json!("at dawn."), &json!("The harbour at dawn."))
    );
    // A text of another attempt, or before a tool; a part that was cut.
    for texts in [["Of the sea.", "The ", "harbour "], ["The ", "at ", "dawn"]] {
        assert_eq!(end_after(&texts).await["rest"], "The harbour at dawn.", "{texts:?}");
    }
}

#[tokio::test]
async fn a_resumed_stream_repeats_no_event_and_misses_none() {
    let fixture = Fixture::new().await;
    let task = fixture.world.add("Part one.").await;
    let mut seen = Vec::new();
    let mut last: Option<String> = None;
    for round in 0..10 {
        // A transaction that takes its id before the others, and commits after the client has disconnected.
        let mut slow = fixture.world.pool.begin().await.unwrap();
        append_event(&mut *slow, &task, round * 10).await;
        append_event(&fixture.world.pool, &task, round * 10 + 1).await;
        let mut stream = fixture.stream(&task, last.as_deref()).await;
        if round == 0 {
            assert_eq!(stream.next().await.unwrap().event, "task.queued");
        }
        slow.commit().await.unwrap();
        // Disconnects in the middle, every other time.
        for _ in 0..=(round % 2) {
            let sent = stream.next().await.unwrap();
            seen.push(n(&sent));
            last = Some(sent.id);
        }
    }
    fixture.answer(&task).await;
    let mut stream = fixture.stream(&task, last.as_deref()).await;
    while let Some(sent) = stream.next().await {
        match sent.event.as_str() {
            "end" => break,
            _ => seen.push(n(&sent)),
        }
    }
    let expected: Vec<i64> = (0..10).flat_map(|round| [round * 10, round * 10 + 1]).collect();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn the_stream_of_a_retried_task_continues() {
    let fixture = Fixture::new().await;
    let task = fixture.world.add("Part one.").await;
    let path = format!("/v1/tasks/{}", task.id);
    fixture.post(&format!("{path}/cancel"), &json!({})).await.expect(200);
    let mut stream = fixture.stream(&task, None).await;
    let mut end = stream.next().await.unwrap();
    let mut kinds = Vec::new();
    while end.event != "end" {
        kinds.push(end.event);
        end = stream.next().await.unwrap();
    }
    assert_eq!(kinds, ["task.queued", "task.cancelled"]);
    fixture.post(&format!("{path}/retry"), &json!({})).await.expect(200);
    let mut stream = fixture.stream(&task, Some(&end.id)).await;
    let again = stream.next().await.unwrap();
    assert_eq!(again.event, "task.queued");
    assert!(again.data.contains(r#""again":true"#), "{again:?}");
}

#[tokio::test]
async fn an_open_stream_does_not_delay_the_end_of_the_service() {
    let fixture = Fixture::new().await;
    let task = fixture.world.add("Part one.").await;
    let mut stream = fixture.stream(&task, None).await;
    assert_eq!(stream.next().await.unwrap().event, "task.queued");
    fixture.app.stop().await;
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn a_stream_of_an_unknown_task_is_a_problem_document() {
    let fixture = Fixture::new().await;
    let nil = "/v1/tasks/00000000-0000-0000-0000-000000000000/events";
    fixture.get(nil).await.problem(404, "unknown_task");
    let task = fixture.world.add("Part one.").await;
    let path = format!("/v1/tasks/{}/events", task.id);
    let reply = Stream::open(fixture.app.address, &path, Some("yesterday")).await.err().unwrap();
    reply.problem(400, "bad_last_event_id");
}

#[tokio::test]
async fn waiting_requests_are_limited() {
    let fixture = Fixture::with(&[("http.max_waiting", "2")]).await;
    let task = fixture.world.add("Part one.").await;
    let path = format!("/v1/tasks/{}", task.id);
    let mut first = fixture.stream(&task, None).await;
    assert_eq!(first.next().await.unwrap().event, "task.queued");
    let second = fixture.stream(&task, None).await;
    let refused =
        Stream::open(fixture.app.address, &format!("{path}/events"), None).await.err().unwrap();
    let detail = refused.problem(503, "too_many_waiting");
    assert!(detail.contains("http.max_waiting"), "{detail}");
    assert!(refused.head.contains("retry-after: 5"), "{refused:?}");
    assert_eq!(refused.json()["retryable"], true);
    fixture.get(&format!("{path}?wait=1s")).await.problem(503, "too_many_waiting");
    // Requests that do not wait are served.
    fixture.get(&path).await.expect(200);
    // A disconnected client frees its place.
    drop(second);
    eventually("a waiting request may enter", async || {
        let waited = fixture.get(&format!("{path}?wait=1s")).await;
        (waited.status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn waiting_requests_are_limited_per_client() {
    let places = [("http.max_waiting", "4"), ("http.max_waiting_per_client", "2")];
    let fixture = Fixture::with(&places).await;
    let address = fixture.app.address;
    let task = fixture.world.add("Part one.").await;
    let (events, wait) =
        (format!("/v1/tasks/{}/events", task.id), format!("/v1/tasks/{}?wait=1s", task.id));
    let key = async |name: &str| {
        let made = fixture.post("/v1/keys", &json!({ "name": name, "scopes": ["read"] })).await;
        format!("Bearer {}", made.expect(201)["secret"].as_str().unwrap())
    };
    let (shop, press) = (key("shop").await, key("press").await);
    let open = async |key: &str, path: &str| {
        Stream::open_with(address, path, &[("Authorization", key)]).await
    };
    let held =
        (open(&shop, &events).await.ok().unwrap(), open(&shop, "/v1/feed").await.ok().unwrap());
    for path in [&events, "/v1/feed", &wait] {
        let refused = open(&shop, path).await.err().unwrap();
        let detail = refused.problem(429, "too_many_waiting_per_client");
        assert!(detail.contains("this API key has 2 waiting or streaming requests"), "{detail}");
        assert!(detail.contains("http.max_waiting_per_client"), "{detail}");
        assert!(refused.head.contains("retry-after: 5"), "{refused:?}");
        assert_eq!(refused.json()["retryable"], true);
    }
    // Another key, and the address of requests without one, have a share of their own.
    let _other = open(&press, &events).await.ok().unwrap();
    let _without = fixture.stream(&task, None).await;
    open(&press, &wait).await.err().unwrap().problem(503, "too_many_waiting");
    drop(held);
    eventually("the key may wait again", async || {
        (open(&shop, &wait).await.err().unwrap().status == 200).then_some(())
    })
    .await;
}
