//! The binaries as people and supervisors use them: start, probes, signals, exit codes, leftovers.

use std::{path::Path, process::Output};

use dalsegno::{
    cli::{Exit, Failure},
    db::{self, embedded},
    queue,
};
use rustix::process::Signal;
use serde_json::Value;
use sqlx::{
    ConnectOptions as _, Connection as _, PgConnection, PgPool, postgres::PgConnectOptions,
};

use crate::{
    app::{SOON, TestDatabase, eventually, execute, get},
    cluster::scratch_folder,
    embedded::support::send,
    service::{SERVE, Service, ServiceRole, dalsegno, servers_below},
};

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

async fn run(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = dalsegno(folder);
    command.args(arguments).envs(environment.iter().copied());
    tokio::time::timeout(SOON, command.output()).await.unwrap().unwrap()
}

fn finding<'a>(findings: &'a Value, check: &str) -> &'a Value {
    findings.as_array().unwrap().iter().find(|finding| finding["check"] == check).unwrap()
}

/// Creates a private cluster whose migration history stays locked, also after restarts.
async fn create_locked_cluster(folder: &Path) -> embedded::Config {
    let config = embedded::Config { data_dir: folder.join(".dalsegno"), ..Default::default() };
    let postgres = embedded::start(&config).await.unwrap();
    let pool = PgPool::connect_with(postgres.connect_options()).await.unwrap();
    db::migrate(&pool).await.unwrap();
    pool.close().await;
    let allow = "alter system set max_prepared_transactions = 1";
    execute(&postgres.connect_options(), allow).await;
    postgres.stop().await.unwrap();
    let postgres = embedded::start(&config).await.unwrap();
    let stick = "begin; lock table dalsegno.migrations, dalsegno.jobs; prepare transaction 'stuck'";
    execute(&postgres.connect_options(), stick).await;
    postgres.stop().await.unwrap();
    config
}

/// Locks the migration history as long as the connection lives.
async fn lock_history(database: &TestDatabase) -> PgConnection {
    let mut lock = PgConnection::connect_with(&database.options).await.unwrap();
    sqlx::raw_sql("begin; lock table dalsegno.migrations").execute(&mut lock).await.unwrap();
    lock
}

