//! The erasure of a campaign: no text of it is found anywhere afterwards.

use std::path::Path;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chrono::TimeDelta;
use dalsegno::{
    domain::{
        amount::Limit,
        campaigns, compactions, erasures,
        memory::{self, Kind},
        transaction,
    },
    jobs::sweep_erased,
};
use serde_json::{Value, json};
use sqlx::{PgPool, PgTransaction};

use crate::{
    app::{TestDatabase, eventually, noon},
    cancel_many_tasks,
    cleanup::folders::build_services,
    conversations::world::World,
    http::client,
    memory::{OPERATOR, config, new},
    service::{Service, dalsegno},
    turns::fixture::Fixture,
};

/// Word in all texts of the erased campaign, and in none of the other.
pub const ERASED_WORD: &str = "xylograph7731";
const KEPT_WORD: &str = "palimpsest4410";

/// Returns all tables that contain a word as text or as bytes, with the number of rows.
pub async fn tables_with(pool: &PgPool, word: &str) -> Vec<(String, i64)> {
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

/// Lists files below a folder that contain a word.
pub fn files_with(folder: &Path, word: &str) -> Vec<String> {
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

struct Setup {
    service: Service,
    url: String,
    folder: tempfile::TempDir,
    pool: PgPool,
    _database: TestDatabase,
}

impl Setup {
    async fn new() -> Self {
        let database = TestDatabase::migrated().await;
        let (folder, url) = (tempfile::tempdir().unwrap(), database.url());
        let settings = [
            ("DATABASE_URL", url.as_str()),
            ("DALSEGNO_SIM__LATENCY_MS", "0"),
            ("DALSEGNO_SIM__CHUNK_DELAY_MS", "0"),
            ("DALSEGNO_SIM__DIRECTIVES", "true"),
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
            "tags": [word], "metadata": { "customer": word }, "parameters": { "mode": word },
        });
        self.post("/v1/campaigns", Some(word), words).await["id"].as_str().unwrap().to_owned()
    }

    /// Archives the first post of the board. The name of its sender is the word.
    async fn archive_post(&self, campaign: &str, word: &str) {
        let campaign: uuid::Uuid = campaign.parse().unwrap();
        let mark = "update dalsegno.boards set archived_seq = 1, archived_at = now() where campaign_id = $1";
        sqlx::query(mark).bind(campaign).execute(&self.pool).await.unwrap();
        let summary = "insert into dalsegno.board_archives (campaign_id, viewer, sender, n_posts, first_at, last_at)
                       values ($1, 'operator', $2, 1, now(), now())";
        sqlx::query(summary).bind(campaign).bind(word).execute(&self.pool).await.unwrap();
    }

    /// Warns of the budget of a user, whose name is the word, after a call that belongs to no task.
    async fn warn_of_budget(&self, campaign: &str, word: &str) {
        let warn = "select dalsegno.tell_webhooks_of_budget($1::uuid, null, $2, now())";
        let data = json!({ "owner": "user", "key": word });
        sqlx::query(warn).bind(campaign).bind(data).execute(&self.pool).await.unwrap();
    }

    /// Writes more audit lines of agents than one batch of the erasure reads.
    async fn call_tools(&self, campaign: &str, word: &str) {
        let lines = "insert into dalsegno.audit (at, actor_kind, actor, action, subject_kind, subject, data)
                     select now(), 'agent', 'planner', 'tool.call', 'tool', 'records_publish',
                            jsonb_build_object('campaign_id', $1, 'changed', $2) from generate_series(1, 12000)";
        sqlx::query(lines).bind(campaign).bind(word).execute(&self.pool).await.unwrap();
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

    async fn wait_for_state(&self, task: &str, state: &str) {
        eventually("the task ends", async || (self.state(task).await == state).then_some(())).await;
    }

    /// Leaves output of a turn whose worker was lost.
    async fn leave_output(&self, campaign: &str, word: &str) {
        let output = "insert into dalsegno.partial_outputs (session_id, written_at, weight, turn, digest, text)
                      select distinct on (t.session_id) t.session_id, now(), 1, t.number, sha256('it'), $2
                        from dalsegno.turns as t join dalsegno.sessions as s on s.id = t.session_id
                       where s.campaign_id = $1::uuid";
        sqlx::query(output).bind(campaign).bind(word).execute(&self.pool).await.unwrap();
    }

    /// Writes reasons of people for lanes, jobs and schedules, and a scheduled task that is not added yet.
    async fn write_reasons(&self, campaign: &str, schedule: &str, word: &str) {
        let (talk, news) =
            (format!("{campaign}/copywriter/main"), format!("{campaign}/planner/main"));
        let sessions = format!(
            "select id::text from dalsegno.sessions where campaign_id = '{campaign}' limit 1"
        );
        let session: String =
            sqlx::query_scalar(sqlx::AssertSqlSafe(sessions)).fetch_one(&self.pool).await.unwrap();
        let compacted = format!("compact/{session}");
        assert_eq!(self.run_command(&["session", "compact", &session]).await.0, 0);
        let asked = json!({ "campaign_id": campaign, "agent": "planner", "prompt": word });
        let enqueue = "select job_id from dalsegno.enqueue(kind => 'add_task', payload => $1, queue => 'upkeep', run_at => '2099-01-01')";
        let job: i64 = sqlx::query_scalar(enqueue).bind(asked).fetch_one(&self.pool).await.unwrap();
        let commands = [
            ["schedule", "pause", schedule, "--reason", word],
            ["lane", "hold", &talk, "--reason", word],
            ["lane", "hold", &news, "--reason", word],
            ["lane", "hold", &compacted, "--reason", word],
            ["job", "hold", &job.to_string(), "--reason", word],
        ];
        for command in commands {
            assert_eq!(self.run_command(&command).await.0, 0, "{command:?}");
        }
        // A lane that is no longer held, and a removed one: their reasons are in the audit log.
        assert_eq!(self.run_command(&["lane", "release", &news]).await.0, 0);
    }

    /// Runs a command with an idempotency key, so that its output is stored.
    async fn run_command(&self, arguments: &[&str]) -> (i32, Value) {
        let mut command = dalsegno(self.folder.path());
        let key = uuid::Uuid::new_v4().to_string();
        let arguments = [arguments, &["--json", "--idempotency-key", &key]].concat();
        let output = command.args(arguments).env("DATABASE_URL", &self.url).output();
        let output = output.await.unwrap();
        let said = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (output.status.code().unwrap(), said)
    }
}

#[tokio::test]
async fn no_trace_of_an_erased_campaign_remains() {
    let setup = Setup::new().await;
    let (going, staying) = (setup.campaign(ERASED_WORD).await, setup.campaign(KEPT_WORD).await);
    // The webhooks are disabled, so their deliveries are held.
    for webhook in [
        json!({ "url": "https://example.com/" }),
        json!({ "url": "https://example.com/budgets", "kinds": ["budget.warning"] }),
    ] {
        let webhook = setup.post("/v1/webhooks", None, webhook).await;
        let disable = format!("/v1/webhooks/{}/disable", webhook["id"].as_str().unwrap());
        setup.post(&disable, None, json!({})).await;
    }
    for (campaign, word) in [(&going, ERASED_WORD), (&staying, KEPT_WORD)] {
        let posts = format!("/v1/campaigns/{campaign}/posts");
        let question = json!({ "audience": ["copywriter"], "text": format!("What of {word}?") });
        let key = format!("{word}-question");
        let question = setup.post(&posts, Some(&key), question).await;
        let answer = json!({ "audience": ["all"], "text": format!("{word} it is."), "reply_to": question["id"] });
        setup.post(&posts, None, answer).await;
        let prompt = format!(
            "Write of {word}. [[sim: say All about {word}.]] [[sim: file {word}.txt All of {word}.]]"
        );
        let labels = (json!([word]), json!({ word: word }));
        let attached = json!([{ "name": format!("{word}.md"), "content": BASE64_STANDARD.encode(format!("Notes of {word}.")) }]);
        let done = json!({ "agent": "copywriter", "prompt": prompt, "tags": labels.0, "metadata": labels.1, "attachments": attached });
        let done = setup.ask(campaign, done, &format!("{word}-1")).await;
        setup.wait_for_state(&done, "done").await;
        let schema = json!({ "type": "object", "description": word });
        let prompt = format!("Structure {word}. [[sim: json {{\"{word}\": 1}}]]");
        let structured =
            json!({ "agent": "copywriter", "prompt": prompt, "result_schema": schema });
        let structured = setup.ask(campaign, structured, &format!("{word}-structured")).await;
        setup.wait_for_state(&structured, "done").await;
        let prompt = format!("Structure {word}. [[sim: say {word}]]");
        let mismatched =
            json!({ "agent": "copywriter", "prompt": prompt, "result_schema": schema });
        let mismatched = setup.ask(campaign, mismatched, &format!("{word}-mismatched")).await;
        setup.wait_for_state(&mismatched, "failed").await;
        let fails = format!("{word} again. [[sim: error 400]]");
        let failed = json!({ "agent": "planner", "prompt": fails });
        let failed = setup.ask(campaign, failed, &format!("{word}-2")).await;
        setup.wait_for_state(&failed, "failed").await;
        let refusal = json!({ "owner": "user", "key": word, "unit": "tokens", "limit": 1, "spent": 0, "reserved": 0, "needed": 2,
            "call": { "micros": 0, "tokens": 2 }, "on_limit": "fail", "ends": null });
        let refused = "update dalsegno.tasks set budget_refusal = $2 where id = $1::uuid";
        sqlx::query(refused).bind(&failed).bind(refusal).execute(&setup.pool).await.unwrap();
        for number in 0..40 {
            let patch = json!({ word: { format!("{word} {number}"): word } }).to_string();
            assert_eq!(setup.run_command(&["blackboard", "patch", campaign, &patch]).await.0, 0);
        }
        for kind in ["edict", "record"] {
            for text in ["One", "Two"] {
                let text = format!("{text} of {word}.");
                let publish = [
                    "memory",
                    "publish",
                    "--campaign",
                    campaign,
                    kind,
                    word,
                    "--title",
                    word,
                    &text,
                ];
                assert_eq!(setup.run_command(&publish).await.0, 0);
            }
        }
        assert_eq!(
            setup
                .run_command(&["memory", "revoke", "--campaign", campaign, "record", word])
                .await
                .0,
            0
        );
        setup.call_tools(campaign, word).await;
        let pause = ["agent", "pause", "reviewer", "--campaign", campaign, "--reason", word];
        let resume = ["agent", "resume", "reviewer", "--campaign", campaign];
        for command in [&pause[..], &resume] {
            assert_eq!(setup.run_command(command).await.0, 0);
        }
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
        assert_eq!(setup.run_command(&schedule).await.0, 0);
        setup.write_reasons(campaign, &name, word).await;
        setup.archive_post(campaign, word).await;
        setup.warn_of_budget(campaign, word).await;
        setup.leave_output(campaign, word).await;
    }
    // A waiting task and a running one.
    let later = json!({ "agent": "reviewer", "prompt": ERASED_WORD, "run_at": "2099-01-01T00:00:00Z", "parameters": { "mode": ERASED_WORD } });
    let later = setup.ask(&going, later, "later").await;
    let running = json!({ "agent": "reviewer", "instance": "second", "prompt": format!("{ERASED_WORD} [[sim: stall]]") });
    let running = setup.ask(&going, running, "running").await;
    eventually("the job runs", async || (setup.state(&running).await == "running").then_some(()))
        .await;
    for (campaign, word) in [(&going, ERASED_WORD), (&staying, KEPT_WORD)] {
        let pause = format!("/v1/groups/{campaign}/pause");
        setup.post(&pause, Some(word), json!({ "reason": word })).await;
    }

    let before = tables_with(&setup.pool, ERASED_WORD).await;
    assert!(before.len() >= 5, "{before:?}");
    let tables = [
        "webhook_deliveries",
        "posts",
        "post_keys",
        "messages",
        "blackboards",
        "blackboard_changes",
        "agent_pauses",
        "lanes",
        "jobs",
        "job_payloads",
        "pauses",
        "audit",
        "memory_items",
        "memory_versions",
        "partial_outputs",
        "operation_keys",
        "campaign_versions",
        "task_parameters",
        "task_files",
        "task_attachments",
        "file_contents",
    ];
    for table in tables {
        assert!(before.iter().any(|(found, _)| found == table), "{table}: {before:?}");
    }
    let session = "select id::text from dalsegno.sessions where campaign_id = $1::uuid and turn_count > 0 order by id limit 1";
    let session: String =
        sqlx::query_scalar(session).bind(&going).fetch_one(&setup.pool).await.unwrap();
    let turns = [vec!["turn", "ls", &session], vec!["turn", "show", &session, "1"]];
    for command in &turns {
        assert_eq!(setup.run_command(command).await.0, 0, "{command:?}");
    }
    let untouched = tables_with(&setup.pool, KEPT_WORD).await;
    let spent = "select count(*), coalesce(sum(input_tokens), 0)::bigint from dalsegno.usage where campaign_id = $1::uuid";
    let ledger =
        sqlx::query_as::<_, (i64, i64)>(spent).bind(&going).fetch_one(&setup.pool).await.unwrap();

    assert_eq!(
        setup.run_command(&["campaign", "erase", &going]).await.0,
        2,
        "the erasure ended without a stop"
    );
    assert_eq!(tables_with(&setup.pool, ERASED_WORD).await, before);
    let (code, receipt) = setup
        .run_command(&["campaign", "erase", &going, "--reason", "asked by the client", "--yes"])
        .await;
    assert_eq!((code, &receipt["ended_at"]), (0, &Value::Null));
    let receipt = eventually("the campaign is erased", async || {
        let (_, receipt) = setup.run_command(&["campaign", "erase", &going]).await;
        receipt["ended_at"].is_string().then_some(receipt)
    })
    .await;

    assert_eq!(tables_with(&setup.pool, ERASED_WORD).await, []);
    assert_eq!(
        tables_with(&setup.pool, KEPT_WORD).await,
        untouched,
        "the other campaign is unchanged"
    );
    let after =
        sqlx::query_as::<_, (i64, i64)>(spent).bind(&going).fetch_one(&setup.pool).await.unwrap();
    assert!(after.0 >= ledger.0 && after.1 >= ledger.1 && ledger.0 > 0, "{ledger:?} {after:?}");
    let removed = &receipt["removed"];
    assert_eq!(
        (&removed["tasks"], &removed["webhook_deliveries"]),
        (&json!(6), &json!(7)),
        "{receipt}"
    );
    assert_eq!(removed["blackboard_changes"], 40, "{receipt}");
    assert_eq!(removed["posts"], 2, "{receipt}");
    assert_eq!(removed["task_files"], 1, "{receipt}");
    assert_eq!(receipt["contents"]["task_files"]["rows"], 1, "{receipt}");
    assert_eq!(removed["task_attachments"], 1, "{receipt}");
    assert_eq!(receipt["contents"]["task_attachments"]["rows"], 1, "{receipt}");
    assert_eq!(removed["campaign_versions"], 1, "{receipt}");
    assert_eq!(removed["memory_items"], 2, "{receipt}");
    assert!(
        removed["sessions"].as_i64() >= Some(3) && removed["messages"].as_i64() >= Some(4),
        "{receipt}"
    );
    for task in [&later, &running] {
        assert_eq!(setup.state(task).await, "cancelled");
    }
    for command in &turns {
        assert_eq!(setup.run_command(command).await.0, 3, "{command:?}");
    }
    // Repeated, it returns the same receipt, and no task can be retried.
    let (code, again) = setup.run_command(&["campaign", "erase", &going, "--yes"]).await;
    assert_eq!((code, &again["id"]), (0, &receipt["id"]));
    assert_eq!(setup.run_command(&["task", "retry", &later]).await.0, 5);
    let files = files_with(setup.folder.path(), ERASED_WORD);
    assert!(files.is_empty(), "the log is missing in {files:?}");
}

/// An older worker takes the job beside the newer one, and does not know the new column with the campaign's name.
#[tokio::test]
async fn an_erasure_ended_by_an_older_worker_is_repeated() {
    let fixture = Fixture::new(&[]).await;
    let id = fixture.campaign.id;
    let mut tx = transaction::begin(&fixture.pool).await.unwrap();
    erasures::request(&mut tx, id, "by request", noon()).await.unwrap();
    for sql in [
        "delete from dalsegno.jobs",
        "update dalsegno.erasures set ended_at = '2026-11-20 12:00:00Z'",
    ] {
        sqlx::query(sql).execute(&mut *tx).await.unwrap();
    }
    let name = "update dalsegno.campaigns set name = $2 where id = $1";
    sqlx::query(name).bind(id).bind(ERASED_WORD).execute(&mut *tx).await.unwrap();
    transaction::commit(tx).await.unwrap();
    let receipt = async || {
        let mut conn = fixture.pool.acquire().await.unwrap();
        erasures::get(&mut conn, id).await.unwrap()
    };
    assert_eq!(receipt().await.ended_at, None, "what that worker left is unknown");

    let again = async |at| {
        let mut tx = transaction::begin(&fixture.pool).await.unwrap();
        let campaigns = erasures::enqueue_incomplete(&mut tx, at).await.unwrap();
        transaction::commit(tx).await.unwrap();
        campaigns
    };
    let later = noon() + TimeDelta::minutes(2);
    assert_eq!(again(noon()).await, [id]);
    assert!(again(noon()).await.is_empty(), "another worker may check at the same moment");
    assert_eq!(again(later).await, [id], "an older worker may have claimed it again");
    let worker = fixture.upkeep().await;
    eventually("the campaign is erased", async || receipt().await.ended_at).await;
    worker.stop().await;
    assert_eq!(tables_with(&fixture.pool, ERASED_WORD).await, []);
    assert!(again(later + TimeDelta::days(1)).await.is_empty());
    // As after an upgrade to a schema that this worker did not know.
    sqlx::query("update dalsegno.erasures set covers = covers - 1")
        .execute(&fixture.pool)
        .await
        .unwrap();
    assert_eq!(again(later + TimeDelta::days(1)).await, [id]);
    assert!(receipt().await.ended_at.is_some());
}

#[tokio::test]
async fn a_host_removes_its_copies_and_confirms_it() {
    let world = World::new().await;
    let session =
        world.turn("Part one.", crate::conversations::world::TurnSettings::default()).await.session;
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
        std::fs::write(folder.path().join(below).join("file"), ERASED_WORD).unwrap();
    }
    let mut tx = transaction::begin(&world.pool).await.unwrap();
    erasures::request(&mut tx, world.campaign.id, "by request", noon()).await.unwrap();
    let mut step = Some(erasures::Step::FIRST);
    while let Some(now) = step {
        let more = erasures::next_batch(&mut tx, world.campaign.id, now).await.unwrap();
        step = if more { Some(now) } else { now.next() };
    }
    erasures::finish(&mut tx, world.campaign.id, 0, noon()).await.unwrap();
    transaction::commit(tx).await.unwrap();

    let services = build_services(folder.path(), noon());
    assert_eq!(sweep_erased(&services, &world.pool, "host-1").await.unwrap(), 1);
    assert_eq!(sweep_erased(&services, &world.pool, "host-1").await.unwrap(), 0, "once");
    let left = files_with(folder.path(), ERASED_WORD);
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].ends_with("claude/other/file"));
    let mut conn = world.pool.acquire().await.unwrap();
    assert_eq!(erasures::get(&mut conn, world.campaign.id).await.unwrap().hosts, ["host-1"]);
    // Another host has folders of its own.
    assert_eq!(sweep_erased(&services, &world.pool, "host-2").await.unwrap(), 1);
}

