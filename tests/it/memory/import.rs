//! Imports of many items.

use dalsegno::domain::{
    amount::Limit,
    memory::{self, Config, Document, Entry, Error, ImportResult, Kind, Trust},
};

use super::{OPERATOR, agent, config, listed, new, publish, publish_with, read};
use crate::{
    app::{SOON, eventually, noon},
    conversations::world::World,
};

fn entry(at: &str, kind: Kind, name: &str, body: &str) -> Entry {
    let owner = (kind == Kind::Journal).then(|| "curator".to_owned());
    let (name, body) = (name.to_owned(), body.to_owned());
    let title = "What it is about".to_owned();
    Entry {
        at: at.to_owned(),
        document: Document { kind, owner, name, title, expires_at: None, body },
    }
}

async fn import(world: &World, entries: &[Entry], replaces: bool) -> Result<ImportResult, Error> {
    let mut tx = world.pool.begin().await.unwrap();
    let (id, config) = (world.campaign.id, config());
    let done = memory::import(&mut tx, id, entries, replaces, &OPERATOR, &config, noon()).await?;
    tx.commit().await.unwrap();
    Ok(done)
}

#[tokio::test]
async fn an_import_stores_all_items_or_none_and_reports_every_problem() {
    let world = World::new().await;
    publish(&world, &new(Kind::Record, "there", "As it was."), &agent("writer")).await.unwrap();
    let wrong = [
        entry("a.md", Kind::Edict, "fine", "Text."),
        entry("b.md", Kind::Edict, "../b", "Text."),
        entry("c.md", Kind::Record, "there", "Otherwise."),
        entry("d.md", Kind::Edict, "fine", "Twice."),
        entry("e.md", Kind::Record, "long", &"x".repeat(60_000)),
        entry("f.md", Kind::Journal, "nul", "a\0b"),
    ];
    let error = import(&world, &wrong, false).await.unwrap_err();
    let Error::Import(mistakes) = &error else { panic!("{error}") };
    let at: Vec<_> = mistakes.iter().map(|mistake| mistake.at.as_str()).collect();
    assert_eq!(at, ["b.md", "c.md", "d.md", "e.md", "f.md"]);
    assert!(
        error.to_string().contains("\n- c.md: record `there` exists with other content"),
        "{error}"
    );
    assert_eq!(listed(&world, &OPERATOR).await, ["record there"]);

    let fine = [
        entry("a.md", Kind::Edict, "fine", "Text."),
        entry("b.md", Kind::Record, "there", "As it was."),
        entry("c.md", Kind::Journal, "day-one", "It rains."),
    ];
    let done = import(&world, &fine, false).await.unwrap();
    assert_eq!((done.created, done.replaced, done.unchanged), (2, 0, 1));
    let again = import(&world, &fine, false).await.unwrap();
    assert_eq!((again.created, again.replaced, again.unchanged), (0, 0, 3));
    let item = read(&world, (Kind::Edict, None, "fine"), &OPERATOR).await.unwrap();
    assert_eq!((item.trust, item.author.as_str()), (Trust::Imported, "cli:ann@host"));

    let other = [entry("a.md", Kind::Edict, "fine", "Otherwise.")];
    assert!(import(&world, &other, false).await.is_err());
    assert_eq!(import(&world, &other, true).await.unwrap().replaced, 1);
    // An entry of a journal is never replaced.
    let entry = [entry("c.md", Kind::Journal, "day-one", "It does not.")];
    assert!(import(&world, &entry, true).await.is_err());
}

/// One job creates all vectors, and each writer requests it.
#[tokio::test]
async fn an_import_blocks_no_writer_of_other_items() {
    let world = World::new().await;
    let other = World::over(world.pool.clone(), Limit::default()).await;
    let config = Config { embeddings_model: "all-minilm".to_owned(), ..config() };
    publish(&world, &new(Kind::Record, "held", "As it was."), &OPERATOR).await.unwrap();
    let mut holder = world.pool.begin().await.unwrap();
    let hold = "select pg_backend_pid() from dalsegno.memory_items where name = 'held' for update";
    let holder_pid: i32 = sqlx::query_scalar(hold).fetch_one(&mut *holder).await.unwrap();
    let entries =
        [entry("a.md", Kind::Record, "a", "A."), entry("b.md", Kind::Record, "held", "B.")];
    let mut importer = world.pool.begin().await.unwrap();
    let importing = memory::import(
        &mut importer,
        world.campaign.id,
        &entries,
        true,
        &OPERATOR,
        &config,
        noon(),
    );
    let writing = async {
        // It has written one item, and waits for the other.
        eventually("the import waits", async || {
            let waits = "select exists (select from pg_stat_activity where $1 = any(pg_blocking_pids(pid)))";
            let waits = sqlx::query_scalar(waits).bind(holder_pid).fetch_one(&world.pool).await;
            waits.unwrap_or(false).then_some(())
        })
        .await;
        let item = new(Kind::Record, "c", "C.");
        let writes = publish_with(&other, &item, &OPERATOR, &config);
        tokio::time::timeout(SOON, writes).await.expect("the other writer does not wait").unwrap();
        holder.rollback().await.unwrap();
    };
    let (imported, ()) = tokio::join!(importing, writing);
    assert_eq!(imported.unwrap().replaced, 1);
    importer.commit().await.unwrap();
    let asked = "select count(*) from dalsegno.jobs where kind = 'make_embeddings'";
    let asked: i64 = sqlx::query_scalar(asked).fetch_one(&world.pool).await.unwrap();
    assert_eq!(asked, 1);
}
