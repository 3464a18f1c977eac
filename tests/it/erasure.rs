//! The erasure of a campaign: nothing of what was said is found afterwards, anywhere.

use std::{path::Path, sync::Arc};

use dalsegno::{
    clock::ManualClock,
    config::{Config, Environment, Flags},
    domain::{erasures, transaction},
    jobs::{Services, sweep_erased},
    traces::Traces,
};
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::{
    app::{TestDatabase, eventually, noon},
    conversations::world::World,
    http::client,
    service::{Service, dalsegno},
};

/// In every text of the campaign that goes, and in none of the other.
const PLANTED: &str = "xylograph7731";
const STAYING: &str = "palimpsest4410";

/// Every table that holds some text, with how many of its rows have the word in it, as text or as bytes.
async fn found(pool: &PgPool, word: &str) -> Vec<(String, i64)> {
    let tables: Vec<String> = sqlx::query_scalar(
        "select c.relname::text from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
          where n.nspname in ('dalsegno', 'public') and c.relkind in ('r', 'm') order by 1",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    assert!(tables.len() > 25, "{tables:?}");
    let hex: String = word.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut found = Vec::new();
    for table in tables {
        let sql = format!(
            "select count(*) from dalsegno.{table} as t where t::text ilike $1 or t::text ilike $2"
        );
        let query = sqlx::query_scalar::<_, i64>(sqlx::AssertSqlSafe(sql));
        let n_rows = query.bind(format!("%{word}%")).bind(format!("%{hex}%")).fetch_one(pool).await;
        match n_rows.unwrap() {
            0 => {}
            n_rows => found.push((table, n_rows)),
        }
    }
    found
}

/// Files below a folder with the word in them.
fn files_with(folder: &Path, word: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, word));
        } else if let Ok(bytes) = std::fs::read(&path)
            && bytes.windows(word.len()).any(|window| window == word.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}

struct Stage {
    service: Service,
    url: String,
    folder: tempfile::TempDir,
    pool: PgPool,
    _database: TestDatabase,
}

impl Stage {
    async fn new() -> Self {
        let database = TestDatabase::migrated().await;
        let (folder, url) = (tempfile::tempdir().unwrap(), database.url());
        let settings = [
            ("DATABASE_URL", url.as_str()),
            ("DALSEGNO_SIM__LATENCY_MS", "0"),
            ("DALSEGNO_SIM__CHUNK_DELAY_MS", "0"),
            ("DALSEGNO_SIM__DIRECTIVES", "true"),
            ("DALSEGNO_QUEUE__LEASE_SECS", "5"),
            ("DALSEGNO_QUEUE__HEARTBEAT_SECS", "1"),
            ("DALSEGNO_QUEUE__LEASE_MARGIN_SECS", "1"),
            ("DALSEGNO_QUEUE__CANCEL_GRACE_SECS", "1"),
            ("DALSEGNO_QUEUE__POLL_IDLE_MS", "200"),
        ];
        let service = Service::start(folder.path(), &settings).await;
        Self { service, folder, pool: database.pool().await, url, _database: database }
    }

    async fn post(&self, path: &str, key: Option<&str>, body: Value) -> Value {
        let mut headers = vec![("Content-Type", "application/json")];
        headers.extend(key.map(|key| ("Idempotency-Key", key)));
        let body = body.to_string();
        let reply = client::send(self.service.address, "POST", path, &headers, &body).await;
        assert!((200..300).contains(&reply.status), "{reply:?}");
        reply.json()
    }

    async fn campaign(&self, word: &str) -> String {
        let words = json!({
            "name": format!("Harbour {word}"), "brief": format!("About {word}."), "client_context": format!("{word} likes it short."),
        });
        self.post("/v1/campaigns", None, words).await["id"].as_str().unwrap().to_owned()
    }

    async fn ask(&self, campaign: &str, body: Value, key: &str) -> String {
        let path = format!("/v1/campaigns/{campaign}/tasks");
        self.post(&path, Some(key), body).await["id"].as_str().unwrap().to_owned()
    }