#[tokio::test]
async fn a_folder_that_is_left_keeps_only_its_own_erasure_unconfirmed() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    // As on a broken volume: the folder of no session can be removed.
    let broken = folder.path().join("claude");
    std::fs::write(&broken, "").unwrap();
    let workspaces = folder.path().join("workspaces");
    let mut erased = Vec::new();
    // More than a host reads at once. The last campaign has no session.
    for n in 0..12 {
        let name = format!("Harbour {n}");
        let new = campaigns::New {
            name: &name,
            brief: "Ten parts.",
            client_context: None,
            limit: Limit::default(),
        };
        let mut tx = transaction::begin(&world.pool).await.unwrap();
        let id = campaigns::create(&mut tx, &new, noon()).await.unwrap().id;
        erasures::request(&mut tx, id, "by request", noon()).await.unwrap();
        let end = "update dalsegno.erasures set ended_at = $2 where campaign_id = $1";
        let ended_at = noon() - TimeDelta::minutes(20 - n);
        sqlx::query(end).bind(id).bind(ended_at).execute(&mut *tx).await.unwrap();
        if n < 11 {
            let session = "insert into dalsegno.erased_sessions (erasure_id, session_id, external_session_id)
                           select id, gen_random_uuid(), gen_random_uuid()::text from dalsegno.erasures where campaign_id = $1";
            sqlx::query(session).bind(id).execute(&mut *tx).await.unwrap();
        }
        transaction::commit(tx).await.unwrap();
        let workspace = workspaces.join(id.to_string());
        std::fs::create_dir_all(&workspace).unwrap();
        std::fs::write(workspace.join("file"), ERASED_WORD).unwrap();
        erased.push(id);
    }
    let services = build_services(folder.path(), noon());
    assert_eq!(sweep_erased(&services, &world.pool, "host-1").await.unwrap(), 1);
    let confirmed = "select e.campaign_id from dalsegno.erasure_hosts as h join dalsegno.erasures as e on e.id = h.erasure_id";
    let confirmed: Vec<uuid::Uuid> =
        sqlx::query_scalar(confirmed).fetch_all(&world.pool).await.unwrap();
    assert_eq!(confirmed, erased[11..]);
    assert_eq!(files_with(&workspaces, ERASED_WORD), [""; 0], "the rest is removed");
    std::fs::remove_file(broken).unwrap();
    assert_eq!(sweep_erased(&services, &world.pool, "host-1").await.unwrap(), 11);
}

