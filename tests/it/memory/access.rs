//! Access rights to memory.

use dalsegno::domain::memory::{Error, Kind, MemoryCaller, New};

use super::{OPERATOR, agent, listed, new, publish, read, revoke};
use crate::conversations::world::World;

fn is_refused<T: std::fmt::Debug>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::NotAllowed { .. } | Error::Owner(_) | Error::NoOwner))
}

/// Tries all combinations of the table in `docs/explanation/memory.md`: caller, action, result.
#[tokio::test]
async fn every_caller_may_do_exactly_what_the_access_table_lists() {
    let world = World::new().await;
    for (kind, owner) in
        [(Kind::Edict, None), (Kind::Record, None), (Kind::Journal, Some("curator"))]
    {
        publish(&world, &New { owner, ..new(kind, "there", "Text.") }, &OPERATOR).await.unwrap();
    }
    publish(&world, &new(Kind::Journal, "own", "Text."), &agent("writer")).await.unwrap();
    publish(&world, &new(Kind::Journal, "own", "Text."), &agent("planner")).await.unwrap();
    // Columns: publish edict, publish record, revoke edict, revoke record, read edict, read record, read curator's
    // journal, read the own journal.
    let table: [(MemoryCaller<'_>, &str, [bool; 8]); 4] = [
        (OPERATOR, "op", [true, true, true, true, true, true, true, true]),
        (agent("planner"), "planner", [true, true, true, false, true, true, true, true]),
        (agent("writer"), "writer", [false, true, false, false, true, true, false, true]),
        // Another instance of the agent that owns the journal.
        (agent("curator/2"), "second", [false, true, false, false, true, true, false, true]),
    ];
    publish(&world, &new(Kind::Journal, "own", "Text."), &agent("curator/2")).await.unwrap();
    for (who, name, expected) in table {
        let own = match name {
            "op" => Some("writer"),
            "second" => Some("curator/2"),
            name => Some(name),
        };
        for (kind, name) in [(Kind::Edict, "gone"), (Kind::Record, "gone")] {
            publish(&world, &new(kind, name, "Text."), &OPERATOR).await.unwrap();
        }
        let did = [
            publish(&world, &new(Kind::Edict, name, "Text."), &who).await.map(drop),
            publish(&world, &new(Kind::Record, name, "Text."), &who).await.map(drop),
            revoke(&world, (Kind::Edict, None, "gone"), &who).await.map(drop),
            revoke(&world, (Kind::Record, None, "gone"), &who).await.map(drop),
            read(&world, (Kind::Edict, None, "there"), &who).await.map(drop),
            read(&world, (Kind::Record, None, "there"), &who).await.map(drop),
            read(&world, (Kind::Journal, Some("curator"), "there"), &who).await.map(drop),
            read(&world, (Kind::Journal, own, "own"), &who).await.map(drop),
        ];
        for (number, (did, expected)) in did.into_iter().zip(expected).enumerate() {
            match expected {
                true => assert!(did.is_ok(), "{name} {number}: {did:?}"),
                false => assert!(is_refused(&did), "{name} {number}"),
            }
        }
        // Besides the owner, only a person can write in a journal.
        let foreign = New { owner: Some("curator"), ..new(Kind::Journal, name, "Text.") };
        assert_eq!(publish(&world, &foreign, &who).await.is_ok(), name == "op", "{name}");
    }
    let journals = |list: Vec<String>| -> Vec<String> {
        list.into_iter().filter(|line| line.starts_with("journal")).collect()
    };
    assert_eq!(journals(listed(&world, &agent("writer")).await), ["journal writer:own"]);
    assert_eq!(journals(listed(&world, &agent("planner")).await).len(), 5);
    assert_eq!(journals(listed(&world, &OPERATOR).await).len(), 5);
}

#[tokio::test]
async fn a_caller_that_claims_another_owner_writes_nothing_and_learns_nothing() {
    let world = World::new().await;
    publish(&world, &new(Kind::Journal, "secret", "The plan."), &agent("curator")).await.unwrap();
    let writer = agent("writer");
    for owner in ["curator", "", "../curator", "curator\0", "CURATOR", "%", "curator' or ''='"] {
        let foreign = New { owner: Some(owner), ..new(Kind::Journal, "mine", "Text.") };
        assert!(publish(&world, &foreign, &writer).await.is_err(), "{owner:?}");
        assert!(read(&world, (Kind::Journal, Some(owner), "secret"), &writer).await.is_err());
        // A person may name any valid owner.
        let is_known = owner == "curator";
        assert_eq!(publish(&world, &foreign, &OPERATOR).await.is_ok(), is_known, "{owner:?}");
    }
    let missing = read(&world, (Kind::Journal, None, "secret"), &writer).await.unwrap_err();
    assert!(matches!(missing, Error::NoItem { .. }), "{missing}");
    assert_eq!(listed(&world, &writer).await, Vec::<String>::new());
}
