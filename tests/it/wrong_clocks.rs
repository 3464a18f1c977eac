//! Processes whose machine's clock is wrong by hours: all stored times come from the database.
//!
//! The clock is libfaketime's (Debian: `faketime`), which `.ci/run` installs.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::{
    app::{SOON, TestDatabase, eventually},
    cluster::scratch_folder,
    http::client::send,
    service::{Service, dalsegno},
};

/// A service whose clock is five hours behind, a worker three hours ahead, and commands two days ahead.
struct Setup {
    service: Service,
    worker: Service,
    environment: Vec<(String, String)>,
    folder: tempfile::TempDir,
    pool: PgPool,
    _database: TestDatabase,
}

/// Number of tasks, each in another conversation, so that both processes take some.
const TASKS: usize = 40;

/// Columns with times that lie, or may lie, in the future.
const FUTURE_COLUMNS: &[&str] =
    &["expires_at", "until", "run_at", "next_at", "valid_until", "lease_until", "not_before"];
/// Columns with times that people or schedules have set, or that no process of the test has written.
const GIVEN_COLUMNS: &[&str] =
    &["schedule_slots.slot", "facts.valid_from", "installation.created_at"];
/// Columns with the earlier of two times of a row, and those with the later one.
const EARLIER_COLUMNS: &[&str] = &[
    "created_at",
    "started_at",
    "asked_at",
    "enqueued_at",
    "claimed_at",
    "called_at",
    "recorded_at",
    "minted_at",
    "since",
    "entered_at",
    "paused_at",
    "expired_at",
];
const LATER_COLUMNS: &[&str] = &[
    "ended_at",
    "closed_at",
    "used_at",
    "applied_at",
    "undone_at",
    "left_at",
    "gone_at",
    "renewed_at",
    "fired_at",
    "expires_at",
    "started_at",
    "last_used_at",
    "stop_asked_at",
    "resumed_at",
    "over_at",
    "until",
    "claimed_at",
];
/// Rows that belong together, the later one first.
const ORDERED_PAIRS: &[(&str, &str)] = &[
    (
        "a turn before its task",
        "select count(*) from dalsegno.turns as l join dalsegno.tasks as e on e.id = l.task_id where l.started_at < e.created_at",
    ),
    (
        "a task that ends before its turn",
        "select count(*) from dalsegno.tasks as l join dalsegno.turns as e on e.task_id = l.id where l.ended_at < e.started_at",
    ),
    (
        "a message before its turn",
        "select count(*) from dalsegno.messages as l join dalsegno.turns as e on e.session_id = l.session_id and e.number = l.turn where l.created_at < e.started_at",
    ),
    (
        "a turn before its session",
        "select count(*) from dalsegno.turns as l join dalsegno.sessions as e on e.id = l.session_id where l.started_at < e.created_at",
    ),
    (
        "a call before its task",
        "select count(*) from dalsegno.usage as l join dalsegno.tasks as e on e.id = l.task_id where l.called_at < e.created_at",
    ),
    (
        "a task before its campaign",
        "select count(*) from dalsegno.tasks as l join dalsegno.campaigns as e on e.id = l.campaign_id where l.created_at < e.created_at",
    ),
    (
        "an event before its task",
        "select count(*) from dalsegno.feed as l join dalsegno.tasks as e on e.id = l.task_id where l.created_at < e.created_at",
    ),
    (
        "a run before its worker",
        "select count(*) from dalsegno.runs as l join dalsegno.workers as e on e.id = l.worker_id where l.started_at < e.started_at",
    ),
];

impl Setup {
    async fn new() -> Self {
        let database = TestDatabase::migrated().await;
        let folder = scratch_folder();
        let environment: Vec<(String, String)> = [
            ("DATABASE_URL", database.url().as_str()),
            ("DALSEGNO_SIM__LATENCY_MS", "0"),
            ("DALSEGNO_SIM__CHUNK_DELAY_MS", "0"),
            ("DALSEGNO_SIM__DIRECTIVES", "true"),
            ("DALSEGNO_WORKER__TURNS_SLOTS", "2"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let service = Service::start(folder.path(), &at(&environment, "-5h")).await;
        let worker = Service::worker(folder.path(), &at(&environment, "+3h")).await;
        let pool = database.pool().await;
        Self { service, worker, environment, folder, pool, _database: database }
    }

    async fn run_json(&self, arguments: &[&str]) -> Value {
        let mut command = dalsegno(self.folder.path());
        command.args(arguments).arg("--json").envs(at(&self.environment, "+2d"));
        let output = tokio::time::timeout(SOON, command.output()).await.unwrap().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!("{arguments:?}: {error}: {}", String::from_utf8_lossy(&output.stderr))
        })
    }