/// A summary in progress, and a task that a schedule adds at this moment, could be written after the erasure.
#[tokio::test]
async fn an_erasure_stops_jobs_beside_turns_and_waits_for_them() {
    let world = World::new().await;
    let campaign = world.campaign.id;
    let session =
        world.turn("Part one.", crate::conversations::world::TurnSettings::default()).await.session;
    let mut conn = world.pool.acquire().await.unwrap();
    compactions::request(&mut conn, session.id, compactions::Cause::Manual).await.unwrap();
    let asked = json!({ "campaign_id": campaign, "agent": "planner", "prompt": "What is new?" });
    let enqueue =
        "select job_id from dalsegno.enqueue(kind => 'add_task', payload => $1, queue => 'upkeep')";
    sqlx::query(enqueue).bind(asked).execute(&mut *conn).await.unwrap();
    let mut tx = transaction::begin(&world.pool).await.unwrap();
    erasures::request(&mut tx, campaign, "by request", noon()).await.unwrap();
    transaction::commit(tx).await.unwrap();
    let run = "update dalsegno.jobs set state = 'running', lease = id, worker_id = gen_random_uuid(), claimed_at = now(), attempt = 1
                where kind in ('compact_session', 'add_task') returning id";
    let running: Vec<i64> = sqlx::query_scalar(run).fetch_all(&mut *conn).await.unwrap();
    assert_eq!(running.len(), 2);
    let is_quiet = async || {
        let mut tx = transaction::begin(&world.pool).await.unwrap();
        erasures::cancel_jobs(&mut tx, campaign).await.unwrap();
        let is_quiet = erasures::is_idle(&mut tx, campaign).await.unwrap();
        transaction::commit(tx).await.unwrap();
        is_quiet
    };
    for (n_ended, id) in running.iter().enumerate() {
        assert!(!is_quiet().await, "{n_ended}");
        let asked = "select count(*) from dalsegno.cancel_requests where job_id = $1";
        let asked: i64 = sqlx::query_scalar(asked).bind(id).fetch_one(&mut *conn).await.unwrap();
        assert_eq!(asked, 1, "the worker is asked to stop");
        let ends = "delete from dalsegno.jobs where id = $1";
        sqlx::query(ends).bind(id).execute(&mut *conn).await.unwrap();
    }
    assert!(is_quiet().await);
}

