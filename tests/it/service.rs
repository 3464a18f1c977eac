//! A service as its own process, for tests of signals, crashes and leftovers.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{ExitStatus, Output, Stdio},
};

use sqlx::postgres::PgConnectOptions;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use crate::app::{SOON, execute};

/// The arguments that start the service on a free port and print its address as JSON.
pub const SERVE: [&str; 4] = ["serve", "--json", "--set", "http.listen=127.0.0.1:0"];

/// A running `dalsegno serve` or worker. Killed, with its server, when dropped.
pub struct Service {
    pub address: SocketAddr,
    /// Its output when it was ready.
    pub words: String,
    child: Child,
    log: PathBuf,
}

/// Returns the command in an empty environment with only PATH and HOME, its data below `folder`.
pub fn dalsegno(folder: &Path) -> Command {
    command(env!("CARGO_BIN_EXE_dalsegno"), folder)
}

/// A role with the grants of docs/how-to/upgrade.md.
pub struct ServiceRole {
    pub options: PgConnectOptions,
    name: String,
    owner: PgConnectOptions,
}

impl ServiceRole {
    /// Creates the role on the database of `owner`.
    pub async fn of(owner: &PgConnectOptions) -> Self {
        let name = format!("role_{}", uuid::Uuid::new_v4().simple());
        let page = std::fs::read_to_string("docs/how-to/upgrade.md").unwrap();
        let (_, grants) = page.split_once("```sql\n").unwrap();
        let (grants, _) = grants.split_once("```").unwrap();
        let grants = grants
            .replace("to app;", &format!("to {name};"))
            .replace("from app;", &format!("from {name};"));
        execute(owner, &format!("create role {name} login password 'x'; {grants}")).await;
        Self { options: owner.clone().username(&name).password("x"), name, owner: owner.clone() }
    }

    /// Drops the role; its connections must be closed.
    pub async fn drop(self) {
        execute(&self.owner, &format!("drop owned by {0}; drop role {0}", self.name)).await;
    }
}

/// Returns the pids of postmasters whose data is below `folder`.
pub fn servers_below(folder: &Path) -> Vec<u32> {
    let folder = folder.canonicalize().unwrap();
    let pids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let name = entry.unwrap().file_name();
        name.to_str()?.parse::<u32>().ok()
    });
    pids.filter(|pid| is_server_below(*pid, &folder)).collect()
}

impl Service {
    /// Starts a command without waiting.
    pub fn begin(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = dalsegno(folder);
        command.args(arguments).envs(environment.iter().copied());
        Self::spawn(command, folder)
    }

    /// Starts the service and waits until it is ready.
    pub async fn start(folder: &Path, environment: &[(&str, &str)]) -> Self {
        let mut service = Self::begin(folder, &SERVE, environment);
        let mut words = String::new();
        let mut stdout = service.child.stdout.take().unwrap();
        // The object ends with the only line that is "}".
        let read = async {
            let mut lines = BufReader::new(&mut stdout).lines();
            while let Some(line) = lines.next_line().await.unwrap() {
                words.push_str(&line);
                if line == "}" {
                    return;
                }
            }
        };
        tokio::time::timeout(SOON, read).await.unwrap();
        let ready: serde_json::Value = serde_json::from_str(&words)
            .unwrap_or_else(|error| panic!("{error}: {words:?}\n{}", service.log()));
        let address = ready["address"].as_str().unwrap().trim_start_matches("http://");
        service.address = address.parse().unwrap();
        service.words = words;
        service
    }

    /// Waits until the service has its address, and reads it from the log: it prints it only when it is ready.
    pub async fn listening(&mut self) {
        let log = async || {
            let log = self.log();
            let line = log.lines().find(|line| line.contains(r#""message":"listening""#))?;
            let line: serde_json::Value = serde_json::from_str(line).ok()?;
            line["address"].as_str()?.trim_start_matches("http://").parse().ok()
        };
        self.address = crate::app::eventually("the service listens", log).await;
    }

    /// Waits until the service reports that it is ready. A loaded machine may exceed the probe's own limit.
    pub async fn ready(&self) {
        let ready = async || {
            let answer = crate::app::get(self.address, "/readyz").await;
            answer.is_ok_and(|answer| answer.status == 200).then_some(())
        };
        crate::app::eventually("the service is ready", ready).await;
    }

    pub async fn worker(folder: &Path, environment: &[(&str, &str)]) -> Self {
        Self::worker_of(env!("CARGO_BIN_EXE_worker-turns"), folder, environment).await
    }

    pub async fn worker_of(binary: &str, folder: &Path, environment: &[(&str, &str)]) -> Self {
        let mut command = command(binary, folder);
        command.envs(environment.iter().copied());
        let worker = Self::spawn(command, folder);
        crate::app::eventually("the worker is ready", async || {
            worker.log().contains("worker ready").then_some(())
        })
        .await;
        worker
    }

    pub async fn worker_alone(folder: &Path) -> Output {
        let mut worker = command(env!("CARGO_BIN_EXE_worker-turns"), folder);
        tokio::time::timeout(SOON, worker.output()).await.unwrap().unwrap()
    }

    pub fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    pub fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        let sent = std::process::Command::new("kill").args(["-s", name, &pid]).status();
        assert!(sent.unwrap().success());
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub async fn ended(&mut self) -> ExitStatus {
        let status = tokio::time::timeout(SOON, self.child.wait()).await;
        status.unwrap_or_else(|_| panic!("does not end: {}", self.log())).unwrap()
    }

    pub async fn exit_code(&mut self) -> i32 {
        let status = self.ended().await;
        status.code().unwrap_or_else(|| panic!("ended by a signal: {}", self.log()))
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    fn spawn(mut command: Command, folder: &Path) -> Self {
        let log = folder.join(format!("stderr-{}", uuid::Uuid::new_v4()));
        command.stdout(Stdio::piped()).stderr(std::fs::File::create(&log).unwrap());
        Self {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            words: String::new(),
            child: command.kill_on_drop(true).spawn().unwrap(),
            log,
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // On SIGTERM the service stops its own server. After a failed test the service may hang.
        if self.child.id().is_some() {
            self.signal("TERM");
            let deadline = std::time::Instant::now() + SOON;
            while matches!(self.child.try_wait(), Ok(None)) && std::time::Instant::now() < deadline
            {
                std::thread::park_timeout(std::time::Duration::from_millis(10));
            }
        }
    }
}

/// Returns a program in an empty environment with only PATH and HOME, working in `folder`, where it also stores
/// settings of its user.
pub fn command(binary: &str, folder: &Path) -> Command {
    let mut command = Command::new(binary);
    command.env_clear().env("XDG_CONFIG_HOME", folder).current_dir(folder).stdin(Stdio::null());
    for name in ["PATH", "HOME"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

fn is_server_below(pid: u32, folder: &Path) -> bool {
    let proc = PathBuf::from("/proc").join(pid.to_string());
    let Ok(data) = std::fs::read_link(proc.join("cwd")) else {
        return false;
    };
    let is_postmaster = std::fs::read_to_string(data.join("postmaster.pid"))
        .is_ok_and(|text| text.lines().next() == Some(pid.to_string().as_str()));
    data.starts_with(folder) && is_postmaster
}
