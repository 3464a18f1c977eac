//! The guard: a small process between a worker and its CLI, which kills everything that would outlive either.
//!
//! The means of the kernel alone are not enough:
//! - A parent-death signal comes when the *thread* that forked ends, which in a pool of threads is long before the process does. It does
//!   not reach grandchildren.
//! - A process group does not hold programs that call `setsid`, as every command of the CLI's own shell tool does.
//! - A CLI that reads the end of its input first finishes its turn.
//!
//! So the guard is the subreaper of everything below it: a process that loses its parent becomes the guard's own child, in any group or
//! session.
//!
//! The guard kills everything below it when the CLI has ended. It does the same when the reading end of its standard error is closed: the
//! worker closed it, or has ended in any way. That needs no signal, pid or message. So there is no race with a worker that dies early, and
//! none with reused pids.
//!
//! A guard that is killed itself leaves its children to the worker: see `super::orphans`.
//!
//! SIGTERM is passed on to the CLI, and SIGQUIT ends everything at once: see `super::lock`. The guard's exit code is the CLI's, or 128 plus
//! the signal that ended the CLI.

use std::{
    ffi::OsString,
    fs::File,
    io,
    os::fd::{AsFd as _, OwnedFd},
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    process::{Pid, Signal, WaitOptions, WaitStatus},
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::oneshot,
};

use super::{
    limits::{Limits, own_group},
    lock, orphans, pipe,
    processes::children,
};

/// First argument that makes any binary of the project a guard.
pub const ARGUMENT: &str = "guard-claude";
/// Exit code if the guard itself failed. No program that ends by itself uses it.
const FAILED: u8 = 125;
/// Time for which reading the list of processes is retried.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Returns the program to start as a guard: the running one, even if an upgrade has replaced its file.
pub fn program() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

/// Becomes a guard if the arguments ask for it. Must be called first in `main`: a guard needs no configuration, no logs and no threads.
pub fn intercept(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    Some(match run(arguments) {
        Ok(code) => ExitCode::from(code),
        Err(_) => ExitCode::from(FAILED),
    })
}

fn run(mut arguments: impl Iterator<Item = OsString>) -> io::Result<u8> {
    let limits = Limits::from_arguments(&mut arguments).ok_or(io::ErrorKind::InvalidInput)?;
    let lock = arguments.next().ok_or(io::ErrorKind::InvalidInput)?;
    let credential_variable = arguments.next().ok_or(io::ErrorKind::InvalidInput)?;
    let program = arguments.next().ok_or(io::ErrorKind::InvalidInput)?;
    let arguments = arguments.collect();
    let cli = Cli { program, arguments, lock: lock.into(), credential_variable };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(watch(&cli, &limits))
}

/// Program to start, and its input.
struct Cli {
    program: OsString,
    arguments: Vec<OsString>,
    lock: PathBuf,
    /// Variable for the number of the pipe with the credential. Empty if the CLI gets its credential in another way.
    credential_variable: OsString,
}

async fn watch(cli: &Cli, limits: &Limits) -> io::Result<u8> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Pid::from_raw(std::process::id().cast_signed()))?;
    orphans::mark();
    let home = own_group(&limits.cgroup);
    let group = limits.apply().inspect_err(|error| {
        write_stderr(&format!("{START_FAILED}its control group cannot be made: {error}\n"));
    })?;
    // Registered before the CLI starts: an early signal would end the guard alone.
    let (mut ended, mut term) = (signal(SignalKind::child())?, signal(SignalKind::terminate())?);
    let mut given_up = signal(SignalKind::quit())?;
    let mut released = released(io::stderr().as_fd().try_clone_to_owned()?);
    // Held until the end, when nothing of the session runs any more.
    let _held = lock::wait_for_lock(&cli.lock).inspect_err(|error| {
        write_stderr(&format!("{START_FAILED}the session is in use on this host: {error}\n"));
    })?;
    let cli = start(cli)?;
    group.iter().for_each(|group| group.step_out(home.as_deref()));
    let code = loop {
        tokio::select! {
            _ = ended.recv() => {
                if let Some(code) = reap(cli) {
                    break code;
                }
            }
            _ = term.recv() => {
                let _ = rustix::process::kill_process(cli, Signal::TERM);
            }
            // Another worker has taken the session over.
            _ = given_up.recv() => break FAILED,
            _ = &mut released => break FAILED,
        }
    };
    let code = kill_all(cli).unwrap_or(code);
    if let Some(group) = group {
        if group.has_killed() {
            write_stderr(OUT_OF_MEMORY);
        }
        group.remove();
    }
    Ok(code)
}

