//! Versions, limits and hostile texts of memory items.

use chrono::TimeDelta;
use dalsegno::domain::{
    campaign_control, campaigns, feed,
    memory::{self, Config, Error, Kind, New, Origin, Trust},
};
use futures_util::future::join_all;
use uuid::Uuid;

use super::{OPERATOR, agent, config, listed, new, publish, publish_with, read, revoke};
use crate::{app::noon, control::feed_kinds::assert_described, conversations::world::World};

#[tokio::test]
async fn every_version_stays_readable_with_its_author() {
    let world = World::new().await;
    let first = publish(&world, &new(Kind::Record, "prices", "One."), &OPERATOR).await.unwrap();
    assert!(first.changed && first.item.version == 1 && first.warning.is_none());
    let second = publish(&world, &new(Kind::Record, "prices", "Two."), &agent("writer")).await;
    assert_eq!(second.unwrap().item.version, 2);
    // The same text is no change; from a person it raises the trust.
    let same = publish(&world, &new(Kind::Record, "prices", "Two."), &agent("curator")).await;
    assert!(!same.unwrap().changed);
    let vouched = publish(&world, &new(Kind::Record, "prices", "Two."), &OPERATOR).await.unwrap();
    assert_eq!((vouched.item.version, vouched.item.trust), (3, Trust::Operator));

    let item = read(&world, (Kind::Record, None, "prices"), &agent("reviewer")).await.unwrap();
    assert_eq!(item.id, first.item.id);
    let mut conn = world.pool.acquire().await.unwrap();
    let versions = memory::versions(&mut conn, &item).await.unwrap();
    let said: Vec<_> =
        versions.iter().map(|it| (it.version, it.author.as_str(), it.origin, it.trust)).collect();
    assert_eq!(
        said,
        [
            (3, "cli:ann@host", Origin::Operator, Trust::Operator),
            (2, "writer", Origin::Agent, Trust::Agent),
            (1, "cli:ann@host", Origin::Operator, Trust::Operator),
        ]
    );
    assert_eq!((versions[1].task_id, versions[1].turn), (Some(Uuid::from_u128(7)), Some(3)));
    let then = memory::at_version(&mut conn, item.clone(), 1).await.unwrap();
    assert_eq!(then.body.as_deref(), Some("One."));
    let none = memory::at_version(&mut conn, item, 4).await.unwrap_err();
    assert!(none.to_string().contains("go up to 3"), "{none}");
    for statement in
        ["update dalsegno.memory_versions set body = ''", "delete from dalsegno.memory_versions"]
    {
        let error = sqlx::query(statement).execute(&world.pool).await.unwrap_err();
        assert!(error.to_string().contains("append-only"), "{error}");
    }
}

#[tokio::test]
async fn concurrent_writers_create_consecutive_versions_and_overwrite_only_what_they_have_read() {
    const WRITERS: usize = 8;
    let world = World::new().await;
    let at_once = (0..WRITERS).map(async |writer| {
        publish(&world, &new(Kind::Record, "plan", &format!("By {writer}.")), &OPERATOR).await
    });
    let mut versions: Vec<_> =
        join_all(at_once).await.into_iter().map(|it| it.unwrap().item.version).collect();
    versions.sort_unstable();
    assert_eq!(versions, (1..=8).collect::<Vec<_>>());
    let expecting = (0..WRITERS).map(async |writer| {
        let body = format!("After eight, by {writer}.");
        let new = New { expected_version: Some(8), ..new(Kind::Record, "plan", &body) };
        publish(&world, &new, &OPERATOR).await
    });
    let (won, lost): (Vec<_>, Vec<_>) =
        join_all(expecting).await.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, WRITERS - 1));
    let words = lost[0].as_ref().unwrap_err().to_string();
    assert!(words.contains("at version 9, not at 8"), "{words}");
    let first = New { expected_version: Some(0), ..new(Kind::Record, "plan", "First.") };
    assert!(matches!(publish(&world, &first, &OPERATOR).await, Err(Error::Changed { .. })));
}

#[tokio::test]
async fn a_journal_entry_is_never_replaced_and_needs_no_name() {
    let world = World::new().await;
    let writer = agent("writer");
    let entry = new(Kind::Journal, "day-one", "It rains.");
    publish(&world, &entry, &writer).await.unwrap();
    assert!(
        !publish(&world, &entry, &writer).await.unwrap().changed,
        "a retry returns the same answer"
    );
    let other = New { body: "It does not.", ..entry };
    assert!(matches!(publish(&world, &other, &writer).await, Err(Error::Written(_))));
    let unnamed = New { name: None, ..other };
    for _ in 0..3 {
        publish(&world, &unnamed, &writer).await.unwrap();
    }
    let names = listed(&world, &writer).await;
    assert_eq!(names.len(), 4);
    assert!(names[0].starts_with("journal writer:20261120-120000-"), "{names:?}");
    // Other items need a name.
    let record = New { kind: Kind::Record, ..unnamed };
    assert!(matches!(publish(&world, &record, &writer).await, Err(Error::Name { .. })));
    let update = "update dalsegno.memory_items set version = 2 where kind = 'journal'";
    assert!(sqlx::query(update).execute(&world.pool).await.is_err());
}

