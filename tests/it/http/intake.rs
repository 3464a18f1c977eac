//! Group commit of tasks: each request gets its own answer.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use chrono::{DateTime, Utc};
use dalsegno::{
    clock::Clock,
    domain::{amount::Limit, campaign_control, campaigns},
};
use futures_util::future::join_all;
use serde_json::json;
use sqlx::{Postgres, Transaction};
use tokio::time::timeout;
use uuid::Uuid;

use super::{Fixture, client::send, lossy_proxy::LossyProxy};
use crate::{
    app::{SOON, TestApp, TestDatabase, eventually, noon},
    conversations::world::World,
};

/// A request waits for a place during a share of its time, which a slow machine needs.
const LONG_REQUEST_TIMEOUT: (&str, &str) = ("http.request_timeout_secs", "600");

#[tokio::test]
async fn concurrent_requests_get_a_task_each_and_a_refused_one_affects_no_other() {
    let fixture = Fixture::with(&[LONG_REQUEST_TIMEOUT]).await;
    let mut conn = fixture.world.pool.acquire().await.unwrap();
    let new =
        campaigns::New { name: "over", brief: "", client_context: None, limit: Limit::default() };
    let over = campaigns::create(&mut conn, &new, noon()).await.unwrap().id;
    campaign_control::close(&mut conn, over, noon()).await.unwrap();
    let fixture = &fixture;
    let (fine, closed) = (fixture.tasks(), format!("/v1/campaigns/{over}/tasks"));
    let unknown = format!("/v1/campaigns/{}/tasks", Uuid::nil());
    let posts = (0..120).map(|n| {
        let (path, instance) = match n % 10 {
            3 => (&closed, "main".to_owned()),
            7 => (&unknown, "main".to_owned()),
            _ => (&fine, format!("copy_{}", n % 4)),
        };
        let ask =
            json!({ "agent": "copywriter", "instance": instance, "prompt": format!("Part {n}.") });
        async move { (n, fixture.post(path, &ask).await) }
    });
    let replies = join_all(posts).await;
    let mut ids = BTreeSet::new();
    for (n, reply) in &replies {
        match n % 10 {
            3 => drop(reply.problem(409, "campaign_closed")),
            7 => drop(reply.problem(404, "unknown_campaign")),
            _ => {
                let task = reply.expect(201);
                assert_eq!(task["prompt"], format!("Part {n}."));
                assert!(ids.insert(task["id"].to_string()), "{task}");
            }
        }
    }
    let count = "select count(*), count(distinct job_id) from dalsegno.tasks";
    let (tasks, jobs): (i64, i64) = sqlx::query_as(count).fetch_one(&mut *conn).await.unwrap();
    assert_eq!((tasks, jobs), (96, 96));
    let left = "select count(*) from dalsegno.jobs as j where not exists (select from dalsegno.tasks as t where t.job_id = j.id)";
    assert_eq!(sqlx::query_scalar::<_, i64>(left).fetch_one(&mut *conn).await.unwrap(), 0);
}

/// Another system adds a task in an open transaction, which locks the conversation.
#[tokio::test]
async fn a_locked_conversation_blocks_no_task_of_another() {
    let fixture = Fixture::new().await;
    let open = lock_conversation(&fixture).await;
    let (address, path) = (fixture.app.address, fixture.tasks());
    let post = move |instance: String| {
        let path = path.clone();
        let ask = json!({ "agent": "copywriter", "instance": instance, "prompt": "x" });
        async move { send(address, "POST", &path, &[], &ask.to_string()).await }
    };
    // Many more than there are connections.
    let held: Vec<_> = (0..30).map(|_| tokio::spawn(post("held".to_owned()))).collect();
    n_waiting(&fixture, 1).await;
    let others = join_all((0..20).map(|n| post(format!("copy_{n}"))));
    let others = timeout(SOON, others).await.unwrap();
    assert!(others.iter().all(|reply| reply.status == 201), "{others:?}");
    for held in held {
        let refused = held.await.unwrap();
        refused.problem(503, "database_busy");
        assert_eq!(refused.json()["retryable"], true);
    }
    n_waiting(&fixture, 0).await;
    open.commit().await.unwrap();
    let held = join_all((0..30).map(|_| post("held".to_owned()))).await;
    assert!(held.iter().all(|reply| reply.status == 201), "{held:?}");
}

#[tokio::test]
async fn requests_that_wait_for_a_lock_leave_connections_to_others() {
    let fixture = Fixture::new().await;
    let open = lock_conversation(&fixture).await;
    let address = fixture.app.address;
    let one = json!({ "agent": "copywriter", "instance": "held", "prompt": "x" });
    let paths = [(fixture.tasks(), one.clone()), (fixture.tasks() + "/bulk", json!([one]))];
    let held: Vec<_> = (0..60)
        .map(|n| {
            let (path, ask) = paths[n % 2].clone();
            tokio::spawn(async move { send(address, "POST", &path, &[], &ask.to_string()).await })
        })
        .collect();
    n_waiting(&fixture, 1).await;
    let mut conn = fixture.world.pool.acquire().await.unwrap();
    let new =
        campaigns::New { name: "other", brief: "", client_context: None, limit: Limit::default() };
    let other = campaigns::create(&mut conn, &new, noon()).await.unwrap().id;
    let path = format!("/v1/campaigns/{other}/tasks");
    let ask = json!({ "agent": "copywriter", "prompt": "x" });
    timeout(SOON, fixture.post(&path, &ask)).await.unwrap().expect(201);
    timeout(SOON, fixture.get("/readyz")).await.unwrap().expect(200);
    timeout(SOON, fixture.get("/v1/tasks")).await.unwrap().expect(200);
    for held in held {
        held.await.unwrap().problem(503, "database_busy");
    }
    n_waiting(&fixture, 0).await;
    open.commit().await.unwrap();
    for (path, ask) in &paths {
        fixture.post(path, ask).await.expect(201);
    }
}

