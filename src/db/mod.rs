//! The connection to Postgres: to a given server, or to the private one of a first run.
//!
//! This module knows no table of the domain. `Database` owns the pool and, on a first run, the server process. Closing
//! it stops both, in that order.

pub mod constraint;
mod migrations;
mod pooler;
mod private;
mod space;
mod url;
mod vacuum;
mod wait_for_server;

use std::{fmt, io, path::PathBuf, time::Duration};

use secrecy::SecretString;
use serde::Deserialize;
use sqlx::{
    Connection as _, Executor as _, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

pub use dalsegno_private_postgres as embedded;

use self::embedded::{AttachedServer, EmbeddedServer};
pub use self::{
    constraint::user_mistake,
    embedded::SUPPORTED_MAJORS,
    migrations::{
        AppliedMigration, MigrationState, Step, history, migrate, migration_state, newest_known,
        status, wait_for_schema,
    },
    pooler::Pooler,
    space::has_space,
    vacuum::{Vacuum, VacuumResult, vacuum},
};
use crate::{
    causes::causes,
    clock,
    settings::{Checks, empty_as_none},
};

/// The setting with the address for most connections.
pub const URL: &str = "database.url";
/// The setting with the address past a transaction pooler.
pub const DIRECT_URL: &str = "database.direct_url";

/// Idle time up to which a connection is used without a ping.
const IDLE_UNTESTED: Duration = Duration::from_secs(1);

/// Interval at which every process measures the clock of the database.
const CLOCK_PERIOD: Duration = Duration::from_secs(10);

/// Timeout of closing. It takes a round trip; a connection that needs longer may never close.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    #[serde(deserialize_with = "empty_as_none")]
    pub url: Option<SecretString>,
    pub pooler: Pooler,
    #[serde(deserialize_with = "empty_as_none")]
    pub direct_url: Option<SecretString>,
    pub max_connections: u32,
    pub acquire_timeout_secs: u64,
    pub connect_timeout_secs: u64,
    /// True if `connect_timeout_secs` is the default, so that commands may wait for a shorter time.
    #[serde(skip)]
    pub has_default_connect_timeout: bool,
    /// Origin of `url`, for messages. Empty for the private server.
    #[serde(skip)]
    pub url_from: String,
    pub migrate_on_start: bool,
    pub embedded: embedded::Config,
}

/// A connected database.
pub struct Database {
    pub pool: PgPool,
    /// Options for connections outside the pool.
    pub options: PgConnectOptions,
    /// Options for connections that keep their session on the server, for LISTEN and for settings and locks of a
    /// session. They lead past the pooler. `None` behind a transaction pooler without `database.direct_url`.
    pub session_options: Option<PgConnectOptions>,
    pooler: Pooler,
    server: Server,
    /// Ends the measurements of the database's clock.
    clock: DropGuard,
}

/// The server, by its owner.
#[derive(Debug)]
enum Server {
    Given,
    /// Started and stopped by this process.
    Private(EmbeddedServer),
    /// The private server of another process on this data folder.
    Visited(AttachedServer),
}

