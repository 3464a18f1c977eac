//! The test harness: a service with a database of its own.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    net::SocketAddr,
    sync::{
        Arc, OnceLock,
        mpsc::{Sender, channel},
    },
    time::Duration,
};

use axum::Router;
use chrono::{DateTime, TimeZone as _, Utc};
use dalsegno::{
    app::App,
    clock::{Clock, ManualClock},
    config::Config,
    console, db, doctor,
    http::{self, RouterState},
    jobs::{Services, previews, rerun_routes},
    settings::{Environment, Flags},
    shutdown::Shutdown,
    telemetry,
    traces::Traces,
};
use sqlx::{
    Connection as _, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::OnceCell,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::cluster;

/// Longest wait for an event. It ends tests that would hang, and is not a limit of speed: a slow machine may take
/// longer than usual.
pub const SOON: Duration = Duration::from_secs(180);

/// A database that is dropped with this value.
pub struct TestDatabase {
    pub name: String,
    pub options: PgConnectOptions,
    admin: PgConnectOptions,
}

/// A running service.
pub struct TestApp {
    pub pool: PgPool,
    pub address: SocketAddr,
    pub shutdown: Shutdown,
    /// Router of the service, for requests without a connection.
    pub router: Router,
    server: JoinHandle<()>,
    // Dropped last: the fields above still have connections to it.
    _database: Option<TestDatabase>,
}

/// A response as it was received.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl TestDatabase {
    /// Creates an empty database.
    pub async fn empty() -> Self {
        Self::create("template1").await
    }

    /// Creates a database with the current schema, copied from a template that the first test of a run makes.
    pub async fn migrated() -> Self {
        Self::create(&template().await).await
    }

    pub async fn pool(&self) -> PgPool {
        let patient = PgPoolOptions::new().max_connections(10).acquire_timeout(2 * SOON);
        patient.connect_with(self.options.clone()).await.unwrap()
    }

    /// Returns the `DATABASE_URL` of this database.
    pub fn url(&self) -> String {
        cluster::url(&self.name)
    }

    async fn create(template: &str) -> Self {
        let admin = cluster::connect_options().await;
        let name = format!("test_{}", Uuid::new_v4().simple());
        let copy = copy_strategy(&admin).await;
        execute(&admin, &format!("create database {name} template {template}{copy}")).await;
        Self { options: admin.clone().database(&name), name, admin }
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let _ = removals().send((self.admin.clone(), self.name.clone()));
    }
}

impl TestApp {
    pub async fn start() -> Self {
        Self::start_on(TestDatabase::migrated().await).await
    }

    pub async fn start_on(database: TestDatabase) -> Self {
        Self::start_with(database, &[]).await
    }

    /// Starts a service with these settings.
    pub async fn start_with(database: TestDatabase, set: &[(&str, &str)]) -> Self {
        Self::start_at(database, set, Arc::new(ManualClock::at(noon()))).await
    }

    /// Starts a service with a clock of the test.
    pub async fn start_at(
        database: TestDatabase,
        set: &[(&str, &str)],
        clock: Arc<dyn Clock>,
    ) -> Self {
        let pool = database.pool().await;
        Self { _database: Some(database), ..Self::start_over(pool, set, clock).await }
    }

    /// Starts a service in the database of the caller.
    pub async fn start_over(pool: PgPool, set: &[(&str, &str)], clock: Arc<dyn Clock>) -> Self {
        let set = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let config = Config::load(&Environment::default(), &Flags { file: None, set }).unwrap();
        Box::pin(Self::start_configured(pool, config, clock)).await
    }

    /// Starts a service in the database of the caller, with the configuration of the caller.
    pub async fn start_configured(pool: PgPool, config: Config, clock: Arc<dyn Clock>) -> Self {
        let telemetry = telemetry::init(&config.log).unwrap();
        let traces = Traces::start(&config.traces).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let program = env!("CARGO_BIN_EXE_dalsegno").into();
        let services =
            Services::build(&config, Arc::clone(&clock), program, traces.clone()).unwrap();
        let app = App {
            examination: doctor::examination(&config, Arc::clone(&clock), CancellationToken::new()),
            tools: services.tools.clone(),
            agents: services.library.clone(),
            previews: previews(services.clone()),
            rerun_routes: rerun_routes(services),
            config: Arc::new((&config).into()),
            places: App::transaction_permits(&pool),
            pool,
            clock,
            metrics: telemetry.metrics.clone(),
            traces,
            shutdown: Shutdown::new(),
        };
        let front = RouterState::new(app.metrics.clone(), app.shutdown.clone());
        front.open(app.clone());
        let served = http::router_with_pages(&config.http, front.clone(), console::pages());
        let shutdown = app.shutdown.clone();
        Self {
            pool: app.pool.clone(),
            address: listener.local_addr().unwrap(),
            shutdown: app.shutdown.clone(),
            router: http::router(&config.http, front),
            server: tokio::spawn(async move {
                http::run(&config.http, shutdown, served, listener).await;
            }),
            _database: None,
        }
    }

