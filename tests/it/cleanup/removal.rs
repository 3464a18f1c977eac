//! Removed rows and kept rows.

use chrono::TimeDelta;
use dalsegno::domain::{
    Amount,
    agents::SessionMode as Mode,
    cleanups::{KeepReason, Walk},
    conversations, erasures, explanations,
    messages::{self, Span},
    sessions, tasks, turn_phases, turns,
};

use super::{
    after_expiry, cleanup, config, fill, kept_reasons, memory_config, preview, rows, walk,
};
use crate::{
    app::noon,
    cli::compact,
    conversations::world::{TurnSettings, World},
};

/// Puts each session at a node.
const ADD_NODE_STAY: &str = "insert into dalsegno.session_nodes (session_id, campaign_id, task_id, entered_at, first_seq, ordinal, agent, instance, node)
                     select id, campaign_id, gen_random_uuid(), now(), 1, 1, agent_type, instance, 'draft' from dalsegno.sessions";

#[tokio::test]
async fn expired_sessions_are_removed_with_their_rows_and_the_ledger_stays() {
    let world = World::new().await;
    world.turn("Part one.", TurnSettings::default()).await;
    let id = world.turn("Part two.", TurnSettings::default()).await.session.id;
    compact(&world.pool, id).await;
    let files = "insert into dalsegno.transcript_files (session_id, n_bytes, name, sha256)
                 select id, 3, 'a.jsonl', decode(repeat('04', 32), 'hex') from dalsegno.sessions";
    let chunks = "insert into dalsegno.transcript_chunks (session_id, from_byte, name, bytes)
                  select id, 0, 'a.jsonl', 'abc' from dalsegno.sessions";
    let manifests = "insert into dalsegno.manifests (session_id, turn, call, created_at, estimated_tokens, sha256, manifest)
                     select id, 1, 0, now(), 1, decode(repeat('03', 32), 'hex'), '{}' from dalsegno.sessions";
    let standing =
        "insert into dalsegno.failovers (campaign_id, agent, instance, failures, failed_at)
                    select campaign_id, agent_type, instance, 2, now() from dalsegno.sessions";
    for statement in [files, chunks, manifests, standing, ADD_NODE_STAY] {
        sqlx::query(statement).execute(&world.pool).await.unwrap();
    }
    let before = rows(&world.pool).await;
    let n_messages = before["messages"];
    assert!(before.values().all(|n| *n > 0), "{before:?}");
    let early = cleanup(&world.pool, Walk::new(noon(), &config(), &memory_config()), 10).await;
    assert_eq!((early.sessions, rows(&world.pool).await), (0, before.clone()));

    let done = cleanup(&world.pool, walk(), 10).await;
    assert_eq!((done.sessions, done.messages), (1, n_messages));
    let after = rows(&world.pool).await;
    for table in ["usage", "tasks", "campaigns", "feed"] {
        assert_eq!(after[table], before[table], "{table}");
    }
    let standings: i64 = sqlx::query_scalar("select count(*) from dalsegno.failovers")
        .fetch_one(&world.pool)
        .await
        .unwrap();
    assert_eq!(standings, 0, "no session inherits it");
    let n_left: i64 = after.values().sum();
    let stays = ["usage", "tasks", "campaigns", "feed"].map(|table| after[table]);
    assert_eq!(n_left, stays.iter().sum::<i64>(), "{after:?}");
}

#[tokio::test]
async fn an_erasure_removes_sessions_at_nodes() {
    let world = World::new().await;
    world.turn("Part one.", TurnSettings::default()).await;
    sqlx::query(ADD_NODE_STAY).execute(&world.pool).await.unwrap();
    assert_eq!(rows(&world.pool).await["session_nodes"], 1);
    let mut tx = world.pool.begin().await.unwrap();
    erasures::request(&mut tx, world.campaign.id, "by request", noon()).await.unwrap();
    let mut step = Some(erasures::Step::FIRST);
    while let Some(now) = step {
        let more = erasures::next_batch(&mut tx, world.campaign.id, now).await.unwrap();
        step = if more { Some(now) } else { now.next() };
    }
    erasures::finish(&mut tx, world.campaign.id, 0, noon()).await.unwrap();
    tx.commit().await.unwrap();
    let left = rows(&world.pool).await;
    assert_eq!((left["sessions"], left["session_nodes"]), (0, 0), "{left:?}");
}

