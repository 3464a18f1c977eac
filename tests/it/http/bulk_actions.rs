//! `/v1/bulk-actions`: carried out by a worker, observable meanwhile, each task once.

use std::net::SocketAddr;

use dalsegno::domain::{
    bulk_actions::{self, Action, Step},
    tasks::{self, State, TaskFilter},
};
use serde_json::{Value, json};

use super::{
    Fixture,
    client::{Reply, send},
};
use crate::{
    app::{eventually, noon},
    conversations::world::World,
    service::Service,
};

const PATH: &str = "/v1/bulk-actions";

async fn post(address: SocketAddr, path: &str, body: &Value) -> Reply {
    send(address, "POST", path, &[], &body.to_string()).await
}

/// Requests an action, and waits until a worker has done it.
async fn run_bulk_action(address: SocketAddr, ask: &Value) -> Value {
    let reply = post(address, PATH, ask).await;
    let asked = reply.expect(202);
    let location = format!("location: {PATH}/{}", asked["id"].as_str().unwrap());
    assert!(reply.head.contains(&location), "{reply:?}");
    let path = format!("{PATH}/{}", asked["id"].as_str().unwrap());
    eventually("the bulk action is done", async || {
        let shown = send(address, "GET", &path, &[], "").await.expect(200);
        (shown["state"] == "done").then_some(shown)
    })
    .await
}

#[tokio::test]
async fn all_tasks_of_a_filter_are_cancelled_and_retried() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let url = world.url();
    let service = Service::start(folder.path(), &[("DATABASE_URL", &url)]).await;
    let address = service.address;
    // Scheduled after each test, so that no worker runs them.
    let line = |n: usize| {
        json!({
            "agent": "copywriter", "instance": format!("copy_{}", n % 7), "prompt": "x", "run_at": "2099-01-01T00:00:00Z",
        })
    };
    let asks: Value = (0..700).map(line).collect();
    let path = format!("/v1/campaigns/{}/tasks/bulk", world.campaign.id);
    post(address, &path, &asks).await.expect(201);
    let filter = json!({ "campaign_id": world.campaign.id, "instance": "copy_3" });
    let ask = json!({ "action": "cancel", "filter": filter, "expected_count": 100, "reason": "a new brief" });
    let done = run_bulk_action(address, &ask).await;
    assert_eq!(
        (&done["matched"], &done["done"], &done["skipped"]),
        (&json!(100), &json!(100), &json!(0))
    );
    let count = async |state: State| {
        let filter = TaskFilter { state: Some(state), ..TaskFilter::default() };
        tasks::count_matching(
            &world.pool,
            &filter,
            &[state],
            noon() + chrono::TimeDelta::days(9_000),
        )
        .await
        .unwrap()
    };
    assert_eq!((count(State::Cancelled).await, count(State::Queued).await), (100, 600));
    // Nothing is left to cancel, which is also an end.
    let ask = json!({ "action": "cancel", "filter": filter });
    assert_eq!(run_bulk_action(address, &ask).await["matched"], 0);
    let ask =
        json!({ "action": "retry", "filter": { "instance": "copy_3" }, "expected_count": 100 });
    assert_eq!(run_bulk_action(address, &ask).await["done"], 100);
    assert_eq!(count(State::Cancelled).await, 0);
}

#[tokio::test]
async fn an_invalid_bulk_action_changes_nothing() {
    let fixture = Fixture::new().await;
    fixture.world.add("Part one.").await;
    let cancel = |filter: Value| json!({ "action": "cancel", "filter": filter });
    fixture.post(PATH, &cancel(json!({}))).await.problem(422, "empty_filter");
    fixture.post(PATH, &cancel(json!({ "agnet": "x" }))).await.problem(422, "bad_field");
    for text in [String::new(), "x".repeat(201)] {
        let detail = fixture.post(PATH, &cancel(json!({ "text": text }))).await;
        let detail = detail.problem(422, "bad_filter");
        assert!(detail.contains("use 1 to 200"), "{detail}");
    }
    fixture.post(PATH, &cancel(json!({ "agent": "a\0" }))).await.problem(422, "nul_in_text");
    let mut ask = cancel(json!({ "agent": "copywriter" }));
    ask["expected_count"] = json!(2);
    let detail = fixture.post(PATH, &ask).await.problem(409, "count_differs");
    assert!(detail.contains("1 task matches, not 2"), "{detail}");
    let nil = format!("{PATH}/00000000-0000-0000-0000-000000000000");
    fixture.get(&nil).await.problem(404, "unknown_bulk_action");
    let asked: i64 = sqlx::query_scalar("select count(*) from dalsegno.bulk_actions")
        .fetch_one(&fixture.world.pool)
        .await
        .unwrap();
    assert_eq!(asked, 0);
    // A count confirms that all tasks are meant.
    let mut ask = cancel(json!({}));
    ask["expected_count"] = json!(1);
    assert_eq!(fixture.post(PATH, &ask).await.expect(202)["matched"], 1);
}

