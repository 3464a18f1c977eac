//! A worker that is killed takes its CLI along, and everything that the CLI started.

use std::{
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use super::{
    api::{Api, Play},
    cli::Cli,
    host::processes_of,
};
use crate::app::eventually;

/// The promise of invariant 9.
const LIMIT: Duration = Duration::from_secs(5);

fn worker(cli: &Cli, api: &Api, sessions: &str, fault: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_claude-worker"))
        .arg(cli.program())
        .args([env!("CARGO_BIN_EXE_dalsegno"), sessions, &api.url(), fault])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills the worker once so many processes run for its session, and says how long they lived on.
async fn outlive(cli: &Cli, fault: &str, n_processes: usize) -> Duration {
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
    let killed = Instant::now();
    eventually("nothing is left", async || processes_of(&folder).is_empty().then_some(())).await;
    worker.wait().unwrap();
    killed.elapsed()
}

#[tokio::test]
async fn no_child_outlives_a_killed_worker() {
    for (fault, n_processes) in [
        ("hangs at start, deaf", 2),
        ("hangs in the turn, deaf", 2),
        ("leaves children and hangs", 6),
    ] {
        let lived = outlive(&Cli::Fake, fault, n_processes).await;
        assert!(lived < LIMIT, "{fault}: {lived:?}");
    }
}

#[tokio::test]
async fn no_real_cli_outlives_a_killed_worker() {
    if let Some(cli) = Cli::real() {
        let lived = outlive(&cli, "", 2).await;
        assert!(lived < LIMIT, "{lived:?}");
    }
}
