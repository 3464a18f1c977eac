//! The CLI under its guard, as the worker sees it.

use std::{
    ffi::OsString,
    io,
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal};
use tokio::{
    io::AsyncReadExt as _,
    process::{ChildStderr, ChildStdin, ChildStdout, Command},
    sync::watch,
    time::timeout,
};

use super::{Limits, guard, orphans, pipe};
use crate::providers::claude::credential::CredentialChannel;

/// Time after which a guard that does not end is killed itself.
const GUARD_PATIENCE: Duration = Duration::from_secs(2);

/// A running CLI with its guard. Dropping it kills the CLI and everything that it started: the guard sees that standard error was closed.
#[derive(Debug)]
pub(in crate::providers::claude) struct Child {
    guard: Option<Pid>,
    life: watch::Receiver<Life>,
    pub stdin: Option<ChildStdin>,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
}

/// The state of a guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Running,
    /// The guard has ended. The processes that a killed guard leaves are being ended.
    Ending,
    /// Nothing is left. `None`: the exit status is lost.
    Ended(Option<ExitStatus>),
}

/// Everything that the CLI is started with.
#[derive(Debug)]
pub(in crate::providers::claude) struct Launch<'a> {
    pub guard: &'a Path,
    pub program: &'a Path,
    pub arguments: Vec<OsString>,
    pub variables: Vec<(OsString, OsString)>,
    pub cwd: &'a Path,
    pub limits: &'a Limits,
    /// Lock file that the guard holds as long as anything of the session runs.
    pub lock: &'a Path,
}

/// Exit status of the CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::providers::claude) enum Exit {
    Code(i32),
    Signal(i32),
    /// The guard was killed, or its exit status is lost.
    Killed,
}

impl Child {
    #[expect(clippy::disallowed_methods, reason = "the one place where guards are started")]
    pub(in crate::providers::claude) fn start(
        launch: Launch<'_>,
        credential: CredentialChannel<'_>,
    ) -> io::Result<Self> {
        let (variable, input) = match credential {
            CredentialChannel::Variable { .. } => ("", None),
            CredentialChannel::Pipe { variable, secret } => {
                (variable, Some(pipe::input_with(secret)?))
            }
        };
        let (theirs, ours) =
            input.map_or((Stdio::piped(), None), |(theirs, ours)| (theirs, Some(ours)));
        let mut command = Command::new(launch.guard);
        command
            .arg(guard::ARGUMENT)
            .args(launch.limits.arguments())
            .arg(launch.lock)
            .arg(variable)
            .arg(launch.program)
            .args(launch.arguments)
            .env_clear()
            .envs(launch.variables)
            .current_dir(launch.cwd)
            // Ctrl-C at a terminal is for the service; it decides what happens to turns.
            .process_group(0)
            .stdin(theirs)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let (mut guard, listed) = orphans::start_guard(|| {
            let guard = command.spawn()?;
            let pid = guard.id().map(u32::cast_signed);
            Ok((guard, pid))
        })?;
        let pid = guard.id();
        let piped = (ours.or(guard.stdin.take()), guard.stdout.take(), guard.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = piped else {
            return Err(io::Error::other("no pipes"));
        };
        let (tell, life) = watch::channel(Life::Running);
        tokio::spawn(watch_over((guard, listed), launch.limits.clone(), tell));
        let guard = pid.and_then(|pid| Pid::from_raw(pid.cast_signed()));
        Ok(Self { guard, life, stdin: Some(stdin), stdout, stderr })
    }

    /// Returns true until the guard has ended.
    pub(in crate::providers::claude) fn is_running(&self) -> bool {
        *self.life.borrow() == Life::Running
    }

    /// Asks the CLI to end.
    pub(in crate::providers::claude) fn terminate(&self) {
        if let Some(guard) = self.guard.filter(|_| self.is_running()) {
            // Only the guard, not its group: the CLI ends the programs that it started. A tool that ends first makes it call the model
            // again.
            let _ = rustix::process::kill_process(guard, Signal::TERM);
        }
    }

    /// Waits until the CLI and everything that it started have ended. If standard error has output first, returns the number of bytes read.
    /// A child whose output is not read may never end.
    pub(in crate::providers::claude) async fn wait(
        &mut self,
        errors: &mut [u8],
        errors_are_open: bool,
    ) -> Result<Exit, usize> {
        tokio::select! {
            biased;
            n_bytes = self.stderr.read(errors), if errors_are_open => Err(n_bytes.unwrap_or(0)),
            status = ended(&mut self.life) => Ok(status.map_or(Exit::Killed, exit)),
        }
    }

    /// Ends everything that is left, at once.
    pub(in crate::providers::claude) async fn kill(self) {
        let Self { guard, mut life, stdin, stdout, stderr } = self;
        drop((stdin, stdout, stderr));
        let gone = life.wait_for(|life| *life != Life::Running);
        if timeout(GUARD_PATIENCE, gone).await.is_err() {
            tracing::error!(?guard, "the guard of a turn does not exit: killing its process group");
            if let Some(guard) = guard {
                let _ = rustix::process::kill_process_group(guard, Signal::KILL);
            }
        }
        ended(&mut life).await;
    }
}

/// Waits for a guard, and ends the processes that a killed one has left. Only then is the guard reported as ended.
async fn watch_over(
    (mut guard, listed): (tokio::process::Child, orphans::GuardEntry),
    limits: Limits,
    tell: watch::Sender<Life>,
) {
    let pid = guard.id();
    let status = guard.wait().await.ok();
    drop(listed);
    tell.send_replace(Life::Ending);
    // A guard that exits by itself leaves no processes.
    if status.is_none_or(|status| status.code().is_none()) {
        tracing::warn!(
            guard = pid,
            ?status,
            "the guard of a turn was killed: stopping its remaining processes"
        );
        pid.into_iter().for_each(|pid| limits.end_group_of(pid));
        orphans::end_all().await;
    }
    tell.send_replace(Life::Ended(status));
}

async fn ended(life: &mut watch::Receiver<Life>) -> Option<ExitStatus> {
    let ended = life.wait_for(|life| matches!(life, Life::Ended(_))).await;
    match ended.ok().map(|life| *life) {
        Some(Life::Ended(status)) => status,
        _ => None,
    }
}

/// The guard says by its code how the CLI ended, as a shell does: 128 and the number of a signal, of which there are 64. A CLI that ends with
/// such a code by itself cannot be told from one that a signal has ended.
fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code @ 129..=192), _) => Exit::Signal(code - 128),
        (Some(code), _) => Exit::Code(code),
        (None, _) => Exit::Killed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_code_above_all_signals_is_an_exit_code() {
        let exit = |code: i32| exit(ExitStatus::from_raw(code << 8));
        assert_eq!([0, 1, 128].map(exit), [0, 1, 128].map(Exit::Code));
        assert_eq!([137, 192].map(exit), [9, 64].map(Exit::Signal));
        assert_eq!([193, 255].map(exit), [193, 255].map(Exit::Code));
        assert_eq!(super::exit(ExitStatus::from_raw(9)), Exit::Killed);
    }
}
