//! A full database volume, until space is freed.

use dalsegno::db;
use serde_json::{Value, json};
use sqlx::{ConnectOptions as _, PgPool};

use crate::{
    app::{TestDatabase, eventually, execute, get},
    cluster::scratch_folder,
    embedded::orphaned_server::OrphanedServer,
    http::client::send,
    service::Service,
};

const N_TASKS: i64 = 5;

/// Returns a text that is too long for the free space of pages, and too random to compress.
fn long_text() -> String {
    (0..600).map(|_| uuid::Uuid::new_v4().to_string()).collect()
}

#[tokio::test]
async fn a_full_volume_uses_up_no_attempt_and_work_resumes_with_free_space() {
    let (server, volume) = OrphanedServer::with_volume(64).await;
    volume.make_folder("data", &server.setup.cluster());
    let location = server.setup.folder.path().join("small/data");
    let tablespace = format!("create tablespace small location '{}'", location.display());
    execute(&server.options, &tablespace).await;
    execute(&server.options, "create database small tablespace small").await;
    let options = server.options.clone().database("small");
    let pool = PgPool::connect_with(options.clone()).await.unwrap();
    db::migrate(&pool).await.unwrap();
    let count = async |sql: &'static str| -> i64 {
        sqlx::query_scalar(sql).fetch_one(&pool).await.unwrap()
    };

    let (folder, url) = (scratch_folder(), options.to_url_lossy().to_string());
    let environment = [
        ("DATABASE_URL", url.as_str()),
        ("DALSEGNO_SIM__WINDOW_TOKENS", "200000"),
        ("DALSEGNO_SIM__LATENCY_MS", "0"),
        ("DALSEGNO_SIM__CHUNK_DELAY_MS", "0"),
        ("DALSEGNO_QUEUE__POLL_IDLE_MS", "200"),
        ("DALSEGNO_QUEUE__POLL_BUSY_MS", "50"),
    ];
    let mut service = Service::start(folder.path(), &environment).await;
    let named = json!({ "name": "Spring" }).to_string();
    let campaign = send(service.address, "POST", "/v1/campaigns", &[], &named).await.expect(201);
    let tasks = format!("/v1/campaigns/{}/tasks", campaign["id"].as_str().unwrap());
    let add = async |instance: i64, prompt: &str| {
        let task =
            json!({ "agent": "copywriter", "instance": instance.to_string(), "prompt": prompt });
        send(service.address, "POST", &tasks, &[], &task.to_string()).await
    };
    let done = "select count(*) from dalsegno.tasks where state = 'done'";
    // Small rows still fit into the free space of existing pages.
    add(N_TASKS, "A short one.").await.expect(201);
    eventually("a task is done", async || (count(done).await == 1).then_some(())).await;
    execute(&options, "insert into dalsegno.pauses (scope, name) values ('queue', 'turns')").await;
    for instance in 0..N_TASKS {
        add(instance, &long_text()).await.expect(201);
    }

    volume.fill();
    let is_named = async || {
        let answer = get(service.address, "/readyz").await.ok()?;
        (answer.status == 503).then_some(answer.body)
    };
    let problem = eventually("the service reports why it is not ready", is_named).await;
    let problem: Value = serde_json::from_str(&problem).unwrap();
    assert_eq!((&problem["code"], &problem["retryable"]), (&json!("database_full"), &json!(true)));
    let refused = add(N_TASKS, &long_text()).await;
    refused.problem(503, "database_full");
    assert_eq!(refused.json()["retryable"], true);
    execute(&options, "delete from dalsegno.pauses").await;
    // The turns are postponed, unless even that cannot be written without space.
    let put_off = "select count(*) from dalsegno.jobs where wait_reason is not null";
    let turns_meet_it = async || {
        let waits = service.log().contains("cannot write job results");
        (waits || count(put_off).await > 0).then_some(())
    };
    eventually("turns meet the full volume", turns_meet_it).await;

    volume.make_space();
    service.ready().await;
    let n_tasks = N_TASKS + 1;
    eventually("all tasks are done", async || (count(done).await == n_tasks).then_some(())).await;
    let burned = "select count(*) from dalsegno.runs where outcome not in ('done', 'snooze')";
    assert_eq!(count(burned).await, 0, "{}", service.log());
    assert_eq!(count("select count(*) from dalsegno.dead_jobs").await, 0);
    assert_eq!(count("select count(*) from dalsegno.tasks").await, n_tasks);
    let answers = "select count(*) from dalsegno.messages where role = 'assistant'";
    assert_eq!(count(answers).await, n_tasks);
    let paid = "select count(*) from dalsegno.usage";
    assert_eq!(count(paid).await, n_tasks, "each model was called once");
    service.signal("TERM");
    assert_eq!(service.exit_code().await, 0, "{}", service.log());
    pool.close().await;
}

/// A real quota needs kernel support; Postgres reports only this text.
#[tokio::test]
async fn an_exhausted_quota_counts_as_a_full_volume() {
    let database = TestDatabase::migrated().await;
    let fake = "create schema fake; create function fake.generate_series(int, int) returns setof int language plpgsql as $body$
                begin raise exception 'could not write to file \"base/pgsql_tmp/1\": Disk quota exceeded' using errcode = 'XX000'; end $body$";
    execute(&database.options, fake).await;
    let options = database.options.clone().options([("search_path", "fake,pg_catalog")]);
    let pool = PgPool::connect_with(options).await.unwrap();
    assert!(!db::has_space(&pool).await.unwrap());
    pool.close().await;
}