    pub async fn get(&self, path: &str) -> Answer {
        get(self.address, path).await.unwrap()
    }

    /// Stops the service, and waits for the end of its server.
    pub async fn stop(self) {
        self.shutdown.soft.cancel();
        tokio::time::timeout(SOON, self.server).await.unwrap().unwrap();
    }
}

/// Returns the default configuration.
pub fn defaults() -> Config {
    Config::load(&Environment::default(), &Flags::default()).unwrap()
}

/// Returns the time at which each test begins.
pub fn noon() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 11, 20, 12, 0, 0).unwrap()
}

/// Sends one request on a new connection.
pub async fn get(address: SocketAddr, path: &str) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok(Answer { status: status.unwrap_or(0), head: head.to_owned(), body: body.to_owned() })
}

/// Polls until `probe` returns a value; fails the test after [`SOON`].
pub async fn eventually<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = tokio::time::Instant::now() + SOON;
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        assert!(tokio::time::Instant::now() < deadline, "not within {SOON:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until a statement in this database waits for a lock.
pub async fn until_blocked(pool: &PgPool) {
    let is_blocked = "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')";
    eventually("a statement waits for a lock", async || {
        let is_blocked = sqlx::query_scalar::<_, bool>(is_blocked);
        is_blocked.fetch_one(pool).await.unwrap().then_some(())
    })
    .await;
}

/// Returns the queue of databases to drop. Dropping one ends with a checkpoint of the whole server, so tests do not
/// wait for it.
fn removals() -> &'static Sender<(PgConnectOptions, String)> {
    static REMOVALS: OnceLock<Sender<(PgConnectOptions, String)>> = OnceLock::new();
    REMOVALS.get_or_init(|| {
        let (sender, removals) = channel();
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            for (admin, name) in removals {
                let sql = format!("drop database if exists {name} with (force)");
                if let Err(error) = runtime.block_on(try_execute(&admin, &sql)) {
                    println!("{name} stays: {error}");
                }
            }
        });
        sender
    })
}

pub async fn execute(options: &PgConnectOptions, sql: &str) {
    try_execute(options, sql).await.unwrap();
}

async fn try_execute(options: &PgConnectOptions, sql: &str) -> sqlx::Result<()> {
    let mut connection = PgConnection::connect_with(options).await?;
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut connection).await?;
    connection.close().await
}

/// Selects copying files, which costs half of copying pages through the WAL. PostgreSQL 14 cannot select it.
async fn copy_strategy(admin: &PgConnectOptions) -> &'static str {
    static STRATEGY: OnceCell<&str> = OnceCell::const_new();
    let strategy = STRATEGY.get_or_init(async || {
        let connection = PgConnection::connect_with(admin).await.unwrap();
        let version = connection.server_version_num().unwrap_or(0);
        connection.close().await.unwrap();
        if version < 150_000 { "" } else { " strategy file_copy" }
    });
    strategy.await
}

/// Returns the name of the template for the current state of `migrations/`.
async fn template() -> String {
    static NAME: OnceCell<String> = OnceCell::const_new();
    NAME.get_or_init(make_template).await.clone()
}

/// Creates the template, unless another process has created it in this cluster.
async fn make_template() -> String {
    let admin = cluster::connect_options().await;
    let name = format!("template_{:016x}", fingerprint());
    let mut lock = PgConnection::connect_with(&admin).await.unwrap();
    // Serialises tests of this and other processes. The connection's end releases the lock.
    sqlx::query("select pg_advisory_lock(42)").execute(&mut lock).await.unwrap();
    let exists =
        sqlx::query_scalar::<_, bool>("select exists (select from pg_database where datname = $1)");
    if !exists.bind(&name).fetch_one(&mut lock).await.unwrap() {
        // Renamed when complete, so that a killed run leaves no partial template.
        let building = format!("building_{}", Uuid::new_v4().simple());
        execute(&admin, &format!("create database {building}")).await;
        let pool = PgPoolOptions::new().connect_with(admin.clone().database(&building)).await;
        let pool = pool.unwrap();
        db::migrate(&pool).await.unwrap();
        pool.close().await;
        execute(&admin, &format!("alter database {building} rename to {name}")).await;
    }
    lock.close().await.unwrap();
    name
}

fn fingerprint() -> u64 {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut hasher = DefaultHasher::new();
    for path in paths {
        std::fs::read(path).unwrap().hash(&mut hasher);
    }
    hasher.finish()
}