async fn wait_for_the_lock(pool: &PgPool) {
    let waiting = "select count(*) from pg_locks where not granted and database =
                   (select oid from pg_database where datname = current_database())";
    eventually("a process waits for the lock", async || {
        let n_waiting: i64 = sqlx::query_scalar(waiting).fetch_one(pool).await.unwrap();
        (n_waiting > 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn ctrl_c_ends_the_service_and_its_postgres() {
    let folder = scratch_folder();
    let mut service = Service::start(folder.path(), &[]).await;
    service.ready().await;
    assert!(service.words.contains(".dalsegno"), "{}", service.words);
    assert_eq!(servers_below(folder.path()).len(), 1);
    service.signal("INT");
    assert_eq!(service.exit_code().await, 0);
    assert_eq!(servers_below(folder.path()), Vec::<u32>::new());
    assert!(service.log().contains("stopped"), "the last line of the log is missing");
}

#[tokio::test]
async fn a_signal_ends_every_command_and_its_postgres() {
    let folder = scratch_folder();
    let config = create_locked_cluster(folder.path()).await;
    for arguments in [["migrate", "status"], ["doctor", "--json"], ["queue", "ls"]] {
        let mut command = Service::begin(folder.path(), &arguments, &[]);
        let attach = async || embedded::attach(&config).await.unwrap();
        let postgres = eventually("the command has its Postgres", attach).await;
        let pool = PgPool::connect_with(postgres.connect_options()).await.unwrap();
        wait_for_the_lock(&pool).await;
        drop(pool);
        command.signal("INT");
        assert_eq!(command.exit_code().await, 130, "{arguments:?}: {}", command.log());
        assert_eq!(servers_below(folder.path()), Vec::<u32>::new(), "{arguments:?}");
    }
}

#[tokio::test]
async fn a_signal_ends_a_start_that_waits_for_the_schema() {
    let folder = scratch_folder();
    let database = TestDatabase::migrated().await;
    let _lock = lock_history(&database).await;
    let mut service = Service::begin(folder.path(), &SERVE, &[("DATABASE_URL", &database.url())]);
    wait_for_the_lock(&database.pool().await).await;
    service.signal("INT");
    assert_eq!(service.exit_code().await, 0, "{}", service.log());
}

#[tokio::test]
async fn a_third_signal_ends_a_start_that_waits_for_a_frozen_server() {
    let folder = scratch_folder();
    let mut first = Service::start(folder.path(), &[]).await;
    first.signal("KILL");
    first.ended().await;
    let server = servers_below(folder.path())[0];
    send(server, Signal::STOP);
    let mut second = Service::begin(folder.path(), &SERVE, &[]);
    let waiting = async || second.log().contains("restarting a private").then_some(());
    eventually("the start tries to replace the server", waiting).await;
    // Signals of one kind in quick succession are merged into one.
    for n_sent in 1..=3 {
        second.signal("INT");
        let seen = async || (second.log().matches("SIGINT").count() == n_sent).then_some(());
        eventually("the signal is logged", seen).await;
    }
    assert_eq!(second.exit_code().await, 130, "{}", second.log());
    send(server, Signal::CONT);
    send(server, Signal::QUIT);
}

#[tokio::test]
async fn a_stuck_connection_does_not_delay_the_stop() {
    let folder = scratch_folder();
    let database = TestDatabase::migrated().await;
    let mut service = Service::start(folder.path(), &[("DATABASE_URL", &database.url())]).await;
    let _lock = lock_history(&database).await;
    assert_eq!(get(service.address, "/readyz").await.unwrap().status, 503);
    service.signal("TERM");
    assert_eq!(service.exit_code().await, 0, "{}", service.log());
    assert!(service.log().contains("did not close in time"), "{}", service.log());
}

#[tokio::test]
async fn concurrent_commands_wait_for_the_folder() {
    let folder = scratch_folder();
    let up = run(folder.path(), &["migrate", "up"], &[]).await;
    assert_eq!(up.status.code(), Some(0), "{}", stderr(&up));
    let status = async || run(folder.path(), &["migrate", "status"], &[]).await;
    let all = tokio::join!(status(), status(), status(), status());
    for output in [all.0, all.1, all.2, all.3] {
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
}

#[tokio::test]
async fn a_service_waits_for_a_running_command_and_then_starts() {
    let folder = scratch_folder();
    create_locked_cluster(folder.path()).await;
    let mut command = Service::begin(folder.path(), &["migrate", "status"], &[]);
    let started = async || command.log().contains("Postgres started").then_some(());
    eventually("the command has its Postgres", started).await;
    let mut service = Service::begin(folder.path(), &SERVE, &[]);
    let words = format!("another command (pid {})", command.pid());
    let waiting = async || service.log().contains(&words).then_some(());
    eventually("the service reports the process it waits for", waiting).await;
    command.signal("INT");
    assert_eq!(command.exit_code().await, 130);
    let started = async || service.log().contains("Postgres started").then_some(());
    eventually("the service has its Postgres", started).await;
    service.signal("INT");
    assert_eq!(service.exit_code().await, 0, "{}", service.log());
}

#[tokio::test]
async fn read_commands_create_no_database() {
    let folder = scratch_folder();
    for arguments in [["migrate", "status"], ["queue", "ls"], ["job", "ls"], ["lane", "ls"]] {
        let output = run(folder.path(), &arguments, &[]).await;
        assert_eq!(output.status.code(), Some(7), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("dalsegno serve"), "{}", stderr(&output));
    }
    assert!(!folder.path().join(".dalsegno").exists());
}

#[tokio::test]
async fn the_probes_answer_while_the_service_waits_for_its_database() {
    let folder = scratch_folder();
    let nowhere = [("DATABASE_URL", "postgres://tester@127.0.0.1:1/none")];
    let mut service = Service::begin(folder.path(), &SERVE, &nowhere);
    service.listening().await;
    assert_eq!(get(service.address, "/livez").await.unwrap().status, 200);
    let ready = get(service.address, "/readyz").await.unwrap();
    assert_eq!((ready.status, ready.body.contains(r#""code":"starting""#)), (503, true));
    assert_eq!(get(service.address, "/metrics").await.unwrap().status, 200);
    service.signal("TERM");
    assert_eq!(service.exit_code().await, 0, "{}", service.log());
}

#[tokio::test]
async fn a_command_gives_up_soon_and_explains_an_unreachable_database_once() {
    let folder = scratch_folder();
    let nowhere = [("DATABASE_URL", "postgres://tester:hunter2@127.0.0.1:1/none")];
    let output = run(folder.path(), &["queue", "ls"], &nowhere).await;
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(7), "{said}");
    let what = "error: cannot reach the database 127.0.0.1:1/none (from the environment variable DATABASE_URL): tried for 5 s\n";
    assert!(said.starts_with(what), "nothing is logged before the error: {said}");
    assert!(said.contains("\n  because: Connection refused"), "{said}");
    assert!(said.contains("\n  next: start the database server, or correct the address"), "{said}");
    assert_eq!(said.matches("refused").count(), 1, "{said}");
    assert!(!said.contains("hunter2"), "{said}");

    let output = run(folder.path(), &["queue", "ls", "--json"], &nowhere).await;
    let said = stderr(&output);
    assert_eq!(said.matches("refused").count(), 1, "{said}");
}

#[tokio::test]
async fn a_service_that_does_not_migrate_becomes_ready_once_another_process_has() {
    let folder = scratch_folder();
    let database = TestDatabase::empty().await;
    let url = database.url();
    let environment =
        [("DATABASE_URL", url.as_str()), ("DALSEGNO_DATABASE__MIGRATE_ON_START", "false")];
    let mut service = Service::begin(folder.path(), &SERVE, &environment);
    let waiting = async || service.log().contains("waiting for the schema").then_some(());
    eventually("the service reports what it waits for", waiting).await;
    service.listening().await;
    assert_eq!(get(service.address, "/readyz").await.unwrap().status, 503);
    assert!(!service.log().contains(r#""message":"ready""#), "{}", service.log());
    assert_eq!(run(folder.path(), &["migrate", "up"], &environment).await.status.code(), Some(0));
    service.ready().await;
}

#[tokio::test]
async fn an_external_server_is_used_and_migrated() {
    let folder = scratch_folder();
    let database = TestDatabase::empty().await;
    let mut service = Service::start(folder.path(), &[("DATABASE_URL", &database.url())]).await;
    service.ready().await;
    assert!(!folder.path().join(".dalsegno").exists());
    assert!(!service.words.contains(".dalsegno"), "{}", service.words);
    service.signal("TERM");
    assert_eq!(service.exit_code().await, 0);
}

#[tokio::test]
async fn a_second_signal_stops_at_once() {
    let folder = scratch_folder();
    let database = TestDatabase::migrated().await;
    let mut service = Service::start(folder.path(), &[("DATABASE_URL", &database.url())]).await;
    // A request that never ends keeps the drain (1800 s) busy.
    let mut stuck = tokio::net::TcpStream::connect(service.address).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stuck, b"GET /livez HTTP/1.1\r\nHost:").await.unwrap();
    service.signal("TERM");
    let refused = async || get(service.address, "/livez").await.is_err().then_some(());
    eventually("the listener closes", refused).await;
    service.signal("TERM");
    assert_eq!(service.exit_code().await, 0);
}

#[tokio::test]
async fn a_second_service_on_the_folder_is_refused() {
    let folder = scratch_folder();
    let service = Service::start(folder.path(), &[]).await;
    let second = run(folder.path(), &["serve", "--set", "http.listen=127.0.0.1:0"], &[]).await;
    assert_eq!(second.status.code(), Some(5), "{}", stderr(&second));
    assert!(stderr(&second).contains(&service.pid().to_string()), "{}", stderr(&second));
}

#[tokio::test]
async fn a_port_in_use_is_a_conflict_with_the_next_step() {
    let folder = scratch_folder();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("http.listen={}", taken.local_addr().unwrap());
    let output = run(folder.path(), &["--set", &listen, "--json"], &[]).await;
    assert_eq!(output.status.code(), Some(5));
    let error: Value = serde_json::from_str(stderr(&output).lines().last().unwrap()).unwrap();
    assert_eq!(error["code"], "conflict");
    assert!(error["error"].as_str().unwrap().contains("--set http.listen"));
}

#[tokio::test]
async fn an_address_of_another_machine_is_not_a_conflict() {
    let folder = scratch_folder();
    let elsewhere =
        ["--set", "http.listen=192.0.2.1:80", "--set", "http.allow_unauthenticated=true"];
    let output = run(folder.path(), &elsewhere, &[]).await;
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("of this machine"), "{}", stderr(&output));
}

#[tokio::test]
async fn a_role_without_rights_is_reported_with_the_missing_grants() {
    let folder = scratch_folder();
    let database = TestDatabase::empty().await;
    let role = format!("role_{}", uuid::Uuid::new_v4().simple());
    let create = format!("create role {role} login password 'x'");
    execute(&database.options, &create).await;
    let options = database.options.clone().username(&role).password("x");
    let url = options.to_url_lossy().to_string();
    let output = run(folder.path(), &["migrate", "up"], &[("DATABASE_URL", &url)]).await;
    execute(&database.options, &format!("drop role {role}")).await;
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("grant create on database"), "{}", stderr(&output));
}

#[tokio::test]
async fn a_role_with_the_documented_rights_runs_a_service() {
    let folder = scratch_folder();
    let database = TestDatabase::migrated().await;
    let role = ServiceRole::of(&database.options).await;
    let options = role.options.clone();
    let url = options.to_url_lossy().to_string();
    let environment = [("DATABASE_URL", &*url), ("DALSEGNO_DATABASE__MIGRATE_ON_START", "false")];
    let mut service = Service::start(folder.path(), &environment).await;
    let said = async |arguments: &[&str]| {
        let output = run(folder.path(), arguments, &environment).await;
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let campaign = said(&["--json", "campaign", "create", "Harbour"]).await;
    let add = ["--json", "task", "add", "--wait", "--agent", "copywriter", "Hello.", "--campaign"];
    let task = said(&[&add[..], &[campaign["id"].as_str().unwrap()]].concat()).await;
    assert_eq!(task["state"], "done", "{task}");
    let cleanup = said(&["--json", "cleanup"]).await;
    let done = async || {
        let runs = said(&["--json", "cleanup", "runs"]).await;
        runs.to_string().contains("\"done\"").then_some(())
    };
    eventually("the cleanup is done", done).await;
    assert!(!cleanup.is_null());
    let owner = database.pool().await;
    removes_only_what_it_may(&owner, &options, campaign["id"].as_str().unwrap()).await;
    let erase = ["--json", "campaign", "erase", campaign["id"].as_str().unwrap()];
    said(&[&erase[..], &["--yes"]].concat()).await;
    let signed = async || {
        let receipt = said(&erase).await;
        receipt["signed"].is_object().then_some(receipt)
    };
    let receipt = eventually("the erasure is done", signed).await;
    assert!(receipt["ended_at"].is_string() && receipt["vacuumed_at"].is_null(), "{receipt}");
    let mut conn = PgConnection::connect_with(&options).await.unwrap();
    for forged in [
        "update dalsegno.erasures set campaign_id = gen_random_uuid()",
        "update dalsegno.erasures set contents = '{}'",
        "update dalsegno.erasures set ended_at = null",
    ] {
        let refused = sqlx::query(forged).execute(&mut conn).await.expect_err(forged);
        assert_eq!(refused.as_database_error().unwrap().code().unwrap(), "DS405", "{forged}");
    }
    let id = campaign["id"].as_str().unwrap();
    erases_only_lines_of_its_campaign(&owner, &mut conn, id).await;
    let vacuum = run(folder.path(), &["erasure", "vacuum"], &environment).await;
    assert_eq!(vacuum.status.code(), Some(4), "{}", stderr(&vacuum));
    assert!(stderr(&vacuum).contains("connect as their owner"), "{}", stderr(&vacuum));
    let doctor = run(folder.path(), &["doctor", "--json"], &environment).await;
    let findings: Value = serde_json::from_str(&stdout(&doctor)).unwrap();
    assert_eq!(finding(&findings, "rights")["status"], "ok", "{findings:#}");
    let left =
        "select (select count(*) from dalsegno.messages), (select count(*) from dalsegno.usage)";
    let left: (i64, i64) = sqlx::query_as(left).fetch_one(&owner).await.unwrap();
    assert_eq!(left, (0, 1), "messages are removed and costs stay");
    service.signal("TERM");
    assert_eq!(service.exit_code().await, 0, "{}", service.log());
    role.drop().await;
}

/// Checks statements and calls by which the service's role would remove or change protected rows, and the calls that
/// may remove rows.
async fn removes_only_what_it_may(owner: &PgPool, role: &PgConnectOptions, campaign: &str) {
    let append_only = "select c.relname::text, c.last::text from pg_trigger as t
                         join (select oid, relname, (select attname from pg_attribute where attrelid = c.oid order by attnum desc limit 1) as last
                                 from pg_class as c) as c on c.oid = t.tgrelid
                        where t.tgfoid = 'dalsegno.refuse_change'::regproc order by 1";
    let append_only: Vec<(String, String)> =
        sqlx::query_as(append_only).fetch_all(owner).await.unwrap();
    assert!(append_only.len() >= 8, "{append_only:?}");
    let tables = append_only.iter().flat_map(|(table, column)| {
        [
            format!("delete from dalsegno.{table}"),
            format!("update dalsegno.{table} set {column} = {column}"),
            format!("truncate dalsegno.{table}"),
            format!("drop table dalsegno.{table}"),
            format!("alter table dalsegno.{table} disable trigger all"),
        ]
    });
    let others = [
        "delete from dalsegno.tasks",
        "delete from dalsegno.campaigns",
        "delete from dalsegno.campaign_spending",
        "delete from dalsegno.erasures",
        "delete from dalsegno.cleanup_runs",
        "update dalsegno.installation set audit_min_days = 1",
        "delete from dalsegno.migrations",
        "create or replace function dalsegno.refuse_change() returns trigger language sql as 'select 1'",
    ];
    let line = "insert into dalsegno.audit (at, actor_kind, actor, action, subject_kind, subject, data)
                select now() - n * interval '1 day', 'cli', 'ann', 'key.create', 'key', 'ci', '{\"a\": 1}' from unnest(array[10, 400]) as n";
    sqlx::query(line).execute(owner).await.unwrap();
    let mut conn = PgConnection::connect_with(role).await.unwrap();
    let announce = "select set_config('dalsegno.erasing', 'on', false)";
    sqlx::query(announce).execute(&mut conn).await.unwrap();
    for statement in tables.chain(others.map(str::to_owned)) {
        let refused = sqlx::raw_sql(sqlx::AssertSqlSafe(&*statement)).execute(&mut conn).await;
        let refused = refused.expect_err(&statement);
        assert_eq!(refused.as_database_error().unwrap().code().unwrap(), "42501", "{statement}");
    }
    for call in [
        "remove_transcripts(array(select id from dalsegno.sessions))".to_owned(),
        format!("remove_posts('{campaign}', 10)"),
        format!("remove_events('{campaign}', 10)"),
        format!("remove_blackboard_changes('{campaign}', 10)"),
        format!("remove_memory('{campaign}', 10)"),
        format!("erase_audit('{campaign}', array['{campaign}', 'ci'])"),
        format!("erase_audit_of_tools('{campaign}', 0, 10)"),
    ] {
        let call = format!("select * from dalsegno.{call}");
        let refused = sqlx::raw_sql(sqlx::AssertSqlSafe(&*call)).execute(&mut conn).await;
        let refused = refused.expect_err(&call);
        assert_eq!(refused.as_database_error().unwrap().code().unwrap(), "DS405", "{call}");
    }
    let removed = async |conn: &mut PgConnection, call: &'static str| {
        sqlx::query_scalar::<_, i64>(call).fetch_one(conn).await.unwrap()
    };
    let all = "select dalsegno.remove_old_events('infinity', 1000000)";
    assert_eq!(removed(&mut conn, all).await, 0, "events of today stay");
    let all = "select dalsegno.remove_old_audit('infinity', 1000000)";
    assert_eq!(removed(&mut conn, all).await, 1, "the line older than a year is removed");
    sqlx::query("update dalsegno.installation set audit_min_days = 5")
        .execute(owner)
        .await
        .unwrap();
    assert_eq!(removed(&mut conn, all).await, 1, "the line of ten days ago stays");
    // Without the grants, the functions cannot be called.
    let stranger = format!("stranger_{}", uuid::Uuid::new_v4().simple());
    let create = format!(
        "create role {stranger} login password 'x'; grant usage on schema dalsegno to {stranger};"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(create)).execute(owner).await.unwrap();
    let mut conn = PgConnection::connect_with(&role.clone().username(&stranger)).await.unwrap();
    let refused = sqlx::query(all).execute(&mut conn).await.unwrap_err();
    assert_eq!(refused.as_database_error().unwrap().code().unwrap(), "42501");
    let drop = format!("drop owned by {stranger}; drop role {stranger}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(drop)).execute(owner).await.unwrap();
}

async fn erases_only_lines_of_its_campaign(owner: &PgPool, role: &mut PgConnection, id: &str) {
    let line =
        "insert into dalsegno.audit (at, actor_kind, actor, action, subject_kind, subject, data)
                values (now(), 'cli', 'ann', $1 || '.test', $1, $2, '{\"a\": 1}')";
    let session = "select session_id::text from dalsegno.erased_sessions";
    let session: String = sqlx::query_scalar(session).fetch_one(owner).await.unwrap();
    let other = uuid::Uuid::new_v4().to_string();
    let own = [
        ("session", session.clone()),
        ("lane", format!("compact/{session}")),
        ("lane", format!("{id}/copywriter/main")),
        ("agent", id.to_owned()),
    ];
    let others = [
        ("session", other.clone()),
        ("lane", format!("{other}/copywriter/main")),
        ("flow", other.clone()),
        ("fact", other.clone()),
        ("bulk_action", other),
        ("agent", "copywriter".to_owned()),
        ("user", "ann".to_owned()),
        ("key", "a key".to_owned()),
    ];
    for (kind, subject) in own.iter().chain(&others) {
        sqlx::query(line).bind(kind).bind(subject).execute(owner).await.unwrap();
    }
    for (lines, n) in [(&others[..], 0), (&own[..], own.len() as i64)] {
        let subjects: Vec<_> = lines.iter().map(|(_, subject)| subject.as_str()).collect();
        let erase = sqlx::query_scalar("select dalsegno.erase_audit($1::uuid, $2)");
        let erased: i64 = erase.bind(id).bind(subjects).fetch_one(&mut *role).await.unwrap();
        assert_eq!(erased, n, "{lines:?}");
    }
}

#[tokio::test]
async fn a_violated_constraint_has_a_message() {
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    let bad = sqlx::query("select repeat('x', 201)::dalsegno.name").execute(&pool).await;
    let error = queue::Error::Database { action: "name it", source: bad.unwrap_err() };
    let failure = Failure::from(error);
    assert_eq!(failure.exit, Exit::Usage);
    assert!(failure.error.to_string().contains("1 to 200 characters"), "{:?}", failure.error);
}

/// Returns the stderr of a command on a terminal.
async fn on_a_terminal(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let folder = scratch_folder();
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let inside = std::fs::File::options().read(true).write(true).open(name).unwrap();
    let mut command = dalsegno(folder.path());
    command.args(arguments).envs(environment.iter().copied()).stderr(inside);
    tokio::time::timeout(SOON, command.status()).await.unwrap().unwrap();
    drop(command);
    let mut shown = Vec::new();
    // Ends with an error when the last process has closed the terminal.
    let _ = std::io::Read::read_to_end(&mut std::fs::File::from(terminal), &mut shown);
    String::from_utf8(shown).unwrap()
}

#[tokio::test]
async fn no_color_removes_the_colours_of_the_log() {
    let coloured = on_a_terminal(&["migrate", "up"], &[]).await;
    assert!(coloured.contains("Postgres started") && coloured.contains('\x1b'), "{coloured:?}");
    let plain = on_a_terminal(&["migrate", "up"], &[("NO_COLOR", "1")]).await;
    assert!(plain.contains("Postgres started") && !plain.contains('\x1b'), "{plain:?}");
}

#[tokio::test]
async fn doctor_distinguishes_a_refused_connection_from_a_stopped_server() {
    let folder = scratch_folder();
    let database = TestDatabase::empty().await;
    let options = database.options.clone().password("guessed");
    let url = options.to_url_lossy().to_string();
    let output = run(folder.path(), &["doctor", "--json"], &[("DATABASE_URL", &url)]).await;
    let findings: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let fix = finding(&findings, "database")["fix"].as_str().unwrap();
    assert!(fix.contains("the password"), "{findings:#}");
    for check in ["version", "migrations", "clock", "connections"] {
        assert_eq!(finding(&findings, check)["status"], "skipped", "{findings:#}");
    }
    let wrong = ["doctor", "--json", "--set", "database.embedded.bin_dir=/no/such/folder"];
    let output = run(folder.path(), &wrong, &[]).await;
    let findings: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let fix = finding(&findings, "binaries")["fix"].as_str().unwrap();
    assert!(fix.contains("bin_dir"), "{findings:#}");
}

#[tokio::test]
async fn doctor_passes_on_a_running_service() {
    let folder = scratch_folder();
    let _service = Service::start(folder.path(), &[]).await;
    let output = run(folder.path(), &["doctor", "--json"], &[]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let findings: Value = serde_json::from_str(&stdout(&output)).unwrap();
    for check in ["config", "binaries", "database", "version", "migrations", "clock", "connections"]
    {
        assert_eq!(finding(&findings, check)["status"], "ok", "{findings:#}");
    }
}

#[tokio::test]
async fn doctor_passes_before_the_first_run() {
    let folder = scratch_folder();
    let output = run(folder.path(), &["doctor"], &[]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(!folder.path().join(".dalsegno").exists(), "doctor creates nothing");
}

#[tokio::test]
async fn doctor_says_that_it_does_not_check_the_server_of_other_commands() {
    let folder = scratch_folder();
    let server = [("DALSEGNO_URL", "https://dalsegno.example.com")];
    let checked = stdout(&run(folder.path(), &["doctor"], &server).await);
    let note = "of this machine, not of the server https://dalsegno.example.com";
    assert_eq!(checked.matches(note).count(), 1, "{checked}");
    let local = stdout(&run(folder.path(), &["doctor"], &[]).await);
    assert!(!local.contains("not of the server"), "{local}");
}

#[tokio::test]
async fn doctor_reports_an_unreachable_database() {
    let folder = scratch_folder();
    let url = [("DATABASE_URL", "postgres://tester@127.0.0.1:1/none")];
    let output = run(folder.path(), &["doctor", "--json"], &url).await;
    assert_eq!(output.status.code(), Some(8));
    let findings: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let database = finding(&findings, "database");
    assert_eq!(database["status"], "fail");
    assert!(database["fix"].as_str().unwrap().contains("DATABASE_URL"));
    assert!(!database["what"].as_str().unwrap().contains("dalsegno doctor"), "{database}");
}

#[tokio::test]
async fn doctor_reports_a_missing_schema() {
    let folder = scratch_folder();
    let database = TestDatabase::empty().await;
    let url = [("DATABASE_URL", database.url())];
    let url: Vec<_> = url.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let output = run(folder.path(), &["doctor", "--json"], &url).await;
    assert_eq!(output.status.code(), Some(8));
    let findings: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(finding(&findings, "migrations")["fix"], "dalsegno migrate up");
    assert_eq!(run(folder.path(), &["migrate", "status"], &url).await.status.code(), Some(1));
    assert_eq!(run(folder.path(), &["migrate", "up"], &url).await.status.code(), Some(0));
    assert_eq!(run(folder.path(), &["doctor"], &url).await.status.code(), Some(0));
}

/// Its history begins before the first migration of this version.
#[tokio::test]
async fn a_database_of_an_older_version_is_refused_with_the_next_step() {
    let folder = scratch_folder();
    let database = TestDatabase::migrated().await;
    let older =
        "insert into dalsegno.migrations (version, description, success, checksum, execution_time)
                 values (20261120120000, 'create installation', true, '', 0)";
    execute(&database.options, older).await;
    let url = database.url();
    let url = [("DATABASE_URL", url.as_str())];
    for arguments in [&["migrate", "up"][..], &["migrate", "status"], &SERVE] {
        let output = run(folder.path(), arguments, &url).await;
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains("it has 1 migrations up to 20261120120000"), "{arguments:?}: {said}");
        assert!(said.contains("create a new database"), "{arguments:?}: {said}");
    }
    let output = run(folder.path(), &["doctor", "--json"], &url).await;
    let findings: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let fix = finding(&findings, "migrations")["fix"].as_str().unwrap();
    assert!(fix.contains("create a new database"), "{fix}");
}

#[tokio::test]
async fn config_check_prints_three_problems_and_exits_2() {
    let folder = scratch_folder();
    let file = folder.path().join("bad.toml");
    let text = "[http]\nlissten = \"127.0.0.1:1\"\nrequest_timeout_secs = 5\n\
                [log]\nformat = 7\n[database]\nacquire_timeout_secs = 6";
    std::fs::write(&file, text).unwrap();
    let arguments = ["config", "check", "--json", "--config", file.to_str().unwrap()];
    let output = run(folder.path(), &arguments, &[]).await;
    assert_eq!(output.status.code(), Some(2));
    let problems: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(problems.as_array().unwrap().len(), 3, "{problems:#}");
}

#[tokio::test]
async fn dalsegno_toml_in_the_working_directory_is_read_unless_another_file_is_given() {
    let folder = scratch_folder();
    let write = |name: &str, secs: u32| {
        let text = format!("[http]\nrequest_timeout_secs = {secs}");
        std::fs::write(folder.path().join(name), text).unwrap();
    };
    write("dalsegno.toml", 17);
    write("other.toml", 23);
    let line = async |arguments: &[&str], variables: &[(&str, &str)]| {
        let arguments = [&["config", "print"], arguments].concat();
        let output = run(folder.path(), &arguments, variables).await;
        let said = stdout(&output);
        let line = said.lines().find(|line| line.contains("http.request_timeout_secs"));
        line.unwrap_or_else(|| panic!("{said}{}", stderr(&output))).to_owned()
    };
    let found = line(&[], &[]).await;
    assert!(found.contains("17") && found.contains("dalsegno.toml"), "{found}");
    let found = line(&["--config", "other.toml"], &[]).await;
    assert!(found.contains("23") && found.contains("other.toml"), "{found}");
    let found = line(&[], &[("DALSEGNO_CONFIG", "other.toml")]).await;
    assert!(found.contains("23") && found.contains("other.toml"), "{found}");
}

#[tokio::test]
async fn the_health_command_follows_the_service() {
    let folder = scratch_folder();
    let mut service = Service::start(folder.path(), &[]).await;
    let listen = format!("http.listen={}", service.address);
    let health = ["health", "--timeout", "1m", "--set", &listen];
    let code = async || run(folder.path(), &health, &[]).await.status.code();
    // The service answers 503 while its database takes longer than a second.
    let ready = async || (code().await == Some(0)).then_some(());
    eventually("the service is ready", ready).await;
    service.signal("TERM");
    service.exit_code().await;
    assert_eq!(code().await, Some(7));
}

#[tokio::test]
async fn a_worker_joins_the_running_service_and_stops() {
    let folder = scratch_folder();
    let alone = Service::worker_alone(folder.path()).await;
    assert_eq!(alone.status.code(), Some(7), "{}", stderr(&alone));
    assert!(stderr(&alone).contains("DATABASE_URL"));
    let _service = Service::start(folder.path(), &[]).await;
    let mut worker = Service::worker(folder.path(), &[]).await;
    worker.signal("TERM");
    assert_eq!(worker.exit_code().await, 0);
    assert_eq!(servers_below(folder.path()).len(), 1, "the service's server is not the worker's");
}

#[tokio::test]
async fn a_worker_started_before_its_schema_waits_for_it() {
    let folder = scratch_folder();
    let database = TestDatabase::empty().await;
    let url = database.url();
    let environment = [("DATABASE_URL", url.as_str())];
    let mut worker = Service::begin(folder.path(), &["worker", "turns"], &environment);
    let waiting = async || worker.log().contains("waiting for the schema").then_some(());
    eventually("the worker reports what it waits for", waiting).await;
    assert!(!worker.log().contains("worker ready"), "{}", worker.log());
    assert_eq!(run(folder.path(), &["migrate", "up"], &environment).await.status.code(), Some(0));
    let ready = async || worker.log().contains("worker ready").then_some(());
    eventually("the worker is ready", ready).await;
    worker.signal("TERM");
    assert_eq!(worker.exit_code().await, 0);
}

#[tokio::test]
async fn usage_errors_exit_2_and_completions_print() {
    let folder = scratch_folder();
    assert_eq!(run(folder.path(), &["no-such-verb"], &[]).await.status.code(), Some(2));
    let output = run(folder.path(), &["--json", "no-such-verb"], &[]).await;
    assert_eq!(output.status.code(), Some(2));
    let error: Value = serde_json::from_str(stderr(&output).trim()).unwrap();
    assert_eq!(error["code"], "usage");
    let completions = run(folder.path(), &["completions", "bash"], &[]).await;
    assert!(stdout(&completions).contains("_dalsegno"));
    let pages = folder.path().to_str().unwrap();
    assert_eq!(run(folder.path(), &["man", pages], &[]).await.status.code(), Some(0));
    assert!(folder.path().join("dalsegno-doctor.1").exists());
}
