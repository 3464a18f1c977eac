//! The way to Postgres: a given server, or the private one of a first run.
//!
//! Nothing here knows a table of the domain. `Database` owns the pool and, on a first run, the server process
//! itself; closing it stops both in that order.

pub mod constraint;
pub mod embedded;
mod migrations;
mod private;
mod url;
mod vacuum;

use std::{fmt, path::PathBuf, time::Duration};

use secrecy::SecretString;
use serde::Deserialize;
use sqlx::{
    Connection as _, Executor as _, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use self::embedded::{Attached, Embedded};
pub use self::{
    constraint::user_mistake,
    migrations::{
        MigrationState, Step, await_schema, migrate, migration_state, newest_known, status,
    },
    vacuum::{Vacuum, Vacuumed, vacuum},
};
use crate::{
    causes::causes,
    clock,
    config::{Checks, empty_as_none},
};

/// How long a connection may have been idle and is still used without asking.
const IDLE_UNTESTED: Duration = Duration::from_secs(1);

/// The oldest and the newest major version that the tests run against.
pub const SUPPORTED_MAJORS: std::ops::RangeInclusive<u32> = 14..=18;

const RECONNECT_PAUSE: Duration = Duration::from_millis(500);

/// Closing takes a round trip; a connection that needs longer waits for something that may never come.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    #[serde(deserialize_with = "empty_as_none")]
    pub url: Option<SecretString>,
    pub max_connections: u32,
    pub acquire_timeout_secs: u64,
    pub connect_timeout_secs: u64,
    /// Where `url` comes from, for messages. The private server has none.
    #[serde(skip)]
    pub url_from: String,
    pub own_sessions: bool,
    pub migrate_on_start: bool,
    pub embedded: embedded::Config,
}

/// An open way to Postgres.
pub struct Database {
    pub pool: PgPool,
    /// For connections outside the pool: listener, heartbeat.
    pub options: PgConnectOptions,
    server: Server,
}

/// Whose server it is.
#[derive(Debug)]
enum Server {
    Given,
    /// Started by us, stopped by us.
    Private(Embedded),
    /// The private server of another process on this data folder.
    Visited(Attached),
}

