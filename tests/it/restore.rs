//! A dump of a database in use, restored in another place, with a service on it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use sqlx::{ConnectOptions as _, Connection as _, PgConnection, postgres::PgConnectOptions};

use crate::{
    app::{SOON, TestDatabase, eventually, execute},
    cluster::scratch_folder,
    http::client::{Reply, Stream, send},
    leases,
    service::{Service, ServiceRole, command, dalsegno},
    webhooks::receiver::{ReceivedRequest, Receiver},
};

/// The files that `pg_dump` has written.
pub struct Dump {
    folder: tempfile::TempDir,
}

impl Dump {
    fn file(&self) -> PathBuf {
        self.folder.path().join("dump")
    }
}

pub async fn dump(options: &PgConnectOptions) -> Dump {
    let dump = Dump { folder: scratch_folder() };
    let file = dump.file();
    run("pg_dump", options, &["--format=custom", "--file", file.to_str().unwrap()]).await;
    dump
}

pub async fn restore(options: &PgConnectOptions, dump: &Dump) {
    let (file, name) = (dump.file(), options.get_database().unwrap());
    let arguments = ["--exit-on-error", "--dbname", name, file.to_str().unwrap()];
    run("pg_restore", options, &arguments).await;
}

/// Runs a program of the server's installation on one of its databases.
async fn run(program: &str, options: &PgConnectOptions, arguments: &[&str]) {
    let mut conn = PgConnection::connect_with(options).await.unwrap();
    let pid: i32 =
        sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut conn).await.unwrap();
    let server = fs::read_link(format!("/proc/{pid}/exe")).unwrap();
    conn.close().await.unwrap();
    let program = server.with_file_name(program);
    let host = options.get_socket().map_or(Path::new(options.get_host()), PathBuf::as_path);
    let url = options.to_url_lossy();
    let output = command(program.to_str().unwrap(), Path::new("/"))
        .args(arguments)
        .env("PGHOST", host)
        .env("PGPORT", options.get_port().to_string())
        .env("PGUSER", options.get_username())
        .env("PGPASSWORD", url.password().unwrap_or_default())
        .env("PGDATABASE", options.get_database().unwrap())
        .output()
        .await
        .unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && words.is_empty(), "{}: {words}", program.display());
}

/// Starts a service as the role of the documentation.
async fn serve(folder: &Path, role: &PgConnectOptions, settings: &[(&str, &str)]) -> Service {
    let url = role.to_url_lossy().to_string();
    let usual = [
        ("DATABASE_URL", url.as_str()),
        ("DALSEGNO_DATABASE__MIGRATE_ON_START", "false"),
        ("DALSEGNO_SHUTDOWN__DRAIN_TIMEOUT_SECS", "1"),
        ("DALSEGNO_WEBHOOKS__ALLOW_PRIVATE", "true"),
    ];
    Service::start(folder, &[&usual[..], settings].concat()).await
}

async fn stop(mut service: Service) {
    service.signal("TERM");
    assert_eq!(service.exit_code().await, 0, "{}", service.log());
}

async fn get(service: &Service, path: &str) -> Reply {
    send(service.address, "GET", path, &[], "").await
}

async fn post(service: &Service, path: &str, body: &Value) -> Reply {
    send(service.address, "POST", path, &[], &body.to_string()).await
}

async fn task(service: &Service, id: &Value) -> Value {
    get(service, &format!("/v1/tasks/{}", id.as_str().unwrap())).await.expect(200)
}

async fn done(service: &Service, id: &Value) -> Value {
    eventually("the task is done", async || {
        let task = task(service, id).await;
        (task["state"] == "done").then_some(task)
    })
    .await
}

/// Returns the tasks whose ends were delivered, once for each delivery, in the order of their ids.
fn delivered_tasks(received: &[ReceivedRequest]) -> Vec<String> {
    let id = |one: &ReceivedRequest| one.json()["data"]["task_id"].as_str().unwrap().to_owned();
    let mut all: Vec<_> = received.iter().map(id).collect();
    all.sort();
    all
}

