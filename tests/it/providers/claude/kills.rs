//! Killed workers: their CLI and all its children end with them.

use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::{
    api::{Api, Play},
    cli::Cli,
    host::{Host, StoredConversation, processes_of},
};
use crate::{app::eventually, providers::requests::RETRY};

fn worker(cli: &Cli, api: &Api, sessions: &str, fault: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_claude-worker"))
        .arg(cli.program())
        .args([env!("CARGO_BIN_EXE_dalsegno"), sessions, &api.url(), fault])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills the worker once `n_processes` processes run for its session, and waits until they have ended. Each would hang
/// for ten minutes.
async fn follow_a_killed_worker(cli: &Cli, fault: &str, n_processes: usize) {
    let (api, sessions) = (Api::start().await, tempfile::tempdir().unwrap());
    api.plays([Play::Hangs]);
    let folder = sessions.path().to_string_lossy().into_owned();
    let mut worker = worker(cli, &api, &folder, fault);
    eventually("the turn runs", async || {
        let is_asked = *cli == Cli::Fake || !api.requests().is_empty();
        (is_asked && processes_of(&folder).len() >= n_processes).then_some(())
    })
    .await;
    worker.kill().unwrap();
    eventually("no process or file is left", async || {
        processes_of(&folder).is_empty().then_some(())
    })
    .await;
    worker.wait().unwrap();
}

#[tokio::test]
async fn no_child_outlives_a_killed_worker() {
    for (fault, n_processes) in [
        ("hangs at start, deaf", 2),
        ("hangs in the turn, deaf", 2),
        ("leaves children and hangs", 6),
    ] {
        follow_a_killed_worker(&Cli::Fake, fault, n_processes).await;
    }
}

#[tokio::test]
async fn no_real_cli_outlives_a_killed_worker() {
    if let Some(cli) = Cli::real() {
        follow_a_killed_worker(&cli, "", 2).await;
    }
}

/// Returns the pids of processes with these words in their arguments.
fn pids_of(words: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has = |pid: &i32| {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&arguments).contains(words)
    };
    pids.filter(has).collect()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_turn_that_kills_its_guard_leaves_no_process() {
    // Children of this process that belong to no turn: one of its own, and an adopted one.
    let mut own = Command::new("sleep").arg("606.1").spawn().unwrap();
    let mut host = Host::with_fault("kills its guard").await;
    host.config.exit_timeout_secs = 1;
    for _ in 0..3 {
        let asked = host.ask(StoredConversation::new().request("Hello.", false));
        let error = asked.await.expect_err("the turn fails");
        assert_eq!(error.class, RETRY, "{error}");
        assert_eq!(pids_of("escaped-"), Vec::<i32>::new(), "no process is left after the turn");
        assert!(host.processes().is_empty(), "{:?}", host.processes());
    }
    let left = Command::new("sh").args(["-c", "setsid sleep 606.2 &"]).status().unwrap();
    assert!(left.success());
    host.ask(StoredConversation::new().request("Hello.", false)).await.expect_err("the turn fails");
    assert_eq!(own.try_wait().unwrap(), None, "its process was killed, too");
    let adopted = pids_of("606.2");
    assert_eq!(adopted.len(), 1, "its process was killed, too");
    adopted.into_iter().filter_map(Pid::from_raw).for_each(|pid| {
        kill_process(pid, Signal::KILL).unwrap();
    });
    own.kill().unwrap();
    own.wait().unwrap();
}
