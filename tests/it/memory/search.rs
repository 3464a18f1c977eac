//! Full-text search of items.

use dalsegno::domain::{
    memory::{self, Config, Error, Hit, Kind, MemoryCaller, New},
    search::Question,
    text,
};

use super::{OPERATOR, agent, config, new, publish, publish_with, revoke};
use crate::{app::noon, conversations::world::World};

async fn search(world: &World, words: &str, who: &MemoryCaller<'_>) -> Result<Vec<Hit>, Error> {
    let mut conn = world.pool.acquire().await.unwrap();
    let question = Question { words, limit: 10, meaning: None };
    memory::search(&mut conn, (world.campaign.id, None), question, who, &config(), noon()).await
}

async fn names(world: &World, words: &str, who: &MemoryCaller<'_>) -> Vec<String> {
    search(world, words, who).await.unwrap().into_iter().map(|hit| hit.item.name).collect()
}

#[tokio::test]
async fn the_best_match_comes_first_with_its_snippet() {
    let world = World::new().await;
    let put = async |name: &str, title: &str, body: &str| {
        publish(&world, &New { title, ..new(Kind::Record, name, body) }, &OPERATOR).await.unwrap();
    };
    put("harbour", "The harbour", "Boats leave the harbour with the tide.").await;
    put(
        "prices",
        "Prices",
        "Tickets cost more in summer. The harbour is mentioned once among many other words.",
    )
    .await;
    put("tone", "The tone", "Write short sentences.").await;
    assert_eq!(names(&world, "harbour", &OPERATOR).await, ["harbour", "prices"]);
    // By word stems, by words of the name, with operators, and ignoring case.
    assert_eq!(names(&world, "Ticket costs", &OPERATOR).await, ["prices"]);
    assert_eq!(names(&world, "harbour -tickets", &OPERATOR).await, ["harbour"]);
    assert_eq!(names(&world, "\"short sentences\"", &OPERATOR).await, ["tone"]);
    assert_eq!(names(&world, "tide or sentences", &OPERATOR).await.len(), 2);
    // A question of which no item has all words.
    assert_eq!(
        names(&world, "When do the boats leave on a Sunday?", &OPERATOR).await[0],
        "harbour"
    );
    // No item has all of these words either, and excluded words exclude an item from the fallback, too.
    assert_eq!(names(&world, "lighthouse -tide", &OPERATOR).await, Vec::<String>::new());
    assert_eq!(names(&world, "nonsense", &OPERATOR).await, Vec::<String>::new());
    let hits = search(&world, "sentences", &OPERATOR).await.unwrap();
    assert_eq!(hits[0].snippet, "Write short **sentences**.");
    assert!(hits[0].rank > 0.0 && hits[0].item.body.is_none());
}

#[tokio::test]
async fn a_search_hides_unreadable_revoked_expired_and_foreign_items() {
    let (world, other) = (World::new().await, World::new().await);
    publish(&world, &new(Kind::Journal, "note", "The xylograph is late."), &agent("writer"))
        .await
        .unwrap();
    publish(&world, &new(Kind::Edict, "gone", "No xylograph."), &OPERATOR).await.unwrap();
    revoke(&world, (Kind::Edict, None, "gone"), &OPERATOR).await.unwrap();
    publish(&other, &new(Kind::Record, "far", "A xylograph."), &OPERATOR).await.unwrap();
    let second = World::over(world.pool.clone(), Default::default()).await;
    publish(&second, &new(Kind::Record, "beside", "A xylograph."), &OPERATOR).await.unwrap();
    assert_eq!(names(&world, "xylograph", &agent("writer")).await, ["note"]);
    assert_eq!(names(&world, "xylograph", &agent("planner")).await, ["note"]);
    assert_eq!(names(&world, "xylograph", &agent("curator")).await, Vec::<String>::new());
    assert_eq!(names(&second, "xylograph", &agent("curator")).await, ["beside"]);
    // The index contains the campaign's id as a word that queries cannot name.
    let id = format!(":{}", second.campaign.id);
    assert_eq!(names(&world, &id, &OPERATOR).await, Vec::<String>::new());
}

#[tokio::test]
async fn unusual_queries_are_answered_or_refused_without_a_database_error() {
    let world = World::new().await;
    publish(&world, &new(Kind::Record, "a", "Words & more: it's | a \\ test!"), &OPERATOR)
        .await
        .unwrap();
    for odd in
        ["a & b | !", "'", "it's", "\\", "((((", "a:*", "<->", "-", "\"", "üñï 💥 x", "\u{202e}x"]
    {
        match search(&world, odd, &OPERATOR).await {
            Ok(_) | Err(Error::Text(text::Error::NoWords)) => {}
            Err(error) => panic!("{odd:?}: {error:?}"),
        }
    }
    let nothing = search(&world, "!!! ---", &OPERATOR).await;
    assert!(matches!(nothing, Err(Error::Text(text::Error::NoWords))), "{nothing:?}");
    assert!(matches!(search(&world, " ", &OPERATOR).await, Err(Error::Text(_))));
    assert!(matches!(search(&world, "a\0b", &OPERATOR).await, Err(Error::Text(_))));
    assert!(matches!(search(&world, &"word ".repeat(1000), &OPERATOR).await, Err(Error::Text(_))));
}

#[tokio::test]
async fn changing_the_language_loses_no_words() {
    let world = World::new().await;
    let german = Config { language: "german".to_owned(), ..config() };
    publish_with(&world, &new(Kind::Record, "boote", "Die Häfen sind offen."), &OPERATOR, &german)
        .await
        .unwrap();
    assert_eq!(names(&world, "Häfen", &OPERATOR).await, ["boote"]);
    let mut conn = world.pool.acquire().await.unwrap();
    let question = Question { words: "Hafen offene", limit: 10, meaning: None };
    let place = (world.campaign.id, None);
    let found = memory::search(&mut conn, place, question, &OPERATOR, &german, noon()).await;
    assert_eq!(found.unwrap().len(), 1, "found by its stem");
}

/// The index condition names the campaign, so that frequent words of other campaigns cost nothing.
#[tokio::test]
async fn the_search_uses_the_index() {
    let world = World::new().await;
    let fill = "insert into dalsegno.memory_items (id, campaign_id, created_at, written_at, version, kind, name, origin, author, trust, title, body)
         select gen_random_uuid(), $1, now(), now(), 1, 'record', 'r' || n, 'operator', 'x', 'operator', 'Title ' || n, 'Words of ' || n
           from generate_series(1, 20000) as n";
    let second = World::over(world.pool.clone(), Default::default()).await;
    sqlx::query(fill).bind(second.campaign.id).execute(&world.pool).await.unwrap();
    publish(&world, &new(Kind::Record, "one", "Words of mine."), &OPERATOR).await.unwrap();
    sqlx::query("analyze dalsegno.memory_items").execute(&world.pool).await.unwrap();
    let explain = "explain select id from dalsegno.memory_items
         where search @@ (websearch_to_tsquery('simple', '17777') && format('%L', ':' || $1::uuid::text)::tsquery) and campaign_id = $1";
    let explain = sqlx::query_scalar::<_, String>(explain).bind(second.campaign.id);
    let plan = explain.fetch_all(&world.pool).await.unwrap().join("\n");
    assert!(plan.contains("memory_items_search") && !plan.contains("Seq Scan"), "{plan}");
    assert_eq!(names(&second, "17777", &OPERATOR).await, ["r17777"]);
    assert_eq!(names(&world, "words", &OPERATOR).await, ["one"]);
}
