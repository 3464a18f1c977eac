//! The private Postgres of a first run.
//!
//! Without `DATABASE_URL` the service keeps a cluster of its own below its data folder: found or
//! fetched binaries, a generated password, a Unix socket or loopback only, durable settings.
//!
//! Invariants:
//! - At most one service owns a folder (`lock`), at most one server runs on a cluster (`occupancy`
//!   on top of Postgres's own interlock). Both are kernel locks, so no death leaves them behind.
//! - A cluster is complete or it is not there (`init`).
//! - A pid from a file is never trusted or signalled before the system confirms whose it is
//!   (`process`).
//! - The server never runs as root (`account`), and root writes no file where the server's account
//!   could have laid a symlink (`home`).
//! - Variables of the environment decide neither the address nor the behaviour of the server (`ambient`).
//!
//! A service may be killed at any moment. The next start continues from there: an unfinished cluster is removed, a
//! running server taken over, a dying one waited for, a dead one restarted (`server::takeover`).

mod account;
mod address;
mod ambient;
mod binaries;
mod command;
mod config;
mod error;
mod home;
mod init;
mod lock;
mod log_file;
mod occupancy;
mod pidfile;
mod poll;
mod process;
mod server;
mod settings;
mod watch;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::account::Account;
use self::address::Address;
use self::ambient::Ambient;
use self::command::Runner;
use self::home::Home;
use self::lock::FolderLock;
use self::pidfile::PidFile;
use self::server::{Cluster, Port, Server};
use self::watch::Watch;

pub use self::config::{Config, Listen, Purpose};
pub use self::error::Error;
pub use self::lock::{Holder, Owner};

/// The oldest and the newest major version that the tests run against.
pub const SUPPORTED_MAJORS: std::ops::RangeInclusive<u32> = 14..=18;

/// The private Postgres of this process. End it with [`EmbeddedServer::stop`].
#[must_use = "the server ends when this is dropped"]
pub struct EmbeddedServer {
    options: PgConnectOptions,
    home: Home,
    major: u32,
    address: Address,
    watch: Watch,
}

/// The private Postgres of another process.
#[derive(Clone)]
pub struct AttachedServer {
    options: PgConnectOptions,
    pid: u32,
}

/// A description of the running server, for people.
#[derive(Debug, Clone)]
pub struct Description {
    pub folder: PathBuf,
    pub address: String,
    pub major: u32,
    pub pid: u32,
}

/// Makes this process the owner of the folder and starts its server.
pub async fn start(config: &Config) -> Result<EmbeddedServer, Error> {
    start_until(config, Owner::Service, &CancellationToken::new()).await
}

/// Starts the server as [`start`] does. Returns [`Error::Stopped`] if `stop` comes first; everything that was begun has
/// ended before the folder is free.
pub async fn start_until(
    config: &Config,
    owner: Owner,
    stop: &CancellationToken,
) -> Result<EmbeddedServer, Error> {
    if ambient::leaks_options() {
        return Err(Error::AmbientOptions);
    }
    let data_dir = open_data_dir(&config.data_dir)?;
    let mut locks = vec![FolderLock::take(&FolderLock::path_in(&data_dir), &data_dir, owner)?];
    let account = choose_account(config, &data_dir)?;
    let home = home::choose(config, &data_dir, account.as_ref())?;
    locks.extend(lock_elsewhere(&home, &data_dir, owner)?);
    let bringing_up = bring_up(config, home.clone(), account);
    let Some(up) = stop.run_until_cancelled(bringing_up).await else {
        clean_up_interrupted_start(&home, Duration::from_secs(config.stop_timeout_secs)).await?;
        return Err(Error::Stopped);
    };
    let (cluster, server) = up?;
    Ok(EmbeddedServer {
        options: cluster.connect_options(&server.address),
        home: cluster.home.clone(),
        major: cluster.binaries.major,
        address: server.address.clone(),
        watch: Watch::begin(cluster, server, locks),
    })
}

/// Finds the server that another process runs on the folder, without owning or changing anything.
///
/// Returns `None` if none runs; waits for one that is starting.
pub async fn attach(config: &Config) -> Result<Option<AttachedServer>, Error> {
    if ambient::leaks_options() {
        return Err(Error::AmbientOptions);
    }
    let data_dir = match config.data_dir.canonicalize() {
        Ok(data_dir) => data_dir,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::folder("find", &config.data_dir)(error)),
    };
    let Some(home) = home::find(&data_dir)? else {
        return Ok(None);
    };
    let Some(record) = wait_for_ready_record(&home, config.start_timeout_secs).await? else {
        return Ok(None);
    };
    let password = address::read_password(&home)?;
    Ok(Some(AttachedServer {
        options: Address::from_pid_file(&record).connect_options(&password),
        pid: record.pid,
    }))
}

/// Ends the server that a killed owner has left on a folder. Returns false if the folder has a live owner.
pub async fn stop_orphaned_server(data_dir: &Path, limit: Duration) -> Result<bool, Error> {
    let data_dir = data_dir.canonicalize().map_err(Error::folder("find", data_dir))?;
    let lock = FolderLock::path_in(&data_dir);
    let _lock = match FolderLock::take(&lock, &data_dir, Owner::Command) {
        Err(Error::AlreadyRunning { .. }) => return Ok(false),
        taken => taken?,
    };
    if let Some(home) = home::find(&data_dir)? {
        clean_up_interrupted_start(&home, limit).await?;
    }
    Ok(true)
}