/// More running tasks than one transaction cancels: each is asked to stop once, and none is skipped.
#[tokio::test]
async fn all_running_tasks_are_asked_to_stop_regardless_of_their_number() {
    let world = World::new().await;
    let mut conn = world.pool.acquire().await.unwrap();
    let campaign = world.campaign.id;
    let many = "select count(a.task_id) from generate_series(1, 1100) as i,
                       lateral dalsegno.add_task($1, 'copywriter', 'x', 'copy_' || i) as a";
    let added: i64 = sqlx::query_scalar(many).bind(campaign).fetch_one(&mut *conn).await.unwrap();
    assert_eq!(added, 1_100);
    let run = "update dalsegno.jobs set state = 'running', lease = id, worker_id = gen_random_uuid(), claimed_at = now(), attempt = 1";
    sqlx::query(run).execute(&mut *conn).await.unwrap();
    let mut tx = transaction::begin(&world.pool).await.unwrap();
    erasures::request(&mut tx, campaign, "by request", noon()).await.unwrap();
    transaction::commit(tx).await.unwrap();
    let n_left = cancel_many_tasks::cancel_all(&world.pool, campaign).await;
    let asked = "select count(*) from dalsegno.cancel_requests";
    let asked: i64 = sqlx::query_scalar(asked).fetch_one(&mut *conn).await.unwrap();
    assert_eq!((asked, n_left), (1_100, 1_100));
}