    async fn state(&self, task: &str) -> String {
        let path = format!("/v1/tasks/{task}");
        let task = client::send(self.service.address, "GET", &path, &[], "").await.expect(200);
        task["state"].as_str().unwrap().to_owned()
    }

    async fn ends_as(&self, task: &str, state: &str) {
        eventually("the task ends", async || (self.state(task).await == state).then_some(())).await;
    }

    async fn say(&self, arguments: &[&str]) -> (i32, Value) {
        let mut command = dalsegno(self.folder.path());
        let output = command.args(arguments).arg("--json").env("DATABASE_URL", &self.url).output();
        let output = output.await.unwrap();
        let said = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (output.status.code().unwrap(), said)
    }
}

#[tokio::test]
async fn nothing_of_an_erased_campaign_is_found_anywhere() {
    let stage = Stage::new().await;
    let (going, staying) = (stage.campaign(PLANTED).await, stage.campaign(STAYING).await);
    // Whom nobody is to call here: what it would be told is held.
    let webhook = stage.post("/v1/webhooks", None, json!({ "url": "https://example.com/" })).await;
    let disable = format!("/v1/webhooks/{}/disable", webhook["id"].as_str().unwrap());
    stage.post(&disable, None, json!({})).await;
    for (campaign, word) in [(&going, PLANTED), (&staying, STAYING)] {
        let posts = format!("/v1/campaigns/{campaign}/posts");
        let question = json!({ "audience": ["copywriter"], "text": format!("What of {word}?") });
        let question = stage.post(&posts, None, question).await;
        let answer = json!({ "audience": ["all"], "text": format!("{word} it is."), "reply_to": question["id"] });
        stage.post(&posts, None, answer).await;
        let prompt = format!("Write of {word}. [[sim: say All about {word}.]]");
        let done = json!({ "agent": "copywriter", "prompt": prompt });
        let done = stage.ask(campaign, done, &format!("{word}-1")).await;
        stage.ends_as(&done, "done").await;
        let fails = format!("{word} again. [[sim: error 400]]");
        let failed = json!({ "agent": "planner", "prompt": fails });
        let failed = stage.ask(campaign, failed, &format!("{word}-2")).await;
        stage.ends_as(&failed, "failed").await;
        let name = format!("news-{}", word.len());
        let schedule = [
            "schedule",
            "add",
            &name,
            "--cron",
            "0 0 3 * * *",
            "--campaign",
            campaign,
            "--agent",
            "planner",
            word,
        ];
        assert_eq!(stage.say(&schedule).await.0, 0);
    }
    // One that waits, and one that runs.
    let later = json!({ "agent": "reviewer", "prompt": PLANTED, "run_at": "2099-01-01T00:00:00Z" });
    let later = stage.ask(&going, later, "later").await;
    let running = json!({ "agent": "reviewer", "instance": "second", "prompt": format!("{PLANTED} [[sim: stall]]") });
    let running = stage.ask(&going, running, "running").await;
    eventually("it runs", async || (stage.state(&running).await == "running").then_some(())).await;

    let before = found(&stage.pool, PLANTED).await;
    assert!(before.len() >= 5, "{before:?}");
    for table in ["webhook_deliveries", "posts", "messages"] {
        assert!(before.iter().any(|(found, _)| found == table), "{before:?}");
    }
    let untouched = found(&stage.pool, STAYING).await;
    let spent = "select count(*), coalesce(sum(input_tokens), 0)::bigint from dalsegno.usage where campaign_id = $1::uuid";
    let ledger =
        sqlx::query_as::<_, (i64, i64)>(spent).bind(&going).fetch_one(&stage.pool).await.unwrap();

    assert_eq!(stage.say(&["campaign", "erase", &going]).await.0, 2, "not without being told");
    assert_eq!(found(&stage.pool, PLANTED).await, before);
    let (code, receipt) =
        stage.say(&["campaign", "erase", &going, "--reason", "asked by the client", "--yes"]).await;
    assert_eq!((code, &receipt["ended_at"]), (0, &Value::Null));
    let receipt = eventually("it is erased", async || {
        let (_, receipt) = stage.say(&["campaign", "erase", &going]).await;
        receipt["ended_at"].is_string().then_some(receipt)
    })
    .await;

    assert_eq!(found(&stage.pool, PLANTED).await, []);
    assert_eq!(found(&stage.pool, STAYING).await, untouched, "another campaign");
    let after =
        sqlx::query_as::<_, (i64, i64)>(spent).bind(&going).fetch_one(&stage.pool).await.unwrap();
    assert!(after.0 >= ledger.0 && after.1 >= ledger.1 && ledger.0 > 0, "{ledger:?} {after:?}");
    let removed = &receipt["removed"];
    assert_eq!(
        (&removed["tasks"], &removed["webhook_deliveries"]),
        (&json!(4), &json!(4)),
        "{receipt}"
    );
    assert_eq!(removed["posts"], 2, "{receipt}");
    assert!(
        removed["sessions"].as_i64() >= Some(3) && removed["messages"].as_i64() >= Some(4),
        "{receipt}"
    );
    for task in [&later, &running] {
        assert_eq!(stage.state(task).await, "cancelled");
    }
    // Asked again, it is the same receipt; and nothing of it can be run again.
    let (code, again) = stage.say(&["campaign", "erase", &going, "--yes"]).await;
    assert_eq!((code, &again["id"]), (0, &receipt["id"]));
    assert_eq!(stage.say(&["task", "retry", &later]).await.0, 5);
    let files = files_with(stage.folder.path(), PLANTED);
    assert!(files.is_empty(), "{files:?}, the log among them");
}

