//! The protocol by which the processes of a test run share one Postgres, without a coordinating server.
//!
//! Four files in the `locks` folder. They are never removed, only locked:
//!
//! | file | locked by | means |
//! |---|---|---|
//! | `starting` | exclusively by a user that is joining | users join one after the other |
//! | `users` | shared by each user for life, exclusively by a keeper that is ending | a cluster with users does not end; a joining user waits for an ending keeper |
//! | `keeper` | exclusively by the keeper for life | there is a keeper |
//! | `ready` | not locked; made by the keeper when the server is up, removed first thing at its end | the cluster can be used |
//!
//! A user takes `starting`, then `users`. From then on no keeper can begin to end, so what the user sees stays true.
//! With a keeper and `ready`, the cluster is alive; with a keeper and no `ready`, the user waits; without a keeper, it
//! starts one. A keeper that gets `users` exclusively holds it until it ends, so that no user can join in between.
//!
//! The kernel releases the locks of a dead process. A killed keeper leaves its server running; the next one takes the
//! server over.

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dalsegno::db::embedded::{self, Config, Purpose};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use sqlx::postgres::PgConnectOptions;

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

const START_LIMIT: Duration = Duration::from_secs(180);
const PAUSE: Duration = Duration::from_millis(10);

#[derive(Debug, Clone)]
pub struct SharedCluster {
    pub locks: PathBuf,
    pub data_dir: PathBuf,
    /// Time that a cluster outlives its last user.
    pub grace: Duration,
    /// Program of the keeper.
    pub keeper: PathBuf,
}

/// Membership of a process. The cluster lives as long as it has a member.
#[derive(Debug)]
pub struct Membership {
    pub options: PgConnectOptions,
    _users: File,
}

impl SharedCluster {
    /// Joins the cluster, starting it if there is none. Blocks; needs no runtime.
    pub fn join(&self) -> Result<Membership> {
        fs::create_dir_all(&self.locks)?;
        let starting = self.open("starting")?;
        lock(&starting, FlockOperation::LockExclusive)?;
        let users = self.open("users")?;
        lock(&users, FlockOperation::LockShared)?;
        self.wait_for_keeper()?;
        Ok(Membership { options: self.attach()?, _users: users })
    }

    fn wait_for_keeper(&self) -> Result<()> {
        let deadline = Instant::now() + START_LIMIT;
        let keeper = self.open("keeper")?;
        let mut launched: Option<Child> = None;
        while Instant::now() < deadline {
            if try_lock(&keeper)? {
                if let Some(status) = launched.as_mut().map(Child::try_wait).transpose()?.flatten()
                {
                    return Err(format!(
                        "the keeper ended with {status}; see {}",
                        self.log().display()
                    )
                    .into());
                }
                if launched.is_none() {
                    // While this process holds the lock, no keeper can create the file that is removed here.
                    remove_if_there(&self.ready())?;
                    lock(&keeper, FlockOperation::Unlock)?;
                    launched = Some(self.launch_keeper()?);
                } else {
                    lock(&keeper, FlockOperation::Unlock)?;
                }
            } else if self.ready().exists() {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
        Err(format!("the tests' Postgres did not start; see {}", self.log().display()).into())
    }

    #[expect(clippy::disallowed_methods, reason = "the one place where tests start the keeper")]
    fn launch_keeper(&self) -> Result<Child> {
        let log = OpenOptions::new().create(true).append(true).open(self.log())?;
        let child = Command::new(&self.keeper)
            .arg("keep")
            .args([&self.locks, &self.data_dir])
            .arg(self.grace.as_millis().to_string())
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        Ok(child)
    }

    /// Connects in a thread, because the caller may be inside of a runtime.
    fn attach(&self) -> Result<PgConnectOptions> {
        let config = self.config();
        let attached = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime
                .map_err(|error| error.to_string())?
                .block_on(embedded::attach(&config))
                .map_err(|error| error.to_string())
        });
        let attached = attached.join().map_err(|_| "attaching panicked")??;
        let attached = attached.ok_or("the keeper lives, but its server does not")?;
        Ok(attached.connect_options().database("postgres"))
    }

    pub fn config(&self) -> Config {
        Config {
            data_dir: self.data_dir.clone(),
            bin_dir: chosen_binaries(),
            purpose: Purpose::Throwaway,
            ..Config::default()
        }
    }

    pub fn open(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().create(true).truncate(false).write(true).open(self.locks.join(name))
    }

    pub fn ready(&self) -> PathBuf {
        self.locks.join("ready")
    }

    fn log(&self) -> PathBuf {
        self.locks.join("keeper.log")
    }
}

/// Returns the binaries to test with: `DALSEGNO_TEST_POSTGRES=/usr/lib/postgresql/14/bin cargo test` selects a version.
#[expect(clippy::disallowed_methods, reason = "tests are told about versions by the environment")]
fn chosen_binaries() -> Option<PathBuf> {
    std::env::var_os("DALSEGNO_TEST_POSTGRES").map(PathBuf::from)
}

pub fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

pub fn lock(file: &File, operation: FlockOperation) -> io::Result<()> {
    loop {
        match flock(file, operation) {
            Err(Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
}

pub fn try_lock(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}
