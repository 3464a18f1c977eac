//! Resolution of sessions: found, created, rebuilt.

use std::sync::Arc;

use chrono::TimeDelta;
use dalsegno::domain::agents::SessionMode as Mode;
use dalsegno::domain::{
    conversations::{Decision, resolve},
    sessions::{self, Reason, State},
    tasks::{self, New},
    turn_phases,
};
use tokio::task::JoinSet;

use super::{TurnSettings, World, inheritance, opening, wanted};
use crate::app::{defaults, noon};

const OTHER_HASH: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

#[tokio::test]
async fn the_first_task_creates_a_session_and_the_next_continues_it() {
    let world = World::new().await;
    let first = world.turn("Part one.", TurnSettings::default()).await;
    assert_eq!(first.decision, Decision::Create { ephemeral: false });
    let second = world.turn("Part two.", TurnSettings::default()).await;
    assert_eq!(second.decision, Decision::Resume);
    assert_eq!(second.session.id, first.session.id);
    let session = world.session(first.session.id).await;
    assert_eq!((session.turns, session.token_count, session.context_tokens), (2, 80, 40));
    assert_eq!(session.state, State::Idle);
}

/// The row for other systems: one array of messages, and columns beside it.
#[tokio::test]
async fn other_systems_read_a_session_as_one_row_with_its_history() {
    let world = World::new().await;
    world.turn("Part one.", TurnSettings::default()).await;
    let session = world.turn("Part two.", TurnSettings::default()).await.session;
    let seen = "select to_jsonb(h) from dalsegno.session_histories as h where h.id = $1";
    let seen: serde_json::Value =
        sqlx::query_scalar(seen).bind(session.id).fetch_one(&world.pool).await.unwrap();
    let history = seen["message_history"].as_array().unwrap();
    let roles: Vec<_> = history.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
    let asked = (&history[0]["content"], &history[2]["content"]);
    assert_eq!(asked, (&"Part one.".into(), &"Part two.".into()));
    assert_eq!(seen["campaign_id"], world.campaign.id.to_string());
    assert_eq!((&seen["agent_type"], &seen["model"]), (&"copywriter".into(), &"sim-1".into()));
    assert_eq!(seen["token_count"], 80);
    for column in ["external_session_id", "expires_at", "created_at"] {
        assert!(seen.get(column).is_some(), "{column}: {seen}");
    }
}

#[tokio::test]
async fn instances_and_campaigns_have_sessions_of_their_own() {
    let world = World::new().await;
    world.turn("Part one.", TurnSettings::default()).await;
    let ask = New { instance: "curator_2", ..world.ask("Part one.") };
    let task = world.add_new(&ask).await.unwrap().task;
    let (resolved, _) = world.begin(&task, world.lease(), TurnSettings::default()).await;
    assert_eq!(resolved.decision, Decision::Create { ephemeral: false });
    assert_eq!(world.sessions().await.len(), 2);
}

#[tokio::test]
async fn concurrent_first_tasks_of_a_conversation_create_one_session() {
    let world = Arc::new(World::new().await);
    for _ in 0..5 {
        let ask = New { instance: "racer", ..world.ask("Part one.") };
        let task = world.add_new(&ask).await.unwrap().task;
        let mut runs = JoinSet::new();
        for _ in 0..8 {
            let (world, task) = (Arc::clone(&world), task.clone());
            runs.spawn(async move {
                let mut tx = world.pool.begin().await.unwrap();
                let now = TurnSettings::default();
                let lease = world.lease();
                let resolved = resolve(
                    &mut tx,
                    &opening(&task, now),
                    &wanted(&task, now),
                    lease,
                    &inheritance(0, now.at),
                )
                .await;
                match resolved {
                    Ok(resolved) => {
                        tx.commit().await.unwrap();
                        Some(resolved.session.id)
                    }
                    Err(sessions::Error::Overtaken(_)) => None,
                    Err(error) => panic!("{error}"),
                }
            });
        }
        let found = runs.join_all().await;
        let sessions = world.sessions().await;
        let open: Vec<_> = sessions.iter().filter(|s| s.state != State::Closed).collect();
        assert_eq!(open.len(), 1);
        assert!(found.iter().flatten().all(|id| *id == open[0].id), "{found:?}");
        assert!(found.iter().any(Option::is_some));
        let close = "update dalsegno.sessions set state = 'closed', closed_at = now(), closed_because = 'ended' where closed_at is null";
        sqlx::query(close).execute(&world.pool).await.unwrap();
    }
}