#[tokio::test]
async fn sessions_that_run_or_have_waiting_tasks_are_kept() {
    let world = World::new().await;
    fill(&world.pool, world.campaign.id, "bulk", "sim", 5, 4, noon()).await;
    // Begun long ago, and never ended.
    let task = world.add("Part one.").await;
    let (running, _) = world.begin(&task, world.lease(), TurnSettings::default()).await;
    // Another conversation, in which a task waits.
    let new = tasks::New { instance: "second", ..world.ask("Part two.") };
    let first = world.add_new(&new).await.unwrap().task;
    let (waiting, begun) = world.begin(&first, world.lease(), TurnSettings::default()).await;
    world.commit(&begun, "Done.", TurnSettings::default()).await.unwrap();
    world.add_new(&tasks::New { prompt: "Part three.", ..new }).await.unwrap();

    let seen = preview(&world.pool).await;
    let done = cleanup(&world.pool, walk(), 2).await;
    assert_eq!((seen.sessions, done.sessions), (5, 5));
    assert_eq!(kept_reasons(&done.kept), [(KeepReason::Running, 1), (KeepReason::TaskWaiting, 1)]);
    assert_eq!(seen.kept, done.kept);
    for session in [running.session.id, waiting.session.id] {
        assert!(!world.transcript(session).await.is_empty());
    }
}

#[tokio::test]
async fn a_one_task_session_is_kept_for_its_own_task_only() {
    let world = World::new().await;
    let task = world.add_mode("Alone.", Mode::None).await;
    let (resolved, _) = world.begin(&task, world.lease(), TurnSettings::default()).await;
    let stop = "update dalsegno.sessions set state = 'interrupted', running_turn = null";
    sqlx::query(stop).execute(&world.pool).await.unwrap();
    assert_eq!(
        kept_reasons(&cleanup(&world.pool, walk(), 10).await.kept),
        [(KeepReason::TaskWaiting, 1)]
    );
    let end =
        "update dalsegno.tasks set state = 'cancelled', ended_at = now() where ended_at is null";
    sqlx::query(end).execute(&world.pool).await.unwrap();
    world.add("Of the conversation that everybody shares.").await;
    assert_eq!(cleanup(&world.pool, walk(), 10).await.sessions, 1);
    assert!(sessions::get(&world.pool, resolved.session.id).await.is_err());
}

/// A closed session is removed some time later, and its successor is shown without it.
#[tokio::test]
async fn a_closed_session_is_removed_after_its_retention_and_leaves_no_link() {
    let world = World::new().await;
    let first = world.turn("Part one.", TurnSettings::default()).await.session.id;
    let other = TurnSettings {
        prompt_hash: "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
        ..TurnSettings::default()
    };
    let second = world.turn("Part two.", other).await.session.id;
    assert_eq!(world.session(second).await.predecessor_id, Some(first));
    let keep_open = "update dalsegno.sessions set expires_at = now() + interval '900 days' where closed_at is null";
    sqlx::query(keep_open).execute(&world.pool).await.unwrap();
    let walk = |days| Walk::new(noon() + TimeDelta::days(days), &config(), &memory_config());
    assert_eq!(cleanup(&world.pool, walk(29), 10).await.sessions, 0);
    let transcript = world.transcript(second).await;
    let done = cleanup(&world.pool, walk(30), 10).await;
    assert_eq!((done.sessions, done.removed.len()), (1, 1));
    let mut conn = world.pool.acquire().await.unwrap();
    let shown = conversations::detail(&mut conn, second).await.unwrap();
    assert_eq!(shown.session.predecessor_id, None);
    assert!(world.sessions().await.iter().all(|session| session.predecessor_id.is_none()));
    // Inherited messages belong to the successor.
    assert_eq!(world.transcript(second).await, transcript);
    assert!(transcript.iter().any(|line| line.contains("Part one.")));
}

