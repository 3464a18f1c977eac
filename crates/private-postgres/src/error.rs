//! Errors of the private Postgres, with the next step.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::{Holder, Owner};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {action} {path}: {source}{hint}", path = path.display(), hint = hint(source))]
    Folder { action: &'static str, path: PathBuf, source: io::Error },

    #[error(
        "{holder} the data folder {data_dir}; stop it, or give this one a folder of its own with \
         `service.data_dir`, or point both at one server with DATABASE_URL",
        holder = describe_holder(*holder),
        data_dir = data_dir.display()
    )]
    AlreadyRunning { data_dir: PathBuf, holder: Option<Holder> },

    #[error(
        "no usable Postgres server binaries (14 to 18) on this machine{rejected}; {not_fetched}; \
         {install}, or name their folder with `database.embedded.bin_dir`, or set DATABASE_URL to a running server",
        rejected = describe_rejected(rejected)
    )]
    NoServerBinaries { rejected: Vec<String>, not_fetched: String, install: String },

    #[error("`database.embedded.bin_dir` {path} has no usable Postgres server: {reason}; correct or remove the key", path = path.display())]
    BadBinDir { path: PathBuf, reason: String },

    #[error(
        "the cluster in {folder} belongs to Postgres {cluster}, but this machine has {offered}; install Postgres {cluster}, or name its binaries with `database.embedded.bin_dir`, or migrate the data with pg_upgrade or pg_dump, or move the folder away to start with an empty database",
        folder = folder.display()
    )]
    OtherMajor { folder: PathBuf, cluster: u32, offered: String },

    #[error(
        "{folder} exists but is not a Postgres cluster; move it away, or choose another `service.data_dir`",
        folder = folder.display()
    )]
    NotACluster { folder: PathBuf },

    #[error("{path} is a symbolic link, which is not followed for safety; remove it", path = path.display())]
    NotAFolder { path: PathBuf },

    #[error(
        "Postgres does not run as root and {problem}; set `database.embedded.run_as` to an ordinary user of this \
         machine, or run the service as one"
    )]
    NoAccount { problem: String },

    #[error(
        "the server's user {account} cannot reach {folder}; allow it to enter every folder above \
         (chmod o+x), or move the data elsewhere with `service.data_dir`",
        folder = folder.display()
    )]
    Unreachable { account: String, folder: PathBuf },

    #[error(
        "the socket path {path} is longer than {limit} bytes; set `database.embedded.listen` to \"auto\" or \
         \"loopback\", or choose a shorter `service.data_dir`",
        path = path.display()
    )]
    SocketPathTooLong { path: PathBuf, limit: usize },

    #[error(
        "PGOPTIONS is set and would affect every connection to the private Postgres; unset it, or set DATABASE_URL if it is meant for your own server"
    )]
    AmbientOptions,

    #[error("cannot run {program}: {source}", program = program.display())]
    Run { program: PathBuf, source: io::Error },

    #[error("initdb could not create the cluster:\n{output}")]
    Initdb { output: String },

    #[error("the private Postgres exited during its start; the end of {log}:\n{tail}", log = log.display())]
    EndedAtStart { log: PathBuf, tail: String },

    #[error(
        "the private Postgres was not ready after {waited_secs} s; crash recovery may take \
         longer: raise `database.embedded.start_timeout_secs`; the end of {log}:\n{tail}",
        log = log.display()
    )]
    StartTimeout { waited_secs: u64, log: PathBuf, tail: String },

    #[error(
        "processes of an earlier private Postgres still use {folder}{pids}; end them, then start again",
        folder = folder.display(),
        pids = describe_pids(pids)
    )]
    Occupied { folder: PathBuf, pids: Vec<u32> },

    #[error(
        "cannot connect to the private Postgres: {source}; the end of {log}:\n{tail}",
        log = log.display()
    )]
    Connect { source: sqlx::Error, log: PathBuf, tail: String },

    #[error(
        "the private Postgres (pid {pid}) did not stop within {waited_secs} s; stop it yourself"
    )]
    StopTimeout { pid: u32, waited_secs: u64 },

    #[error("the start was stopped before the private Postgres was ready")]
    Stopped,

    #[error("the supervisor of the private Postgres ended early: {0}")]
    Watcher(#[from] tokio::task::JoinError),
}

impl Error {
    /// Returns true if another service owns the folder.
    pub fn is_in_use(&self) -> bool {
        matches!(self, Self::AlreadyRunning { .. })
    }

    /// Returns a function for `map_err` on file operations that names the action and the path.
    pub(super) fn folder(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Folder { action, path, source }
    }
}

fn hint(source: &io::Error) -> &'static str {
    match Errno::from_io_error(source) {
        Some(Errno::ACCESS | Errno::PERM) => {
            "; run it as the user that made the data folder, or choose another with `service.data_dir`"
        }
        // The system's error for a link that is not followed.
        Some(Errno::LOOP) => "; it is a symbolic link, which is not followed for safety: remove it",
        _ => "",
    }
}

fn describe_holder(holder: Option<Holder>) -> String {
    match holder {
        Some(Holder { pid, owner: Owner::Service }) => {
            format!("another service (pid {pid}) already runs on")
        }
        Some(Holder { pid, owner: Owner::Command }) => {
            format!("another command (pid {pid}) still uses")
        }
        None => "another process uses".to_owned(),
    }
}

fn describe_rejected(rejected: &[String]) -> String {
    match rejected {
        [] => String::new(),
        some => format!(" (passed over: {})", some.join("; ")),
    }
}

fn describe_pids(pids: &[u32]) -> String {
    match pids {
        [] => String::new(),
        some => {
            format!(" (pids {})", some.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
        }
    }
}
