//! Operation behind a PgBouncer with prepared statements and the settings of docs/how-to/pgbouncer.md.

use serde_json::{Value, json};
use sqlx::PgPool;

use super::pgbouncer::{DOCUMENTED, NEW, PgBouncer};
use crate::{
    app::{TestDatabase, eventually},
    cluster::scratch_folder,
    http::client::send,
    service::{Service, dalsegno},
};

const POOLED: (&str, &str) = ("DALSEGNO_DATABASE__POOLER", "transaction");

/// Returns the number of server connections of a part of the workers.
async fn n_connections(pool: &PgPool, part: &str) -> i64 {
    let count = "select count(*) from pg_stat_activity where datname = current_database() and application_name = $1";
    let count = sqlx::query_scalar(count).bind(format!("dalsegno {part}"));
    count.fetch_one(pool).await.unwrap()
}

/// Runs forty tasks in one campaign, added at once, until all are done.
async fn run_tasks(service: &Service) {
    let campaign = json!({ "name": "pooled" }).to_string();
    let campaign = send(service.address, "POST", "/v1/campaigns", &[], &campaign).await.expect(201);
    let path = format!("/v1/campaigns/{}/tasks", campaign["id"].as_str().unwrap());
    let asked = (0..40).map(|n| {
        let ask =
            json!({ "agent": "copywriter", "prompt": format!("Part {n}."), "session": "none" });
        let path = path.clone();
        async move { send(service.address, "POST", &path, &[], &ask.to_string()).await.expect(201) }
    });
    let asked: Vec<Value> = futures_util::future::join_all(asked).await;
    let ended = asked.iter().map(|task| {
        let path = format!("/v1/tasks/{}?wait=20s", task["id"].as_str().unwrap());
        async move { send(service.address, "GET", &path, &[], "").await.expect(200) }
    });
    for task in futures_util::future::join_all(ended).await {
        assert_eq!(task["state"], "done", "{task}\n{}", service.log());
    }
}

fn assert_no_trouble(service: &Service, pgbouncer: &PgBouncer) {
    let log = service.log();
    let trouble: Vec<&str> = log
        .lines()
        .filter(|line| line.contains(r#""level":"ERROR""#) || line.contains("prepared statement"))
        .collect();
    assert!(trouble.is_empty(), "{trouble:#?}\n{}", pgbouncer.log());
}

#[tokio::test]
async fn a_service_without_a_direct_connection_polls_and_runs_jobs() {
    let database = TestDatabase::migrated().await;
    let Some(pgbouncer) = PgBouncer::start(NEW, &database.options, DOCUMENTED).await else {
        return;
    };
    let folder = scratch_folder();
    let url = pgbouncer.url();
    let quick = [
        ("DATABASE_URL", url.as_str()),
        POOLED,
        ("DALSEGNO_SIM__LATENCY_MS", "0"),
        ("DALSEGNO_SIM__CHUNK_DELAY_MS", "0"),
        ("DALSEGNO_LOG__FORMAT", "json"),
    ];
    let service = Service::start(folder.path(), &quick).await;
    run_tasks(&service).await;
    let pool = database.pool().await;
    assert_eq!(n_connections(&pool, "listener").await, 0);
    assert_no_trouble(&service, &pgbouncer);
    let mut doctor = dalsegno(folder.path());
    doctor.args(["doctor", "--json"]).envs(quick);
    let found = doctor.output().await.unwrap();
    let findings: Value = serde_json::from_slice(&found.stdout).unwrap();
    let finding = |check: &str| {
        let mut findings = findings.as_array().unwrap().iter();
        findings.find(|finding| finding["check"] == check).cloned().unwrap_or_default()
    };
    assert_eq!(finding("database")["status"], "ok", "{findings}");
    assert_eq!(finding("notify")["status"], "skipped", "{findings}");
    assert_eq!(finding("plans")["status"], "warn", "{findings}");
}

#[tokio::test]
async fn with_a_direct_address_workers_listen_and_the_schema_is_migrated() {
    let database = TestDatabase::empty().await;
    let Some(pgbouncer) = PgBouncer::start(NEW, &database.options, DOCUMENTED).await else {
        return;
    };
    let folder = scratch_folder();
    let (url, direct) = (pgbouncer.url(), database.url());
    let settings = [
        ("DATABASE_URL", url.as_str()),
        POOLED,
        ("DALSEGNO_DATABASE__DIRECT_URL", direct.as_str()),
        ("DALSEGNO_SIM__LATENCY_MS", "0"),
        ("DALSEGNO_SIM__CHUNK_DELAY_MS", "0"),
        ("DALSEGNO_LOG__FORMAT", "json"),
    ];
    let service = Service::start(folder.path(), &settings).await;
    run_tasks(&service).await;
    let pool = database.pool().await;
    eventually("both pools of the service listen", async || {
        (n_connections(&pool, "listener").await == 2).then_some(())
    })
    .await;
    assert_no_trouble(&service, &pgbouncer);
    let mut doctor = dalsegno(folder.path());
    doctor.args(["doctor", "--json"]).envs(settings);
    let found = doctor.output().await.unwrap();
    let findings: Value = serde_json::from_slice(&found.stdout).unwrap();
    let mut notify = findings.as_array().unwrap().iter();
    let notify = notify.find(|finding| finding["check"] == "notify").unwrap();
    assert_eq!(notify["status"], "ok", "{findings}");
}

#[tokio::test]
async fn no_migration_runs_without_a_direct_connection() {
    let database = TestDatabase::empty().await;
    let Some(pgbouncer) = PgBouncer::start(NEW, &database.options, DOCUMENTED).await else {
        return;
    };
    let folder = scratch_folder();
    let url = pgbouncer.url();
    let mut migrate = dalsegno(folder.path());
    migrate.args(["migrate", "up"]).envs([("DATABASE_URL", url.as_str()), POOLED]);
    let refused = migrate.output().await.unwrap();
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{words}");
    assert!(words.contains("database.direct_url"), "{words}");
    let exists = "select to_regclass('dalsegno.migrations') is not null";
    let exists: bool = sqlx::query_scalar(exists).fetch_one(&database.pool().await).await.unwrap();
    assert!(!exists);
}
