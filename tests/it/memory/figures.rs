//! Durations of searches. Prints them; fails only if nothing is found or the index is not used.
//!
//! `cargo test --release --test it -- --ignored --nocapture figures_of_recall`, on an idle machine.

use std::time::Instant;

use dalsegno::domain::{
    facts, memory,
    search::{QueryEmbedding, Question},
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use sqlx::{PgConnection, PgPool};

use super::{agent, config, embeddings};
use crate::{app::noon, conversations::world::World};

const N_ITEMS: i32 = 100_000;
const N_QUESTIONS: usize = 400;

/// Returns words with the distribution of a language: few are in most texts, most are in few.
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
        let question = Question { words: &question, limit: 10, meaning: None };
        let place = (world.campaign.id, None);
        let (who, began) = (agent("writer"), Instant::now());
        let found =
            memory::search(&mut conn, place, question, &who, &config(), noon()).await.unwrap();
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

const N_FACTS: i32 = 100_000;
const N_DIMENSIONS: usize = 768;
const N_QUERIES: usize = 100;

/// By words, and by words and embeddings; without the time that the model takes for the query.
#[tokio::test]
#[ignore = "takes some minutes, and its figures mean something on a quiet machine only"]
async fn figures_of_meaning() {
    let (_place, postgres, pool) = embeddings::server().await;
    execute(&pool, "create extension vector").await;
    // With 20 users, each has the most facts that the default of facts.user_max allows.
    for n_users in [1_000, 20, 1] {
        fill(&pool, n_users).await;
        let users = format!("{N_FACTS} facts of {n_users} users");
        measure(&pool, n_users, false, &format!("{users}, words")).await;
        measure(&pool, n_users, true, &format!("{users}, both, no index")).await;
    }
    execute(
        &pool,
        "create index by_meaning on dalsegno.fact_embeddings using hnsw ((vector::vector(768)) vector_cosine_ops)
          where cardinality(vector) = 768",
    )
    .await;
    measure(&pool, 1, true, &format!("{N_FACTS} facts of 1 users, both, HNSW index")).await;
    pool.close().await;
    postgres.stop().await.unwrap();
}

async fn execute(pool: &PgPool, sql: &'static str) {
    let mut conn = pool.acquire().await.unwrap();
    sqlx::query("set maintenance_work_mem = '1GB'").execute(&mut *conn).await.unwrap();
    sqlx::query(sql).execute(&mut *conn).await.unwrap();
}

async fn fill(pool: &PgPool, n_users: i32) {
    execute(pool, "truncate dalsegno.facts cascade").await;
    let mut rng = StdRng::seed_from_u64(7);
    let facts = "insert into dalsegno.facts
            (id, recorded_at, valid_from, user_name, source, trust, author, language, attribute, attribute_key, text, text_key)
     select gen_random_uuid(), now(), now(), 'user-' || (n + $1) % $2, 'stated', 'operator', 'bench', 'english', 'Thing ' || (n + $1),
            'thing ' || (n + $1), body, body || (n + $1)
       from unnest($3::text[]) with ordinality as t (body, n)";
    for batch in 0..N_FACTS / 5_000 {
        let words = |rng: &mut StdRng| std::array::from_fn::<_, 10, _>(|_| word(rng)).join(" ");
        let text = |_| format!("The user prefers {}", words(&mut rng));
        let texts: Vec<String> = (0..5_000).map(text).collect();
        let query = sqlx::query(facts).bind(batch * 5_000).bind(n_users).bind(&texts);
        query.execute(pool).await.unwrap();
    }
    // Correlated with the row, so that each fact has a random vector of its own.
    let vectors = "insert into dalsegno.fact_embeddings (fact_id, made_at, model, vector)
        select f.id, now(), 'm', (select array_agg((random() - 0.5)::real) from generate_series(1, $1) where f.id is not null)
          from dalsegno.facts as f";
    sqlx::query(vectors).bind(i32::try_from(N_DIMENSIONS).unwrap()).execute(pool).await.unwrap();
    execute(pool, "vacuum analyze dalsegno.facts").await;
    execute(pool, "vacuum analyze dalsegno.fact_embeddings").await;
}

async fn measure(pool: &PgPool, n_users: i32, by_meaning: bool, what: &str) {
    let mut rng = StdRng::seed_from_u64(11);
    let mut conn = pool.acquire().await.unwrap();
    sqlx::query("set hnsw.iterative_scan = strict_order").execute(&mut *conn).await.unwrap();
    let mut took = Vec::new();
    for number in 0..N_QUERIES {
        let words: Vec<String> = (0..1 + number % 4).map(|_| word(&mut rng)).collect();
        let meaning = QueryEmbedding {
            model: "m".to_owned(),
            vector: (0..N_DIMENSIONS).map(|_| rng.random::<f32>() - 0.5).collect(),
            least_similarity: -1.0,
        };
        let user = format!("user-{}", number as i32 % n_users);
        took.push(ask(&mut conn, &user, &words.join(" "), by_meaning.then_some(&meaning)).await);
    }
    took.sort_by(f64::total_cmp);
    let at = |share: f64| took[(took.len() as f64 * share) as usize - 1];
    println!("{what}: p50 {:.1} ms, p95 {:.1} ms", at(0.5), at(0.95));
}

async fn ask(
    conn: &mut PgConnection,
    user: &str,
    words: &str,
    meaning: Option<&QueryEmbedding>,
) -> f64 {
    let began = Instant::now();
    let question = Question { words, limit: 10, meaning };
    let hits = facts::search(conn, user, question, "english", noon()).await.unwrap();
    let took = began.elapsed().as_secs_f64() * 1e3;
    assert!(meaning.is_none() || hits.len() == 10, "{} of {user}", hits.len());
    took
}
