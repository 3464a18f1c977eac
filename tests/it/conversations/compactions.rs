//! Compactions: applied, stale, refused, undone. The transcript stays.

use dalsegno::domain::{
    compactions::{self, AcceptedSummary, ApplyOutcome, Cause, Outcome},
    sessions,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{TurnSettings, World};
use crate::app::noon;

async fn prepare(
    world: &World,
    id: Uuid,
    parent: i32,
    span: (i64, i64),
    summary: Option<&str>,
) -> i32 {
    let mut tx = world.pool.begin().await.unwrap();
    let generation = sessions::next_generation(&mut *tx, id).await.unwrap();
    let (pins, refusals) = (json!([]), json!([{ "rung": "first", "refusals": [] }]));
    let new = compactions::New {
        session_id: id,
        generation,
        parent,
        from_seq: span.0,
        to_seq: span.1,
        cause: Cause::Auto,
        turn: 3,
        model: Some("sim-1"),
        tokens_before: 100,
        refusals: &refusals,
        node: None,
        accepted: summary.map(|summary| AcceptedSummary {
            summary,
            pins: &pins,
            rung: "retry",
            tokens_after: 9,
            flow: None,
            prompts: None,
        }),
    };
    compactions::insert(&mut *tx, &new, noon()).await.unwrap();
    tx.commit().await.unwrap();
    generation
}

async fn apply(
    world: &World,
    id: Uuid,
    generation: i32,
) -> Result<ApplyOutcome, compactions::Error> {
    let mut tx = world.pool.begin().await.unwrap();
    let applied = compactions::apply(&mut tx, id, generation, noon()).await?;
    tx.commit().await.unwrap();
    Ok(applied)
}

async fn history(world: &World, id: Uuid) -> Vec<Value> {
    sessions::history(&world.pool, id).await.unwrap().as_array().unwrap().clone()
}

#[tokio::test]
async fn the_view_is_compacted_and_reverted_and_the_transcript_stays() {
    let world = World::new().await;
    let id = world.turn("Part one.", TurnSettings::default()).await.session.id;
    world.turn("Part two.", TurnSettings::default()).await;
    world.turn("Part three.", TurnSettings::default()).await;
    let whole = history(&world, id).await;
    assert_eq!(whole.len(), 6);

    let first = prepare(&world, id, 0, (1, 2), Some("One.")).await;
    assert_eq!(history(&world, id).await, whole, "a prepared summary is not shown");
    assert_eq!(apply(&world, id, first).await.unwrap(), ApplyOutcome::Shown);
    let after_first = history(&world, id).await;
    assert_eq!(after_first.len(), 5);
    assert_eq!(after_first[0], json!({ "role": "system", "content": "One." }));

    let second = prepare(&world, id, first, (3, 4), Some("One and two.")).await;
    apply(&world, id, second).await.unwrap();
    assert_eq!(history(&world, id).await.len(), 3);

    let mut conn = world.pool.acquire().await.unwrap();
    assert_eq!(compactions::undo(&mut conn, id, noon()).await.unwrap(), first);
    assert_eq!(history(&world, id).await, after_first);
    assert_eq!(compactions::undo(&mut conn, id, noon()).await.unwrap(), 0);
    assert_eq!(history(&world, id).await, whole);
    let nothing = compactions::undo(&mut conn, id, noon()).await.unwrap_err();
    assert!(nothing.to_string().contains("uses its whole transcript"), "{nothing}");
    assert_eq!(world.transcript(id).await.len(), 6);
    // A side branch continues the numbering.
    assert_eq!(prepare(&world, id, 0, (1, 4), Some("Otherwise.")).await, 3);
    assert_eq!(apply(&world, id, 3).await.unwrap(), ApplyOutcome::Shown);
}

#[tokio::test]
async fn a_summary_of_a_changed_view_is_stale() {
    let world = World::new().await;
    let id = world.turn("Part one.", TurnSettings::default()).await.session.id;
    let early = prepare(&world, id, 0, (1, 2), Some("Early.")).await;
    let manual = prepare(&world, id, 0, (1, 2), Some("Manual.")).await;
    assert_eq!(apply(&world, id, manual).await.unwrap(), ApplyOutcome::Shown);
    assert_eq!(apply(&world, id, early).await.unwrap(), ApplyOutcome::Stale);
    assert_eq!(history(&world, id).await[0]["content"], "Manual.");
    let outcomes: Vec<Outcome> =
        compactions::list(&world.pool, id).await.unwrap().iter().map(|c| c.outcome).collect();
    assert_eq!(outcomes, [Outcome::Stale, Outcome::Applied]);
    assert!(matches!(apply(&world, id, early).await, Err(compactions::Error::Unknown { .. })));
}

#[tokio::test]
async fn a_refused_summary_is_stored_and_never_shown() {
    let world = World::new().await;
    let id = world.turn("Part one.", TurnSettings::default()).await.session.id;
    let refused = prepare(&world, id, 0, (1, 2), None).await;
    let error = apply(&world, id, refused).await.unwrap_err();
    assert!(error.to_string().contains("has no compaction 1"), "{error}");
    let kept = compactions::get(&world.pool, id, refused).await.unwrap().unwrap();
    assert_eq!((kept.outcome, kept.summary), (Outcome::Refused, None));
    assert_eq!(kept.refusals[0]["rung"], "first");
    assert_eq!(history(&world, id).await.len(), 2);
}

#[tokio::test]
async fn summary_attempts_are_counted_on_the_session() {
    let world = World::new().await;
    let id = world.turn("Part one.", TurnSettings::default()).await.session.id;
    let breaker = json!({ "attempts": [1] });
    sessions::store_breaker(&world.pool, id, &breaker).await.unwrap();
    let resolved = world.turn("Part two.", TurnSettings::default()).await;
    assert_eq!(resolved.session.compaction_breaker, Some(breaker));
    // The attempts are stored by turn number, which restarts in a fresh session.
    let mut conn = world.pool.acquire().await.unwrap();
    sessions::ask_rebuild(&mut conn, id, sessions::Reason::Fresh).await.unwrap();
    let fresh = world.turn("Part three.", TurnSettings::default()).await.session;
    assert_eq!((fresh.turn_count, fresh.compaction_breaker), (0, None));
    let unknown = sessions::store_breaker(&world.pool, Uuid::nil(), &json!({})).await;
    assert!(unknown.is_err());
}