#[tokio::test]
async fn a_task_of_a_removed_session_is_shown_explained_and_retried() {
    let world = World::new().await;
    let task = world.add("Part one.").await;
    let (_, begun) = world.begin(&task, world.lease(), TurnSettings::default()).await;
    let messages = [];
    let ending = turn_phases::TurnEnd {
        turn: &begun,
        calls: &[],
        messages: &messages,
        record: Default::default(),
        now: noon(),
    };
    let mut tx = world.pool.begin().await.unwrap();
    turn_phases::cancel(&mut tx, &ending, "cancelled").await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(cleanup(&world.pool, walk(), 10).await.sessions, 1);

    let mut conn = world.pool.acquire().await.unwrap();
    assert_eq!(tasks::detail(&mut conn, task.id).await.unwrap().turns, []);
    explanations::explain(&mut conn, task.id).await.unwrap();
    let again = tasks::retry(&mut conn, task.id, after_expiry()).await.unwrap();
    assert!(!turns::interrupt_lost(&mut conn, again.without_turn(), after_expiry()).await.unwrap());
    drop(conn);
    let begun =
        world.try_begin(&again, world.lease(), super::settings_after_expiry(), Amount::ZERO).await;
    let (resolved, _) = begun.unwrap();
    let stored = messages::list(&world.pool, resolved.session.id, Span::all()).await.unwrap();
    // Its last turn was cut off, and the conversation keeps that.
    assert!(resolved.was_interrupted() && resolved.inherited_summary);
    assert_eq!(stored.len(), 2);
}

/// Many providers and reasons: the preview equals the removal.
#[tokio::test]
async fn a_preview_equals_the_removal() {
    let world = World::new().await;
    let (pool, campaign) = (&world.pool, world.campaign.id);
    for (agent, provider, n_sessions, days) in
        [("a", "sim", 7, 0), ("b", "ollama", 5, 3), ("c", "claude", 4, 9), ("d", "ollama", 3, 8)]
    {
        let expires_at = noon() + TimeDelta::days(days) - TimeDelta::hours(1);
        fill(pool, campaign, agent, provider, n_sessions, 6, expires_at).await;
    }
    fill(pool, campaign, "closed", "sim", 6, 2, noon() - TimeDelta::days(40)).await;
    let close = "update dalsegno.sessions set state = 'closed', closed_because = 'reset', closed_at = expires_at
                  where agent_type = 'closed'";
    sqlx::query(close).execute(pool).await.unwrap();
    let file = "insert into dalsegno.transcript_files (session_id, n_bytes, name, sha256)
                select id, 1000, 'a.jsonl', decode(repeat('04', 32), 'hex') from dalsegno.sessions where agent_type = 'b'";
    sqlx::query(file).execute(pool).await.unwrap();
    world.turn("Used.", super::settings_after_expiry()).await;

    let seen = preview(pool).await;
    let before = rows(pool).await;
    let done = cleanup(pool, walk(), 3).await;
    let after = rows(pool).await;
    assert_eq!((seen.sessions, seen.messages), (7 + 5 + 3 + 6, 15 * 6 + 6 * 2));
    assert_eq!(
        (seen.sessions, seen.messages, seen.bytes),
        (done.sessions, done.messages, done.bytes)
    );
    assert_eq!(before["sessions"] - after["sessions"], seen.sessions);
    assert_eq!(before["messages"] - after["messages"], seen.messages);
    assert_eq!(seen.bytes, seen.messages * 300 + 5 * 1000);
    let mut said: Vec<_> =
        seen.groups.iter().map(|g| (g.provider.clone(), g.because, g.sessions)).collect();
    let mut went: Vec<_> =
        done.removed.iter().map(|r| (r.provider.clone(), r.because, r.sessions)).collect();
    said.sort();
    went.sort();
    assert_eq!((said.len(), said), (3, went));
    let oldest = seen.groups.iter().map(|group| group.oldest).min().unwrap();
    assert_eq!(oldest, noon() - TimeDelta::days(40) - TimeDelta::seconds(6));
    let nothing = preview(pool).await;
    assert_eq!((nothing.sessions, nothing.groups.len()), (0, 0));
}
