//! Checks of the doctor that need more than a process.

use std::{os::unix::fs::PermissionsExt as _, sync::Arc};

use dalsegno::{
    clock::{Clock, ManualClock},
    doctor::{self, Finding, Status},
    domain::{agent_pauses, amount::Limit, campaign_control, campaigns},
    queue::admin,
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
        conformance::{
            dialects::{Anthropic, OpenAi},
            server::ScriptedServer,
        },
        fake_ollama::FakeOllama,
    },
};

async fn examine(database: &TestDatabase, clock: &ManualClock) -> Vec<Finding> {
    let environment = Environment::from([("DATABASE_URL", database.url().as_str())]);
    doctor::examine(&environment, &Flags::default(), clock, &CancellationToken::new()).await
}

#[tokio::test]
async fn a_wrong_clock_is_a_warning() {
    let database = TestDatabase::migrated().await;
    let findings = examine(&database, &ManualClock::at(noon())).await;
    let clock = findings.iter().find(|finding| finding.check == "clock").unwrap();
    assert_eq!(clock.status, Status::Warn, "{clock:?}");
    assert!(findings.iter().all(|finding| finding.status != Status::Fail));
}

#[tokio::test]
async fn a_newer_schema_is_a_warning() {
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
async fn paused_campaigns_and_agents_are_named_with_the_commands_that_resume_them() {
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    let held = async || {
        let findings = examine(&database, &ManualClock::at(noon())).await;
        findings.into_iter().find(|finding| finding.check == "held").unwrap()
    };
    assert_eq!(held().await.status, Status::Ok);

    let mut conn = pool.acquire().await.unwrap();
    let limit = Limit::default();
    let new = campaigns::New { name: "Harbour", brief: "", client_context: None, limit };
    let campaign = campaigns::create(&mut conn, &new, noon()).await.unwrap();
    let place = agent_pauses::PauseScope { campaign_id: None, agent: "writer" };
    agent_pauses::pause(&mut conn, place, "too expensive", "cli:ann@host", noon()).await.unwrap();
    let finding = held().await;
    assert_eq!(finding.status, Status::Warn, "{finding:?}");
    assert_eq!(
        finding.what,
        "agent `writer` is paused in all campaigns by cli:ann@host: too expensive"
    );
    assert_eq!(finding.fix, "`dalsegno agent resume writer --everywhere`");

    campaign_control::pause(&mut conn, campaign.id, "client call").await.unwrap();
    let finding = held().await;
    assert!(
        finding.what.starts_with("campaign `Harbour` is paused: client call; agent `writer` "),
        "{finding:?}"
    );
    let resume = format!("`dalsegno campaign resume {}`; ", campaign.id);
    assert!(finding.fix.starts_with(&resume), "{finding:?}");
    assert!(!finding.fix.contains("lane ls"), "{finding:?}");
}

#[tokio::test]
async fn held_jobs_are_named_with_the_commands_that_release_them() {
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    let mut conn = pool.acquire().await.unwrap();
    let enqueue = "select (dalsegno.enqueue(kind => 'ping', payload => '{}')).job_id";
    let jobs = async || -> i64 { sqlx::query_scalar(enqueue).fetch_one(&pool).await.unwrap() };
    let job = jobs().await;
    admin::hold_job(&pool, job, "legal").await.unwrap();
    // The job of a paused agent is described by the pause.
    let place = agent_pauses::PauseScope { campaign_id: None, agent: "writer" };
    let paused = agent_pauses::pause(&mut conn, place, "x", "cli:ann@host", noon()).await.unwrap();
    let of_agent = jobs().await;
    admin::hold_job(&pool, of_agent, &paused.pause.hold_reason()).await.unwrap();

    let findings = examine(&database, &ManualClock::at(noon())).await;
    let held = findings.into_iter().find(|finding| finding.check == "held").unwrap();
    assert!(held.what.ends_with(&format!("x; job {job} is held: legal")), "{held:?}");
    let release = format!("--everywhere`; `dalsegno job release {job}`");
    assert!(held.fix.ends_with(&release), "{held:?}");
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
async fn the_age_of_the_oldest_writing_transaction_is_reported() {
    let database = TestDatabase::migrated().await;
    let mut writer = database.pool().await.begin().await.unwrap();
    sqlx::query("select pg_current_xact_id()").execute(&mut *writer).await.unwrap();
    let mut conn = sqlx::PgConnection::connect_with(&database.options).await.unwrap();
    let age =
        async |conn: &mut sqlx::PgConnection| admin::health(conn).await.unwrap().oldest_writer_secs;
    eventually("the age of the transaction is reported", async || {
        (age(&mut conn).await > 1.0).then_some(())
    })
    .await;
    let findings = examine(&database, &ManualClock::at(noon())).await;
    let writers = findings.iter().find(|finding| finding.check == "writers").unwrap();
    assert!(
        writers.status == Status::Ok && writers.why.contains("readers of the feed"),
        "{writers:?}"
    );
}

/// A host with an agent on Claude, for the doctor to check.
struct DoctorSetup {
    database: TestDatabase,
    folder: tempfile::TempDir,
    settings: Vec<(String, String)>,
}

impl DoctorSetup {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("agents")).unwrap();
        let setup = Self { database: TestDatabase::migrated().await, folder, settings: Vec::new() };
        let writer = "---\nname: writer\ndescription: Writes\nmodel: [sim, claude/claude-sonnet-5]\n---\nYou write.\n";
        std::fs::write(setup.folder.path().join("agents/writer.md"), writer).unwrap();
        let path = |name: &str| setup.folder.path().join(name).display().to_string();
        let (agents, data) = (path("agents"), path("data"));
        setup.with("agents.folder", &agents).with("service.data_dir", &data)
    }

    fn with(mut self, key: &str, value: &str) -> Self {
        self.settings.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Returns a credential whose secret is in a file with this mode.
    fn credential(&self, name: &str, mode: u32) -> String {
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
    async fn findings(&self) -> Vec<(String, Status, String)> {
        let (clock, stop) = (ManualClock::at(noon()), CancellationToken::new());
        let found = doctor::examine(&self.environment(), &self.flags(), &clock, &stop).await;
        finding_lines(found)
    }
}

fn finding_lines(found: Vec<Finding>) -> Vec<(String, Status, String)> {
    let about = found.into_iter().filter(|finding| finding.check.starts_with("claude"));
    about
        .map(|finding| {
            let words = format!("{} {}", finding.what, finding.fix);
            assert!(!words.contains(SECRET), "{words}");
            (finding.check.into_owned(), finding.status, words)
        })
        .collect()
}

fn statuses(findings: &[(String, Status, String)]) -> Vec<(&str, Status)> {
    findings.iter().map(|(check, status, _)| (check.as_str(), *status)).collect()
}

#[tokio::test]
async fn a_missing_cli_is_reported_with_the_install_command() {
    let setup = DoctorSetup::new().await.with("claude.program", "no-such-claude");
    let findings = setup.findings().await;
    let expected = [
        ("claude", Status::Fail),
        ("claude version", Status::Skipped),
        ("claude credential", Status::Fail),
        ("claude folder", Status::Ok),
        ("claude processes", Status::Ok),
    ];
    assert_eq!(statuses(&findings), expected, "{findings:?}");
    assert!(findings[0].2.contains("no program no-such-claude in claude.path"), "{findings:?}");
    assert!(findings[0].2.contains("npm install"), "{findings:?}");
    assert!(
        findings[4]
            .2
            .contains("not covered: a command that kills the worker and the guard at once")
    );
    assert!(!setup.folder.path().join("data").exists(), "a check creates nothing");

    let unused = "---\nname: writer\ndescription: Writes\nprovider: sim\n---\nYou write.\n";
    std::fs::write(setup.folder.path().join("agents/writer.md"), unused).unwrap();
    assert_eq!(setup.findings().await, [], "no agent needs it");
}

#[tokio::test]
async fn budgets_that_are_used_up_are_named_with_the_command_that_raises_them() {
    let database = TestDatabase::migrated().await;
    let budget = async || {
        let findings = examine(&database, &ManualClock::at(noon())).await;
        findings.into_iter().find(|finding| finding.check == "budgets").unwrap()
    };
    let pool = database.pool().await;
    let set =
        "select dalsegno.change_budget('agent', 'copywriter', 'UTC', '{\"tokens\": 10}', now())";
    sqlx::query(set).execute(&pool).await.unwrap();
    assert_eq!(budget().await.status, Status::Ok);
    let spend = "update dalsegno.budget_shares set spent_tokens = 10 where share = 0";
    sqlx::query(spend).execute(&pool).await.unwrap();
    let found = budget().await;
    assert_eq!(found.status, Status::Warn);
    assert_eq!(found.what, "0 tasks wait for the budget of agent `copywriter`");
    assert!(found.fix.contains("`dalsegno budget set`"), "{found:?}");
}

#[tokio::test]
async fn a_provider_that_refuses_calls_is_a_warning_after_the_usual_retries() {
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    let busy = async |since_secs: i32, until_secs: i32| {
        let row = "insert into dalsegno.busy_models (provider, model, since, refused_at, until, refusals, why)
                   values ('anthropic', 'm1', $1::timestamptz + make_interval(secs => $2), $1, $1::timestamptz + make_interval(secs => $3), 5, '503')
                   on conflict (provider, model) do update set since = excluded.since, until = excluded.until";
        sqlx::query(row)
            .bind(noon())
            .bind(f64::from(since_secs))
            .bind(f64::from(until_secs))
            .execute(&pool)
            .await
            .unwrap();
        let findings = examine(&database, &ManualClock::at(noon())).await;
        findings.into_iter().find(|finding| finding.check == "busy").unwrap()
    };
    let short = busy(-120, 40).await;
    assert_eq!((short.status, short.fix.as_str()), (Status::Ok, ""), "{short:?}");
    let words =
        "1 model is busy and 0 tasks wait; the longest wait began at 2026-11-20 11:58:00 UTC; ";
    assert!(
        short.what.starts_with(words) && short.what.ends_with(". A warning follows after 600 s"),
        "{short:?}"
    );
    let long = busy(-780, 40).await;
    assert_eq!(long.status, Status::Warn, "{long:?}");
    assert!(long.what.starts_with("anthropic has refused calls of m1 since"), "{long:?}");
    assert!(long.fix.contains("`dalsegno job ls --waits-for provider`"), "{long:?}");
    // Its last wait has ended, and nothing has called it since.
    assert_eq!(busy(-1800, -1500).await.status, Status::Ok);
}

#[tokio::test]
async fn a_budget_that_is_used_up_is_named_beside_a_thousand_others() {
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    for statement in [
        "insert into dalsegno.campaigns (id, name) select gen_random_uuid(), 'Letter ' || n from generate_series(1, 1000) as n",
        "update dalsegno.campaign_budgets set limit_tokens = 10",
        "select dalsegno.change_budget('user', 'kim', 'UTC', '{\"tokens\": 10}', now())",
        "update dalsegno.budget_shares set spent_tokens = 10 where share = 0",
    ] {
        sqlx::query(statement).execute(&pool).await.unwrap();
    }
    let findings = examine(&database, &ManualClock::at(noon())).await;
    let found = findings.into_iter().find(|finding| finding.check == "budgets").unwrap();
    assert_eq!(found.what, "0 tasks wait for the budget of user `kim`");
}

#[tokio::test]
async fn another_cli_version_and_world_readable_credentials_are_warnings() {
    let setup = DoctorSetup::new().await;
    let program = setup.folder.path().join("claude");
    std::fs::write(&program, "#!/bin/sh\necho '3.0.1 (Claude Code)'\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let unset = "{ name = \"unset\", kind = \"api_key\", variable = \"NO_SUCH_KEY\" }";
    let gone = "{ name = \"gone\", kind = \"api_key\", file = \"/no/such/file\" }";
    let of = |name, mode| setup.credential(name, mode);
    let (open, grouped, closed) = (of("open", 0o644), of("grouped", 0o640), of("closed", 0o600));
    let credentials = format!("[{open}, {grouped}, {closed}, {unset}, {gone}]");
    let setup = setup
        .with("claude.program", &program.display().to_string())
        .with("claude.credentials", &credentials)
        .with("claude.cgroup", "/no/such/group");
    let findings = setup.findings().await;
    let expected = [
        ("claude", Status::Ok),
        ("claude version", Status::Warn),
        ("claude credential", Status::Warn),
        ("claude credential", Status::Warn),
        ("claude credential", Status::Ok),
        ("claude credential", Status::Warn),
        ("claude credential", Status::Fail),
        ("claude folder", Status::Ok),
        ("claude limits", Status::Fail),
        ("claude processes", Status::Ok),
        ("claude pause", Status::Ok),
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
async fn paused_or_readable_credentials_and_missing_prices_are_warnings() {
    let setup = DoctorSetup::new().await;
    let credential = setup.credential("main", 0o600).replace("api_key", "auth_token");
    let setup = setup.with("claude.credentials", &format!("[{credential}]"));
    let pool = setup.database.pool().await;
    let about = async |check: &str| {
        let found = Box::pin(setup.findings()).await;
        found.into_iter().find(|found| found.0 == check).map(|(_, status, words)| (status, words))
    };
    assert_eq!(about("claude exposed").await, None, "no worker runs that could check");
    assert_eq!(about("claude prices").await, None, "no budget is in money");
    assert_eq!(about("claude pause").await.unwrap().0, Status::Ok);

    let writer = setup.folder.path().join("agents/writer.md");
    let with_tools =
        std::fs::read_to_string(&writer).unwrap().replace("model: [sim, ", "tools: Bash\nmodel: [");
    std::fs::write(&writer, with_tools).unwrap();
    let limit = Limit { micros: Some(1), tokens: None };
    let new = campaigns::New { name: "Harbour", brief: "", client_context: None, limit };
    campaigns::create(&mut pool.acquire().await.unwrap(), &new, noon()).await.unwrap();
    let rest = "insert into dalsegno.paused_credentials (provider, credential, until, why)
                values ('claude', 'main', '2030-01-01', 'it is used up')";
    sqlx::query(rest).execute(&pool).await.unwrap();
    for (check, words) in [
        ("claude exposed", "commands of writer can read"),
        ("claude prices", "1 campaign has a budget in money, and models of writer no price"),
        ("claude pause", "main until 2030-01-01 00:00:00 UTC, with 0 sessions"),
    ] {
        let (status, told) = about(check).await.unwrap();
        assert!(status == Status::Warn && told.contains(words), "{check}: {told}");
    }
    let prices = "[{ provider = \"claude\", model = \"sonnet\", input = 1, output = 1 }]";
    let setup = setup.with("prices.models", prices);
    let found = setup.findings().await;
    assert!(
        found
            .iter()
            .any(|(check, status, _)| (check.as_str(), *status) == ("claude prices", Status::Ok))
    );
}

#[tokio::test]
async fn models_of_calls_without_a_price_are_named_with_the_entries_to_add() {
    let setup = DoctorSetup::new().await;
    let pool = setup.database.pool().await;
    let about = async |setup: &DoctorSetup, check: &str| {
        let (clock, stop) = (ManualClock::at(noon()), CancellationToken::new());
        let found = doctor::examine(&setup.environment(), &setup.flags(), &clock, &stop).await;
        found.into_iter().find(|found| found.check == check)
    };
    assert!(about(&setup, "unpriced calls").await.is_none());
    let call = "insert into dalsegno.usage (called_at, campaign_id, agent, model, provider, purpose, outcome, cost_micros, input_tokens)
                values ($1, gen_random_uuid(), 'writer', $2, $3, 'turn', 'done', 0, 5)";
    let call = async |provider: &str, model: &str| {
        sqlx::query(call).bind(noon()).bind(model).bind(provider).execute(&pool).await.unwrap();
    };
    call("sim", "sim-1").await;
    let found = about(&setup, "unpriced calls").await.unwrap();
    assert_eq!(found.status, Status::Ok, "the simulation is free: {found:?}");
    assert!(found.what.contains("sim-1 on sim count as 0, and nothing has to be set"), "{found:?}");
    call("west", "gpt-x").await;
    let found = about(&setup, "unpriced calls").await.unwrap();
    assert_eq!(found.status, Status::Warn, "{found:?}");
    let ending = ": gpt-x on west; free, with nothing to set: sim-1 on sim";
    assert!(found.what.ends_with(ending), "{found:?}");
    let entry = "{ provider = \"west\", model = \"gpt-x\", input = 3000000, output = 15000000 }";
    assert!(found.fix.contains(entry), "{found:?}");
    let setup = setup.with("prices.models", &format!("[{entry}]"));
    assert_eq!(about(&setup, "unpriced calls").await.unwrap().status, Status::Ok);
}

#[tokio::test]
async fn models_without_a_price_are_named_with_their_agents() {
    let setup = DoctorSetup::new().await;
    let prices = async |setup: &DoctorSetup| {
        let (clock, stop) = (ManualClock::at(noon()), CancellationToken::new());
        let found = doctor::examine(&setup.environment(), &setup.flags(), &clock, &stop).await;
        found.into_iter().find(|found| found.check == "prices").unwrap()
    };
    assert_eq!(prices(&setup).await.status, Status::Ok, "the simulation is free, Sonnet is listed");
    let agent = "---\nname: other\ndescription: d\nprovider: claude\nmodel: claude-haiku-5-5\nsummariser: opus\n---\nYou write.\n";
    std::fs::write(setup.folder.path().join("agents/other.md"), agent).unwrap();
    let found = prices(&setup).await;
    assert_eq!(found.status, Status::Warn);
    assert_eq!(found.what, "1 model has no price: claude-haiku-5-5 on claude (other)");
    assert!(found.fix.contains("prices.models"));
    // Published prices are in dollars.
    let setup = setup.with("prices.currency", "EUR");
    let found = prices(&setup).await;
    assert!(
        found.what.contains("3 models")
            && found.what.contains("claude-sonnet-5 on claude (writer)"),
        "{found:?}"
    );
    let price = |model: &str| {
        format!("{{ provider = \"claude\", model = \"{model}\", input = 1, output = 1 }}")
    };
    let all = ["haiku", "sonnet", "opus"].map(price).join(", ");
    let setup = setup.with("prices.models", &format!("[{all}]"));
    assert_eq!(prices(&setup).await.status, Status::Ok);
}

#[tokio::test]
async fn rate_limits_with_a_wrong_name_are_named_with_the_reason_and_the_next_step() {
    let setup = DoctorSetup::new().await;
    let found = async |setup: &DoctorSetup| {
        let (clock, stop) = (ManualClock::at(noon()), CancellationToken::new());
        let found = doctor::examine(&setup.environment(), &setup.flags(), &clock, &stop).await;
        found.into_iter().find(|finding| finding.check == "rate limits")
    };
    assert!(found(&setup).await.is_none(), "there are no rules");
    let rule = |names: &str| format!("[{{ {names}, requests_per_minute = 60 }}]");
    let setup = setup.with("providers.local.credential_variable", "LOCAL_KEY");
    let wrong = [
        ("provider = \"opnai\"", "entry 0 names the provider `opnai`, which is unknown"),
        ("model = \"gpt-9\"", "entry 0 names the model `gpt-9`, which no agent uses"),
        (
            "provider = \"local\", model = \"claude-sonnet-5\"",
            "entry 0 names the model `claude-sonnet-5` of local, which no agent uses",
        ),
        ("credential = \"NO_KEY\"", "entry 0 names the credential `NO_KEY`, which is unknown"),
    ];
    let examine = async |names: &str| {
        let rules = [("rate_limits.rules".to_owned(), rule(names))];
        let flags = Flags { file: None, set: [&setup.settings[..], &rules].concat() };
        let (clock, stop) = (ManualClock::at(noon()), CancellationToken::new());
        let found = doctor::examine(&setup.environment(), &flags, &clock, &stop).await;
        found.into_iter().find(|finding| finding.check == "rate limits").unwrap()
    };
    for (names, words) in wrong {
        let finding = examine(names).await;
        assert_eq!((finding.status, finding.what.as_ref()), (Status::Warn, words));
        assert!(
            finding.fix.contains("the providers are claude, local, ollama, sim"),
            "{finding:?}"
        );
    }
    let right = [
        "provider = \"claude\", model = \"claude-sonnet-5\"",
        "credential = \"LOCAL_KEY\"",
        "campaign = \"*\"",
    ];
    for names in right {
        assert_eq!(examine(names).await.status, Status::Ok, "{names}");
    }
}

#[tokio::test]
async fn a_model_of_a_chain_that_its_server_does_not_have_is_named() {
    let server = ScriptedServer::playing(&OpenAi, []).await;
    let setup = DoctorSetup::new().await;
    let file = "---\nname: writer\ndescription: d\nmodel: [local/qwen3:8b, local/qwen9]\n---\nYou write.\n";
    std::fs::write(setup.folder.path().join("agents/writer.md"), file).unwrap();
    let setup = setup.with("providers.local.base_url", &format!("{}/v1", server.base_url()));
    let (clock, stop) = (ManualClock::at(noon()), CancellationToken::new());
    let found = doctor::examine(&setup.environment(), &setup.flags(), &clock, &stop).await;
    let model = found.iter().filter(|finding| finding.check == "endpoint model");
    let wrong: Vec<_> = model.filter(|finding| finding.status == Status::Warn).collect();
    let [wrong] = wrong[..] else { panic!("{found:?}") };
    assert_eq!(wrong.what, "local does not list qwen9 (for writer)");
    assert!(wrong.fix.contains("correct `model` in the files"), "{wrong:?}");
}

#[tokio::test]
async fn a_test_call_is_made_on_each_credential_only_on_request() {
    let Some(cli) = Cli::real() else { return };
    let api = Api::start().await;
    let setup = DoctorSetup::new().await;
    let credentials =
        format!("[{}, {}]", setup.credential("good", 0o600), setup.credential("bad", 0o600));
    let setup = setup
        .with("claude.program", &cli.program().display().to_string())
        .with("claude.credentials", &credentials)
        .with("claude.base_url", &api.url())
        .with("claude.max_retries", "0");
    let findings = setup.findings().await;
    assert!(findings.iter().all(|(_, status, _)| *status == Status::Ok), "{findings:?}");
    assert!(findings[1].2.starts_with("2.1.197; tested with 2.1.197"), "{findings:?}");
    assert_eq!(api.requests().len(), 0, "a check without a request makes no call");

    let words = format!("invalid x-api-key {SECRET}");
    api.plays([
        Play::Says(vec!["ready".to_owned()], "end_turn"),
        Play::Fails(401, "", "authentication_error", words.leak()),
    ]);
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(noon()));
    let guard = env!("CARGO_BIN_EXE_dalsegno").into();
    let stop = CancellationToken::new();
    let found = doctor::smoke(&setup.environment(), &setup.flags(), &clock, guard, &stop).await;
    let findings = finding_lines(found);
    assert_eq!(statuses(&findings), [("claude call", Status::Ok), ("claude call", Status::Fail)]);
    assert!(findings[0].2.contains("good: claude-sonnet-5 answered \"ready\""), "{findings:?}");
    assert!(findings[1].2.contains("the API rejects the credential bad"), "{findings:?}");
    let left = std::fs::read_dir(setup.folder.path().join("data/claude")).unwrap().count();
    assert_eq!(left, 0, "the calls leave no session");
}

#[tokio::test]
async fn invalid_node_and_flow_template_files_are_reported() {
    let setup = DoctorSetup::new().await;
    let folders = ["nodes", "flows"].map(|name| setup.folder.path().join(name));
    folders.iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
    let [nodes, flows] = folders.each_ref().map(|folder| folder.display().to_string());
    let setup = setup.with("agents.nodes_folder", &nodes).with("flows.folder", &flows);
    let about = async |check: &str| {
        let (clock, stop) = (ManualClock::at(noon()), CancellationToken::new());
        let found = doctor::examine(&setup.environment(), &setup.flags(), &clock, &stop).await;
        let found = found.into_iter().find(|found| found.check == check).unwrap();
        (found.status, format!("{} {}", found.what, found.fix))
    };
    let node = "---\nname: draft\ndescription: d\n---\nThe contract.\n";
    std::fs::write(folders[0].join("draft.md"), node).unwrap();
    let flow = "---\nname: one\ndescription: d\nsteps:\n  - step: a\n    agent: writer\n---\n## a\n\nGo.\n";
    std::fs::write(folders[1].join("one.md"), flow).unwrap();
    let (status, words) = about("agents").await;
    assert!(status == Status::Ok && words.contains("1 node in "), "{words}");
    let (status, words) = about("flow templates").await;
    assert!(status == Status::Ok && words.contains(&format!("1 template, in {flows}")), "{words}");

    std::fs::write(folders[1].join("one.md"), flow.replace("writer", "wrter")).unwrap();
    let (status, words) = about("flow templates").await;
    assert!(status == Status::Fail && words.contains("wrter"), "{words}");
    assert!(words.contains("dalsegno flow check"), "{words}");
    std::fs::write(folders[0].join("draft.md"), node.replace("name: draft", "name: other"))
        .unwrap();
    let (status, words) = about("agents").await;
    assert!(status == Status::Fail && words.contains("draft.md"), "{words}");
    // The templates are checked anyway.
    let (status, words) = about("flow templates").await;
    assert!(status == Status::Fail && words.contains("wrter"), "{words}");
}

#[tokio::test]
async fn agents_that_can_call_this_machines_open_api_are_named() {
    let setup = DoctorSetup::new().await;
    let agents = setup.folder.path().join("agents");
    let found = async |setup: &DoctorSetup| {
        let (clock, stop) = (ManualClock::at(noon()), CancellationToken::new());
        let found = doctor::examine(&setup.environment(), &setup.flags(), &clock, &stop).await;
        found.into_iter().find(|found| found.check == "keys")
    };
    let write = |tools: &str| {
        let file = format!(
            "---\nname: writer\ndescription: d\nprovider: claude\nmodel: sonnet\n{tools}\n---\nYou write.\n"
        );
        std::fs::write(agents.join("writer.md"), file).unwrap();
    };
    write("tools: Read, mcp__dalsegno");
    assert_eq!(found(&setup).await, None);
    let programs = "mcpServers: { sums: { command: sums } }";
    for tools in ["tools: Bash(ls:*), Read", "tools: WebFetch", programs] {
        write(tools);
        let finding = found(&setup).await.unwrap();
        assert!(finding.status == Status::Warn && finding.what.contains("writer"), "{finding:?}");
        assert!(finding.fix.contains("http.require_key"), "{finding:?}");
    }
    let setup = setup.with("http.require_key", "true");
    assert_eq!(found(&setup).await.unwrap().status, Status::Ok);
}

#[tokio::test]
async fn ollama_is_checked_for_models_windows_and_tools() {
    let setup = DoctorSetup::new().await;
    let server = FakeOllama::start().await;
    let found = async |setup: &DoctorSetup| -> Vec<(Status, String)> {
        let (clock, stop) = (ManualClock::at(noon()), CancellationToken::new());
        let found = doctor::examine(&setup.environment(), &setup.flags(), &clock, &stop).await;
        let about = found.into_iter().filter(|finding| finding.check.starts_with("ollama"));
        about.map(|it| (it.status, format!("{} {}", it.what, it.fix))).collect()
    };
    let agent = setup.folder.path().join("agents/writer.md");
    let write = |keys: &str| {
        let file =
            format!("---\nname: writer\ndescription: d\nprovider: ollama\n{keys}---\nYou write.\n");
        std::fs::write(&agent, file).unwrap();
    };
    assert_eq!(found(&setup).await, [], "no agent runs there");
    write("model: qwen3:8b\ntools: mcp__dalsegno\n");
    let setup = setup.with("ollama.base_url", &format!("http://{}", server.addr));
    let shows = |value: Value| *server.state.shown.lock().unwrap() = value;
    let fine = found(&setup).await;
    assert_eq!(
        fine.iter().map(|it| it.0).collect::<Vec<_>>(),
        [Status::Ok, Status::Ok],
        "{fine:?}"
    );
    assert!(fine[0].1.contains("version ") && fine[1].1.contains("qwen3:8b, window "), "{fine:?}");

    write("model: qwen3:8b\nwindow_tokens: 9000000\n");
    let wide = found(&setup).await;
    assert!(wide[1].0 == Status::Warn && wide[1].1.contains("writer needs a window"), "{wide:?}");
    write("model: qwen3:8b\ntools: mcp__dalsegno\n");
    shows(json!({ "capabilities": ["completion"], "model_info": {} }));
    let mute = found(&setup).await;
    assert!(mute[1].0 == Status::Fail && mute[1].1.contains("cannot call tools"), "{mute:?}");
    shows(json!({ "model_info": { "general.architecture": "x", "x.context_length": 2048 } }));
    let narrow = found(&setup).await;
    assert!(narrow[1].0 == Status::Warn && narrow[1].1.contains("calls get 2048"), "{narrow:?}");
    write("model: missing:8b\n");
    shows(json!({ "error": "model 'missing:8b' not found" }));
    let missing = found(&setup).await;
    assert!(
        missing[1].0 == Status::Fail && missing[1].1.contains("ollama pull missing:8b"),
        "{missing:?}"
    );

    let setup = setup.with("ollama.base_url", "http://127.0.0.1:9");
    let down = found(&setup).await;
    assert_eq!(down.iter().map(|it| it.0).collect::<Vec<_>>(), [Status::Fail, Status::Skipped]);
    assert!(down[0].1.contains("cannot connect"), "{down:?}");
}

#[tokio::test]
async fn an_endpoint_on_the_messages_api_is_checked_too() {
    let server = ScriptedServer::playing(&Anthropic, []).await;
    let setup = DoctorSetup::new().await;
    let file = "---\nname: writer\ndescription: d\nprovider: anthropic\nmodel: qwen3:8b\n---\nYou write.\n";
    std::fs::write(setup.folder.path().join("agents/writer.md"), file).unwrap();
    let found = async |setup: &DoctorSetup| -> Vec<(Status, String)> {
        let (clock, stop) = (ManualClock::at(noon()), CancellationToken::new());
        let found = doctor::examine(&setup.environment(), &setup.flags(), &clock, &stop).await;
        let about = found.into_iter().filter(|finding| finding.check.starts_with("endpoint"));
        about.map(|it| (it.status, format!("{} {}", it.what, it.fix))).collect()
    };
    let base_url = format!("{}/v1", server.base_url());
    let setup = setup.with("providers.anthropic.kind", "anthropic");
    let setup = setup.with("providers.anthropic.base_url", &base_url);
    let fine = found(&setup).await;
    assert_eq!(fine.iter().map(|it| it.0).collect::<Vec<_>>(), [Status::Ok; 2], "{fine:?}");
    // The model has a larger window, which costs more.
    assert!(fine[1].1.contains("qwen3:8b of anthropic, window 200000"), "{fine:?}");
    server.lack("GET /v1/models?limit=1000");
    let no_list = found(&setup).await;
    assert!(no_list[0].0 == Status::Warn && no_list[0].1.contains("base_url"), "{no_list:?}");
}

#[tokio::test]
async fn each_endpoint_is_checked_for_its_key_and_its_models() {
    let server = ScriptedServer::playing(&OpenAi, []).await;
    let setup = DoctorSetup::new().await;
    let found = async |setup: &DoctorSetup| -> Vec<(Status, String)> {
        let (clock, stop) = (ManualClock::at(noon()), CancellationToken::new());
        let found = doctor::examine(&setup.environment(), &setup.flags(), &clock, &stop).await;
        let about = found.into_iter().filter(|finding| finding.check.starts_with("endpoint"));
        about.map(|it| (it.status, format!("{} {}", it.what, it.fix))).collect()
    };
    let agent = setup.folder.path().join("agents/writer.md");
    let write = |keys: &str| {
        let file =
            format!("---\nname: writer\ndescription: d\nprovider: local\n{keys}---\nYou write.\n");
        std::fs::write(&agent, file).unwrap();
    };
    assert_eq!(found(&setup).await, [], "no endpoint is configured");
    write("model: qwen3:8b\ntools: mcp__dalsegno\n");
    let base_url = format!("{}/v1", server.base_url());
    let setup = setup.with("providers.local.base_url", &base_url);
    let fine = found(&setup).await;
    assert_eq!(fine.iter().map(|it| it.0).collect::<Vec<_>>(), [Status::Ok; 2], "{fine:?}");
    assert!(fine[1].1.contains("qwen3:8b of local, window 4096"), "{fine:?}");
    write("model: qwen3:8b\nwindow_tokens: 9000000\n");
    let wide = found(&setup).await;
    assert!(wide[1].0 == Status::Warn && wide[1].1.contains("writer needs a window"), "{wide:?}");
    write("model: other\n");
    let missing = found(&setup).await;
    assert!(
        missing[1].0 == Status::Warn && missing[1].1.contains("does not list other"),
        "{missing:?}"
    );

    let wrong = setup.with("providers.local.base_url", &server.base_url());
    let no_list = found(&wrong).await;
    assert!(no_list[0].0 == Status::Warn && no_list[0].1.contains("base_url"), "{no_list:?}");
    let down = wrong.with("providers.local.base_url", "http://127.0.0.1:9");
    let unreached = found(&down).await;
    let states: Vec<_> = unreached.iter().map(|it| it.0).collect();
    assert_eq!(states, [Status::Fail, Status::Skipped]);
    let keyless = down.with("providers.local.credential_variable", "NO_SUCH_VARIABLE");
    let no_key = found(&keyless).await;
    assert!(no_key[0].1.contains("NO_SUCH_VARIABLE"), "{no_key:?}");
}