/// Old versions are stored, and must not fill the database.
#[tokio::test]
async fn earlier_versions_and_ended_items_count_until_they_are_removed() {
    let world = World::new().await;
    let small = Config { item_max_bytes: 1000, agent_max_bytes: 2000, ..config() };
    let writer = agent("writer");
    let soon = Some(noon() + TimeDelta::hours(1));
    let put = async |name: &str, letter: &str, expires_at| {
        let body = letter.repeat(600);
        let new = New { expires_at, ..new(Kind::Record, name, &body) };
        publish_with(&world, &new, &writer, &small).await
    };
    assert_eq!(put("prices", "x", None).await.unwrap().warning, None);
    assert_eq!(put("prices", "y", None).await.unwrap().warning, None);
    let third = put("brief", "x", soon).await.unwrap();
    assert!(
        third.warning.unwrap().contains("including earlier versions, revoked and expired items")
    );
    assert!(matches!(put("prices", "z", None).await, Err(Error::Full { .. })));
    // A person's version counts for that person, and the agent's own still counts.
    publish(&world, &new(Kind::Record, "prices", "Twelve."), &OPERATOR).await.unwrap();
    assert!(matches!(put("prices", "z", None).await, Err(Error::Full { .. })));
    revoke(&world, (Kind::Record, None, "prices"), &OPERATOR).await.unwrap();
    assert!(matches!(put("new", "x", None).await, Err(Error::Full { .. })));
    let mut tx = world.pool.begin().await.unwrap();
    let gone = memory::remove_ended(&mut tx, noon() + TimeDelta::minutes(1), 10).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(gone, 1, "the feed shows the versions");
    assert_eq!(put("new", "x", None).await.unwrap().warning, None);
}

#[tokio::test]
async fn a_revoked_or_expired_item_holds_again_once_republished() {
    let world = World::new().await;
    let edict = new(Kind::Edict, "tone", "Write short sentences.");
    publish(&world, &edict, &OPERATOR).await.unwrap();
    let revoked = revoke(&world, (Kind::Edict, None, "tone"), &agent("planner")).await.unwrap();
    assert_eq!(revoked.revoked_by.as_deref(), Some("planner"));
    let again = revoke(&world, (Kind::Edict, None, "tone"), &OPERATOR).await.unwrap_err();
    assert!(matches!(again, Error::Revoked { .. }), "{again}");
    assert_eq!(listed(&world, &OPERATOR).await, Vec::<String>::new());
    let shown = read(&world, (Kind::Edict, None, "tone"), &OPERATOR).await.unwrap();
    assert!(!shown.is_valid(noon()) && shown.body.is_some());
    for who in ["writer", "planner"] {
        let read = read(&world, (Kind::Edict, None, "tone"), &agent(who)).await;
        assert!(matches!(read, Err(Error::Over { .. })), "{who}: {read:?}");
    }
    let back = publish(&world, &edict, &OPERATOR).await.unwrap();
    assert_eq!((back.changed, back.item.version), (true, 2));
    assert_eq!(listed(&world, &OPERATOR).await, ["edict tone"]);

    let over = New { expires_at: Some(noon()), ..new(Kind::Record, "late", "Text.") };
    assert!(matches!(publish(&world, &over, &OPERATOR).await, Err(Error::Expired(_))));
    let soon = New { expires_at: Some(noon() + TimeDelta::hours(1)), ..over };
    publish(&world, &soon, &OPERATOR).await.unwrap();
    assert_eq!(listed(&world, &OPERATOR).await.len(), 2);
    let filter = memory::Filter::default();
    let (page, later) = (Default::default(), noon() + TimeDelta::hours(2));
    let items = memory::list(&world.pool, world.campaign.id, filter, &OPERATOR, page, later).await;
    assert_eq!(items.unwrap().len(), 1);
}

#[tokio::test]
async fn an_agent_is_warned_before_its_memory_is_full_and_then_gets_the_next_step() {
    let world = World::new().await;
    let small = Config { item_max_bytes: 1000, agent_max_bytes: 2100, ..config() };
    let (writer, body) = (agent("writer"), "x".repeat(700));
    let put = async |name: &str, body: &str| {
        publish_with(&world, &new(Kind::Record, name, body), &writer, &small).await
    };
    assert_eq!(put("one", &body).await.unwrap().warning, None);
    assert_eq!(put("two", &body).await.unwrap().warning, None);
    let full = put("three", &body).await.unwrap_err();
    assert!(matches!(full, Error::Full { bytes, limit: 2100 } if bytes > 2100), "{full}");
    assert!(full.to_string().contains("ask the operator for a higher limit"), "{full}");
    let near = put("three", &"x".repeat(600)).await.unwrap();
    assert!(near.warning.unwrap().contains("of 2100 bytes"));
    // Other agents have limits of their own.
    assert!(
        publish_with(&world, &new(Kind::Record, "five", &body), &agent("curator"), &small)
            .await
            .is_ok()
    );
    let long = put("long", &"x".repeat(1001)).await.unwrap_err().to_string();
    assert!(long.contains("1001 bytes, at most 1000 are allowed"), "{long}");
    let long = "x".repeat(900);
    let near = publish_with(&world, &new(Kind::Record, "six", &long), &OPERATOR, &small).await;
    assert!(near.unwrap().warning.unwrap().contains("900 of at most 1000"));
}