    async fn add(&self, campaign: &str, instance: &str, prompt: &str, more: &[&str]) -> String {
        let add = ["task", "add", "--campaign", campaign, "--agent", "copywriter"];
        let task =
            self.run_json(&[&add[..], &["--instance", instance, prompt], more].concat()).await;
        task["id"].as_str().unwrap().to_owned()
    }

    async fn wait_for_state(&self, task: &str, state: &str) {
        eventually("the task ends", async || {
            (self.run_json(&["task", "show", task]).await["state"] == state).then_some(())
        })
        .await;
    }

    /// Returns the number that a statement counts.
    async fn count(&self, sql: &str) -> i64 {
        sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_one(&self.pool).await.unwrap()
    }

    async fn until(&self, sql: &str, n: i64) {
        eventually(sql, async || (self.count(sql).await >= n).then_some(())).await;
    }

    /// Returns the columns with times, by table.
    async fn columns(&self) -> Vec<(String, Vec<String>)> {
        let columns = "select c.table_name::text, array_agg(c.column_name::text) from information_schema.columns as c
                         join information_schema.tables as t using (table_schema, table_name)
                        where c.table_schema = 'dalsegno' and c.data_type = 'timestamp with time zone'
                          and t.table_type = 'BASE TABLE' and c.table_name <> 'migrations'
                        group by c.table_name order by 1";
        sqlx::query_as(columns).fetch_all(&self.pool).await.unwrap()
    }

    async fn now(&self) -> DateTime<Utc> {
        sqlx::query_scalar("select clock_timestamp()").fetch_one(&self.pool).await.unwrap()
    }
}

/// The offset of a service's clocks, which can change while it runs: of its monotonic clock as well, as after a
/// suspended machine.
struct Offset {
    file: PathBuf,
}

impl Offset {
    /// Begins with no offset.
    fn new(folder: &Path) -> Self {
        let offset = Self { file: folder.join("offset") };
        offset.set("+0s");
        offset
    }

    /// Replaces the file in one step, because it may be read at any time.
    fn set(&self, offset: &str) {
        let next = self.file.with_extension("next");
        std::fs::write(&next, offset).unwrap();
        std::fs::rename(next, &self.file).unwrap();
    }
}

/// Returns the environment of a process whose clock is wrong.
fn at<'a>(environment: &'a [(String, String)], offset: &'a str) -> Vec<(&'a str, &'a str)> {
    let mut environment: Vec<(&str, &str)> =
        environment.iter().map(|(name, value)| (&**name, &**value)).collect();
    environment.extend([
        ("LD_PRELOAD", library()),
        ("FAKETIME", offset),
        // A machine with a wrong clock still has a correct monotonic clock and correct file times.
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ("NO_FAKE_STAT", "1"),
    ]);
    environment
}

fn library() -> &'static str {
    const FOLDERS: [&str; 4] = [
        "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
        "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
        "/usr/lib64/faketime/libfaketimeMT.so.1",
        "/usr/lib/faketime/libfaketimeMT.so.1",
    ];
    let found = FOLDERS.into_iter().find(|library| Path::new(library).exists());
    found.expect("libfaketime: install it (Debian: apt-get install faketime)")
}