/// Returns true if an erasure that begins before this commit, and has to wait for it, finds the campaign without
/// activity.
async fn is_idle_after(world: &World, writing: PgTransaction<'_>) -> bool {
    let campaign = world.campaign.id;
    let mut tx = transaction::begin(&world.pool).await.unwrap();
    erasures::request(&mut tx, campaign, "by request", noon()).await.unwrap();
    transaction::commit(tx).await.unwrap();
    let pool = world.pool.clone();
    let looking = tokio::spawn(async move {
        let mut tx = transaction::begin(&pool).await.unwrap();
        erasures::is_idle(&mut tx, campaign).await.unwrap()
    });
    let waits = "select count(*) from pg_locks where not granted and locktype = 'advisory'
                    and database = (select oid from pg_database where datname = current_database())";
    eventually("the erasure waits", async || {
        let n: i64 = sqlx::query_scalar(waits).fetch_one(&world.pool).await.unwrap();
        (n == 1).then_some(())
    })
    .await;
    writing.commit().await.unwrap();
    looking.await.unwrap()
}

/// Another system adds a task in an open transaction, which is not visible yet.
#[tokio::test]
async fn an_erasure_waits_for_transactions_that_add_tasks() {
    let world = World::new().await;
    let mut adding = world.pool.begin().await.unwrap();
    let add = "select dalsegno.add_task($1, 'copywriter', 'x')";
    sqlx::query(add).bind(world.campaign.id).execute(&mut *adding).await.unwrap();
    assert!(!is_idle_after(&world, adding).await, "the task is seen");
}

#[tokio::test]
async fn an_erasure_waits_for_transactions_that_write_memory() {
    let world = World::new().await;
    let mut writing = world.pool.begin().await.unwrap();
    let (id, new, config) = (world.campaign.id, new(Kind::Record, "late", ERASED_WORD), config());
    memory::publish(&mut writing, id, &new, &OPERATOR, &config, noon()).await.unwrap();
    assert!(is_idle_after(&world, writing).await);
    assert_eq!(
        tables_with(&world.pool, ERASED_WORD).await.len(),
        1,
        "the row exists for the step that removes it"
    );
    let mut late = world.pool.begin().await.unwrap();
    let refused = memory::publish(&mut late, id, &new, &OPERATOR, &config, noon()).await;
    assert!(matches!(refused, Err(memory::Error::Campaign(_))), "{refused:?}");
}
