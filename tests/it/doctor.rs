//! Checks of the doctor that need more than a process.

use std::{os::unix::fs::PermissionsExt as _, sync::Arc};

use dalsegno::{
    clock::{Clock, ManualClock},
    doctor::{self, Finding, Status},
    domain::{amount::Limit, campaigns},
    settings::{Environment, Flags},
};

use serde_json::{Value, json};
use sqlx::Connection as _;
use tokio_util::sync::CancellationToken;

use crate::{
    app::{TestDatabase, eventually, noon},
    providers::{
        claude::{
            api::{Api, Play},
            cli::Cli,
            host::SECRET,
        },
        fake_ollama::FakeOllama,
    },
};

async fn examine(database: &TestDatabase, clock: &ManualClock) -> Vec<Finding> {
    let environment = Environment::from([("DATABASE_URL", database.url().as_str())]);
    doctor::examine(&environment, &Flags::default(), clock, &CancellationToken::new()).await
}

#[tokio::test]
async fn a_clock_that_is_off_is_a_warning() {
    let database = TestDatabase::migrated().await;
    let findings = examine(&database, &ManualClock::at(noon())).await;
    let clock = findings.iter().find(|finding| finding.check == "clock").unwrap();
    assert_eq!(clock.status, Status::Warn, "{clock:?}");
    assert!(findings.iter().all(|finding| finding.status != Status::Fail));
}

#[tokio::test]
async fn a_schema_from_the_future_is_a_warning() {
    let database = TestDatabase::migrated().await;
    let newer =
        "insert into dalsegno.migrations (version, description, success, checksum, execution_time)
                 values (99990101000000, 'from the future', true, '', 0)";
    sqlx::query(newer).execute(&database.pool().await).await.unwrap();
    let findings = examine(&database, &ManualClock::at(noon())).await;
    let schema = findings.iter().find(|finding| finding.check == "migrations").unwrap();
    assert_eq!(schema.status, Status::Warn, "{schema:?}");
}

#[tokio::test]
async fn a_queue_without_workers_is_a_warning() {
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    let enqueue = "select dalsegno.enqueue(kind => 'ping', payload => '{}', queue => 'upkeep')";
    sqlx::query(enqueue).execute(&pool).await.unwrap();
    let findings = examine(&database, &ManualClock::at(noon())).await;
    let workers = findings.iter().find(|finding| finding.check == "workers").unwrap();
    assert_eq!((workers.status, workers.what.contains("upkeep")), (Status::Warn, true));
    let notify = findings.iter().find(|finding| finding.check == "notify").unwrap();
    assert_eq!(notify.status, Status::Ok, "{notify:?}");
}

#[tokio::test]
async fn how_long_somebody_has_been_writing_is_told() {
    let database = TestDatabase::migrated().await;
    let mut writer = database.pool().await.begin().await.unwrap();
    sqlx::query("select pg_current_xact_id()").execute(&mut *writer).await.unwrap();
    let mut conn = sqlx::PgConnection::connect_with(&database.options).await.unwrap();
    let age = async |conn: &mut sqlx::PgConnection| {
        dalsegno::queue::admin::health(conn).await.unwrap().oldest_writer_secs
    };
    eventually("its age is seen", async || (age(&mut conn).await > 1.0).then_some(())).await;
    let findings = examine(&database, &ManualClock::at(noon())).await;
    let writers = findings.iter().find(|finding| finding.check == "writers").unwrap();
    assert!(
        writers.status == Status::Ok && writers.why.contains("readers of the feed"),
        "{writers:?}"
    );
}

/// A host with an agent on Claude, for the doctor to check.
struct Machine {
    database: TestDatabase,
    folder: tempfile::TempDir,
    settings: Vec<(String, String)>,
}

