//! Worker processes of the demo: this binary, started again.
//!
//! Each has a process group of its own. A Ctrl-C at the terminal therefore reaches the demo alone, which ends them in
//! order. Each also reads a pipe from the demo and ends when the pipe closes, even if the demo is killed.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, anyhow};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    process::{Child, Command},
    time::{Instant, timeout},
};

use super::settings::Settings;
use crate::cli::{Context, Exit, Failure};

/// Two pools for turns, so that one is left when the other is killed.
const POOLS: [&str; 3] = ["turns", "turns", "upkeep"];

/// Time from SIGTERM to SIGKILL.
const STOP_LIMIT: Duration = Duration::from_secs(8);
const LAST_LOG_LINES: usize = 5;

#[derive(Default)]
pub(super) struct DemoWorkers {
    workers: Vec<Worker>,
}

struct Worker {
    pid: u32,
    log: PathBuf,
    killed: bool,
    /// The worker process, whose standard input is the pipe.
    child: Child,
}

impl DemoWorkers {
    pub(super) fn start(
        settings: &Settings,
        folder: &Path,
        context: &Context,
    ) -> Result<Self, Failure> {
        let mut troupe = Self::default();
        for (at, pool) in POOLS.into_iter().enumerate() {
            let log = folder.join(format!("worker-{at}.log"));
            let started = Worker::start(pool, settings, log, context);
            let started = started.with_context(|| format!("cannot start the worker for {pool}"));
            troupe.workers.push(started.map_err(Failure::failed)?);
        }
        Ok(troupe)
    }

    pub(super) fn n_workers(&self) -> usize {
        self.workers.len()
    }

    /// Kills the worker with SIGKILL, so that it cannot release its job.
    pub(super) async fn kill(&mut self, pid: i32) -> Result<(), Failure> {
        let ours = self.workers.iter_mut().find(|worker| i64::from(worker.pid) == i64::from(pid));
        let worker = ours.ok_or_else(|| {
            Failure::failed(anyhow!("process {pid} runs the turn and is not a worker of the demo"))
        })?;
        worker.killed = true;
        let killed = worker.child.kill().await;
        killed.context("cannot kill the worker").map_err(Failure::failed)
    }

    /// Fails if nothing has happened for longer than this.
    pub(super) fn check_progress(
        &self,
        last_news: Instant,
        limit: Duration,
    ) -> Result<(), Failure> {
        if last_news.elapsed() <= limit {
            return Ok(());
        }
        let (secs, words) = (limit.as_secs(), self.last_log_lines());
        let error = anyhow!(
            "the demo made no progress for {secs} s; the last lines of the workers:\n{words}"
        );
        Err(Failure::new(Exit::TimedOut, error))
    }

    /// Fails if a worker has ended that the demo has not killed.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        for worker in self.workers.iter_mut().filter(|worker| !worker.killed) {
            if let Ok(Some(status)) = worker.child.try_wait() {
                let (pid, log) = (worker.pid, last_lines(&worker.log));
                return Err(Failure::failed(anyhow!("worker {pid} has ended ({status}):\n{log}")));
            }
        }
        Ok(())
    }

    pub(super) async fn stop(&mut self) {
        for worker in &self.workers {
            worker.terminate();
        }
        for worker in &mut self.workers {
            if timeout(STOP_LIMIT, worker.child.wait()).await.is_err() {
                // The worker is dropped next, which kills it again if this failed.
                let _ = worker.child.kill().await;
            }
        }
        self.workers.clear();
    }

    /// Returns the last lines of the workers' logs.
    pub(super) fn last_log_lines(&self) -> String {
        let words = self.workers.iter().map(|worker| last_lines(&worker.log));
        words.collect::<Vec<_>>().join("\n")
    }
}

impl Worker {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the demo starts its workers"
    )]
    fn start(
        pool: &str,
        settings: &Settings,
        log: PathBuf,
        context: &Context,
    ) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        // The rest of the environment is withheld: a DATABASE_URL would lead the workers to the user's tables.
        command.env_clear();
        // Not the user's folder, whose dalsegno.toml would be read.
        command.current_dir(log.parent().unwrap_or(Path::new("/")));
        for name in ["PATH", "HOME"] {
            command.envs(context.environment.get_os(name).map(|value| (name, value)));
        }
        command.args(["worker", pool, "--stop-with-stdin"]);
        for (key, value) in &settings.flags {
            command.args(["--set".to_owned(), format!("{key}={value}")]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(File::create(&log)?);
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let pid = child.id().unwrap_or_default();
        Ok(Self { pid, log, killed: false, child })
    }

    fn terminate(&self) {
        // `id` is `None` once the process has been waited for. The kernel may have given its pid to another process by
        // then.
        let pid = self.child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid
            && let Err(error) = kill_process(pid, Signal::TERM)
        {
            tracing::warn!(%error, "cannot stop a worker of the demo");
        }
    }
}

fn last_lines(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LAST_LOG_LINES)..].join("\n")
}