/// Returns the last process that took the folder's lock. Only an attempt to take the lock shows if it is still held.
pub fn holder(config: &Config) -> Option<Holder> {
    lock::read_holder(&FolderLock::path_in(&config.data_dir))
}

/// Returns true if a cluster has been made in the folder.
pub fn exists(config: &Config) -> bool {
    let data_dir = config.data_dir.canonicalize();
    let home = data_dir.ok().and_then(|data_dir| home::find(&data_dir).ok().flatten());
    home.is_some_and(|home| matches!(home.cluster_major(), Ok(Some(_))))
}

/// Describes the server binaries that a start would use.
pub async fn find_binaries(config: &Config) -> Result<String, Error> {
    let home = match config.data_dir.canonicalize() {
        Ok(data_dir) => home::find(&data_dir)?,
        Err(_) => None,
    };
    let home = home.unwrap_or_else(|| Home::at(config.data_dir.join("postgres")));
    let account = account::choose(config.run_as.as_deref(), None)?;
    let runner = Runner { account, ambient: Ambient::read() };
    let found = binaries::find_offline(config, &home, &runner).await?;
    Ok(format!("PostgreSQL {} in {}", found.major, found.folder.display()))
}

impl EmbeddedServer {
    pub fn connect_options(&self) -> PgConnectOptions {
        self.options.clone()
    }

    pub fn describe(&self) -> Description {
        Description {
            folder: self.home.root().to_path_buf(),
            address: self.address.to_string(),
            major: self.major,
            pid: self.watch.pid(),
        }
    }

    /// Ends the server and releases the folder. Close the pools first.
    pub async fn stop(self) -> Result<(), Error> {
        self.watch.end().await
    }
}

/// Written by hand, as for [`AttachedServer`]: the options hold the password.
impl fmt::Debug for EmbeddedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Embedded").field(&self.describe()).finish()
    }
}

impl AttachedServer {
    pub fn connect_options(&self) -> PgConnectOptions {
        self.options.clone()
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }
}

impl fmt::Debug for AttachedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attached").field("pid", &self.pid).finish_non_exhaustive()
    }
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { folder, address, major, pid } = self;
        write!(f, "private Postgres {major} (pid {pid}) on {address}, data in {}", folder.display())
    }
}

fn open_data_dir(path: &Path) -> Result<PathBuf, Error> {
    // As root the folder is open for the server's account to pass through; for an ordinary user it is private.
    let mode = if rustix::process::geteuid().is_root() { 0o755 } else { 0o700 };
    home::make_dir(path, mode)?;
    path.canonicalize().map_err(Error::folder("find", path))
}

fn choose_account(config: &Config, data_dir: &Path) -> Result<Option<Account>, Error> {
    let cluster = home::find(data_dir)?.map(|home| home.data());
    account::choose(config.run_as.as_deref(), cluster.as_deref())
}

/// Takes the lock of a home in the fallback folder. Such a home can be linked from two data folders, when one is a copy of the other.
fn lock_elsewhere(home: &Home, data_dir: &Path, owner: Owner) -> Result<Option<FolderLock>, Error> {
    if home.root().starts_with(data_dir) {
        return Ok(None);
    }
    let mut path = home.root().as_os_str().to_owned();
    path.push(".lock");
    FolderLock::take(Path::new(&path), data_dir, owner).map(Some)
}

async fn bring_up(
    config: &Config,
    home: Home,
    account: Option<Account>,
) -> Result<(Cluster, Server), Error> {
    let cluster = prepare(config, home, account).await?;
    let address = Address::choose(config.listen, &cluster.home)?;
    let server = cluster.adopt_or_launch(address, Port::MayChange).await?;
    Ok((cluster, server))
}

/// Ends the remains of an interrupted start: its initdb, its server, or the server that it waited for.
async fn clean_up_interrupted_start(home: &Home, limit: Duration) -> Result<(), Error> {
    let deadline = Instant::now() + limit;
    init::remove_drafts(home, deadline).await?;
    match home.cluster_major()? {
        Some(_) => server::stop_server(home, deadline).await,
        None => Ok(()),
    }
}

/// Loads the cluster, and creates it if there is none.
async fn prepare(config: &Config, home: Home, account: Option<Account>) -> Result<Cluster, Error> {
    let start_limit = Duration::from_secs(config.start_timeout_secs);
    init::remove_drafts(&home, Instant::now() + start_limit).await?;
    let runner = Runner { account, ambient: Ambient::read() };
    let binaries = binaries::find(config, &home, &runner).await?;
    if home.cluster_major()?.is_none() {
        init::create(&home, &binaries, &runner, config.purpose).await?;
    }
    Ok(Cluster {
        password: address::read_password(&home)?,
        home,
        binaries,
        runner,
        purpose: config.purpose,
        start_limit,
        stop_limit: Duration::from_secs(config.stop_timeout_secs),
    })
}

async fn wait_for_ready_record(home: &Home, limit_secs: u64) -> Result<Option<PidFile>, Error> {
    let (data, name) = (home.data(), home.cluster_name());
    let deadline = Instant::now() + Duration::from_secs(limit_secs);
    let settled = poll::until(deadline, || {
        let record =
            PidFile::read(&data)?.filter(|record| process::is_server(record.pid, &data, &name));
        Ok(match record {
            Some(record) if !record.is_ready => None,
            settled => Some(settled),
        })
    });
    Ok(settled.await?.flatten())
}