#[tokio::test]
async fn an_outdated_run_changes_nothing_and_a_changed_task_is_skipped() {
    let fixture = Fixture::new().await;
    let pool = &fixture.world.pool;
    let first = fixture.world.add("Part one.").await.id;
    let second = fixture.world.add("Part two.").await.id;
    let filter = TaskFilter { agent: Some("copywriter".to_owned()), ..TaskFilter::default() };
    let new = bulk_actions::New {
        action: Action::Cancel,
        filter: &filter,
        reason: "",
        expected_count: None,
    };
    let mut conn = pool.acquire().await.unwrap();
    let stale = bulk_actions::request(&mut conn, &new, noon()).await.unwrap();
    // Tasks that are added later are not included.
    let later = tasks::add(
        &mut conn,
        &crate::conversations::world::limits(),
        &fixture.world.ask("Part three."),
        noon() + chrono::TimeDelta::seconds(1),
    )
    .await
    .unwrap();
    assert!(bulk_actions::start(pool, stale.id, noon()).await.unwrap());
    let left = bulk_actions::list_remaining_tasks(pool, &stale, 10).await.unwrap();
    assert_eq!(left, [first, second]);
    bulk_actions::step(&mut conn, &stale, first, noon()).await.unwrap();
    // The run that was declared lost repeats the step.
    let mut tx = pool.begin().await.unwrap();
    let overtaken = bulk_actions::step(&mut tx, &stale, second, noon()).await;
    assert!(matches!(overtaken, Err(bulk_actions::Error::Overtaken(_))), "{overtaken:?}");
    tx.rollback().await.unwrap();
    let current = bulk_actions::get(pool, stale.id).await.unwrap();
    tasks::cancel(&mut conn, second, "", noon()).await.unwrap();
    let mut tx = pool.begin().await.unwrap();
    let ended = bulk_actions::step(&mut tx, &current, second, noon()).await;
    assert!(
        matches!(ended, Err(bulk_actions::Error::Task(tasks::Error::Ended { .. }))),
        "{ended:?}"
    );
    tx.rollback().await.unwrap();
    bulk_actions::advance(pool, &current, second, Step::Skipped).await.unwrap();
    bulk_actions::finish(pool, current.id, noon()).await.unwrap();
    let done = bulk_actions::get(pool, current.id).await.unwrap();
    assert_eq!((done.matched, done.done, done.skipped), (2, 1, 1));
    assert_eq!(fixture.world.task(later.task.id).await.state, State::Queued);
}

#[tokio::test]
async fn an_action_without_a_job_is_reported_and_continues_on_retry() {
    let fixture = Fixture::new().await;
    let pool = &fixture.world.pool;
    fixture.world.add("Part one.").await;
    let filter = TaskFilter { agent: Some("copywriter".to_owned()), ..TaskFilter::default() };
    let new = bulk_actions::New {
        action: Action::Cancel,
        filter: &filter,
        reason: "",
        expected_count: None,
    };
    let mut conn = pool.acquire().await.unwrap();
    let [dead, cancelled, alive] = [
        bulk_actions::request(&mut conn, &new, noon()).await.unwrap(),
        bulk_actions::request(&mut conn, &new, noon()).await.unwrap(),
        bulk_actions::request(&mut conn, &new, noon()).await.unwrap(),
    ];
    assert!(bulk_actions::start(pool, dead.id, noon()).await.unwrap());
    let dies = "with job as (delete from dalsegno.jobs where id = $1 returning *),
                     payload as (delete from dalsegno.job_payloads where job_id = $1 returning *)
                insert into dalsegno.dead_jobs (id, enqueued_at, lease, priority, attempt, max_attempts, crash_count, queue, kind,
                                                reason, error, payload)
                select j.id, j.enqueued_at, 1, j.priority, 20, 20, 0, j.queue, j.kind, 'failed', 'it failed 20 times', p.payload
                  from job as j, payload as p";
    sqlx::query(dies).bind(dead.job_id).execute(pool).await.unwrap();
    sqlx::query("select dalsegno.cancel($1, 'x')")
        .bind(cancelled.job_id)
        .execute(pool)
        .await
        .unwrap();
    assert_eq!(bulk_actions::end_lost(pool, noon()).await.unwrap(), 2);
    assert_eq!(bulk_actions::end_lost(pool, noon()).await.unwrap(), 0, "once");
    let shown = async |id| fixture.get(&format!("{PATH}/{id}")).await.expect(200);
    let failed = shown(dead.id).await;
    assert_eq!(
        (&failed["state"], &failed["error"]),
        (&json!("failed"), &json!("it failed 20 times"))
    );
    assert_eq!(shown(cancelled.id).await["state"], "cancelled");
    assert_eq!(shown(alive.id).await["state"], "queued");

    sqlx::query("select dalsegno.retry($1)").bind(dead.job_id).execute(pool).await.unwrap();
    assert!(bulk_actions::start(pool, dead.id, noon()).await.unwrap());
    let again = shown(dead.id).await;
    assert_eq!((&again["state"], &again["error"]), (&json!("running"), &Value::Null));
    assert!(!bulk_actions::start(pool, cancelled.id, noon()).await.unwrap());
}

