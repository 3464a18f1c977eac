//! The sessions and turns that were shown a fact.

use chrono::TimeDelta;
use dalsegno::{
    context::manifest::Kind,
    domain::{facts, manifests},
    operations::{FactUse, FactUses},
};
use uuid::Uuid;

use super::{USER, setup::fixture, state};
use crate::{app::noon, turns::fixture::Fixture};

async fn uses(fixture: &Fixture, fact: Uuid) -> FactUses {
    let fact = fact.to_string();
    let listed = fixture.succeed(&["memory", "facts", "uses", USER, &fact, "-o", "json"]).await;
    serde_json::from_str(&listed).unwrap()
}

#[tokio::test]
async fn the_uses_of_a_fact_have_the_turns_whose_calls_contained_it() {
    let fixture = fixture(&[]).await;
    let worker = fixture.start_worker().await;
    fixture.done(&fixture.add("Write part one.").await).await;
    let fact = state(&fixture.pool, USER, ("City", "Lives in Porto.")).await.unwrap();
    assert_eq!(uses(&fixture, fact.id).await, FactUses { items: Vec::new(), has_more: false });
    fixture.done(&fixture.add("Write part two.").await).await;
    let task = fixture.done(&fixture.add("Write part three.").await).await;
    worker.stop().await;
    let session = fixture.session(&task).await;
    // As `recall` does, in a session that was removed since then.
    let (gone, day) = (Uuid::from_u128(5), TimeDelta::days(1));
    let shown = (gone, fixture.campaign.id);
    facts::record_showings(&fixture.pool, shown, &[fact.id], noon() - day).await.unwrap();
    let listed = uses(&fixture, fact.id).await;
    assert_eq!(listed.items.len(), 2, "{listed:?}");
    let of = |id: Uuid| listed.items.iter().find(|it| it.session_id == id).unwrap();
    let FactUse { campaign_id, agent, instance, turns, .. } = of(session.id);
    assert_eq!((*campaign_id, turns.as_slice()), (fixture.campaign.id, &[3, 2][..]));
    assert_eq!((agent.as_deref(), instance.as_deref()), (Some("writer"), Some("main")));
    let FactUse { agent, turns, last_at, .. } = of(gone);
    assert_eq!((agent, turns.len(), *last_at), (&None, 0, noon() - day));
    let text = fixture.succeed(&["memory", "facts", "uses", USER, &fact.id.to_string()]).await;
    assert!(text.lines().any(|line| line.ends_with("  3, 2")), "{text}");
    assert!(!text.contains("more sessions"), "{text}");
    // Only a part of this kind, only calls that were sent it, and not more calls than are read.
    let (id, ids) = (fact.id.to_string(), [session.id]);
    let find = async |kind, id: &str, max_calls| {
        let found = manifests::turns_with_part(&fixture.pool, &ids, (kind, id), max_calls);
        found.await.unwrap().into_iter().flat_map(|it| it.turns).collect::<Vec<_>>()
    };
    assert_eq!(find(Kind::Fact, &id, 50).await, [3, 2]);
    assert_eq!(find(Kind::Fact, &id, 1).await, [3]);
    assert_eq!(find(Kind::Edict, &id, 50).await, [0; 0]);
    assert_eq!(find(Kind::Fact, &Uuid::nil().to_string(), 50).await, [0; 0]);
}

#[tokio::test]
async fn a_fact_that_many_sessions_were_shown_lists_the_last_ones() {
    let fixture = fixture(&[]).await;
    let fact = state(&fixture.pool, USER, ("City", "Lives in Porto.")).await.unwrap();
    for n in 1..=21 {
        let (session, at) = (Uuid::from_u128(n), noon() - TimeDelta::days(n.try_into().unwrap()));
        let shown = (session, fixture.campaign.id);
        facts::record_showings(&fixture.pool, shown, &[fact.id], at).await.unwrap();
    }
    let listed = uses(&fixture, fact.id).await;
    let ids: Vec<Uuid> = listed.items.iter().map(|it| it.session_id).collect();
    assert_eq!(ids, (1..=20).map(Uuid::from_u128).collect::<Vec<_>>());
    assert!(listed.has_more);
    let text = fixture.succeed(&["memory", "facts", "uses", USER, &fact.id.to_string()]).await;
    assert!(
        text.ends_with("more sessions were shown this fact: the list has the last ones\n"),
        "{text}"
    );
}
