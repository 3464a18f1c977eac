//! One conversation that grows: what a turn costs after 10, 100 and 500 others.

use serde_json::{Value, json};

use crate::ground::{Ground, Ran};

/// Another session for each sample of the same length, so that one checkpoint or neighbour does not decide.
const N_SESSIONS: usize = 5;
/// Turns that are measured at each length.
const N_MEASURED: usize = 20;
const LENGTHS: [usize; 3] = [10, 100, 500];

/// From the claim that is sent to the commit that is acknowledged.
pub async fn millis(ground: &Ground) -> anyhow::Result<Value> {
    let [at_10, at_100, at_500] = grow(ground, LENGTHS).await?;
    let calls: Vec<i32> =
        sqlx::query_scalar("select total_ms from dalsegno.usage where turn > 500")
            .fetch_all(&ground.pool)
            .await?;
    Ok(json!({
        "scenario": "one_session", "sessions": N_SESSIONS, "turns_measured_at_each_length": N_SESSIONS * N_MEASURED,
        "text_bytes_per_turn": ground.text_bytes_per_turn().await?.round(),
        "median_ms": { "10": at(&at_10, 0.5), "100": at(&at_100, 0.5), "500": at(&at_500, 0.5) },
        "p99_ms": { "10": at(&at_10, 0.99), "100": at(&at_100, 0.99), "500": at(&at_500, 0.99) },
        "of_it_in_the_simulation_ms": calls.iter().sum::<i32>() as f64 / calls.len() as f64,
        "worker_cpu_us_per_turn": { "10": micros(&at_10), "100": micros(&at_100), "500": micros(&at_500) },
    }))
}

/// What the server's log of changes grows by.
pub async fn bytes(ground: &Ground) -> anyhow::Result<Value> {
    let [at_10, at_500] = grow(ground, [LENGTHS[0], LENGTHS[2]]).await?;
    let per_turn = |ran: &[Ran]| {
        ran.iter().map(|ran| ran.wal_bytes).sum::<i64>() as f64 / (N_SESSIONS * N_MEASURED) as f64
    };
    let (at_10, at_500) = (per_turn(&at_10), per_turn(&at_500));
    Ok(json!({
        "scenario": "bytes_written", "sessions": N_SESSIONS, "text_bytes_per_turn": ground.text_bytes_per_turn().await?.round(),
        "wal_bytes_per_turn": { "10": at_10.round(), "500": at_500.round() }, "ratio": at_500 / at_10,
    }))
}

/// Grows some sessions and measures each at the given lengths.
async fn grow<const N: usize>(
    ground: &Ground,
    lengths: [usize; N],
) -> anyhow::Result<[Vec<Ran>; N]> {
    let mut measured = [const { Vec::new() }; N];
    for conversation in ground.conversations(N_SESSIONS, N_SESSIONS).await? {
        let conversation = std::slice::from_ref(&conversation);
        let mut length = 0;
        for (target, measured) in lengths.into_iter().zip(&mut measured) {
            ground.run(conversation, target - length).await?;
            measured.push(ground.measure(conversation, N_MEASURED).await?);
            length = target + N_MEASURED;
        }
    }
    Ok(measured)
}

fn at(ran: &[Ran], share: f64) -> f64 {
    let mut millis: Vec<f64> = ran.iter().flat_map(|ran| ran.millis.iter().copied()).collect();
    millis.sort_by(f64::total_cmp);
    millis[((millis.len() - 1) as f64 * share).round() as usize]
}

fn micros(ran: &[Ran]) -> u64 {
    ran.iter().map(|ran| ran.worker_micros).sum::<u64>() / (N_SESSIONS * N_MEASURED) as u64
}