#[tokio::test]
async fn a_preview_lists_the_tasks_of_an_action_and_changes_nothing() {
    let fixture = Fixture::new().await;
    for (prompt, tags) in
        [("Part one.", json!(["late"])), ("Part two.", json!([])), ("Notes.", json!(["late"]))]
    {
        let ask = json!({ "agent": "copywriter", "prompt": prompt, "tags": tags });
        fixture.post(&fixture.tasks(), &ask).await.expect(201);
    }
    let filter =
        json!({ "tags": ["late"], "text": "PART", "created_after": "2026-11-20T00:00:00Z" });
    let ask = |action: &str| json!({ "action": action, "filter": filter });
    let preview = format!("{PATH}/preview");
    let previewed = fixture.post(&preview, &ask("cancel")).await.expect(200);
    assert_eq!(previewed["matched"], 1);
    assert_eq!(previewed["tasks"][0]["prompt"], "Part one.");
    assert_eq!(fixture.post(&preview, &ask("retry")).await.expect(200)["matched"], 0);
    assert_eq!(fixture.get(PATH).await.expect(200)["items"], json!([]));
    let made = fixture.post(PATH, &ask("cancel")).await.expect(202);
    assert_eq!((&made["matched"], &made["filter"]), (&json!(1), &filter));
    let listed = fixture.get(PATH).await.expect(200);
    assert_eq!(listed["items"], json!([made]));
    let wrong = |filter: Value| json!({ "action": "cancel", "filter": filter });
    fixture
        .post(&preview, &wrong(json!({ "agent": "x".repeat(5_000) })))
        .await
        .problem(413, "text_too_long");
    fixture.post(&preview, &wrong(json!({ "text": "" }))).await.problem(422, "bad_filter");
    fixture.post(&preview, &wrong(json!({}))).await.problem(422, "empty_filter");
    assert_eq!(
        fixture.post(&preview, &wrong(json!({ "text": "n".repeat(200) }))).await.expect(200)["matched"],
        0
    );
}

#[tokio::test]
async fn the_tasks_of_one_campaign_are_left_out() {
    let fixture = Fixture::new().await;
    let other = World::over(fixture.world.pool.clone(), Default::default()).await;
    let (kept, cancelled) = (fixture.world.add("Part one.").await, other.add("Part two.").await);
    let filter = json!({ "except_campaign_id": fixture.world.campaign.id });
    let ask = json!({ "action": "cancel", "filter": filter });
    let preview = fixture.post("/v1/bulk-actions/preview", &ask).await.expect(200);
    assert_eq!(
        (&preview["matched"], &preview["tasks"][0]["id"]),
        (&json!(1), &json!(cancelled.id))
    );
    let asked = fixture.post(PATH, &ask).await.expect(202);
    assert_eq!((&asked["matched"], &asked["filter"]), (&json!(1), &filter));
    let pool = &fixture.world.pool;
    let action =
        bulk_actions::get(pool, asked["id"].as_str().unwrap().parse().unwrap()).await.unwrap();
    let left = bulk_actions::list_remaining_tasks(pool, &action, 10).await.unwrap();
    assert_eq!(left, [cancelled.id]);
    let both = json!({ "except_campaign_id": kept.campaign_id, "campaign_id": kept.campaign_id });
    let ask = json!({ "action": "cancel", "filter": both });
    assert_eq!(fixture.post("/v1/bulk-actions/preview", &ask).await.expect(200)["matched"], 0);
    let ask = json!({ "action": "cancel", "filter": { "except_campaign_id": "x" } });
    fixture.post(PATH, &ask).await.problem(422, "bad_field");
}