#[tokio::test]
async fn a_host_removes_its_copies_and_says_so() {
    let world = World::new().await;
    let session =
        world.turn("Part one.", crate::conversations::world::Now::default()).await.session;
    let (folder, name) = (tempfile::tempdir().unwrap(), uuid::Uuid::new_v4().to_string());
    let named = "update dalsegno.sessions set external_session_id = $2 where id = $1";
    sqlx::query(named).bind(session.id).bind(&name).execute(&world.pool).await.unwrap();
    let campaign = world.campaign.id.to_string();
    for below in [
        format!("claude/{name}/config"),
        format!("workspaces/{campaign}"),
        "claude/other".to_owned(),
    ] {
        std::fs::create_dir_all(folder.path().join(&below)).unwrap();
        std::fs::write(folder.path().join(below).join("file"), PLANTED).unwrap();
    }
    let mut tx = transaction::begin(&world.pool).await.unwrap();
    erasures::request(&mut tx, world.campaign.id, "by request", noon()).await.unwrap();
    let mut step = Some(erasures::Step::FIRST);
    while let Some(now) = step {
        let more = erasures::next_batch(&mut tx, world.campaign.id, now).await.unwrap();
        step = if more { Some(now) } else { now.next() };
    }
    erasures::finish(&mut tx, world.campaign.id, noon()).await.unwrap();
    transaction::commit(tx).await.unwrap();

    let set = [("service.data_dir".to_owned(), folder.path().display().to_string())].into();
    let config = Config::load(&Environment::default(), &Flags { file: None, set }).unwrap();
    let clock = Arc::new(ManualClock::at(noon()));
    let program = env!("CARGO_BIN_EXE_dalsegno").into();
    let services = Services::build(&config, clock, program, Traces::default()).unwrap();
    assert_eq!(sweep_erased(&services, &world.pool, "host-1").await.unwrap(), 1);
    assert_eq!(sweep_erased(&services, &world.pool, "host-1").await.unwrap(), 0, "once");
    let left = files_with(folder.path(), PLANTED);
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].ends_with("claude/other/file"));
    let mut conn = world.pool.acquire().await.unwrap();
    assert_eq!(erasures::get(&mut conn, world.campaign.id).await.unwrap().hosts, ["host-1"]);
    // Another host has its own folders to look through.
    assert_eq!(sweep_erased(&services, &world.pool, "host-2").await.unwrap(), 1);
}
