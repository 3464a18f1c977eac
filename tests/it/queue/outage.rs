//! Postgres is killed, and restarted after a while.

use std::time::Duration;

use dalsegno::jobs::trial::{Note, NoteEnd};
use tokio::time::Instant;

use super::{
    checker::Expected,
    proxy::Proxy,
    supervisor::{SLOTS, WorkerSupervisor},
    trial::Trial,
};
use crate::{
    app::{TestDatabase, eventually, get},
    cluster::scratch_folder,
    embedded::orphaned_server::OrphanedServer,
    service::{SERVE, Service},
};

/// Kills Postgres under two workers with all slots taken, and restarts it after `away`.
///
/// `settings` are those of the workers; with the usual ones, an outage longer than a lease costs the runs.
pub async fn kill_postgres(away: Duration, settings: &[(&str, &str)], lost_runs: usize) {
    let server = OrphanedServer::start().await;
    let trial = Trial::on_own_server(server.url()).await;
    let mut supervisor = WorkerSupervisor::start(&trial, 2, settings);
    supervisor.ready().await;
    for at in 0..6 * SLOTS {
        let lane = (at % 3 > 0).then(|| format!("lane {}", at % 7));
        let end = if at % 4 == 0 { NoteEnd::Batched } else { NoteEnd::Own };
        let note = Note { millis: 400, end, ..Note::default() };
        trial.note(lane.as_deref(), note).await;
    }
    trial.until("jobs are running", SLOTS as i64, "SELECT count(*) FROM trial.starts").await;
    server.kill();
    let back_at = Instant::now() + away;
    let mut n_refused = 0;
    while Instant::now() < back_at {
        // Enqueueing fails meanwhile, and acknowledged jobs must not be lost.
        let enqueued = trial.try_note(Some("lane 1"), Note::default());
        let enqueued = tokio::time::timeout(Duration::from_secs(1), enqueued).await;
        n_refused += usize::from(!matches!(enqueued, Ok(Ok(_))));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(n_refused > 0, "the server was not away");
    let postgres = server.restart().await;
    let began = Instant::now();
    let before = trial.count("SELECT count(*) FROM trial.starts").await;
    trial.until("jobs continue", before + 1, "SELECT count(*) FROM trial.starts").await;
    let went_on = began.elapsed();
    trial.settle(&mut supervisor, 0).await;
    println!("away for {away:?}: went on after {went_on:?}, settled after {:?}", began.elapsed());
    assert_eq!(supervisor.n_replaced, 0, "a worker ended:\n{}", supervisor.logs());
    trial.check(&Expected { lost_runs, ..Expected::default() }).await;
    drop(supervisor);
    trial.end().await;
    postgres.stop().await.unwrap();
}

/// With leases that outlast the outage, like the default of 30 s.
#[tokio::test]
async fn a_killed_postgres_ends_no_worker_and_no_run() {
    kill_postgres(Duration::from_secs(3), &[], 0).await;
}

/// Stops an idle service, and returns the time that it took. Silent: nothing answers, and no connection ends. Otherwise
/// connections end, and new ones are refused.
pub async fn stop_without_a_database(is_silent: bool) -> Duration {
    let (folder, database) = (scratch_folder(), TestDatabase::migrated().await);
    let proxy = Proxy::start(&database.options).await;
    let url = proxy.url(&database.options);
    // A service that waited for one of these would not end in this test.
    let settings = [
        ("DATABASE_URL", url.as_str()),
        ("DALSEGNO_SHUTDOWN__DRAIN_TIMEOUT_SECS", "3600"),
        ("DALSEGNO_SHUTDOWN__STOP_TIMEOUT_SECS", "7200"),
    ];
    let mut service = Service::start(folder.path(), &settings).await;
    service.ready().await;
    let silent = match is_silent {
        true => {
            proxy.stall();
            Some(proxy)
        }
        false => {
            proxy.end().await;
            None
        }
    };
    let missed = async || {
        let answer = get(service.address, "/readyz").await;
        answer.is_ok_and(|answer| answer.status == 503).then_some(())
    };
    eventually("the service detects the missing database", missed).await;
    let began = Instant::now();
    service.signal("TERM");
    let code = service.exit_code().await;
    let took = began.elapsed();
    println!("silent: {is_silent}, ended with {code} after {took:?}");
    assert_eq!(code, 0, "{}", service.log());
    drop(silent);
    took
}

#[tokio::test]
async fn an_idle_service_stops_without_its_database() {
    tokio::join!(stop_without_a_database(true), stop_without_a_database(false));
}

/// Starts a process whose first connection succeeds and whose later ones fail. It must wait for the database.
async fn break_off_behind_the_first_connection(arguments: &[&str]) {
    let (folder, database) = (scratch_folder(), TestDatabase::migrated().await);
    let proxy = Proxy::start(&database.options).await;
    let url = proxy.url(&database.options);
    proxy.close_after(1);
    let mut service = Service::begin(folder.path(), arguments, &[("DATABASE_URL", &url)]);
    let waits = |service: &mut Service| {
        assert!(!service.has_ended(), "{arguments:?}:\n{}", service.log());
        service.log().contains("waiting for the database").then_some(())
    };
    eventually("the start waits for its database", async || waits(&mut service)).await;
    assert!(proxy.n_connections("dalsegno") > 1);
    proxy.resume_traffic();
    let works = async || service.log().contains("worker registered").then_some(());
    eventually("its worker is registered", works).await;
    service.signal("TERM");
    assert_eq!(service.exit_code().await, 0, "{arguments:?}:\n{}", service.log());
}

#[tokio::test]
async fn a_start_waits_for_a_database_that_disconnects() {
    let waits_for_schema = [&SERVE[..], &["--set", "database.migrate_on_start=false"]].concat();
    tokio::join!(
        break_off_behind_the_first_connection(&SERVE),
        break_off_behind_the_first_connection(&waits_for_schema),
        break_off_behind_the_first_connection(&["worker", "turns"]),
    );
}

#[tokio::test]
async fn a_start_ends_when_the_database_stays_away() {
    let (folder, database) = (scratch_folder(), TestDatabase::migrated().await);
    let proxy = Proxy::start(&database.options).await;
    let url = proxy.url(&database.options);
    proxy.close_after(1);
    let arguments = [&SERVE[..], &["--set", "database.connect_timeout_secs=2"]].concat();
    let mut service = Service::begin(folder.path(), &arguments, &[("DATABASE_URL", &url)]);
    assert_ne!(service.exit_code().await, 0);
    assert!(service.log().contains("waiting for the database"), "{}", service.log());
}