#[tokio::test]
async fn each_reason_closes_the_session_and_links_its_successor() {
    let now = TurnSettings::default();
    let later = noon() + TimeDelta::days(8);
    let table = [
        (TurnSettings { prompt_hash: OTHER_HASH, ..now }, None, Reason::PromptChanged),
        (TurnSettings { model: "sim-2", ..now }, None, Reason::ModelChanged),
        (TurnSettings { provider: "ollama", ..now }, None, Reason::ProviderChanged),
        (TurnSettings { at: later, ..now }, None, Reason::Expired),
        (now, Some(Reason::Reset), Reason::Reset),
        (now, Some(Reason::Lost), Reason::Lost),
        (now, Some(Reason::Poisoned), Reason::Poisoned),
        (now, Some(Reason::Fresh), Reason::Fresh),
    ];
    let world = World::new().await;
    for (index, (then, asked, reason)) in table.into_iter().enumerate() {
        let instance = format!("copy_{index}");
        let ask = |prompt| New { instance: &instance, ..world.ask(prompt) };
        let task = world.add_new(&ask("Part one.")).await.unwrap().task;
        let (first, begun) = world.begin(&task, world.lease(), now).await;
        world.commit(&begun, "Once ...", now).await.unwrap();
        if let Some(asked) = asked {
            let mut conn = world.pool.acquire().await.unwrap();
            sessions::ask_rebuild(&mut conn, first.session.id, asked).await.unwrap();
        }
        let task = world.add_new(&ask("Part two.")).await.unwrap().task;
        let (second, begun) = world.begin(&task, world.lease(), then).await;
        assert_eq!(second.decision, Decision::Rebuild(reason));
        let before = world.session(first.session.id).await;
        let after = world.session(second.session.id).await;
        assert_eq!((before.state, before.closed_because), (State::Closed, Some(reason)));
        assert_eq!(before.successor_id, Some(after.id));
        assert_eq!(after.predecessor_id, Some(before.id));
        assert_eq!((after.opened_because, after.rebuild_because), (reason, None));
        let n_inherited = if matches!(reason, Reason::Fresh | Reason::Expired) { 0 } else { 2 };
        assert_eq!(second.inherited.messages, n_inherited);
        assert_eq!(second.inherited_summary, reason == Reason::Expired);
        // Numbers continue, so that the messages of both sessions sort into one conversation.
        assert_eq!(after.turns, if reason == Reason::Fresh { 1 } else { 2 });
        world.commit(&begun, "And then ...", then).await.unwrap();
    }
}

#[tokio::test]
async fn a_fresh_session_is_created_once_and_continued_afterwards() {
    let world = World::new().await;
    let old = world.turn("Part one.", TurnSettings::default()).await.session.id;
    let task = world.add_mode("Forget all.", Mode::Fresh).await;
    let (first, _) = world.begin(&task, world.lease(), TurnSettings::default()).await;
    assert_eq!(first.decision, Decision::Rebuild(Reason::Fresh));
    assert_eq!(world.transcript(first.session.id).await, ["User: Forget all."]);
    // The worker is lost; the second attempt continues the session of the first.
    let (second, begun) = world.begin(&task, world.lease(), TurnSettings::default()).await;
    assert_eq!(second.session.id, first.session.id);
    assert!(second.was_interrupted());
    world.commit(&begun, "Forgotten.", TurnSettings::default()).await.unwrap();
    let next = world.turn("Part two.", TurnSettings::default()).await;
    assert_eq!(next.session.id, first.session.id);
    assert_eq!(world.session(old).await.closed_because, Some(Reason::Fresh));
}

