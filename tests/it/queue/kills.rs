//! Workers that are killed at random moments while jobs arrive.

use std::time::Duration;

use dalsegno::jobs::trial::{Note, NoteEnd};
use tokio::time::Instant;

use super::{
    checker::Expected,
    supervisor::{SLOTS, WorkerSupervisor},
    trial::Trial,
};
use crate::embedded::support::Random;

fn chance(random: &mut Random, one_in: u64) -> bool {
    random.below(one_in) == 0
}

fn random_note(random: &mut Random) -> Note {
    Note {
        millis: random.below(150),
        failures: i16::from(chance(random, 8)),
        snoozes: i64::from(chance(random, 8)),
        end: if chance(random, 3) { NoteEnd::Batched } else { NoteEnd::Own },
        ..Note::default()
    }
}

/// Runs four workers, and kills one about every second.
pub async fn kill_at_random(faults: Duration) {
    let mut random = Random::seeded();
    let trial = Trial::new().await;
    let mut supervisor = WorkerSupervisor::start(&trial, 4, &[]);
    supervisor.ready().await;
    let over = Instant::now() + faults;
    let mut kill_at = Instant::now() + Duration::from_secs(1);
    let mut n_kills = 0;
    while Instant::now() < over {
        let lane = random.below(16);
        let lane = (lane > 3).then(|| format!("lane {lane}"));
        let note = random_note(&mut random);
        trial.note(lane.as_deref(), note).await;
        if Instant::now() >= kill_at {
            supervisor.kill(random.below(4) as usize).await;
            n_kills += 1;
            kill_at = Instant::now() + Duration::from_millis(500 + random.below(1_500));
        }
        tokio::time::sleep(Duration::from_millis(random.below(25))).await;
    }
    let quiet = Instant::now();
    trial.settle(&mut supervisor, 0).await;
    // At this rate, a few jobs may lose three workers in a row by chance.
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

#[tokio::test]
async fn random_kills_lose_and_duplicate_nothing() {
    kill_at_random(Duration::from_secs(8)).await;
}
