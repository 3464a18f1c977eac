//! How long a search takes. Prints; fails only where nothing is found or the index is not used.
//!
//! `cargo test --release --test it -- --ignored --nocapture figures_of_recall`, on a machine that does nothing else.

use std::time::Instant;

use dalsegno::domain::memory::{self, Asked};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use super::{agent, config};
use crate::{app::noon, conversations::world::World};

const N_ITEMS: i32 = 100_000;
const N_QUESTIONS: usize = 400;

/// Words as in a language: few of them are in most texts, most of them in few.
fn word(rng: &mut StdRng) -> String {
    let rank = 8000_f64.powf(rng.random::<f64>()) as u32;
    format!("{}{}", ["tide", "boat", "price", "tone", "wind"][rank as usize % 5], rank)
}

#[tokio::test]
#[ignore = "takes a minute, and its figures mean something on a quiet machine only"]
async fn figures_of_recall() {
    let world = World::new().await;
    let mut rng = StdRng::seed_from_u64(7);
    let fill = "insert into dalsegno.memory_items (id, campaign_id, created_at, written_at, version, kind, name, origin, author, trust, language, title, body)
         select gen_random_uuid(), $1, now(), now(), 1, 'record', 'r' || (n + $3), 'agent', 'a' || (n % 100), 'agent', 'english', 'About ' || body, body
           from unnest($2::text[]) with ordinality as t (body, n)";
    for batch in 0..N_ITEMS / 5_000 {
        let body = |_| {
            format!(
                "The user prefers {}",
                std::array::from_fn::<_, 10, _>(|_| word(&mut rng)).join(" ")
            )
        };
        let bodies: Vec<String> = (0..5_000).map(body).collect();
        let query = sqlx::query(fill).bind(world.campaign.id).bind(&bodies).bind(batch * 5_000);
        query.execute(&world.pool).await.unwrap();
    }
    sqlx::query("vacuum analyze dalsegno.memory_items").execute(&world.pool).await.unwrap();
    let (mut took, mut n_found) = (Vec::new(), 0);
    let mut conn = world.pool.acquire().await.unwrap();
    for number in 0..N_QUESTIONS {
        let words: Vec<String> = (0..1 + number % 4).map(|_| word(&mut rng)).collect();
        let question = match number % 3 {
            0 => words.join(" "),
            1 => format!("what does the user prefer about {}?", words.join(" and ")),
            _ => format!("the user {}", words[0]),
        };
        let asked = Asked { words: &question, kind: None, limit: 10 };
        let (who, began) = (agent("writer"), Instant::now());
        let found = memory::search(&mut conn, world.campaign.id, asked, &who, &config(), noon())
            .await
            .unwrap();
        took.push(began.elapsed().as_secs_f64() * 1e3);
        n_found += usize::from(!found.is_empty());
    }
    took.sort_by(f64::total_cmp);
    let at = |share: f64| took[(took.len() as f64 * share) as usize - 1];
    println!(
        "recall over {N_ITEMS} items of one campaign, {N_QUESTIONS} questions, {n_found} with an answer: p50 {:.1} ms, p95 {:.1} ms, p99 {:.1} ms",
        at(0.5),
        at(0.95),
        at(0.99)
    );
    assert!(n_found > N_QUESTIONS / 2);
}