#[tokio::test]
async fn a_retried_fresh_task_starts_a_new_session_after_other_turns() {
    let world = World::new().await;
    let now = TurnSettings::default();
    let task = world.add_mode("Forget all.", Mode::Fresh).await;
    let (first, begun) = world.begin(&task, world.lease(), now).await;
    world.fail(&begun, "refused", None).await;
    let between = world.turn("Part two.", now).await.session.id;
    assert_eq!(between, first.session.id);

    let mut tx = world.pool.begin().await.unwrap();
    let again = tasks::retry(&mut tx, task.id, noon()).await.unwrap();
    tx.commit().await.unwrap();
    let (second, begun) = world.begin(&again, world.lease(), now).await;
    assert_eq!(second.decision, Decision::Rebuild(Reason::Fresh));
    assert_eq!(world.transcript(second.session.id).await, ["User: Forget all."]);
    let left = world.session(between).await;
    assert_eq!(
        (left.closed_because, left.successor_id),
        (Some(Reason::Fresh), Some(second.session.id))
    );
    world.commit(&begun, "Forgotten.", now).await.unwrap();
    assert_eq!(world.turn("Part three.", now).await.session.id, second.session.id);
}

/// A summary was written in the background while the session was rebuilt.
#[tokio::test]
async fn usage_of_an_ended_session_still_counts() {
    let world = World::new().await;
    let old = world.turn("Part one.", TurnSettings::default()).await.session.id;
    world
        .turn("Part two.", TurnSettings { prompt_hash: OTHER_HASH, ..TurnSettings::default() })
        .await;
    let before = world.session(old).await;
    assert_eq!(before.state, State::Closed);
    sessions::add_tokens(&world.pool, old, 100).await.unwrap();
    assert_eq!(world.session(old).await.token_count, before.token_count + 100);
}

/// A run rebuilds the session, finds too little space for its turn, and dies during the compaction.
#[tokio::test]
async fn a_successor_without_a_turn_still_knows_that_the_last_turn_was_interrupted() {
    let world = World::new().await;
    let task = world.add("Part one.").await;
    world.begin(&task, world.lease(), TurnSettings::default()).await;
    let then = TurnSettings { prompt_hash: OTHER_HASH, ..TurnSettings::default() };
    let mut tx = world.pool.begin().await.unwrap();
    let (opening, wanted) = (opening(&task, then), wanted(&task, then));
    let rebuilt =
        resolve(&mut tx, &opening, &wanted, world.lease(), &inheritance(i64::MAX, noon()))
            .await
            .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(rebuilt.decision, Decision::Rebuild(Reason::PromptChanged));
    let (resumed, begun) = world.begin(&task, world.lease(), then).await;
    assert_eq!((resumed.decision, resumed.was_interrupted()), (Decision::Resume, true));
    world.commit(&begun, "Once ...", then).await.unwrap();
    assert!(!world.turn("Part two.", then).await.was_interrupted(), "the notice is shown once");
}

#[tokio::test]
async fn a_task_without_a_session_leaves_the_conversation_unchanged() {
    let world = World::new().await;
    let kept = world.turn("Part one.", TurnSettings::default()).await.session.id;
    let task = world.add_mode("Just this.", Mode::None).await;
    let (first, _) = world.begin(&task, world.lease(), TurnSettings::default()).await;
    assert_eq!(first.decision, Decision::Create { ephemeral: true });
    // A second attempt after a crash finds the session of the first.
    let (second, begun) = world.begin(&task, world.lease(), TurnSettings::default()).await;
    assert_eq!((second.session.id, second.was_interrupted()), (first.session.id, true));
    world.commit(&begun, "Done.", TurnSettings::default()).await.unwrap();
    let own = world.session(first.session.id).await;
    assert_eq!((own.state, own.closed_because), (State::Closed, Some(Reason::Ended)));
    let next = world.turn("Part two.", TurnSettings::default()).await;
    assert_eq!(next.session.id, kept);
    assert_eq!(world.transcript(kept).await.len(), 4);
}