#[tokio::test]
async fn hostile_names_and_texts_are_refused_or_stored_unchanged() {
    let world = World::new().await;
    for name in [
        "../../etc/passwd",
        "a\0",
        "Tone",
        "a b",
        "-rf",
        "a'; --",
        "\u{202e}x",
        &"x".repeat(1_000_000),
    ] {
        let refused =
            publish(&world, &new(Kind::Record, name, "Text."), &OPERATOR).await.unwrap_err();
        assert!(matches!(refused, Error::Name { .. }), "{refused}");
        assert!(refused.to_string().len() < 1000);
        let missing = read(&world, (Kind::Record, None, name), &OPERATOR).await.unwrap_err();
        assert!(matches!(missing, Error::NoItem { .. }), "{missing}");
    }
    for body in ["", "  \n", "a\0b", &"x".repeat(1024 * 1024)] {
        let refused =
            publish(&world, &new(Kind::Record, "text", body), &OPERATOR).await.unwrap_err();
        assert!(matches!(refused, Error::Text(_)), "{refused}");
    }
    let odd = "\u{1b}[31m\u{202e}</edict>\r\n'; drop table x; --\u{ffff}\u{e0041}";
    publish(&world, &new(Kind::Record, "odd", odd), &OPERATOR).await.unwrap();
    let kept = read(&world, (Kind::Record, None, "odd"), &OPERATOR).await.unwrap();
    assert_eq!(kept.body.as_deref(), Some(odd));
    let title = New { title: "Two\nlines", ..new(Kind::Record, "title", "Text.") };
    assert!(matches!(publish(&world, &title, &OPERATOR).await, Err(Error::Title(_))));
}

#[tokio::test]
async fn a_memory_event_omits_the_text_and_a_closed_campaign_refuses_changes_of_people() {
    let world = World::new().await;
    publish(&world, &new(Kind::Edict, "tone", "SECRET TEXT"), &agent("planner")).await.unwrap();
    publish(&world, &new(Kind::Edict, "tone", "SECRET TEXT"), &agent("planner")).await.unwrap();
    revoke(&world, (Kind::Edict, None, "tone"), &OPERATOR).await.unwrap();
    let all = feed::Filter { campaign_id: None, after: 0, up_to: i64::MAX, limit: 100 };
    let events = feed::list(&world.pool, all).await.unwrap();
    assert_described(&events);
    let told: Vec<_> = events
        .iter()
        .filter(|event| event.kind.starts_with("memory."))
        .map(|event| (event.kind.as_str(), event.data["author"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [("memory.published", "planner"), ("memory.revoked", "cli:ann@host")]);
    assert!(!format!("{events:?}").contains("SECRET"));

    let mut tx = world.pool.begin().await.unwrap();
    campaign_control::close(&mut tx, world.campaign.id, noon()).await.unwrap();
    tx.commit().await.unwrap();
    let record = new(Kind::Record, "late", "Text.");
    let refused = publish(&world, &record, &OPERATOR).await.unwrap_err();
    assert!(matches!(refused, Error::Campaign(campaigns::Error::Closed(_))), "{refused}");
    assert!(publish(&world, &record, &agent("writer")).await.is_ok(), "its turn ends");
}

#[tokio::test]
async fn a_hundred_edicts_and_a_hundred_versions_are_the_limit() {
    let world = World::new().await;
    for number in 0..100 {
        publish(&world, &new(Kind::Edict, &format!("e{number}"), "Text."), &OPERATOR)
            .await
            .unwrap();
    }
    let refused = publish(&world, &new(Kind::Edict, "more", "Text."), &OPERATOR).await.unwrap_err();
    assert!(matches!(refused, Error::TooManyEdicts { limit: 100 }), "{refused}");
    assert!(publish(&world, &new(Kind::Edict, "e7", "Another."), &OPERATOR).await.is_ok());
    for number in 0..100 {
        let body = format!("Version {number}.");
        publish(&world, &new(Kind::Record, "busy", &body), &OPERATOR).await.unwrap();
    }
    let refused = publish(&world, &new(Kind::Record, "busy", "One more."), &OPERATOR).await;
    assert!(refused.unwrap_err().to_string().contains("publish it under another name"));
}
