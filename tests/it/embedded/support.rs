//! Folders, processes and random numbers for the tests of the private Postgres.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dalsegno::db::embedded::Config;
use rustix::process::{Pid, Signal, kill_process};
use sqlx::{Connection, PgConnection};

use crate::app::SOON;

/// A folder for one test, accessible to the server's account.
pub struct EmbeddedSetup {
    pub folder: tempfile::TempDir,
    pub config: Config,
}

impl EmbeddedSetup {
    pub fn new() -> Self {
        let folder = crate::cluster::scratch_folder();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let config = Config {
            data_dir: folder.path().join("d"),
            fallback_dir: folder.path().join("elsewhere"),
            ..Config::default()
        };
        Self { folder, config }
    }

    pub fn home(&self) -> PathBuf {
        self.config.data_dir.join("postgres")
    }

    pub fn cluster(&self) -> PathBuf {
        self.home().join("data").canonicalize().unwrap_or_else(|_| self.home().join("data"))
    }

    pub fn service(&self) -> Service {
        Service::spawn(self.command(Path::new(env!("CARGO_BIN_EXE_first-run-service"))))
    }

    #[expect(clippy::disallowed_methods, reason = "tests start the programs that they look at")]
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.arg(&self.config.data_dir).arg(&self.config.fallback_dir);
        command
    }
}

impl Drop for EmbeddedSetup {
    /// Stops the servers, so that a failed test leaves none behind.
    fn drop(&mut self) {
        for pid in postmasters(&self.cluster()) {
            send(pid, Signal::QUIT);
        }
        wait_for(SOON, || servers(&self.cluster()).is_empty().then_some(()));
    }
}

/// A `first-run-service` with its output.
pub struct Service {
    pub child: Child,
    pub lines: Receiver<String>,
}

impl Service {
    pub fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let (sender, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    /// Waits for the first line with this beginning; earlier lines are dropped.
    pub fn expect(&self, beginning: &str) -> String {
        let deadline = Instant::now() + SOON;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self
                .lines
                .recv_timeout(left)
                .unwrap_or_else(|_| panic!("there is no line that begins with {beginning:?}"));
            if line.starts_with(beginning) {
                return line;
            }
        }
    }

    /// Collects its output for a time, or until its end.
    pub fn listen_for(&self, time: Duration) -> Vec<String> {
        let deadline = Instant::now() + time;
        let mut heard = Vec::new();
        while let Ok(line) =
            self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            heard.push(line);
        }
        heard
    }

    /// Kills it without warning, and returns its output so far.
    pub fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.lines.iter().collect()
    }

    pub fn terminate(mut self) {
        self.expect("row ");
        send(self.child.id(), Signal::TERM);
        self.expect("STOPPED");
        assert!(self.child.wait().unwrap().success());
    }
}

/// A small random generator. Its seed is printed, so that a failure can be repeated.
pub struct Random(u64);

impl Random {
    #[expect(clippy::disallowed_methods, reason = "DALSEGNO_TEST_SEED repeats a failed run")]
    pub fn seeded() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let given = std::env::var("DALSEGNO_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or(now) | 1;
        println!("DALSEGNO_TEST_SEED={seed}");
        Self(seed)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Polls a condition; `None` when the limit passes.
pub fn wait_for<T>(limit: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Lists all Postgres processes that work in the folder.
pub fn servers(data: &Path) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == data))
        .filter(|pid: &u32| comm(*pid).contains("postgres"))
        .collect()
}

/// Lists the postmasters; there must never be two.
pub fn postmasters(data: &Path) -> Vec<u32> {
    let all = servers(data);
    all.iter().copied().filter(|pid| is_postmaster(*pid)).collect()
}

pub fn send(pid: u32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(pid as i32).unwrap(), signal);
}

pub async fn count(config: sqlx::postgres::PgConnectOptions, query: &'static str) -> i64 {
    let mut connection = PgConnection::connect_with(&config).await.unwrap();
    let count = sqlx::query_scalar(query).fetch_one(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    count
}

fn comm(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
}

/// Returns true for the main process. Only its title still shows its arguments, except for a child that was just
/// forked: its parent tells them apart.
fn is_postmaster(pid: u32) -> bool {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let parent =
        stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
    String::from_utf8_lossy(&command).contains("\0-D\0")
        && parent.is_some_and(|parent| !comm(parent).contains("postgres"))
}