async fn lock_conversation(fixture: &Fixture) -> Transaction<'static, Postgres> {
    let mut open = fixture.world.pool.begin().await.unwrap();
    sqlx::query("select dalsegno.add_task($1, 'copywriter', 'x', 'held')")
        .bind(fixture.world.campaign.id)
        .execute(&mut *open)
        .await
        .unwrap();
    open
}

/// Waits until at least this many requests wait for a lock; 0 waits until none does.
async fn n_waiting(fixture: &Fixture, at_least: i64) {
    let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
    eventually("requests wait for the lock of the conversation", async || {
        let n: i64 = sqlx::query_scalar(waiting).fetch_one(&fixture.world.pool).await.unwrap();
        (n >= at_least && (n == 0) == (at_least == 0)).then_some(())
    })
    .await;
}

/// A key that belongs to a job of no task: its caller gets the error after the others are written.
#[tokio::test]
async fn an_error_after_the_commit_fails_one_request_and_adds_no_task_twice() {
    let fixture = Fixture::with(&[LONG_REQUEST_TIMEOUT]).await;
    let taken = "select count(*) from generate_series(1, 40) as n, lateral dalsegno.enqueue(kind => 'run_turn', queue => 'turns',
                        lane => $1 || '/copywriter/main', group_key => $1, max_attempts => 5, idempotency_key => dalsegno.task_key($1::uuid, '', 'taken-' || n),
                        payload => jsonb_build_object('asked', dalsegno.fingerprint_of_task($1, 'copywriter', 'main', 'x',
                                                                                            'Continue None None')))";
    let campaign = fixture.world.campaign.id.to_string();
    sqlx::query(taken).bind(campaign).execute(&fixture.world.pool).await.unwrap();
    let (fixture, path) = (&fixture, &fixture.tasks());
    let posts = (0..160).map(|n| async move {
        let key = format!("taken-{}", n / 4 + 1);
        let ask = json!({ "agent": "copywriter", "prompt": "x" });
        match n % 4 {
            0 => fixture
                .post_with(path, &ask, &[("Idempotency-Key", &key)])
                .await
                .problem(404, "unknown_task"),
            _ => fixture.post(path, &ask).await.expect(201)["id"].to_string(),
        }
    });
    join_all(posts).await;
    let count = "select count(*) from dalsegno.tasks";
    let n_tasks: i64 = sqlx::query_scalar(count).fetch_one(&fixture.world.pool).await.unwrap();
    assert_eq!(n_tasks, 120);
}

#[tokio::test]
async fn tasks_whose_answer_was_lost_are_not_added_again() {
    let mut database = TestDatabase::migrated().await;
    let direct = database.pool().await;
    let lossy = LossyProxy::start(&database.options, &["Part 11 of many"]).await;
    database.options = lossy.url.parse().unwrap();
    let app = TestApp::start_with(database, &[LONG_REQUEST_TIMEOUT]).await;
    let campaign = World::over(direct.clone(), Limit::default()).await.campaign.id;
    let (address, path) = (app.address, &format!("/v1/campaigns/{campaign}/tasks"));
    let posts = (0..80).map(|n| async move {
        let ask = json!({ "agent": "copywriter", "prompt": format!("Part {n} of many.") });
        send(address, "POST", path, &[], &ask.to_string()).await
    });
    let replies = join_all(posts).await;
    let lost: Vec<_> = replies.iter().filter(|reply| reply.status != 201).collect();
    assert!(!lost.is_empty(), "no request lost its answer");
    assert!(
        lost.iter().all(|reply| reply.status == 503 && reply.json()["retryable"] == true),
        "{lost:?}"
    );
    let twice = "select count(*) - count(distinct prompt) from dalsegno.tasks";
    assert_eq!(sqlx::query_scalar::<_, i64>(twice).fetch_one(&direct).await.unwrap(), 0);
}

/// A clock that panics once, at its n-th reading from now.
#[derive(Debug, Default)]
struct BreakingClock {
    looks_left: AtomicUsize,
}

impl Clock for BreakingClock {
    fn now(&self) -> DateTime<Utc> {
        let less = |left: usize| left.checked_sub(1);
        let left = self.looks_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
        assert!(left != Ok(1), "the clock fails as requested");
        noon()
    }
}

#[tokio::test]
async fn a_panic_during_a_write_stops_no_writer() {
    let clock = Arc::new(BreakingClock::default());
    let app =
        TestApp::start_at(TestDatabase::migrated().await, &[LONG_REQUEST_TIMEOUT], clock.clone())
            .await;
    let campaign = World::over(app.pool.clone(), Limit::default()).await.campaign.id;
    let path = format!("/v1/campaigns/{campaign}/tasks");
    let post = async |key: String| {
        let ask = json!({ "agent": "copywriter", "prompt": "x" }).to_string();
        send(app.address, "POST", &path, &[("Idempotency-Key", &key)], &ask).await
    };
    // More often than there are writers.
    for n in 0..5 {
        // The request reads the clock, then its writer does.
        clock.looks_left.store(2, Ordering::SeqCst);
        let lost = post(format!("order-{n}")).await;
        let problem = lost.problem(503, "internal");
        assert_eq!(lost.json()["retryable"], true, "{problem}");
        assert_eq!(clock.looks_left.load(Ordering::SeqCst), 0);
    }
    let again = join_all((0..40).map(|n| post(format!("order-{n}")))).await;
    assert!(again.iter().all(|reply| reply.status == 201), "{again:?}");
}
