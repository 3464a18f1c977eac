//! Inheritance of messages and summaries by successors.

use dalsegno::{
    context::compaction::REFERENCE,
    domain::{
        compactions::{self, AcceptedSummary, Cause},
        conversations::{self, ForkRequest},
        messages::{self, Span},
        sessions::{self, Reason},
        turn_phases,
        turn_phases::TurnEnd,
    },
    transcript::{Message, Role, ToolCall},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{TurnSettings, World, done, measured, message};
use crate::app::{defaults, noon};

const SUMMARY: &str = "The harbour was built in 1817.";

/// Sets up a conversation with a turn that used a tool. Returns its session.
async fn conversation(world: &World) -> Uuid {
    let now = TurnSettings::default();
    world.turn("Part one.", now).await;
    let task = world.add("Look it up.").await;
    let (resolved, begun) = world.begin(&task, world.lease(), now).await;
    let call = ToolCall {
        id: "call-1".to_owned(),
        name: "find".to_owned(),
        arguments: json!({}),
        thinking: None,
    };
    let asks = Message {
        role: Role::Assistant,
        text: String::new(),
        tool_calls: vec![call],
        tool_call_id: None,
        tool_name: None,
        media: Vec::new(),
    };
    let new = [
        measured(Uuid::new_v4(), asks),
        message(Uuid::new_v4(), Role::Tool, "1817"),
        message(Uuid::new_v4(), Role::Assistant, "Built in 1817."),
    ];
    let ending = TurnEnd {
        turn: &begun,
        calls: &[],
        messages: &new,
        record: Default::default(),
        now: noon(),
    };
    let mut tx = world.pool.begin().await.unwrap();
    turn_phases::commit(&mut tx, &ending, &done("Built in 1817.", now)).await.unwrap();
    tx.commit().await.unwrap();
    world.turn("Part two.", now).await;
    resolved.session.id
}

async fn rebuild(world: &World, id: Uuid, because: Reason, now: TurnSettings) -> Uuid {
    let mut conn = world.pool.acquire().await.unwrap();
    sessions::ask_rebuild(&mut conn, id, because).await.unwrap();
    world.turn("Part three.", now).await.session.id
}

fn pins() -> Value {
    json!([{ "text": "1817" }])
}

/// Shows a compaction of these places that was made after a turn.
async fn compact(world: &World, id: Uuid, span: (i64, i64), turn: i32, summary: &str) {
    let mut tx = world.pool.begin().await.unwrap();
    let parent = sessions::get(&mut *tx, id).await.unwrap().generation;
    let generation = sessions::next_generation(&mut *tx, id).await.unwrap();
    let (pins, none) = (pins(), json!([]));
    let accepted = AcceptedSummary {
        summary,
        pins: &pins,
        rung: "first",
        tokens_after: 10,
        flow: None,
        prompts: None,
    };
    let compaction = compactions::New {
        session_id: id,
        generation,
        parent,
        from_seq: span.0,
        to_seq: span.1,
        cause: Cause::Auto,
        turn,
        model: Some("sim-1"),
        tokens_before: 100,
        refusals: &none,
        node: None,
        accepted: Some(accepted),
    };
    compactions::insert(&mut *tx, &compaction, noon()).await.unwrap();
    compactions::apply(&mut tx, id, generation, noon()).await.unwrap();
    tx.commit().await.unwrap();
}

async fn fork(world: &World, session_id: Uuid) -> Uuid {
    let config = defaults().sessions;
    let (turn, instance) = (None, None);
    let request =
        ForkRequest { session_id, turn, instance, catalogue: &world.catalogue, config: &config };
    let mut tx = world.pool.begin().await.unwrap();
    let fork = conversations::fork(&mut tx, &request, noon()).await.unwrap();
    tx.commit().await.unwrap();
    fork.id
}

async fn roles(world: &World, id: Uuid) -> Vec<Role> {
    let stored = messages::list(&world.pool, id, Span::all()).await.unwrap();
    stored.iter().map(|stored| stored.message.role).collect()
}

#[tokio::test]
async fn recent_turns_are_inherited_with_their_positions_and_ids() {
    let world = World::new().await;
    let old = conversation(&world).await;
    let before = messages::list(&world.pool, old, Span::all()).await.unwrap();
    let new = rebuild(&world, old, Reason::Reset, TurnSettings::default()).await;
    let after = messages::list(&world.pool, new, Span::all()).await.unwrap();
    assert_eq!(after[..before.len()], before);
    assert_eq!(after.len(), before.len() + 2);
    assert!(after.is_sorted_by_key(|stored| stored.seq));
}

#[tokio::test]
async fn turns_are_inherited_whole_or_not_at_all() {
    let world = World::new().await;
    let old = conversation(&world).await;
    let stored = messages::list(&world.pool, old, Span::all()).await.unwrap();
    let weight = |turn| stored.iter().filter(|s| s.turn == turn).map(|s| s.weight).sum::<i64>();
    // Space for the last turn, and one unit too little for the one with the tool.
    let room = weight(3) + weight(2) - 1;
    let now = TurnSettings { inherit_max_weight: room, ..TurnSettings::default() };
    let new = rebuild(&world, old, Reason::Lost, now).await;
    let turns: Vec<i32> = messages::list(&world.pool, new, Span::all())
        .await
        .unwrap()
        .iter()
        .map(|s| s.turn)
        .collect();
    assert_eq!(turns, [3, 3, 4, 4]);
    let now = TurnSettings { inherit_max_weight: 0, ..TurnSettings::default() };
    let bare = rebuild(&world, new, Reason::Lost, now).await;
    assert_eq!(roles(&world, bare).await, [Role::User, Role::Assistant]);
}

#[tokio::test]
async fn a_poisoned_session_passes_on_text_only() {
    let world = World::new().await;
    let old = conversation(&world).await;
    assert!(roles(&world, old).await.contains(&Role::Tool));
    let new = rebuild(&world, old, Reason::Poisoned, TurnSettings::default()).await;
    let stored = messages::list(&world.pool, new, Span::all()).await.unwrap();
    assert!(stored.iter().all(|s| s.message.role != Role::Tool && s.message.tool_calls.is_empty()));
    assert!(stored.iter().any(|s| s.message.text == "Built in 1817."));
}

#[tokio::test]
async fn a_summary_is_inherited_without_the_messages_behind_it() {
    let world = World::new().await;
    let old = conversation(&world).await;
    compact(&world, old, (1, 6), 3, SUMMARY).await;

    let new = rebuild(&world, old, Reason::ContextFull, TurnSettings::default()).await;
    let session = world.session(new).await;
    assert_eq!(session.generation, 1);
    let inherited = compactions::get(&world.pool, new, 1).await.unwrap().unwrap();
    assert_eq!((inherited.cause, inherited.to_seq, inherited.pins), (Cause::Inherited, 6, pins()));
    let lines = world.transcript(new).await;
    assert_eq!(lines[0], "User: Part two.");
    let history = sessions::history(&world.pool, new).await.unwrap();
    assert_eq!(history[0]["content"], SUMMARY);
    assert_eq!(history.as_array().unwrap().len(), 5);
    // The next compaction continues it; earlier views belong to the predecessor.
    let mut conn = world.pool.acquire().await.unwrap();
    assert_eq!(sessions::next_generation(&mut *conn, new).await.unwrap(), 2);
    let undone = compactions::undo(&mut conn, new, noon()).await;
    assert!(matches!(undone, Err(compactions::Error::NothingToUndo(_))), "{undone:?}");
}

/// A reference to the archive makes room for one task, and the archive stays behind.
#[tokio::test]
async fn instead_of_a_reference_the_summary_before_it_is_inherited_with_the_messages() {
    for has_summary in [true, false] {
        let world = World::new().await;
        let old = conversation(&world).await;
        if has_summary {
            compact(&world, old, (1, 2), 1, SUMMARY).await;
        }
        compact(&world, old, (3, 4), 2, REFERENCE).await;
        compact(&world, old, (5, 6), 2, REFERENCE).await;
        let fork = fork(&world, old).await;
        let rebuilt = rebuild(&world, old, Reason::Reset, TurnSettings::default()).await;
        for id in [fork, rebuilt] {
            assert_eq!(world.session(id).await.generation, i32::from(has_summary));
            let inherited = compactions::list(&world.pool, id).await.unwrap();
            let inherited: Vec<_> =
                inherited.iter().map(|it| (it.summary.as_deref(), it.to_seq)).collect();
            let (summaries, first) = match has_summary {
                true => (vec![(Some(SUMMARY), 2)], "User: Look it up."),
                false => (Vec::new(), "User: Part one."),
            };
            assert_eq!(inherited, summaries);
            assert_eq!(world.transcript(id).await[0], first);
        }
    }
}

/// Earlier versions have copied references. Without it, nothing would say that messages are missing.
#[tokio::test]
async fn a_reference_to_messages_of_a_predecessor_is_inherited() {
    let world = World::new().await;
    let old = conversation(&world).await;
    compact(&world, old, (1, 6), 2, REFERENCE).await;
    sqlx::query("update dalsegno.compactions set cause = 'inherited'")
        .execute(&world.pool)
        .await
        .unwrap();
    let new = rebuild(&world, old, Reason::Reset, TurnSettings::default()).await;
    let inherited = compactions::get(&world.pool, new, 1).await.unwrap().unwrap();
    assert_eq!((inherited.summary.as_deref(), inherited.to_seq), (Some(REFERENCE), 6));
    assert_eq!(world.transcript(new).await[0], "User: Part two.");
}
