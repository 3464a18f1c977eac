//! Worker processes, and a supervisor that restarts them.

use std::{
    path::{Path, PathBuf},
    process::ExitStatus,
};

use rustix::process::Signal;
use tokio::process::Child;

use super::trial::Trial;
use crate::{
    app::{SOON, eventually},
    embedded::support::send,
    leases::LONG_LEASE_VARIABLES,
    service::command,
};

/// Jobs that each worker of a trial runs at once.
pub const SLOTS: usize = 8;

/// Fast polling, few connections.
const SETTINGS: [(&str, &str); 8] = [
    ("DALSEGNO_QUEUE__POLL_BUSY_MS", "200"),
    ("DALSEGNO_QUEUE__POLL_IDLE_MS", "1000"),
    ("DALSEGNO_QUEUE__LISTEN_PING_SECS", "2"),
    ("DALSEGNO_DATABASE__MAX_CONNECTIONS", "5"),
    ("DALSEGNO_DATABASE__ACQUIRE_TIMEOUT_SECS", "30"),
    ("DALSEGNO_WORKER__TURNS_SLOTS", "8"),
    ("DALSEGNO_LOG__FORMAT", "json"),
    ("TOKIO_WORKER_THREADS", "2"),
];

/// A `worker-turns` process, killed on drop.
pub struct Worker {
    child: Child,
    log: PathBuf,
}

/// Workers of one trial.
pub struct WorkerSupervisor<'a> {
    pub workers: Vec<Worker>,
    /// Number of workers that died and were replaced.
    pub n_replaced: usize,
    trial: &'a Trial,
    settings: Vec<(String, String)>,
}

impl Worker {
    /// Starts a worker on the trial's database; `settings` override the usual ones.
    pub fn start(trial: &Trial, settings: &[(&str, &str)]) -> Self {
        let log = trial.folder().join(format!("worker-{}", uuid::Uuid::new_v4()));
        let mut command = command(env!("CARGO_BIN_EXE_worker-turns"), trial.folder());
        command.env("DATABASE_URL", trial.url()).envs(LONG_LEASE_VARIABLES).envs(SETTINGS);
        command.envs(settings.iter().copied());
        command.stdout(std::process::Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
        let child = command.kill_on_drop(true).spawn().unwrap();
        trial.workers.watch(&trial.pool, child.id().unwrap());
        Self { child, log }
    }

    pub fn pid(&self) -> u32 {
        self.child.id().expect("the worker has ended")
    }

    pub fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    pub fn is_dead(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until it has ended.
    pub async fn ended(&mut self) -> ExitStatus {
        let ended = tokio::time::timeout(SOON, self.child.wait()).await;
        ended.unwrap_or_else(|_| panic!("does not end:\n{}", self.log())).unwrap()
    }

    /// Waits until it is registered and may claim.
    pub async fn ready(&self) {
        eventually("the worker is registered", async || {
            self.log().contains("worker registered").then_some(())
        })
        .await;
    }

    pub fn log(&self) -> String {
        read(&self.log)
    }
}

impl<'a> WorkerSupervisor<'a> {
    /// Starts `n` workers with the usual settings and these.
    pub fn start(trial: &'a Trial, n: usize, settings: &[(&str, &str)]) -> Self {
        let workers = (0..n).map(|_| Worker::start(trial, settings)).collect();
        let settings = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Self { workers, n_replaced: 0, trial, settings }
    }

    pub async fn ready(&self) {
        for worker in &self.workers {
            worker.ready().await;
        }
    }

    /// Starts a new worker for each that died.
    pub fn replace_dead(&mut self) {
        for at in 0..self.workers.len() {
            if self.workers[at].is_dead() {
                self.replace(at);
            }
        }
    }

    /// Kills a worker without warning and replaces it.
    pub async fn kill(&mut self, at: usize) {
        self.workers[at].signal(Signal::KILL);
        self.workers[at].child.wait().await.unwrap();
        self.replace(at);
    }

    pub fn logs(&self) -> String {
        let tails = self.workers.iter().map(|worker| {
            let log = worker.log();
            let lines: Vec<&str> = log.lines().collect();
            lines[lines.len().saturating_sub(25)..].join("\n")
        });
        tails.collect::<Vec<_>>().join("\n--\n")
    }

    fn replace(&mut self, at: usize) {
        self.n_replaced += 1;
        let settings: Vec<_> =
            self.settings.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        self.workers[at] = Worker::start(self.trial, &settings);
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}