#[tokio::test]
async fn each_use_extends_the_expiry_in_steps_of_an_hour() {
    let world = World::new().await;
    let at = |minutes| TurnSettings {
        at: noon() + TimeDelta::minutes(minutes),
        ..TurnSettings::default()
    };
    let id = world.turn("Part one.", at(0)).await.session.id;
    let begun_with = world.session(id).await.expires_at;
    assert_eq!(begun_with, noon() + TimeDelta::days(7));
    world.turn("Part two.", at(59)).await;
    assert_eq!(world.session(id).await.expires_at, begun_with);
    world.turn("Part three.", at(61)).await;
    assert_eq!(world.session(id).await.expires_at, begun_with + TimeDelta::minutes(61));
}

#[test]
fn the_time_to_live_follows_the_provider_unless_the_agent_sets_it() {
    let mut config = defaults().sessions;
    config.ttl_days.insert("sim".to_owned(), 1);
    let days = |provider, own| (config.expires_at(provider, own, noon()) - noon()).num_days();
    assert_eq!(days("claude", None), 30);
    assert_eq!(days("ollama", None), 7);
    assert_eq!(days("sim", None), 1);
    assert_eq!(days("claude", Some(3)), 3);
}

#[tokio::test]
async fn a_requested_rebuild_waits_for_the_running_turn() {
    let world = World::new().await;
    let task = world.add("Part one.").await;
    let (resolved, begun) = world.begin(&task, world.lease(), TurnSettings::default()).await;
    let mut conn = world.pool.acquire().await.unwrap();
    sessions::ask_rebuild(&mut conn, resolved.session.id, Reason::Reset).await.unwrap();
    world.commit(&begun, "Once ...", TurnSettings::default()).await.unwrap();
    let next = world.turn("Part two.", TurnSettings::default()).await;
    assert_eq!(next.decision, Decision::Rebuild(Reason::Reset));
    let gone = sessions::ask_rebuild(&mut conn, resolved.session.id, Reason::Reset).await;
    assert!(matches!(gone, Err(sessions::Error::Closed(_))));
    let unknown = sessions::ask_rebuild(&mut conn, uuid::Uuid::nil(), Reason::Reset).await;
    assert!(matches!(unknown, Err(sessions::Error::Unknown(_))));
}

/// The run that was declared lost resolves again: it must not touch the later run's work.
#[tokio::test]
async fn an_older_lease_does_not_interrupt_a_newer_run() {
    let world = World::new().await;
    let task = world.add("Part one.").await;
    let (old, new) = (world.lease(), world.lease());
    world.begin(&task, new, TurnSettings::default()).await;
    let late = world.try_begin(&task, old, TurnSettings::default(), Default::default()).await;
    assert!(
        matches!(late, Err(turn_phases::Error::Session(sessions::Error::Overtaken(_)))),
        "{late:?}"
    );
}

/// The same after the later run has ended its turn and requested a rebuild, or has rebuilt the session.
#[tokio::test]
async fn an_older_lease_does_not_rebuild_a_session_that_a_newer_run_has_left() {
    let world = World::new().await;
    let task = world.add("Part one.").await;
    let (old, new) = (world.lease(), world.lease());
    let (resolved, begun) = world.begin(&task, new, TurnSettings::default()).await;
    world.fail(&begun, "refused", Some(Reason::Poisoned)).await;
    let late = async || {
        let late = world.try_begin(&task, old, TurnSettings::default(), Default::default()).await;
        matches!(late, Err(turn_phases::Error::Session(sessions::Error::Overtaken(_))))
    };
    assert!(late().await, "an ended run rebuilt the session");
    assert_eq!(world.sessions().await.len(), 1);

    let mut tx = world.pool.begin().await.unwrap();
    let (opening, wanted) =
        (opening(&task, TurnSettings::default()), wanted(&task, TurnSettings::default()));
    resolve(&mut tx, &opening, &wanted, new, &inheritance(i64::MAX, noon())).await.unwrap();
    tx.commit().await.unwrap();
    assert!(late().await, "an old run began in the session of a newer one");
    let (next, _) = world.begin(&task, new, TurnSettings::default()).await;
    assert_ne!(next.session.id, resolved.session.id);
}