impl Machine {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("agents")).unwrap();
        let machine =
            Self { database: TestDatabase::migrated().await, folder, settings: Vec::new() };
        let writer = "---\nname: writer\ndescription: Writes\nprovider: sim\nfallback_provider: claude\nfallback_model: claude-sonnet-5\n---\nYou write.\n";
        std::fs::write(machine.folder.path().join("agents/writer.md"), writer).unwrap();
        let path = |name: &str| machine.folder.path().join(name).display().to_string();
        let (agents, data) = (path("agents"), path("data"));
        machine.with("agents.folder", &agents).with("service.data_dir", &data)
    }

    fn with(mut self, key: &str, value: &str) -> Self {
        self.settings.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Returns a credential whose secret is in a file with this mode.
    fn login(&self, name: &str, mode: u32) -> String {
        let file = self.folder.path().join(name);
        std::fs::write(&file, SECRET).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        format!("{{ name = \"{name}\", kind = \"api_key\", file = \"{}\" }}", file.display())
    }

    fn environment(&self) -> Environment {
        Environment::from([("DATABASE_URL", self.database.url().as_str())])
    }

    fn flags(&self) -> Flags {
        Flags { file: None, set: self.settings.clone() }
    }

    /// Returns the findings about Claude: check, status and text.
    async fn findings(&self) -> Vec<(&'static str, Status, String)> {
        let (clock, stop) = (ManualClock::at(noon()), CancellationToken::new());
        let found = doctor::examine(&self.environment(), &self.flags(), &clock, &stop).await;
        told(found)
    }
}

fn told(found: Vec<Finding>) -> Vec<(&'static str, Status, String)> {
    let about = found.into_iter().filter(|finding| finding.check.starts_with("claude"));
    about
        .map(|finding| {
            let words = format!("{} {}", finding.what, finding.mend);
            assert!(!words.contains(SECRET), "{words}");
            (finding.check, finding.status, words)
        })
        .collect()
}

