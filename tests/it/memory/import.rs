//! Many items at once.

use dalsegno::domain::memory::{self, Document, Entry, Error, Imported, Kind, Trust};

use super::{OPERATOR, agent, config, listed, new, publish, read};
use crate::{app::noon, conversations::world::World};

fn entry(at: &str, kind: Kind, name: &str, body: &str) -> Entry {
    let owner = (kind == Kind::Journal).then(|| "curator".to_owned());
    let (name, body) = (name.to_owned(), body.to_owned());
    let title = "What it is about".to_owned();
    Entry {
        at: at.to_owned(),
        document: Document { kind, owner, name, title, expires_at: None, body },
    }
}

async fn import(world: &World, entries: &[Entry], replaces: bool) -> Result<Imported, Error> {
    let mut tx = world.pool.begin().await.unwrap();
    let (id, config) = (world.campaign.id, config());
    let done = memory::import(&mut tx, id, entries, replaces, &OPERATOR, &config, noon()).await?;
    tx.commit().await.unwrap();
    Ok(done)
}

#[tokio::test]
async fn all_of_them_are_taken_in_or_none_with_everything_that_is_wrong() {
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
    assert!(error.to_string().contains("\n- c.md: record `there` is there already"), "{error}");
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
    // An entry of a journal is not replaced, whoever asks for it.
    let entry = [entry("c.md", Kind::Journal, "day-one", "It does not.")];
    assert!(import(&world, &entry, true).await.is_err());
}
