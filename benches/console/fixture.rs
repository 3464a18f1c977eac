//! The large database, and the service on it.

use std::{net::SocketAddr, path::Path, sync::Arc};

use dalsegno::{
    clock::SystemClock,
    config::Config,
    console, db,
    db::embedded::{self, EmbeddedServer},
    domain::costs,
    http::{self, RouterState},
    jobs::Services,
    settings::{Environment, Flags},
    shutdown::Shutdown,
    telemetry,
    traces::Traces,
    worker,
};
use sha2::{Digest as _, Sha256};
use sqlx::{
    ConnectOptions as _, Connection as _, Executor as _, PgConnection, PgPool,
    postgres::PgConnectOptions,
};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{
    common::{Database, Server, size},
    scale::Scale,
};

/// The kept database: its name on the private server, and the age at which it is filled again, because its times are relative.
const NAME: &str = "dalsegno_console_bench";
const MAX_AGE_HOURS: i32 = 12;

/// The server with the large database.
pub struct LargeDatabase {
    pub options: PgConnectOptions,
    place: Place,
}

enum Place {
    /// Kept for the next run.
    Kept(Box<EmbeddedServer>),
    Removed(Box<(Server, Database)>),
}

pub struct Fixture {
    pub address: SocketAddr,
    pub pool: PgPool,
    shutdown: Shutdown,
    served: JoinHandle<()>,
    opened: db::Database,
}

impl LargeDatabase {
    /// Starts the server, and fills the database unless it is filled.
    pub async fn open() -> anyhow::Result<Self> {
        if size::of(true, false) && !is_server_given() {
            return Self::open_kept().await;
        }
        let server = Server::start().await?;
        let database = Database::create(&server).await?;
        fill(&database.options).await?;
        Ok(Self {
            options: database.options.clone(),
            place: Place::Removed(Box::new((server, database))),
        })
    }

    async fn open_kept() -> anyhow::Result<Self> {
        let data_dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("console-bench");
        let config = embedded::Config { data_dir, ..embedded::Config::default() };
        let server = embedded::start(&config).await?;
        let admin = server.connect_options();
        let options = admin.clone().database(NAME);
        if !is_current(&options).await {
            let mut conn = PgConnection::connect_with(&admin).await?;
            for sql in ["drop database if exists", "create database"] {
                conn.execute(sqlx::AssertSqlSafe(format!("{sql} {NAME}"))).await?;
            }
            conn.close().await?;
            fill(&options).await?;
        }
        Ok(Self { options, place: Place::Kept(Box::new(server)) })
    }

    pub async fn close(self) -> anyhow::Result<()> {
        match self.place {
            Place::Kept(server) => Ok(server.stop().await?),
            Place::Removed(both) => {
                let (server, database) = *both;
                database.remove().await?;
                server.stop().await
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the environment says which server")]
fn is_server_given() -> bool {
    std::env::var_os("DATABASE_URL").is_some()
}

/// Returns true if a run of the same statements has filled the database, not long ago.
async fn is_current(options: &PgConnectOptions) -> bool {
    let Ok(mut conn) = PgConnection::connect_with(options).await else { return false };
    let found = sqlx::query_scalar(
        "select filled_at > now() - make_interval(hours => $1) and digest = $2 from console_bench",
    );
    let found = found.bind(MAX_AGE_HOURS).bind(digest()).fetch_one(&mut conn).await;
    found.unwrap_or(false)
}

fn digest() -> String {
    let statements = Scale::of_run().statements().join(";");
    hex::encode(Sha256::digest(statements))
}

async fn fill(options: &PgConnectOptions) -> anyhow::Result<()> {
    let pool = PgPool::connect_with(options.clone()).await?;
    db::migrate(&pool).await?;
    let mut conn = pool.acquire().await?;
    conn.execute(
        "set synchronous_commit = off; set work_mem = '256MB'; set maintenance_work_mem = '256MB'",
    )
    .await?;
    for statement in Scale::of_run().statements() {
        conn.execute(sqlx::AssertSqlSafe(statement)).await?;
    }
    conn.execute("vacuum analyze").await?;
    conn.execute("create table console_bench (filled_at timestamptz, digest text)").await?;
    let insert = sqlx::query("insert into console_bench values (now(), $1)").bind(digest());
    insert.execute(&mut *conn).await?;
    conn.execute("checkpoint").await?;
    drop(conn);
    pool.close().await;
    Ok(())
}

/// Adds up the ledger by day, as the scheduler does it.
async fn add_up_ledger(pool: &PgPool, time_zone: &str) -> anyhow::Result<()> {
    let is_done = "select up_to = (select coalesce(max(id), 0) from dalsegno.usage) from dalsegno.ledger_sums";
    while !sqlx::query_scalar(is_done).fetch_one(pool).await? {
        costs::add_up_days(pool, time_zone).await?;
    }
    pool.execute("analyze dalsegno.ledger_days").await?;
    Ok(())
}

impl Fixture {
    pub async fn new(large: &LargeDatabase) -> anyhow::Result<Self> {
        let url = large.options.to_url_lossy().to_string();
        let set = [
            ("database.url", url.as_str()),
            ("log.filter", "warn"),
            ("http.listen", "127.0.0.1:0"),
            ("http.requests_per_minute", "0"),
        ];
        let set = set.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let config = Config::load(&Environment::default(), &Flags { file: None, set })?;
        let telemetry = telemetry::init(&config.log)?;
        let shutdown = Shutdown::new();
        let opened = db::Database::open(&config.database, db::Use::Serve, &shutdown.soft).await?;
        db::migrate(&opened.pool).await?;
        add_up_ledger(&opened.pool, &config.scheduler.time_zone).await?;
        let listener = TcpListener::bind(config.http.listen).await?;
        let address = listener.local_addr()?;
        // No Claude CLI is started: pages only read.
        let services =
            Services::build(&config, Arc::new(SystemClock), "dalsegno".into(), Traces::default())?;
        let front = RouterState::new(telemetry.metrics.clone(), shutdown.clone());
        front.open(worker::app(&config, &services, &front, &opened));
        let router = http::router_with_pages(&config.http, front, console::pages());
        let stop = shutdown.clone();
        let served = tokio::spawn(async move {
            http::run(&config.http, stop, router, listener).await;
        });
        let pool = opened.pool.clone();
        Ok(Self { address, pool, shutdown, served, opened })
    }

    pub async fn stop(self) -> anyhow::Result<()> {
        self.shutdown.soft.cancel();
        self.shutdown.hard.cancel();
        self.served.await?;
        Ok(self.opened.close().await?)
    }
}