#[tokio::test]
async fn a_service_on_a_restored_dump_continues_from_the_dump() {
    let (source, target) = (TestDatabase::migrated().await, TestDatabase::empty().await);
    let role = ServiceRole::of(&source.options).await.options;
    let (folder, receiver) = (scratch_folder(), Receiver::start().await);
    let service = serve(folder.path(), &role, &[]).await;
    let campaign = post(&service, "/v1/campaigns", &json!({ "name": "Spring" })).await.expect(201);
    let tasks = format!("/v1/campaigns/{}/tasks", campaign["id"].as_str().unwrap());
    post(&service, "/v1/webhooks", &json!({ "url": receiver.url() })).await.expect(201);
    let add = async |service: &Service, key: &str| {
        let body = json!({ "agent": "copywriter", "prompt": format!("Write {key}.") }).to_string();
        send(service.address, "POST", &tasks, &[("Idempotency-Key", key)], &body).await
    };
    let before = add(&service, "before").await.expect(201)["id"].clone();
    let before = done(&service, &before).await;
    receiver.has_received(1).await;
    let delivered = async || {
        let all = get(&service, "/v1/webhook-deliveries").await.expect(200);
        (all["items"][0]["state"] == "delivered").then_some(())
    };
    eventually("the delivery is stored", delivered).await;
    stop(service).await;

    // A task in the middle of its turn, and one that waits behind it.
    let service = serve(folder.path(), &role, &[("DALSEGNO_SIM__LATENCY_MS", "600000")]).await;
    let running = add(&service, "running").await.expect(201)["id"].clone();
    let waiting = add(&service, "waiting").await.expect(201)["id"].clone();
    eventually("a turn runs", async || {
        (task(&service, &running).await["state"] == "running").then_some(())
    })
    .await;
    let dumped = dump(&source.options).await;
    let dumped_pid = service.pid();
    stop(service).await;

    // Work that is not in the dump.
    let service = serve(folder.path(), &role, &[]).await;
    let after = add(&service, "after").await.expect(201)["id"].clone();
    done(&service, &after).await;
    receiver.has_received(4).await;
    let mut feed = Stream::open(service.address, "/v1/feed?after=0", None).await.ok().unwrap();
    let mut newest = feed.next().await.unwrap();
    let newest_id = "select max(id)::text from dalsegno.feed";
    let mut conn = PgConnection::connect_with(&source.options).await.unwrap();
    let newest_id: String = sqlx::query_scalar(newest_id).fetch_one(&mut conn).await.unwrap();
    while newest.id != newest_id {
        newest = feed.next().await.unwrap();
    }
    drop(feed);
    conn.close().await.unwrap();
    stop(service).await;

    restore(&target.options, &dumped).await;
    // The leases of the dump are ended, to save the wait for them.
    let pool = target.pool().await;
    leases::end(&pool, dumped_pid).await.unwrap();
    pool.close().await;
    let role = role.database(&target.name);
    let service = serve(folder.path(), &role, &[]).await;
    let mut feed = Stream::open(service.address, "/v1/feed", Some(&newest.id)).await.ok().unwrap();
    let begin = tokio::time::timeout(SOON, feed.next()).await.expect("an event arrives");
    let begin = begin.unwrap();
    assert_eq!(begin.event, "begin", "the database has not reached {}", newest.id);
    for id in [&running, &waiting] {
        // The pause after a crash is ended, to save the wait for it.
        eventually("the task is done", async || {
            let due = "update dalsegno.jobs set run_at = now() where wait_reason = 'crash'";
            execute(&target.options, due).await;
            (task(&service, id).await["state"] == "done").then_some(())
        })
        .await;
    }
    assert!(feed.next().await.unwrap().id.parse::<i64>().unwrap() > begin.id.parse().unwrap());
    assert_eq!(done(&service, &before["id"]).await, before, "the running job is unchanged");
    let missing = format!("/v1/tasks/{}", after.as_str().unwrap());
    get(&service, &missing).await.problem(404, "unknown_task");
    assert_eq!(add(&service, "before").await.json()["id"], before["id"], "the key is known");
    let again = add(&service, "after").await.expect(201)["id"].clone();
    assert_ne!(again, after, "the key is available");
    done(&service, &again).await;
    // Ends that came after the dump are delivered a second time; the one before it is not.
    let received = receiver.has_received(7).await;
    let all = [&before["id"], &running, &waiting, &after, &running, &waiting, &again];
    let mut all = all.map(|id| id.as_str().unwrap());
    all.sort_unstable();
    assert_eq!(delivered_tasks(&received), all);

    let mut conn = PgConnection::connect_with(&target.options).await.unwrap();
    let prompts = "select count(*) from dalsegno.messages where role = 'user' and text like '%Write running.%'";
    let prompts: i64 = sqlx::query_scalar(prompts).fetch_one(&mut conn).await.unwrap();
    assert_eq!(prompts, 1, "a prompt is in its conversation once");
    conn.close().await.unwrap();
    let mut conn = PgConnection::connect_with(&role).await.unwrap();
    let refused = sqlx::query("delete from dalsegno.usage").execute(&mut conn).await.unwrap_err();
    assert_eq!(refused.as_database_error().unwrap().code().unwrap(), "42501");
    conn.close().await.unwrap();
    let url = role.to_url_lossy().to_string();
    let mut doctor = dalsegno(folder.path());
    doctor.args(["doctor", "--json"]).env("DATABASE_URL", &url);
    let findings: Value = serde_json::from_slice(&doctor.output().await.unwrap().stdout).unwrap();
    for check in ["database", "migrations", "rights"] {
        let all = findings.as_array().unwrap();
        let found = all.iter().find(|finding| finding["check"] == check);
        assert_eq!(found.unwrap()["status"], "ok", "{findings:#}");
    }
    stop(service).await;
    let name = role.get_username();
    execute(&target.options, &format!("drop owned by {name}")).await;
    execute(&source.options, &format!("drop owned by {name}; drop role {name}")).await;
}