/// What a process wants the private server for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// The service itself: it owns the data folder, or does not start.
    Serve,
    /// Anything beside it: the running server if there is one, else its own for as long as it takes.
    Visit,
    /// As `Visit`, but only where a database has been made before: a look makes nothing.
    Look,
    /// A worker: the running server, or nothing. Its own would lock the service out.
    Join,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("database.url cannot be read; write postgres://user:password@host:port/database")]
    ParseUrl(#[source] sqlx::Error),
    #[error(
        "the database at {server} cannot be reached after {waited_secs} s; is the server up, and is that the one that is meant? `dalsegno doctor` looks closer"
    )]
    Connect { server: String, waited_secs: u64, source: sqlx::Error },
    #[error(
        "the database refuses the connection; mend database.url, or the role and database it names"
    )]
    Refused(#[source] sqlx::Error),
    #[error("no service runs on the data folder {}; set DATABASE_URL, or start `dalsegno serve` first", data_dir.display())]
    NoService { data_dir: PathBuf },
    #[error("there is no database in {} yet; `dalsegno serve` makes one, or set DATABASE_URL", data_dir.display())]
    NoDatabase { data_dir: PathBuf },
    #[error("stopped while waiting for the database")]
    Stopped,
    #[error("the private Postgres does not start")]
    Embedded(#[from] embedded::Error),
    #[error("the version of the database cannot be read")]
    ReadVersion(#[source] sqlx::Error),
    #[error("PostgreSQL {major} is too old; Dalsegno needs {} or newer: upgrade the server", SUPPORTED_MAJORS.start())]
    TooOld { major: u32 },
    #[error("the migrations cannot be applied")]
    Migrate(#[source] sqlx::migrate::MigrateError),
    #[error(
        "the role may not make or change the schema `dalsegno`; run `dalsegno migrate up` as the owner of the database, or grant it there: grant create on database ... to ..."
    )]
    MayNotMigrate(#[source] sqlx::migrate::MigrateError),
    #[error("whether the database takes writes cannot be read")]
    ReadWritable(#[source] sqlx::Error),
    #[error("the state of the migrations cannot be read")]
    MigrationState(#[source] sqlx::Error),
    #[error("the tables cannot be vacuumed")]
    Vacuum(#[source] sqlx::Error),
}

impl Database {
    /// Opens the configured database, waiting for a given server up to `connect_timeout_secs` or until `stop`.
    pub async fn open(
        config: &Config,
        purpose: Use,
        stop: &CancellationToken,
    ) -> Result<Self, Error> {
        let (options, server) = match &config.url {
            Some(url) => (url::parse(url)?, Server::Given),
            None => Box::pin(private::open(&config.embedded, purpose, stop)).await?,
        };
        let options = options.application_name("dalsegno");
        let pool = pool(config, &options);
        let database = Self { pool, options, server };
        match database.wait_until_reachable(config, stop).await {
            Ok(()) => Ok(database),
            Err(error) => {
                // The first error says more than one that follows from it.
                let _ = database.close().await;
                Err(error)
            }
        }
    }

    /// Closes the pool, then stops the private server if it is ours.
    pub async fn close(self) -> Result<(), Error> {
        if timeout(CLOSE_LIMIT, self.pool.close()).await.is_err() {
            tracing::warn!(
                limit_secs = CLOSE_LIMIT.as_secs(),
                "leaving connections that do not close"
            );
        }
        match self.server {
            Server::Private(embedded) => Ok(embedded.stop().await?),
            Server::Given | Server::Visited(_) => Ok(()),
        }
    }

    /// Where the data is, for people.
    pub fn describe(&self) -> String {
        match &self.server {
            Server::Given => "the given PostgreSQL server".to_owned(),
            Server::Private(embedded) => embedded.describe().to_string(),
            Server::Visited(attached) => {
                format!("the private Postgres of the running service (pid {})", attached.pid())
            }
        }
    }

    /// Connects outside the pool: the pool answers every failure alike, with a timeout that hides its cause.
    async fn wait_until_reachable(
        &self,
        config: &Config,
        stop: &CancellationToken,
    ) -> Result<(), Error> {
        let started = Instant::now();
        let deadline = started + Duration::from_secs(config.connect_timeout_secs);
        // The deadline may come in the middle of an attempt; what the one before met says more.
        let mut last = sqlx::Error::Io(std::io::ErrorKind::TimedOut.into());
        loop {
            let attempt = timeout_at(deadline, PgConnection::connect_with(&self.options));
            let error = match stop.run_until_cancelled(attempt).await {
                None => return Err(Error::Stopped),
                Some(Ok(Ok(mut connection))) => {
                    // It let us in, which is all that was asked. The pool measures its clock again.
                    let _ = timeout_at(deadline, clock::follow_database(&mut connection)).await;
                    let _ = timeout_at(deadline, connection.close()).await;
                    return Ok(());
                }
                Some(Ok(Err(error))) if is_refusal(&error) => return Err(Error::Refused(error)),
                Some(Ok(Err(error))) => error,
                Some(Err(_elapsed)) => last,
            };
            if Instant::now() + RECONNECT_PAUSE >= deadline {
                let waited_secs = started.elapsed().as_secs();
                let server = address(&self.options, &config.url_from);
                return Err(Error::Connect { server, waited_secs, source: error });
            }
            let server = address(&self.options, &config.url_from);
            tracing::warn!(error = causes(&error), server, "waiting for the database");
            last = error;
            let pause = stop.run_until_cancelled(tokio::time::sleep(RECONNECT_PAUSE));
            pause.await.ok_or(Error::Stopped)?;
        }
    }
}

/// By hand: the options hold the password.
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
            url::check(url, checks);
        }
        self.embedded.check(checks);
    }
}

/// Where a server is, and which setting names it; never a password.
fn address(options: &PgConnectOptions, named_by: &str) -> String {
    let (host, port) = (options.get_host(), options.get_port());
    let place = match options.get_socket() {
        Some(socket) => format!("{}/.s.PGSQL.{port}", socket.display()),
        None if host.starts_with('/') => format!("{host}/.s.PGSQL.{port}"),
        None => format!("{host}:{port}"),
    };
    let database = options.get_database().map(|name| format!(" ({name})")).unwrap_or_default();
    match named_by {
        "" => format!("{place}{database}"),
        by if by.contains(" PG") => {
            format!("{place}{database}, which {by} names (unset it for the private Postgres)")
        }
        by => format!("{place}{database}, which {by} names"),
    }
}

/// The server's version as `server_version_num` gives it: 150018 is 15.18.
pub async fn server_version(pool: &PgPool) -> Result<u32, Error> {
    let number =
        sqlx::query_scalar!(r#"select current_setting('server_version_num') as "number!""#)
            .fetch_one(pool)
            .await
            .map_err(Error::ReadVersion)?;
    number.parse().map_err(|_| Error::ReadVersion(sqlx::Error::Protocol(number)))
}

/// Whether new transactions can write: false on a standby that has not taken over, and with `default_transaction_read_only`.
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

fn pool(config: &Config, options: &PgConnectOptions) -> PgPool {
    let pool = PgPoolOptions::new()
        // Asking a connection whether it lives costs as much as a statement. One that was used a moment ago does.
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
    let own_sessions = config.own_sessions;
    pool.after_connect(move |connection, _| {
        Box::pin(async move {
            if own_sessions {
                // The statements of the queue are written for their generic plans; planning them anew, or
                // compiling them, costs many times what running them does.
                let settings = "set plan_cache_mode = force_generic_plan; set jit = off";
                connection.execute(settings).await?;
            }
            clock::follow_database(connection).await
        })
    })
    .connect_lazy_with(options.clone())
}

/// Errors that waiting does not mend: wrong password, no such role or database, no such permission.
fn is_refusal(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| code.starts_with("28") || code == "3D000" || code == "42501")
}
