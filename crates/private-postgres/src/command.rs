//! Starts the programs of Postgres. No other module does.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::account::Account;
use super::ambient::Ambient;

/// Time limit for programs that only print an answer, such as a version.
const QUESTION_LIMIT: Duration = Duration::from_secs(10);

/// The account and the environment of the programs of Postgres.
#[derive(Debug, Clone)]
pub(super) struct Runner {
    pub account: Option<Account>,
    pub ambient: Ambient,
}

impl Runner {
    /// Prepares a program of Postgres: as the server's account, with a cleared environment, in a process group of its
    /// own so that Ctrl-C at the terminal reaches the service only.
    ///
    /// The working folder is always set: the account may have no access to that of the service.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the embedded server starts programs"
    )]
    pub fn command(&self, program: &Path, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(self.ambient.kept.iter().map(|(name, value)| (name, value)))
            .env("LC_ALL", "C")
            .current_dir(folder)
            .process_group(0);
        if let Some(account) = &self.account {
            // As root, setting the uid also empties the list of supplementary groups.
            command.uid(account.uid).gid(account.gid);
        }
        command
    }

    /// Runs a program that answers a question on its standard output.
    pub async fn ask(&self, program: &Path, argument: &str) -> io::Result<String> {
        let mut command = self.command(program, Path::new("/"));
        command.arg(argument).stdin(Stdio::null());
        let answer = tokio::time::timeout(QUESTION_LIMIT, output(command));
        let answer = answer.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        if !answer.status.success() {
            let said = String::from_utf8_lossy(&answer.stderr);
            return Err(io::Error::other(format!("{}: {}", answer.status, said.trim())));
        }
        Ok(String::from_utf8_lossy(&answer.stdout).trim().to_owned())
    }
}

/// Runs a command to its end; a drop of the future kills it.
pub(super) async fn output(command: Command) -> io::Result<Output> {
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(true).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn()?;
    // Dropped at once because it may own a lock as the child's standard input.
    drop(command);
    child.wait_with_output().await
}

/// Lists pid and command line of every process, for systems without `/proc`.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::disallowed_methods, reason = "asks the system, not Postgres")]
pub(super) fn list_processes() -> String {
    let listing = Command::new("/bin/ps").args(["-axww", "-o", "pid=,command="]).output();
    listing.map(|listing| String::from_utf8_lossy(&listing.stdout).into_owned()).unwrap_or_default()
}
