//! Rows that an answer reads, among many unrelated ones.

use dalsegno::domain::{
    Page, facts,
    memory::{self, Filter, Kind},
    search::Question,
};
use sqlx::{Connection as _, PgConnection};

use super::{OPERATOR, agent, config, new, publish};
use crate::{app::noon, conversations::world::World};

const N_ITEMS: i64 = 20_000;
/// The ranked rows and the returned ones.
const MOST_ROWS: i64 = 5_200;

async fn fill(world: &World) {
    let items = "insert into dalsegno.memory_items (id, campaign_id, created_at, written_at, version, kind, name, origin, author, trust, title, body)
         select gen_random_uuid(), $1, now(), now(), 1, 'record', 'r' || n, 'operator', 'x', 'operator', 'Title ' || n, 'High water at six.'
           from generate_series(1, $2) as n";
    sqlx::query(items).bind(world.campaign.id).bind(N_ITEMS).execute(&world.pool).await.unwrap();
    let facts = "insert into dalsegno.facts
           (id, recorded_at, valid_from, user_name, source, trust, author, attribute, attribute_key, text, text_key)
         select gen_random_uuid(), now(), now(), 'ann', 'stated', 'operator', 'x', 'a' || n, 'a' || n, 'High water at six.', 'k' || n
           from generate_series(1, $1) as n";
    sqlx::query(facts).bind(N_ITEMS).execute(&world.pool).await.unwrap();
    let mut conn = PgConnection::connect(&world.url()).await.unwrap();
    sqlx::query("vacuum analyze").execute(&mut conn).await.unwrap();
}

/// Opens a connection whose prepared statements use generic plans, as after some calls.
async fn conn(world: &World) -> PgConnection {
    let mut conn = PgConnection::connect(&world.url()).await.unwrap();
    sqlx::query("set plan_cache_mode = force_generic_plan").execute(&mut conn).await.unwrap();
    conn
}

/// Returns the rows of a table that this connection has read.
async fn n_read(conn: &mut PgConnection, table: &str) -> i64 {
    let read =
        "select (seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint from pg_stat_xact_user_tables
                 where schemaname = 'dalsegno' and relname = $1";
    sqlx::query_scalar(read).bind(table).fetch_one(conn).await.unwrap()
}

#[tokio::test]
async fn listing_a_journal_reads_no_other_memory_of_the_campaign() {
    let world = World::new().await;
    for name in ["one", "two", "three"] {
        publish(&world, &new(Kind::Journal, name, "Text."), &agent("writer")).await.unwrap();
    }
    fill(&world).await;
    let mut conn = conn(&world).await;
    let mut tx = conn.begin().await.unwrap();
    let filter = Filter { kind: Some(Kind::Journal), ..Filter::default() };
    let (page, who) = (Page { after: None, limit: 50 }, agent("writer"));
    let listed = memory::list(&mut *tx, world.campaign.id, filter, &who, page, noon()).await;
    assert_eq!(listed.unwrap().len(), 3);
    let n_read = n_read(&mut tx, "memory_items").await;
    assert!(n_read <= 20, "{n_read} rows were read");
}

#[tokio::test]
async fn a_search_with_very_many_matches_ranks_a_part_of_them() {
    let world = World::new().await;
    fill(&world).await;
    let mut conn = conn(&world).await;
    for words in ["\"high water\"", "high water or six", "water"] {
        let mut tx = conn.begin().await.unwrap();
        // Earlier reads may still be counted.
        let before = (n_read(&mut tx, "memory_items").await, n_read(&mut tx, "facts").await);
        let question = Question { words, limit: 10, meaning: None };
        let place = (world.campaign.id, None);
        let found = memory::search(&mut tx, place, question, &OPERATOR, &config(), noon()).await;
        assert_eq!(found.unwrap().len(), 10, "{words}");
        let n_items = n_read(&mut tx, "memory_items").await - before.0;
        assert!((10..=MOST_ROWS).contains(&n_items), "{words}: {n_items} items were read");
        let found = facts::search(&mut tx, "ann", question, "english", noon()).await;
        assert_eq!(found.unwrap().len(), 10, "{words}");
        let n_facts = n_read(&mut tx, "facts").await - before.1;
        assert!((10..=MOST_ROWS).contains(&n_facts), "{words}: {n_facts} facts were read");
        tx.rollback().await.unwrap();
    }
}