fn statuses(findings: &[(&'static str, Status, String)]) -> Vec<(&'static str, Status)> {
    findings.iter().map(|(check, status, _)| (*check, *status)).collect()
}

#[tokio::test]
async fn a_machine_without_the_cli_is_told_what_to_install() {
    let machine = Machine::new().await.with("claude.program", "no-such-claude");
    let findings = machine.findings().await;
    let expected = [
        ("claude", Status::Fail),
        ("claude version", Status::Skipped),
        ("claude login", Status::Fail),
        ("claude folder", Status::Ok),
        ("claude processes", Status::Ok),
    ];
    assert_eq!(statuses(&findings), expected, "{findings:?}");
    assert!(findings[0].2.contains("no program no-such-claude in claude.path"), "{findings:?}");
    assert!(findings[0].2.contains("npm install"), "{findings:?}");
    assert!(findings[4].2.contains("not ended: a command that kills worker and guard at once"));
    assert!(!machine.folder.path().join("data").exists(), "a look makes nothing");

    let unused = "---\nname: writer\ndescription: Writes\nprovider: sim\n---\nYou write.\n";
    std::fs::write(machine.folder.path().join("agents/writer.md"), unused).unwrap();
    assert_eq!(machine.findings().await, [], "nobody asks for it");
}

#[tokio::test]
async fn a_cli_of_another_version_and_logins_that_others_can_read_are_warnings() {
    let machine = Machine::new().await;
    let program = machine.folder.path().join("claude");
    std::fs::write(&program, "#!/bin/sh\necho '3.0.1 (Claude Code)'\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let unset = "{ name = \"unset\", kind = \"api_key\", variable = \"NO_SUCH_KEY\" }";
    let gone = "{ name = \"gone\", kind = \"api_key\", file = \"/no/such/file\" }";
    let of = |name, mode| machine.login(name, mode);
    let (open, grouped, closed) = (of("open", 0o644), of("grouped", 0o640), of("closed", 0o600));
    let logins = format!("[{open}, {grouped}, {closed}, {unset}, {gone}]");
    let machine = machine
        .with("claude.program", &program.display().to_string())
        .with("claude.credentials", &logins)
        .with("claude.cgroup", "/no/such/group");
    let findings = machine.findings().await;
    let expected = [
        ("claude", Status::Ok),
        ("claude version", Status::Warn),
        ("claude login", Status::Warn),
        ("claude login", Status::Warn),
        ("claude login", Status::Ok),
        ("claude login", Status::Warn),
        ("claude login", Status::Fail),
        ("claude folder", Status::Ok),
        ("claude limits", Status::Fail),
        ("claude processes", Status::Ok),
        ("claude rest", Status::Ok),
    ];
    assert_eq!(statuses(&findings), expected, "{findings:?}");
    for (at, words) in [
        (1, "3.0.1, but only 2.1.197"),
        (2, "which every user of this machine can read"),
        (3, "which the group "),
        (3, "chmod 600"),
        // The service may have it in its own environment.
        (5, "NO_SUCH_KEY is not set; set it, or use a file; the service may be able to"),
        (6, "cannot read /no/such/file"),
    ] {
        assert!(findings[at].2.contains(words), "{words}: {findings:?}");
    }
}

#[tokio::test]
async fn logins_that_rest_or_can_be_read_and_money_without_a_price_are_warnings() {
    let machine = Machine::new().await;
    let login = machine.login("main", 0o600).replace("api_key", "auth_token");
    let machine = machine.with("claude.credentials", &format!("[{login}]"));
    let pool = machine.database.pool().await;
    let about = async |check: &str| {
        let found = machine.findings().await;
        found.into_iter().find(|found| found.0 == check).map(|(_, status, words)| (status, words))
    };
    assert_eq!(about("claude exposed").await, None, "nothing runs that could look");
    assert_eq!(about("claude prices").await, None, "no budget is in money");
    assert_eq!(about("claude rest").await.unwrap().0, Status::Ok);

    let writer = machine.folder.path().join("agents/writer.md");
    let with_tools = std::fs::read_to_string(&writer)
        .unwrap()
        .replace("provider: sim", "provider: claude\ntools: Bash");
    std::fs::write(
        &writer,
        with_tools.replace("fallback_provider: claude\nfallback_model:", "model:"),
    )
    .unwrap();
    let limit = Limit { micros: Some(1), tokens: None };
    let new = campaigns::New { name: "Harbour", brief: "", client_context: None, limit };
    campaigns::create(&mut pool.acquire().await.unwrap(), &new, noon()).await.unwrap();
    let rest = "insert into dalsegno.resting_logins (provider, login, until, why)
                values ('claude', 'main', '2030-01-01', 'it is used up')";
    sqlx::query(rest).execute(&pool).await.unwrap();
    for (check, words) in [
        ("claude exposed", "commands of writer can read"),
        ("claude prices", "1 campaigns have a budget in money, and models of writer no price"),
        ("claude rest", "main until 2030-01-01 00:00:00 UTC, with 0 sessions"),
    ] {
        let (status, told) = about(check).await.unwrap();
        assert!(status == Status::Warn && told.contains(words), "{check}: {told}");
    }
    let prices = "[{ provider = \"claude\", model = \"sonnet\", input = 1, output = 1 }]";
    let machine = machine.with("prices.models", prices);
    let found = machine.findings().await;
    assert!(
        found.iter().any(|(check, status, _)| (*check, *status) == ("claude prices", Status::Ok))
    );
}

#[tokio::test]
async fn a_call_is_made_on_each_login_where_somebody_asks_for_it() {
    let Some(cli) = Cli::real() else { return };
    let api = Api::start().await;
    let machine = Machine::new().await;
    let logins = format!("[{}, {}]", machine.login("good", 0o600), machine.login("bad", 0o600));
    let machine = machine
        .with("claude.program", &cli.program().display().to_string())
        .with("claude.credentials", &logins)
        .with("claude.base_url", &api.url())
        .with("claude.max_retries", "0");
    let findings = machine.findings().await;
    assert!(findings.iter().all(|(_, status, _)| *status == Status::Ok), "{findings:?}");
    assert!(findings[1].2.starts_with("2.1.197; tested with 2.1.197"), "{findings:?}");
    assert_eq!(api.requests().len(), 0, "a look calls nobody");

    let words = format!("invalid x-api-key {SECRET}");
    api.plays([
        Play::Says(vec!["ready".to_owned()], "end_turn"),
        Play::Fails(401, "", "authentication_error", words.leak()),
    ]);
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(noon()));
    let guard = env!("CARGO_BIN_EXE_dalsegno").into();
    let stop = CancellationToken::new();
    let found = doctor::smoke(&machine.environment(), &machine.flags(), &clock, guard, &stop).await;
    let findings = told(found);
    assert_eq!(statuses(&findings), [("claude call", Status::Ok), ("claude call", Status::Fail)]);
    assert!(findings[0].2.contains("good: claude-sonnet-5 said \"ready\""), "{findings:?}");
    assert!(findings[1].2.contains("the login bad is not accepted"), "{findings:?}");
    let left = std::fs::read_dir(machine.folder.path().join("data/claude")).unwrap().count();
    assert_eq!(left, 0, "nothing of the calls is kept");
}

#[tokio::test]
async fn files_of_nodes_and_of_flows_that_do_not_fit_are_found() {
    let machine = Machine::new().await;
    let folders = ["nodes", "workflows"].map(|name| machine.folder.path().join(name));
    folders.iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
    let [nodes, flows] = folders.each_ref().map(|folder| folder.display().to_string());
    let machine = machine.with("agents.nodes_folder", &nodes).with("flows.folder", &flows);
    let about = async |check: &str| {
        let (clock, stop) = (ManualClock::at(noon()), CancellationToken::new());
        let found = doctor::examine(&machine.environment(), &machine.flags(), &clock, &stop).await;
        let found = found.into_iter().find(|found| found.check == check).unwrap();
        (found.status, format!("{} {}", found.what, found.mend))
    };
    let node = "---\nname: draft\ndescription: d\n---\nThe contract.\n";
    std::fs::write(folders[0].join("draft.md"), node).unwrap();
    let flow = "---\nname: one\ndescription: d\nsteps:\n  - step: a\n    agent: writer\n---\n## a\n\nGo.\n";
    std::fs::write(folders[1].join("one.md"), flow).unwrap();
    let (status, words) = about("agents").await;
    assert!(status == Status::Ok && words.contains("1 nodes"), "{words}");
    let (status, words) = about("workflows").await;
    assert!(status == Status::Ok && words.contains(&format!("1 templates, in {flows}")), "{words}");

    std::fs::write(folders[1].join("one.md"), flow.replace("writer", "wrter")).unwrap();
    let (status, words) = about("workflows").await;
    assert!(status == Status::Fail && words.contains("wrter"), "{words}");
    assert!(words.contains("dalsegno flow templates"), "{words}");
    std::fs::write(folders[0].join("draft.md"), node.replace("name: draft", "name: other"))
        .unwrap();
    let (status, words) = about("agents").await;
    assert!(status == Status::Fail && words.contains("draft.md"), "{words}");
    // The templates are checked anyway.
    let (status, words) = about("workflows").await;
    assert!(status == Status::Fail && words.contains("wrter"), "{words}");
}

#[tokio::test]
async fn agents_that_could_ask_this_machine_as_anybody_are_named() {
    let machine = Machine::new().await;
    let agents = machine.folder.path().join("agents");
    let found = async |machine: &Machine| {
        let (clock, stop) = (ManualClock::at(noon()), CancellationToken::new());
        let found = doctor::examine(&machine.environment(), &machine.flags(), &clock, &stop).await;
        found.into_iter().find(|found| found.check == "keys")
    };
    let write = |tools: &str| {
        let file = format!(
            "---\nname: writer\ndescription: d\nprovider: claude\nmodel: sonnet\n{tools}\n---\nYou write.\n"
        );
        std::fs::write(agents.join("writer.md"), file).unwrap();
    };
    write("tools: Read, mcp__dalsegno");
    assert_eq!(found(&machine).await, None);
    let programs = "mcpServers: { sums: { command: sums } }";
    for tools in ["tools: Bash(ls:*), Read", "tools: WebFetch", programs] {
        write(tools);
        let finding = found(&machine).await.unwrap();
        assert!(finding.status == Status::Warn && finding.what.contains("writer"), "{finding:?}");
        assert!(finding.mend.contains("http.require_key"), "{finding:?}");
    }
    let machine = machine.with("http.require_key", "true");
    assert_eq!(found(&machine).await.unwrap().status, Status::Ok);
}

#[tokio::test]
async fn ollama_is_asked_for_its_models_their_windows_and_their_tools() {
    let machine = Machine::new().await;
    let server = FakeOllama::start().await;
    let found = async |machine: &Machine| -> Vec<(Status, String)> {
        let (clock, stop) = (ManualClock::at(noon()), CancellationToken::new());
        let found = doctor::examine(&machine.environment(), &machine.flags(), &clock, &stop).await;
        let about = found.into_iter().filter(|finding| finding.check.starts_with("ollama"));
        about.map(|it| (it.status, format!("{} {}", it.what, it.mend))).collect()
    };
    let agent = machine.folder.path().join("agents/writer.md");
    let write = |keys: &str| {
        let file =
            format!("---\nname: writer\ndescription: d\nprovider: ollama\n{keys}---\nYou write.\n");
        std::fs::write(&agent, file).unwrap();
    };
    assert_eq!(found(&machine).await, [], "no agent runs there");
    write("model: qwen3:8b\ntools: mcp__dalsegno\n");
    let machine = machine.with("ollama.base_url", &format!("http://{}", server.addr));
    let shows = |value: Value| *server.state.shown.lock().unwrap() = value;
    let fine = found(&machine).await;
    assert_eq!(
        fine.iter().map(|it| it.0).collect::<Vec<_>>(),
        [Status::Ok, Status::Ok],
        "{fine:?}"
    );
    assert!(fine[0].1.contains("version ") && fine[1].1.contains("qwen3:8b, window "), "{fine:?}");

    write("model: qwen3:8b\nwindow_tokens: 9000000\n");
    let wide = found(&machine).await;
    assert!(wide[1].0 == Status::Warn && wide[1].1.contains("writer needs a window"), "{wide:?}");
    write("model: qwen3:8b\ntools: mcp__dalsegno\n");
    shows(json!({ "capabilities": ["completion"], "model_info": {} }));
    let mute = found(&machine).await;
    assert!(mute[1].0 == Status::Fail && mute[1].1.contains("cannot call tools"), "{mute:?}");
    shows(json!({ "model_info": { "general.architecture": "x", "x.context_length": 2048 } }));
    let narrow = found(&machine).await;
    assert!(narrow[1].0 == Status::Warn && narrow[1].1.contains("calls get 2048"), "{narrow:?}");
    write("model: missing:8b\n");
    shows(json!({ "error": "model 'missing:8b' not found" }));
    let missing = found(&machine).await;
    assert!(
        missing[1].0 == Status::Fail && missing[1].1.contains("ollama pull missing:8b"),
        "{missing:?}"
    );

    let machine = machine.with("ollama.base_url", "http://127.0.0.1:9");
    let down = found(&machine).await;
    assert_eq!(down.iter().map(|it| it.0).collect::<Vec<_>>(), [Status::Fail, Status::Skipped]);
    assert!(down[0].1.contains("cannot connect"), "{down:?}");
}