/// Writes to standard error, where the worker learns what the guard has to report.
fn write_stderr(words: &str) {
    let _ = io::Write::write_all(&mut io::stderr(), words.as_bytes());
}

/// Resolves when the other end of the pipe is closed. Uses a thread of its own: the CLI shares the pipe, and the runtime would have to make
/// it non-blocking for both.
fn released(pipe: OwnedFd) -> oneshot::Receiver<()> {
    let (tell, released) = oneshot::channel();
    std::thread::spawn(move || {
        // `poll` reports an error even if no event is requested.
        while poll(&mut [PollFd::new(&pipe, PollFlags::empty())], None) == Err(Errno::INTR) {}
        let _ = tell.send(());
    });
    released
}

/// Starts the CLI in the guard's group, and releases the guard's standard input and output, so that they end with the CLI.
#[expect(clippy::disallowed_methods, reason = "the one place where the CLI is started")]
fn start(cli: &Cli) -> io::Result<Pid> {
    let credential = (!cli.credential_variable.is_empty()).then(pipe::pipe_of_input).transpose()?;
    let child = Command::new(&cli.program)
        .args(&cli.arguments)
        .envs(credential.iter().map(|(_, number)| (&cli.credential_variable, number)))
        .stdin(Stdio::inherit())
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit())
        .spawn();
    let child = child.inspect_err(|error| {
        write_stderr(&format!("{START_FAILED}{error}\n"));
    })?;
    let nothing: OwnedFd = File::options().read(true).write(true).open("/dev/null")?.into();
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    Pid::from_raw(child.id().cast_signed()).ok_or(io::ErrorKind::Other.into())
}

/// Beginning of the guard's message that the CLI could not be started.
pub(in crate::providers::claude) const START_FAILED: &str =
    "guard: the program cannot be started: ";

/// Message of the guard that the kernel has killed a process for the group's memory limit.
pub(in crate::providers::claude) const OUT_OF_MEMORY: &str =
    "guard: something was killed, because the memory limit was reached";

/// Collects ended children, orphans included. Returns the exit code of the CLI if it is among them.
fn reap(cli: Pid) -> Option<u8> {
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if pid == cli {
            return Some(code(status));
        }
    }
    None
}

/// Kills until no child is left. Children of a killed process become the guard's own and are next, so a tree of any shape ends.
fn kill_all(cli: Pid) -> Option<u8> {
    let (mut cli_code, until) = (None, Instant::now() + PATIENCE);
    loop {
        let children = match children() {
            // For example, too many files are open on the host, which passes.
            Err(_) if Instant::now() < until => {
                std::thread::sleep(LOOK_EVERY);
                continue;
            }
            children => children.unwrap_or_default(),
        };
        for child in children.iter().filter_map(|child| child.pid()) {
            let _ = rustix::process::kill_process(child, Signal::KILL);
        }
        match rustix::process::wait(if children.is_empty() {
            WaitOptions::NOHANG
        } else {
            WaitOptions::empty()
        }) {
            Ok(Some((pid, status))) if pid == cli => cli_code = Some(code(status)),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) | Err(_) => break,
        }
    }
    #[cfg(not(target_os = "linux"))]
    if let Some(group) = Pid::from_raw(std::process::id().cast_signed()) {
        // Without a list of processes and a subreaper, only the group can be killed, and the guard with it.
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
    cli_code
}

fn code(status: WaitStatus) -> u8 {
    let code = match status.terminating_signal() {
        Some(signal) => 128 + signal,
        None => status.exit_status().unwrap_or(FAILED.into()),
    };
    u8::try_from(code).unwrap_or(FAILED)
}