/// The purpose for which a process opens the private server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// The service: it owns the data folder, or does not start.
    Serve,
    /// A command: uses the running server, or starts one for as long as the command takes.
    Visit,
    /// Like `Visit`, but only where a database exists: a read creates nothing.
    Look,
    /// A worker: uses the running server, or fails. A server of its own would lock the service out.
    Join,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{setting} is not a valid address; use postgres://user:password@host:port/database")]
    ParseUrl { setting: &'static str, source: sqlx::Error },
    #[error("cannot reach the database {server}: tried for {waited_secs} s")]
    Connect { setting: &'static str, server: String, waited_secs: u64, source: ConnectError },
    #[error(
        "the database refuses the connection; correct {setting}, or the role and database it names"
    )]
    Refused { setting: &'static str, source: sqlx::Error },
    #[error("no service runs on the data folder {}; set DATABASE_URL, or start `dalsegno serve` first", data_dir.display())]
    NoService { data_dir: PathBuf },
    #[error("there is no database in {} yet; `dalsegno serve` creates one, or set DATABASE_URL", data_dir.display())]
    NoDatabase { data_dir: PathBuf },
    #[error(
        "database.url leads through a transaction pooler, but database.pooler is `none`: set database.pooler = \"transaction\" for PgBouncer 1.21 or newer; for a PgBouncer in session mode, add extra_float_digits to its ignore_startup_parameters"
    )]
    PoolerNotSet,
    #[error(
        "database.pooler is `transaction`, but database.url does not lead through a PgBouncer that keeps prepared statements: use PgBouncer 1.21 or newer with pool_mode = transaction and max_prepared_statements above 0; other transaction poolers are not supported, and without one set database.pooler = \"none\""
    )]
    PoolerNotSupported,
    #[error(
        "database.direct_url leads to another database than database.url, or to a standby of it; give it the address that the pooler itself connects to"
    )]
    DirectElsewhere,
    #[error(
        "database.direct_url leads through a transaction pooler itself; give it the address that the pooler connects to, and for a PgBouncer in session mode add extra_float_digits to its ignore_startup_parameters"
    )]
    DirectPooled,
    #[error(
        "{n_pending} migrations are missing and cannot run through a transaction pooler: set database.direct_url to the address of the server itself, or run `dalsegno migrate up` with DATABASE_URL set to it and database.pooler = \"none\""
    )]
    MigrateNeedsSession { n_pending: usize },
    #[error("stopped while waiting for the database")]
    Stopped,
    #[error("cannot start the private Postgres")]
    Embedded(#[from] embedded::Error),
    #[error("cannot read the version of the database")]
    ReadVersion(#[source] sqlx::Error),
    #[error("PostgreSQL {major} is too old; Dalsegno needs {} or newer: upgrade the server", SUPPORTED_MAJORS.start())]
    TooOld { major: u32 },
    #[error("cannot apply the migrations")]
    Migrate(#[source] sqlx::migrate::MigrateError),
    #[error(
        "the database role may not create or change the schema `dalsegno`; run `dalsegno migrate up` as the owner of the database, or grant the right: grant create on database ... to ..."
    )]
    MayNotMigrate(#[source] sqlx::migrate::MigrateError),
    #[error(
        "the database belongs to an older version of Dalsegno and cannot be upgraded: it has {n_older} migrations up to {newest}, but those of this version begin with {baseline}; create a new database and set DATABASE_URL to it, or run the older version"
    )]
    OlderSchema { n_older: usize, newest: i64, baseline: i64 },
    #[error("cannot check whether the database accepts writes")]
    ReadWritable(#[source] sqlx::Error),
    #[error("cannot check the disk space of the database server")]
    ReadSpace(#[source] sqlx::Error),
    #[error("cannot read the state of the migrations")]
    MigrationState(#[source] sqlx::Error),
    #[error("cannot vacuum the tables")]
    Vacuum(#[source] sqlx::Error),
}

/// The reason why no connection was made. The driver's text for an I/O error repeats that the database cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(transparent)]
    Io(io::Error),
    #[error(transparent)]
    Driver(sqlx::Error),
}

impl From<sqlx::Error> for ConnectError {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::Io(error) => Self::Io(error),
            error => Self::Driver(error),
        }
    }
}

impl Database {
    /// Opens the configured database, waiting for a given server up to `connect_timeout_secs` or until `stop`.
    pub async fn open(
        config: &Config,
        purpose: Use,
        stop: &CancellationToken,
    ) -> Result<Self, Error> {
        let (options, server) = match &config.url {
            Some(url) => (config.pooler.prepare(url::parse(URL, url)?), Server::Given),
            None => Box::pin(private::open(&config.embedded, purpose, stop)).await?,
        };
        let options = options.application_name("dalsegno");
        let session_options = match (config.pooler, &config.direct_url) {
            (Pooler::None, _) => Some(options.clone()),
            (Pooler::Transaction, Some(url)) => {
                Some(url::parse(DIRECT_URL, url)?.application_name("dalsegno"))
            }
            (Pooler::Transaction, None) => None,
        };
        let (pool, pooler) = (pool(config, &options), config.pooler);
        let closed = CancellationToken::new();
        let clock = closed.clone().drop_guard();
        let database = Self { pool, options, session_options, pooler, server, clock };
        match database.wait_until_reachable(config, stop).await {
            Ok(()) => {
                let pool = database.pool.clone();
                tokio::spawn(follow_clock(pool, CLOCK_PERIOD, closed));
                Ok(database)
            }
            Err(error) => {
                // The first error says more than a later one of closing.
                let _ = database.close().await;
                Err(error)
            }
        }
    }

    /// Closes the pool, then stops the private server if it is ours.
    pub async fn close(self) -> Result<(), Error> {
        drop(self.clock);
        if timeout(CLOSE_LIMIT, self.pool.close()).await.is_err() {
            tracing::warn!(
                limit_secs = CLOSE_LIMIT.as_secs(),
                "connections to the database did not close in time"
            );
        }
        match self.server {
            Server::Private(embedded) => Ok(embedded.stop().await?),
            Server::Given | Server::Visited(_) => Ok(()),
        }
    }

    /// Describes the server to people.
    pub fn describe(&self) -> String {
        match &self.server {
            Server::Given => "the given PostgreSQL server".to_owned(),
            Server::Private(embedded) => embedded.describe().to_string(),
            Server::Visited(attached) => {
                format!("the private Postgres of the running service (pid {})", attached.pid())
            }
        }
    }
}

