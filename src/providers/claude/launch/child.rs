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
    time::timeout,
};

use super::{Limits, guard, pipe};
use crate::providers::claude::credential::Handed;

/// A guard that does not end by then is killed itself.
const GUARD_PATIENCE: Duration = Duration::from_secs(2);

/// Dropping it kills the CLI and everything that it started: closing standard error is what tells the guard.
#[derive(Debug)]
pub(in crate::providers::claude) struct Child {
    guard: tokio::process::Child,
    pub stdin: Option<ChildStdin>,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
}

/// What is started, and on what ground.
#[derive(Debug)]
pub(in crate::providers::claude) struct Launch<'a> {
    pub guard: &'a Path,
    pub program: &'a Path,
    pub arguments: Vec<OsString>,
    pub variables: Vec<(OsString, OsString)>,
    pub cwd: &'a Path,
    pub limits: &'a Limits,
    /// Held by the guard as long as anything of the session runs.
    pub lock: &'a Path,
}

/// How the CLI ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::providers::claude) enum Exit {
    Code(i32),
    Signal(i32),
    /// It had to be killed.
    Killed,
}

impl Child {
    #[expect(clippy::disallowed_methods, reason = "the one place where guards are started")]
    pub(in crate::providers::claude) fn start(
        launch: Launch<'_>,
        login: Handed<'_>,
    ) -> io::Result<Self> {
        let (variable, input) = match login {
            Handed::Variable { .. } => ("", None),
            Handed::Pipe { variable, secret } => (variable, Some(pipe::input_with(secret)?)),
        };
        let (theirs, ours) =
            input.map_or((Stdio::piped(), None), |(theirs, ours)| (theirs, Some(ours)));
        let mut guard = Command::new(launch.guard)
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
            .stderr(Stdio::piped())
            .spawn()?;
        let piped = (ours.or(guard.stdin.take()), guard.stdout.take(), guard.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = piped else {
            return Err(io::Error::other("no pipes"));
        };
        Ok(Self { guard, stdin: Some(stdin), stdout, stderr })
    }

    /// Whether it has not ended yet.
    pub(in crate::providers::claude) fn is_running(&mut self) -> bool {
        matches!(self.guard.try_wait(), Ok(None))
    }

    /// Asks the CLI to end.
    pub(in crate::providers::claude) fn terminate(&self) {
        if let Some(guard) = self.pid() {
            // Not its group: the CLI ends what it started, and a tool that ends first makes it ask the model again.
            let _ = rustix::process::kill_process(guard, Signal::TERM);
        }
    }

    /// Waits until the CLI has ended and nothing that it started is left, or says how many bytes of standard error came.
    /// A child that is not read may never end.
    pub(in crate::providers::claude) async fn wait(
        &mut self,
        errors: &mut [u8],
        errors_are_open: bool,
    ) -> Result<Exit, usize> {
        tokio::select! {
            biased;
            n_bytes = self.stderr.read(errors), if errors_are_open => Err(n_bytes.unwrap_or(0)),
            status = self.guard.wait() => Ok(status.map_or(Exit::Killed, exit)),
        }
    }

    /// Ends whatever is left, at once.
    pub(in crate::providers::claude) async fn kill(self) {
        let Self { mut guard, stdin, stdout, stderr } = self;
        let group = guard.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        drop((stdin, stdout, stderr));
        if timeout(GUARD_PATIENCE, guard.wait()).await.is_ok() {
            return;
        }
        tracing::error!(?group, "a guard does not end; its group is killed");
        if let Some(group) = group {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
        let _ = guard.wait().await;
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(self.guard.id()?.cast_signed())
    }
}

/// The guard says by its code how the CLI ended.
fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code @ 129..), _) => Exit::Signal(code - 128),
        (Some(code), _) => Exit::Code(code),
        (None, _) => Exit::Killed,
    }
}
