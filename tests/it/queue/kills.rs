//! Workers are killed at random moments while work comes in.

use std::time::Duration;

use dalsegno::jobs::trial::{Note, NoteEnd};
use rustix::process::Signal;
use tokio::time::Instant;

use super::{
    checker::Expected,
    crew::{Crew, SLOTS, Worker},
    trial::{SETTLED, Trial},
};
use crate::embedded::support::{Random, send};

fn chance(random: &mut Random, one_in: u64) -> bool {
    random.below(one_in) == 0
}

fn any_note(random: &mut Random) -> Note {
    Note {
        millis: random.below(150),
        failures: i16::from(chance(random, 8)),
        snoozes: i64::from(chance(random, 8)),
        end: if chance(random, 3) { NoteEnd::Batched } else { NoteEnd::Own },
        ..Note::default()
    }
}

/// Four workers, one of which is killed about every second.
pub async fn kill_at_random(faults: Duration) {
    let mut random = Random::seeded();
    let trial = Trial::new().await;
    let mut crew = Crew::start(&trial, 4, &[]);
    crew.ready().await;
    let over = Instant::now() + faults;
    let mut kill_at = Instant::now() + Duration::from_secs(1);
    let mut n_kills = 0;
    while Instant::now() < over {
        let lane = random.below(16);
        let lane = (lane > 3).then(|| format!("lane {lane}"));
        let note = any_note(&mut random);
        trial.note(lane.as_deref(), note).await;
        if Instant::now() >= kill_at {
            crew.kill(random.below(4) as usize).await;
            n_kills += 1;
            kill_at = Instant::now() + Duration::from_millis(500 + random.below(1_500));
        }
        tokio::time::sleep(Duration::from_millis(random.below(25))).await;
    }
    let quiet = Instant::now();
    trial.settle(&mut crew, 0, SETTLED).await;
    // Killed at this rate, a few jobs may lose three workers in a row without being to blame.
    let unlucky = n_kills / 10;
    let expected = Expected { lost_runs: n_kills * SLOTS, unlucky, ..Expected::default() };
    let journal = trial.check(&expected).await;
    println!(
        "{n_kills} kills, {} jobs, {} runs lost, settled after {:?}",
        journal.enqueued.len(),
        journal.n_runs("lost"),
        quiet.elapsed()
    );
    trial.end().await;
}

/// A worker with the leases that a deployment has is killed, and another runs its job again.
pub async fn rerun_with_default_leases() {
    let default_leases = [
        ("DALSEGNO_QUEUE__LEASE_SECS", "30"),
        ("DALSEGNO_QUEUE__HEARTBEAT_SECS", "5"),
        ("DALSEGNO_QUEUE__LEASE_MARGIN_SECS", "10"),
        ("DALSEGNO_QUEUE__POLL_BUSY_MS", "1000"),
        ("DALSEGNO_QUEUE__POLL_IDLE_MS", "5000"),
    ];
    let trial = Trial::new().await;
    let first = Worker::start(&trial, &default_leases);
    trial.note(Some("a"), Note { millis: 20_000, ..Note::default() }).await;
    trial.until("the job runs", 1, "SELECT count(*) FROM trial.starts").await;
    // Who declares others lost has itself renewed for a whole lease first.
    let second = Worker::start(&trial, &default_leases);
    second.ready().await;
    send(first.pid(), Signal::KILL);
    let killed = Instant::now();
    let starts = async || trial.count("SELECT count(*) FROM trial.starts").await >= 2;
    trial.until_within(Duration::from_secs(40), "the job runs again", starts).await;
    println!("crash to re-run with a lease of 30 s: {:?}", killed.elapsed());
    let ended = async || trial.count("SELECT count(*) FROM dalsegno.jobs").await == 0;
    trial.until_within(SETTLED, "the job has ended", ended).await;
    trial.check(&Expected { lost_runs: 1, ..Expected::default() }).await;
    trial.end().await;
}

#[tokio::test]
async fn random_kills_lose_and_double_nothing() {
    kill_at_random(Duration::from_secs(8)).await;
}