/// Written by hand, because the options hold the password.
impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Config {
    pub fn check(&self, checks: &mut Checks<'_>) {
        checks.at_least("database.max_connections", self.max_connections.into(), 2);
        checks.secs("database.acquire_timeout_secs", self.acquire_timeout_secs, 1);
        checks.secs("database.connect_timeout_secs", self.connect_timeout_secs, 1);
        if let Some(url) = &self.url {
            url::check(URL, url, checks);
        }
        if let Some(url) = &self.direct_url {
            url::check(DIRECT_URL, url, checks);
        }
        self.check_pooler(checks);
        self.embedded.check(checks);
    }

    fn check_pooler(&self, checks: &mut Checks<'_>) {
        match (self.pooler, &self.url, &self.direct_url) {
            (Pooler::Transaction, None, _) => checks.fail_pair(
                ["database.pooler", "database.url"],
                "the private Postgres has no pooler",
                "database.url with the address of the pooler, or database.pooler = \"none\"",
            ),
            (Pooler::None, _, Some(_)) => checks.fail_pair(
                ["database.direct_url", "database.pooler"],
                "database.direct_url leads past a pooler, and database.pooler is `none`",
                "database.pooler = \"transaction\", or no database.direct_url",
            ),
            _ => {}
        }
    }
}

/// Formats the address of a server and the setting that names it, without the password.
fn address(options: &PgConnectOptions, named_by: &str) -> String {
    let (host, port) = (options.get_host(), options.get_port());
    let (place, separator) = match options.get_socket() {
        Some(socket) => (format!("{}/.s.PGSQL.{port}", socket.display()), ", database "),
        None if host.starts_with('/') => (format!("{host}/.s.PGSQL.{port}"), ", database "),
        None => (format!("{host}:{port}"), "/"),
    };
    let database = options.get_database().map(|name| format!("{separator}{name}"));
    let database = database.unwrap_or_default();
    match named_by {
        "" => format!("{place}{database}"),
        by if by.contains(" PG") => {
            format!("{place}{database} (from {by}; unset it for the private Postgres)")
        }
        by => format!("{place}{database} (from {by})"),
    }
}

/// Reads the server's version as `server_version_num` gives it: 150018 is 15.18.
pub async fn server_version(pool: &PgPool) -> Result<u32, Error> {
    let number =
        sqlx::query_scalar!(r#"select current_setting('server_version_num') as "number!""#)
            .fetch_one(pool)
            .await
            .map_err(Error::ReadVersion)?;
    number.parse().map_err(|_| Error::ReadVersion(sqlx::Error::Decode(number.into())))
}

/// Returns true if new transactions can write. False on a standby, and with `default_transaction_read_only`.
pub async fn is_writable(pool: &PgPool) -> Result<bool, Error> {
    sqlx::query_scalar!(
        r#"select not current_setting('transaction_read_only')::bool as "writable!""#
    )
    .fetch_one(pool)
    .await
    .map_err(Error::ReadWritable)
}

/// Refuses servers that are too old for our SQL.
pub async fn require_supported_version(pool: &PgPool) -> Result<(), Error> {
    let major = server_version(pool).await? / 10_000;
    match major < *SUPPORTED_MAJORS.start() {
        true => Err(Error::TooOld { major }),
        false => Ok(()),
    }
}

/// Measures the clock of the database until `closed`. After a failure it waits for the next interval.
async fn follow_clock(pool: PgPool, every: Duration, closed: CancellationToken) {
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let following = async {
        loop {
            ticks.tick().await;
            let measured = async { clock::follow_database(&mut *pool.acquire().await?).await };
            match timeout(every, measured).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::debug!(
                        error = causes(&error),
                        "cannot measure the clock of the database"
                    );
                }
                Err(_elapsed) => {
                    tracing::debug!("the database did not answer while its clock was measured")
                }
            }
        }
    };
    let _: Option<()> = closed.run_until_cancelled(following).await;
}

fn pool(config: &Config, options: &PgConnectOptions) -> PgPool {
    let pool = PgPoolOptions::new()
        // Testing a connection costs as much as a statement. One that was used a moment ago is alive.
        .test_before_acquire(false)
        .before_acquire(|connection, facts| {
            Box::pin(async move {
                if facts.idle_for > IDLE_UNTESTED {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
        .max_connections(config.max_connections)
        .acquire_timeout(Duration::from_secs(config.acquire_timeout_secs));
    let pooler = config.pooler;
    pool.after_connect(move |connection, _| {
        Box::pin(async move {
            // Behind a transaction pooler, settings would stick to connections that other clients use.
            if pooler == Pooler::None {
                // The statements of the queue are written for generic plans: planning them for each call, or compiling
                // them, costs many times their execution.
                let settings = "set plan_cache_mode = force_generic_plan; set jit = off";
                connection.execute(settings).await?;
            }
            clock::follow_database(connection).await
        })
    })
    .connect_lazy_with(options.clone())
}
