//! The cost of a turn in a growing conversation, after 10, 100 and 500 others.

use serde_json::{Value, json};

use crate::{
    common::size,
    fixture::{Fixture, Ran},
};

/// Number of sessions. Each sample of the same length uses another one, so that one checkpoint or busy neighbour does not decide.
fn n_sessions() -> usize {
    size::of(5, 1)
}

/// Number of turns that are measured at each length.
fn n_measured() -> usize {
    size::of(20, 2)
}

fn lengths() -> [usize; 3] {
    size::of([10, 100, 500], [1, 4, 8])
}

/// Measures from the sent claim to the acknowledged commit. The first turn after the start of a worker has a figure of
/// its own: it reads the whole conversation, on connections that have run none of its statements.
pub async fn millis(ground: &Fixture) -> anyhow::Result<Value> {
    let [at_10, at_100, at_500] = grow(ground, lengths()).await?;
    let calls: Vec<i32> = sqlx::query_scalar("select total_ms from dalsegno.usage where turn > $1")
        .bind(i32::try_from(lengths()[2])?)
        .fetch_all(&ground.pool)
        .await?;
    let by_length = |figure: fn(&[Ran]) -> f64| -> Value {
        let ran = [&at_10, &at_100, &at_500].map(|ran| figure(ran));
        lengths().iter().map(usize::to_string).zip(ran.map(Value::from)).collect()
    };
    Ok(json!({
        "scenario": "one_session", "sessions": n_sessions(), "turns_measured_at_each_length": n_sessions() * n_measured(),
        "text_bytes_per_turn": ground.text_bytes_per_turn().await?.round(),
        "first_after_a_start_ms": by_length(first), "median_ms": by_length(|ran| at(ran, 0.5)), "p99_ms": by_length(|ran| at(ran, 0.99)),
        "of_it_in_the_simulation_ms": calls.iter().sum::<i32>() as f64 / calls.len() as f64,
        "worker_cpu_us_per_turn": by_length(micros),
    }))
}

/// Measures the growth of the server's write-ahead log.
pub async fn bytes(ground: &Fixture) -> anyhow::Result<Value> {
    let [at_10, at_500] = grow(ground, [lengths()[0], lengths()[2]]).await?;
    let per_turn = |ran: &[Ran]| {
        ran.iter().map(|ran| ran.wal_bytes).sum::<i64>() as f64
            / (n_sessions() * n_measured()) as f64
    };
    let (at_10, at_500) = (per_turn(&at_10), per_turn(&at_500));
    Ok(json!({
        "scenario": "bytes_written", "sessions": n_sessions(), "text_bytes_per_turn": ground.text_bytes_per_turn().await?.round(),
        "wal_bytes_per_turn": { "10": at_10.round(), "500": at_500.round() }, "ratio": at_500 / at_10,
    }))
}

/// Grows some sessions and measures each at the given lengths.
async fn grow<const N: usize>(
    ground: &Fixture,
    lengths: [usize; N],
) -> anyhow::Result<[Vec<Ran>; N]> {
    let mut measured = [const { Vec::new() }; N];
    for conversation in ground.conversations(n_sessions(), n_sessions()).await? {
        let conversation = std::slice::from_ref(&conversation);
        let mut length = 0;
        for (target, measured) in lengths.into_iter().zip(&mut measured) {
            ground.run(conversation, target - length).await?;
            measured.push(ground.measure(conversation, n_measured()).await?);
            length = target + n_measured();
        }
    }
    Ok(measured)
}

fn at(ran: &[Ran], share: f64) -> f64 {
    let mut millis: Vec<f64> = ran.iter().flat_map(|ran| ran.millis.iter().copied()).collect();
    millis.sort_by(f64::total_cmp);
    millis[((millis.len() - 1) as f64 * share).round() as usize]
}

/// Returns the median of the first turns, which waited for a start, too.
fn first(ran: &[Ran]) -> f64 {
    let mut millis: Vec<f64> = ran.iter().filter_map(|ran| ran.first_millis).collect();
    millis.sort_by(f64::total_cmp);
    millis[millis.len() / 2]
}

fn micros(ran: &[Ran]) -> f64 {
    ran.iter().map(|ran| ran.worker_micros).sum::<u64>() as f64
        / (n_sessions() * n_measured()) as f64
}
