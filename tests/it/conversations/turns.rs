//! Turns from their begin to each kind of end.

use dalsegno::{
    domain::{
        Amount,
        amount::Limit,
        campaigns,
        conversations::{Decision, resolve},
        manifests,
        messages::{self, Span},
        sessions::{self, Reason, State as SessionState},
        tasks::State as TaskState,
        turn_phases,
        turn_phases::{Begin, TurnEnd},
        turns::{self, State},
        usage,
    },
    transcript::{Message, Role, ToolCall},
};
use serde_json::json;
use uuid::Uuid;

use super::{TurnSettings, World, call, done, inheritance, measured, message, opening, wanted};
use crate::app::{noon, until_blocked};

fn tokens(tokens: i64) -> Amount {
    Amount { micros: 0, tokens }
}

async fn budget(world: &World) -> campaigns::Budget {
    campaigns::budget(&world.pool, world.campaign.id).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_turn_stores_transcript_ledger_counters_and_result() {
    let world = World::with_limit(Limit { micros: None, tokens: Some(1000) }).await;
    let task = world.add("Part one.").await;
    let begun = world
        .try_begin(&task, world.lease(), TurnSettings::default(), tokens(200))
        .await
        .unwrap()
        .1;
    assert_eq!(budget(&world).await.reserved, tokens(200));
    assert_eq!(world.task(task.id).await.state, TaskState::Running);
    assert_eq!(world.session(begun.session_id).await.state, SessionState::Running);
    // The prompt is stored before the provider is called.
    assert_eq!(world.transcript(begun.session_id).await, ["User: Part one."]);

    world.commit(&begun, "Once ...", TurnSettings::default()).await.unwrap();
    let lines = world.transcript(begun.session_id).await;
    assert_eq!(lines, ["User: Part one.", "Assistant: Once ..."]);
    let task = world.task(task.id).await;
    assert_eq!((task.state, task.result.as_deref()), (TaskState::Done, Some("Once ...")));
    assert_eq!((task.spent_micros, task.spent_tokens), (500, 40));
    assert_eq!((task.session_id, task.turn), (Some(begun.session_id), Some(1)));
    let budget = budget(&world).await;
    assert_eq!((budget.reserved, budget.spent), (Amount::ZERO, Amount { micros: 500, tokens: 40 }));
    let turn = turns::of_task(&world.pool, task.id).await.unwrap().remove(0);
    assert_eq!(
        (turn.state, turn.calls, turn.input_tokens, turn.cost_micros),
        (State::Done, 1, 30, 500)
    );
    let totals = usage::totals(&world.pool, world.campaign.id).await.unwrap();
    assert_eq!((totals[0].calls, totals[0].output_tokens, totals[0].cost_micros), (1, 10, 500));
}

#[tokio::test]
async fn a_turn_that_crashed_after_its_begin_is_ended_by_the_next_run() {
    let world = World::with_limit(Limit { micros: None, tokens: Some(1000) }).await;
    let task = world.add("Part one.").await;
    let now = TurnSettings::default();
    let lost = world.try_begin(&task, world.lease(), now, tokens(200)).await.unwrap().1;
    let (resolved, begun) = world.try_begin(&task, world.lease(), now, tokens(200)).await.unwrap();
    assert_eq!((resolved.decision, resolved.was_interrupted()), (Decision::Resume, true));
    assert_eq!(
        budget(&world).await.reserved,
        tokens(200),
        "the reservation of the lost turn is released"
    );
    // The prompt is stored once; the notice follows it.
    let notice = "Notice: The last turn was cut off.";
    assert_eq!(world.transcript(begun.session_id).await, ["User: Part one.", notice]);

    let late = world.commit(&lost, "Too late.", now).await;
    assert!(matches!(late, Err(turn_phases::Error::Session(sessions::Error::Overtaken(_)))));
    world.commit(&begun, "Once ...", now).await.unwrap();
    let lines = world.transcript(begun.session_id).await;
    assert_eq!(lines, ["User: Part one.", notice, "Assistant: Once ..."]);
    let states: Vec<_> =
        turns::of_task(&world.pool, task.id).await.unwrap().iter().map(|t| t.state).collect();
    assert_eq!(states, [State::Interrupted, State::Done]);
    assert_eq!(budget(&world).await.reserved, Amount::ZERO);
    assert_eq!(budget(&world).await.spent.tokens, 40);
    // Once more, after the end.
    assert!(world.commit(&begun, "Twice.", now).await.is_err());
    assert_eq!(world.transcript(begun.session_id).await.len(), 3);
}

#[tokio::test]
async fn a_reservation_whose_commit_was_not_confirmed_is_released_with_the_turn() {
    let now = TurnSettings::default();
    for is_answered in [true, false] {
        let world = World::with_limit(Limit { micros: None, tokens: Some(1000) }).await;
        let task = world.add("Part one.").await;
        // `begun` stays as it is: the worker learns of no later reservation.
        let begun = world.try_begin(&task, world.lease(), now, tokens(200)).await.unwrap().1;
        for (ahead, total) in [(300, 400), (350, 450), (300, 450)] {
            let mut tx = world.pool.begin().await.unwrap();
            let reserved =
                turn_phases::reserve_more(&mut tx, &begun, tokens(100), tokens(ahead), noon())
                    .await
                    .unwrap();
            tx.commit().await.unwrap();
            assert_eq!((reserved, budget(&world).await.reserved), (tokens(total), tokens(total)));
        }
        if is_answered {
            world.commit(&begun, "Once ...", now).await.unwrap();
        } else {
            let calls = [call(&begun, None)];
            let ending = TurnEnd {
                turn: &begun,
                calls: &calls,
                messages: &[],
                record: Default::default(),
                now: noon(),
            };
            let mut tx = world.pool.begin().await.unwrap();
            turn_phases::interrupt(&mut tx, &ending, "the service stopped").await.unwrap();
            tx.commit().await.unwrap();
        }
        let budget = budget(&world).await;
        let charged = Amount { micros: 500, tokens: 40 };
        assert_eq!((budget.reserved, budget.spent), (Amount::ZERO, charged), "{is_answered}");
    }
}

#[tokio::test]
async fn the_end_of_a_turn_waits_for_a_reservation_that_is_being_committed() {
    let now = TurnSettings::default();
    let world = World::with_limit(Limit { micros: None, tokens: Some(1000) }).await;
    let task = world.add("Part one.").await;
    let begun = world.try_begin(&task, world.lease(), now, tokens(200)).await.unwrap().1;
    let mut tx = world.pool.begin().await.unwrap();
    turn_phases::reserve_more(&mut tx, &begun, tokens(100), tokens(300), noon()).await.unwrap();
    let commit_later = async {
        until_blocked(&world.pool).await;
        tx.commit().await.unwrap();
    };
    let (ended, ()) = tokio::join!(world.commit(&begun, "Once ...", now), commit_later);
    ended.unwrap();
    let budget = budget(&world).await;
    assert_eq!((budget.reserved, budget.spent.tokens), (Amount::ZERO, 40));
}

#[tokio::test]
async fn an_interrupted_turn_keeps_its_partial_output_and_the_task_waits() {
    let world = World::new().await;
    let task = world.add("Part one.").await;
    let (_, begun) = world.begin(&task, world.lease(), TurnSettings::default()).await;
    let mut arrived = message(Uuid::new_v4(), Role::Assistant, "Once upon");
    arrived.partial = true;
    let interrupted = usage::Call { outcome: usage::Outcome::Interrupted, ..call(&begun, None) };
    let ending = TurnEnd {
        turn: &begun,
        calls: &[interrupted],
        messages: &[arrived],
        record: Default::default(),
        now: noon(),
    };
    let mut tx = world.pool.begin().await.unwrap();
    turn_phases::interrupt(&mut tx, &ending, "the service stopped").await.unwrap();
    tx.commit().await.unwrap();
    let after = world.task(task.id).await;
    assert_eq!((after.state, after.spent_tokens), (TaskState::Queued, 40));
    assert_eq!(world.session(begun.session_id).await.state, SessionState::Interrupted);
    let stored = messages::list(&world.pool, begun.session_id, Span::all()).await.unwrap();
    assert!(stored[1].partial && stored[1].message.text == "Once upon");

    let (resolved, begun) = world.begin(&task, world.lease(), TurnSettings::default()).await;
    assert!(resolved.was_interrupted());
    world.commit(&begun, "Once upon a time.", TurnSettings::default()).await.unwrap();
    let next = world.turn("Part two.", TurnSettings::default()).await;
    assert!(!next.was_interrupted(), "the message is stored once");
}

#[tokio::test]
async fn a_cancelled_turn_ends_its_task_and_leaves_the_session_usable() {
    let world = World::new().await;
    let task = world.add("Part one.").await;
    let (_, begun) = world.begin(&task, world.lease(), TurnSettings::default()).await;
    let ending = TurnEnd {
        turn: &begun,
        calls: &[],
        messages: &[],
        record: Default::default(),
        now: noon(),
    };
    let mut tx = world.pool.begin().await.unwrap();
    turn_phases::cancel(&mut tx, &ending, "cancelled: not needed").await.unwrap();
    tx.commit().await.unwrap();
    let task = world.task(task.id).await;
    assert_eq!((task.state, task.ended_at), (TaskState::Cancelled, Some(noon())));
    let next = world.turn("Part two.", TurnSettings::default()).await;
    assert!(next.was_interrupted());
    assert_eq!(next.session.id, begun.session_id);
}

#[tokio::test]
async fn a_failed_turn_can_have_its_session_rebuilt() {
    let world = World::new().await;
    world.turn("Part one.", TurnSettings::default()).await;
    let task = world.add("Part two.").await;
    let (_, begun) = world.begin(&task, world.lease(), TurnSettings::default()).await;
    world.fail(&begun, "refused: bad image", Some(Reason::Poisoned)).await;
    assert_eq!(world.session(begun.session_id).await.state, SessionState::Error);
    assert_eq!(world.task(task.id).await.state, TaskState::Queued);
    let (resolved, begun) = world.begin(&task, world.lease(), TurnSettings::default()).await;
    assert_eq!(resolved.decision, Decision::Rebuild(Reason::Poisoned));
    // The prompt is inherited with the failed turn and is not repeated.
    let lines = world.transcript(begun.session_id).await;
    assert_eq!(lines, ["User: Part one.", "Assistant: Answer to: Part one.", "User: Part two."]);

    world.fail(&begun, "still refused", None).await;
    let task = world.task(task.id).await;
    assert_eq!((task.state, task.error.as_deref()), (TaskState::Failed, Some("still refused")));
}

#[tokio::test]
async fn the_same_answer_is_charged_once() {
    let world = World::new().await;
    let task = world.add("Part one.").await;
    let (_, begun) = world.begin(&task, world.lease(), TurnSettings::default()).await;
    let (first, again) = (call(&begun, Some("msg-1")), call(&begun, Some("msg-1")));
    let ending = TurnEnd {
        turn: &begun,
        calls: &[first, again],
        messages: &[],
        record: Default::default(),
        now: noon(),
    };
    let mut tx = world.pool.begin().await.unwrap();
    turn_phases::commit(&mut tx, &ending, &done("Once ...", TurnSettings::default()))
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(budget(&world).await.spent, Amount { micros: 500, tokens: 40 });
    assert_eq!(world.task(task.id).await.spent_micros, 500);
    assert!(usage::record(&world.pool, &call(&begun, Some("msg-1"))).await.unwrap().is_none());
    assert!(usage::record(&world.pool, &call(&begun, None)).await.unwrap().is_some());
    assert!(usage::record(&world.pool, &call(&begun, None)).await.unwrap().is_some());
}

#[tokio::test]
async fn messages_round_trip() {
    let world = World::new().await;
    let task = world.add("Use </task> & \u{202e}tricks\u{7}.").await;
    let (_, begun) = world.begin(&task, world.lease(), TurnSettings::default()).await;
    let asks = Message {
        role: Role::Assistant,
        text: "Let me look.\0".to_owned(),
        tool_calls: vec![ToolCall {
            id: "call-1".to_owned(),
            name: "find".to_owned(),
            arguments: json!({ "q": "harbour\0", "deep": { "n": null } }),
            thinking: None,
        }],
        tool_call_id: None,
        tool_name: None,
        media: Vec::new(),
    };
    let written = [
        measured(Uuid::new_v4(), asks),
        message(Uuid::new_v4(), Role::Tool, "1817"),
        message(Uuid::new_v4(), Role::Assistant, "Built in 1817."),
    ];
    let ending = TurnEnd {
        turn: &begun,
        calls: &[],
        messages: &written,
        record: Default::default(),
        now: noon(),
    };
    let mut tx = world.pool.begin().await.unwrap();
    turn_phases::commit(&mut tx, &ending, &done("Built in 1817.", TurnSettings::default()))
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let stored = messages::list(&world.pool, begun.session_id, Span::all()).await.unwrap();
    assert_eq!(stored[0].message.text, task.prompt);
    for (new, stored) in written.iter().zip(&stored[1..]) {
        assert_eq!(
            (&new.message, new.weight, new.digest),
            (&stored.message, stored.weight, stored.digest)
        );
        assert!(!stored.message.text.contains('\0'));
    }
    assert_eq!(stored.iter().map(|stored| stored.seq).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let later =
        messages::list(&world.pool, begun.session_id, Span { after_seq: 1, limit: 2 }).await;
    assert_eq!(later.unwrap(), stored[1..3]);

    let history = sessions::history(&world.pool, begun.session_id).await.unwrap();
    assert_eq!(history[0], json!({ "role": "user", "content": task.prompt }));
    assert_eq!(history[1]["tool_calls"][0]["arguments"]["deep"], json!({ "n": null }));
    let result =
        json!({ "role": "tool", "content": "1817", "tool_call_id": "call-1", "tool_name": null });
    assert_eq!(history[2], result);
}

#[tokio::test]
async fn manifests_are_stored_per_call() {
    let world = World::new().await;
    let id = world.turn("Part one.", TurnSettings::default()).await.session.id;
    let manifest = json!({ "parts": [] });
    for call in 0..2 {
        let new = manifests::New {
            session_id: id,
            turn: 1,
            call,
            manifest: &manifest,
            sha256: [1; 32],
            estimated_tokens: 42,
            real_tokens: Some(40),
        };
        manifests::insert(&world.pool, &new, noon()).await.unwrap();
    }
    let found = manifests::list(&world.pool, id, 0, 10).await.unwrap();
    assert_eq!(found.iter().map(|found| found.call).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(found[0].manifest, manifest);
}

/// The session's row is rewritten twice per turn, which must not touch its indexes.
#[tokio::test]
async fn turns_update_no_indexed_column_of_sessions() {
    let world = World::new().await;
    for part in 0..20 {
        world.turn(&format!("Part {part}."), TurnSettings::default()).await;
    }
    let task = world.add("The last part.").await;
    let now = TurnSettings::default();
    let mut tx = world.pool.begin().await.unwrap();
    let before = updates(&mut tx).await;
    let opening = opening(&task, now);
    let resolved = resolve(&mut tx, &opening, &wanted(&task, now), 1000, &inheritance(0, now.at))
        .await
        .unwrap();
    let begin = Begin {
        chain: None,
        minted: None,
        session: &resolved.session,
        task_id: task.id,
        job_id: task.job_id,
        lease: 1000,
        attempt: 1,
        reserve: Amount::ZERO,
        budgets: &[],
        messages: &[message(task.id, Role::User, &task.prompt)],
        shows_posts: false,
        events: &[],
        now: noon(),
    };
    let begun = turn_phases::begin(&mut tx, &begin).await.unwrap();
    let ending = TurnEnd {
        turn: &begun,
        calls: &[],
        messages: &[],
        record: Default::default(),
        now: noon(),
    };
    turn_phases::commit(&mut tx, &ending, &done("The end.", now)).await.unwrap();
    let after = updates(&mut tx).await;
    assert_eq!((after.0 - before.0, after.1 - before.1), (2, 2));
}

/// Returns this connection's updates of sessions, and those that touched no index.
async fn updates(conn: &mut sqlx::PgConnection) -> (i64, i64) {
    let sql = "select pg_stat_get_xact_tuples_updated(t), pg_stat_get_xact_tuples_hot_updated(t)
                 from (select 'dalsegno.sessions'::regclass::oid) as s (t)";
    sqlx::query_as(sql).fetch_one(conn).await.unwrap()
}

#[tokio::test]
async fn a_compaction_during_a_turn_keeps_the_providers_position_with_its_view() {
    let world = World::new().await;
    world.turn("Part one.", TurnSettings::default()).await;
    let task = world.add("Part two.").await;
    let (resolved, begun) = world.begin(&task, world.lease(), TurnSettings::default()).await;
    let id = begun.session_id;
    crate::cli::compact(&world.pool, id).await;
    let (meter, checkpoint) = (json!({}), json!({ "weight": 1, "real_tokens": 1 }));
    let messages = [message(Uuid::new_v4(), Role::Assistant, "Written.")];
    let ending = TurnEnd {
        turn: &begun,
        calls: &[],
        messages: &messages,
        record: Default::default(),
        now: noon(),
    };
    let kept = turn_phases::ProviderState {
        head: Uuid::from_u128(7),
        generation: resolved.session.generation,
        meter: &meter,
        rewritten: false,
        grown: &[],
    };
    let done = turn_phases::AnsweredTurn {
        kept: Some(kept),
        checkpoint: Some(&checkpoint),
        ..done("Written.", TurnSettings::default())
    };
    let mut tx = world.pool.begin().await.unwrap();
    turn_phases::commit(&mut tx, &ending, &done).await.unwrap();
    tx.commit().await.unwrap();
    let session = sessions::read_live(&world.pool, id).await.unwrap();
    assert_eq!((session.generation, session.head_generation), (1, Some(0)));
    assert_eq!(session.checkpoint, None);
}