#[tokio::test]
async fn processes_with_clocks_hours_off_store_the_time_of_the_database() {
    let setup = Setup::new().await;
    let began = setup.now().await - chrono::TimeDelta::minutes(2);
    let campaign = setup.run_json(&["campaign", "create", "Harbour"]).await;
    let campaign = campaign["id"].as_str().unwrap();
    // Tasks that both processes finish, and tasks added in SQL.
    for n in 0..TASKS {
        let sql = "select dalsegno.add_task($1::uuid, 'copywriter', 'One. [[sim: say Yes.]]', instance => $2)::text";
        let added = sqlx::query(sql).bind(campaign).bind(format!("sql{n}"));
        added.execute(&setup.pool).await.unwrap();
    }
    // Tasks that fail, are retried automatically and by a person, and are cancelled while they wait and while they run.
    let failed = setup.add(campaign, "failed", "Two. [[sim: error 400]]", &[]).await;
    setup.wait_for_state(&failed, "failed").await;
    assert_eq!(setup.run_json(&["task", "retry", &failed]).await["id"], *failed);
    let retried = setup.add(campaign, "retried", "Three. [[sim: error 500 once]]", &[]).await;
    let waits = setup.add(campaign, "waits", "Four.", &["--at", "2099-01-01T00:00:00Z"]).await;
    setup.run_json(&["task", "cancel", &waits]).await;
    let runs = setup.add(campaign, "runs", "Five. [[sim: stall]]", &[]).await;
    setup.wait_for_state(&runs, "running").await;
    setup.run_json(&["task", "cancel", &runs]).await;
    for (task, state) in
        [(&failed, "failed"), (&retried, "done"), (&waits, "cancelled"), (&runs, "cancelled")]
    {
        setup.wait_for_state(task, state).await;
    }
    // A conversation that is compacted.
    for n in 0..4 {
        let prompt = format!("Part {n}. [[sim: words 300]]");
        let part = setup.add(campaign, "long", &prompt, &["--wait"]).await;
        setup.wait_for_state(&part, "done").await;
    }
    let session = "select id::text from dalsegno.sessions where instance = 'long'";
    let session: String = sqlx::query_scalar(session).fetch_one(&setup.pool).await.unwrap();
    setup.run_json(&["session", "compact", &session]).await;
    setup.until("select count(*) from dalsegno.compactions where applied_at is not null", 1).await;
    // A board, a memory, a blackboard, a pause, a schedule, a key.
    setup.run_json(&["board", "post", "--campaign", campaign, "Hello all.", "--to", "all"]).await;
    setup
        .run_json(&[
            "memory",
            "publish",
            "--campaign",
            campaign,
            "record",
            "tone",
            "--title",
            "Tone",
            "Short.",
        ])
        .await;
    setup.run_json(&["blackboard", "patch", campaign, r#"{"a": 1}"#]).await;
    setup.run_json(&["agent", "pause", "reviewer", "--campaign", campaign]).await;
    setup.run_json(&["agent", "resume", "reviewer", "--campaign", campaign]).await;
    setup.run_json(&["key", "create", "ci", "--scope", "read"]).await;
    // Expiry: the cleanup of a service with another date removes only expired rows.
    let done = format!(
        "select count(*) from dalsegno.tasks where state = 'done' and instance like 'sql%' having count(*) = {TASKS}"
    );
    eventually("all tasks are done", async || {
        let n = sqlx::query_scalar::<_, i64>(sqlx::AssertSqlSafe(&*done));
        n.fetch_optional(&setup.pool).await.unwrap()
    })
    .await;
    let expire = "update dalsegno.sessions set created_at = created_at - interval '8 days', used_at = used_at - interval '8 days',
                         expires_at = expires_at - interval '8 days' where instance = 'sql0' and running_turn is null";
    sqlx::query(expire).execute(&setup.pool).await.unwrap();
    let soon = "update dalsegno.sessions set expires_at = now() + interval '1 hour' where instance = 'sql1'";
    sqlx::query(soon).execute(&setup.pool).await.unwrap();
    setup.run_json(&["cleanup"]).await;
    setup.until("select count(*) from dalsegno.cleanup_runs where outcome = 'done'", 1).await;
    let left = "select count(*) from dalsegno.sessions where instance in ('sql0', 'sql1')";
    assert_eq!(setup.count(left).await, 1, "a session that expires in an hour has not expired");
    let again = setup.add(campaign, "sql0", "Six. [[sim: say Again.]]", &[]).await;
    setup.wait_for_state(&again, "done").await;
    // An erasure, in another campaign.
    let erased = setup.run_json(&["campaign", "create", "Erased"]).await;
    let erased = erased["id"].as_str().unwrap();
    let task = setup.add(erased, "one", "Seven. [[sim: say Gone.]]", &[]).await;
    setup.wait_for_state(&task, "done").await;
    setup.run_json(&["campaign", "erase", erased, "--yes"]).await;
    setup.until("select count(*) from dalsegno.erasures where ended_at is not null", 1).await;

    let by_worker = "select count(distinct worker_id) from dalsegno.runs where kind = 'run_turn' and outcome = 'done'";
    assert_eq!(setup.count(by_worker).await, 2, "both processes have run turns");
    let until = setup.now().await + chrono::TimeDelta::minutes(2);
    let mut wrong = Vec::new();
    let mut n_pairs = 0;
    for (table, columns) in setup.columns().await {
        for column in &columns {
            if GIVEN_COLUMNS.contains(&&*format!("{table}.{column}")) {
                continue;
            }
            let range = format!("select min({column}), max({column}) from dalsegno.{table}");
            let range: (Option<DateTime<Utc>>, Option<DateTime<Utc>>) =
                sqlx::query_as(sqlx::AssertSqlSafe(range)).fetch_one(&setup.pool).await.unwrap();
            let early = range.0.is_some_and(|least| least < began);
            let late =
                range.1.is_some_and(|most| most > until) && !FUTURE_COLUMNS.contains(&&**column);
            if early || late {
                wrong.push(format!("{table}.{column}: {range:?}"));
            }
        }
        for (start, end) in EARLIER_COLUMNS
            .iter()
            .flat_map(|start| LATER_COLUMNS.iter().map(move |end| (start, end)))
        {
            let has = |name: &str| columns.iter().any(|column| column == name);
            if start == end
                || (start, end) == (&"claimed_at", &"started_at")
                || !has(start)
                || !has(end)
            {
                continue;
            }
            n_pairs += 1;
            let inverted = format!("select count(*) from dalsegno.{table} where {end} < {start}");
            match setup.count(&inverted).await {
                0 => {}
                n => wrong.push(format!("{table}: {n} rows with {end} before {start}")),
            }
        }
    }
    for (what, sql) in ORDERED_PAIRS {
        match setup.count(sql).await {
            0 => {}
            n => wrong.push(format!("{what}: {n}")),
        }
    }
    assert!(n_pairs > 20, "{n_pairs}");
    assert_eq!(wrong, Vec::<String>::new(), "{began} to {until}");
    drop((setup.service, setup.worker));
}

#[tokio::test]
async fn a_service_without_workers_recovers_the_database_time_after_a_clock_jump() {
    let (database, folder) = (TestDatabase::migrated().await, scratch_folder());
    // Uses another application name than the connections that are counted below.
    let named = database.options.clone().application_name("a test");
    let pool = PgPool::connect_with(named).await.unwrap();
    let offset = Offset::new(folder.path());
    let environment = [
        ("DATABASE_URL", &*database.url()),
        ("DALSEGNO_WORKER__TURNS_SLOTS", "0"),
        ("DALSEGNO_WORKER__UPKEEP_SLOTS", "0"),
        ("DALSEGNO_DATABASE__MAX_CONNECTIONS", "2"),
        ("LD_PRELOAD", library()),
        ("FAKETIME_TIMESTAMP_FILE", offset.file.to_str().unwrap()),
        ("FAKETIME_NO_CACHE", "1"),
        ("NO_FAKE_STAT", "1"),
    ];
    let service = Service::start(folder.path(), &environment).await;
    // Returns how far a new campaign's time is from that of the database, and how far the service's machine is ahead of
    // the database.
    let create = async || {
        let body = json!({ "name": uuid::Uuid::new_v4() }).to_string();
        let reply = send(service.address, "POST", "/v1/campaigns", &[], &body).await;
        let stored = reply.expect(201)["created_at"].as_str().unwrap().parse::<DateTime<Utc>>();
        let date = reply.head.lines().find_map(|line| line.strip_prefix("date: ")).unwrap();
        let machine = DateTime::parse_from_rfc2822(date).unwrap().to_utc();
        let now = sqlx::query_scalar::<_, DateTime<Utc>>("select clock_timestamp()");
        let now = now.fetch_one(&pool).await.unwrap();
        ((stored.unwrap() - now).abs(), machine - now)
    };
    let minute = chrono::TimeDelta::minutes(1);
    // The pool is full. Another connection would measure the clock again, and so would one that replaces an old one
    // after 10 minutes.
    let connections = "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'dalsegno'";
    eventually("the pool of the service is full", async || {
        for (stored, machine) in futures_util::future::join_all((0..8).map(|_| create())).await {
            assert!(stored < minute && machine < minute, "{stored} {machine}");
        }
        let n: i64 = sqlx::query_scalar(connections).fetch_one(&pool).await.unwrap();
        (n == 2).then_some(())
    })
    .await;
    offset.set("+300s");
    eventually("the time of the database is stored again", async || {
        let (stored, machine) = create().await;
        (stored < minute && machine > minute * 4).then_some(())
    })
    .await;
}
