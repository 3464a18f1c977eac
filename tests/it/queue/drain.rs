//! SIGTERM with short jobs, with long ones, and twice.

use std::time::{Duration, Instant};

use dalsegno::jobs::trial::{Note, NoteEnd, Sleep};
use rustix::process::Signal;

use super::{
    checker::Expected,
    proxy::Proxy,
    supervisor::{SLOTS, Worker, WorkerSupervisor},
    trial::{SHORT_LEASES, Trial},
};

const STARTS: &str = "SELECT count(*) FROM trial.starts";
/// Longer than each test.
const DRAIN_FOR_LONG: (&str, &str) = ("DALSEGNO_SHUTDOWN__DRAIN_TIMEOUT_SECS", "3600");

#[tokio::test]
async fn short_jobs_end_during_a_drain_and_none_runs_again() {
    let trial = Trial::new().await;
    let mut worker = Worker::start(&trial, &[DRAIN_FOR_LONG]);
    let n_jobs = 3 * SLOTS;
    for at in 0..n_jobs {
        let end = if at % 2 == 0 { NoteEnd::Own } else { NoteEnd::Batched };
        trial.note(None, Note { millis: 700, end, ..Note::default() }).await;
    }
    trial.until("all slots are taken", SLOTS as i64, STARTS).await;
    worker.signal(Signal::TERM);
    let status = worker.ended().await;
    assert_eq!(status.code(), Some(0), "{}", worker.log());
    let n_done = trial.count("SELECT count(*) FROM dalsegno.runs WHERE outcome = 'done'").await;
    assert_eq!(
        n_done,
        trial.count(STARTS).await,
        "a run that began did not end:\n{}",
        worker.log()
    );
    let mut supervisor = WorkerSupervisor::start(&trial, 1, &[]);
    trial.settle(&mut supervisor, 0).await;
    let journal = trial.check(&Expected::default()).await;
    assert_eq!(journal.starts.len(), n_jobs, "a job ran again");
    trial.end().await;
}

/// Stops a worker with two endless jobs by `n_signals` signals, and returns the time that it took.
async fn end_with_long_jobs(n_signals: usize, drain: (&str, &str)) -> Duration {
    let trial = Trial::new().await;
    let mut worker = Worker::start(&trial, &[drain]);
    let jobs = [trial.job(Some("a"), &Sleep {}).await, trial.job(None, &Sleep {}).await];
    trial.until("both jobs run", 2, STARTS).await;
    let signalled = Instant::now();
    for n in 1..=n_signals {
        worker.signal(Signal::TERM);
        let told = if n == 1 { "stopping" } else { "second signal" };
        crate::app::eventually("the signal is handled", async || {
            worker.log().contains(told).then_some(())
        })
        .await;
    }
    let status = worker.ended().await;
    let took = signalled.elapsed();
    assert_eq!(status.code(), Some(0), "{}", worker.log());
    let expected = Expected { live: jobs.into(), ..Expected::default() };
    let journal = trial.check(&expected).await;
    assert_eq!(journal.n_runs("given_back"), 2);
    for job in &journal.live {
        let state = (job.state.as_str(), job.attempt, job.crash_count);
        assert_eq!(state, ("ready", 0, 0), "given back without using up an attempt");
    }
    trial.end().await;
    took
}

#[tokio::test]
async fn long_jobs_are_given_back_without_an_attempt_after_the_drain() {
    let drain = ("DALSEGNO_SHUTDOWN__DRAIN_TIMEOUT_SECS", "1");
    let took = end_with_long_jobs(1, drain).await;
    assert!(took >= Duration::from_secs(1), "the drain ended too early: {took:?}");
}

#[tokio::test]
async fn a_second_signal_gives_long_jobs_back_at_once() {
    end_with_long_jobs(2, DRAIN_FOR_LONG).await;
}

#[tokio::test]
async fn a_drain_without_its_database_retries_the_connection() {
    let trial = Trial::new().await;
    let options = trial.pool.connect_options();
    let proxy = Proxy::start(&options).await;
    let url = proxy.url(&options);
    let settings = [&SHORT_LEASES[..], &[("DATABASE_URL", url.as_str()), DRAIN_FOR_LONG]].concat();
    let worker = Worker::start(&trial, &settings);
    trial.job(None, &Sleep {}).await;
    trial.until("the job runs", 1, STARTS).await;
    let log = async |words: &str| {
        crate::app::eventually(words, async || worker.log().contains(words).then_some(())).await;
    };
    proxy.end().await;
    log("cannot renew the lease").await;
    worker.signal(Signal::TERM);
    log("stopping all runs before it ends").await;
    let n_tries = worker.log().matches("cannot renew the lease").count();
    // Some seconds of attempts that are up to a second apart.
    assert!(n_tries < 50, "{n_tries} tries");
    drop(worker);
    trial.end().await;
}
