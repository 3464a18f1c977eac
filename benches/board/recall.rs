//! The time to recall facts, if all of them are about one user or spread over a thousand users.

use std::time::Instant;

use chrono::{DateTime, Utc};
use dalsegno::{
    clock::{Clock as _, SystemClock},
    domain::{facts, search::Question},
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::{Value, json};
use sqlx::PgConnection;

use crate::{at, common::size, fixture::Fixture};

fn n_facts() -> i64 {
    size::of(100_000, 5_000)
}

const N_WORDS: usize = 10;
fn n_questions() -> usize {
    size::of(400, 20)
}

const FOUND: i64 = 10;
const BAR_MS: f64 = 20.0;
const BATCH: i64 = 5_000;

/// Writes the same rows as recording facts, all at once.
const FILL: &str = "
    insert into dalsegno.facts
           (id, recorded_at, valid_from, user_name, source, trust, author, language, attribute, attribute_key, text, text_key)
    select gen_random_uuid(), now(), now(), 'user-' || (n + $1) % $2, 'stated', 'operator', 'bench', 'english', 'Thing ' || (n + $1),
           'thing ' || (n + $1), body, body || (n + $1)
      from unnest($3::text[]) with ordinality as t (body, n)";

pub async fn of_very_many(ground: &Fixture) -> anyhow::Result<Value> {
    let mut one = figures(ground, 1).await?;
    let mut thousand = figures(ground, size::of(1_000, 10)).await?;
    Ok(json!({
        "scenario": "recall", "facts": n_facts(), "questions": n_questions(), "bar_p95_ms": BAR_MS,
        "one_user": { "p50_ms": at(&mut one, 0.5), "p95_ms": at(&mut one, 0.95), "p99_ms": at(&mut one, 0.99) },
        "of_1000_users": { "p50_ms": at(&mut thousand, 0.5), "p95_ms": at(&mut thousand, 0.95), "p99_ms": at(&mut thousand, 0.99) },
    }))
}

async fn figures(ground: &Fixture, n_users: i64) -> anyhow::Result<Vec<f64>> {
    let mut rng = StdRng::seed_from_u64(7);
    sqlx::query("truncate dalsegno.facts cascade").execute(&ground.pool).await?;
    for batch in 0..n_facts() / BATCH {
        let texts: Vec<String> = (0..BATCH).map(|_| text(&mut rng)).collect();
        let fill = sqlx::query(FILL).bind(batch * BATCH).bind(n_users).bind(&texts);
        fill.execute(&ground.pool).await?;
    }
    sqlx::query("vacuum analyze dalsegno.facts").execute(&ground.pool).await?;
    let mut conn = ground.pool.acquire().await?;
    let (mut took, mut n_found, now) = (Vec::new(), 0, SystemClock.now());
    for number in 0..n_questions() {
        let user = format!("user-{}", number as i64 % n_users);
        let (millis, is_found) = ask(&mut conn, &user, &question(number, &mut rng), now).await?;
        took.push(millis);
        n_found += usize::from(is_found);
    }
    // Only few of a user's hundred facts have the words of a question.
    anyhow::ensure!(n_found > n_questions() / 4, "only {n_found} questions had an answer");
    Ok(took)
}

async fn ask(
    conn: &mut PgConnection,
    user: &str,
    words: &str,
    now: DateTime<Utc>,
) -> anyhow::Result<(f64, bool)> {
    let began = Instant::now();
    let question = Question { words, limit: FOUND, meaning: None };
    let hits = facts::search(conn, user, question, "english", now).await?;
    Ok((began.elapsed().as_secs_f64() * 1e3, !hits.is_empty()))
}

fn question(number: usize, rng: &mut StdRng) -> String {
    let words: Vec<String> = (0..1 + number % 4).map(|_| word(rng)).collect();
    match number % 3 {
        0 => words.join(" "),
        1 => format!("what does the user prefer about {}?", words.join(" and ")),
        _ => format!("the user {}", words[0]),
    }
}

fn text(rng: &mut StdRng) -> String {
    let words: Vec<String> = (0..N_WORDS).map(|_| word(rng)).collect();
    format!("The user prefers {}", words.join(" "))
}

/// Returns words as in a language: a few of them are in most texts, most of them in few.
fn word(rng: &mut StdRng) -> String {
    let rank = 8000_f64.powf(rng.random::<f64>()) as u32;
    format!("{}{}", ["tide", "boat", "price", "tone", "wind"][rank as usize % 5], rank)
}
