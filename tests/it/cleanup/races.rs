//! Cleanups beside live sessions.

use chrono::TimeDelta;
use dalsegno::domain::{
    Amount,
    cleanups::{self, KeepReason},
    conversations::Decision,
    sessions, tasks,
};
use rand::{RngExt as _, SeedableRng as _};
use sqlx::PgPool;

use super::{cleanup, fill, kept_reasons, next_page, preview, rows, settings_after_expiry, walk};
use crate::{
    app::{eventually, noon},
    conversations::world::{TurnSettings, World},
};

/// The session is found, then used, then reached by the removal.
#[tokio::test]
async fn a_session_used_at_the_moment_of_its_removal_survives() {
    let world = World::new().await;
    let id = world.turn("Part one.", TurnSettings::default()).await.session.id;
    let page = next_page(&world.pool, &mut walk(), 10).await.unwrap();
    assert_eq!(page.going.len(), 1);
    let move_on = "update dalsegno.sessions set expires_at = expires_at + interval '30 days'";
    sqlx::query(move_on).execute(&world.pool).await.unwrap();
    let mut tx = world.pool.begin().await.unwrap();
    let batch = cleanups::remove(&mut tx, &walk(), page.going).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!((batch.sessions, batch.kept), (0, vec![KeepReason::InUse]));
    assert_eq!(world.transcript(id).await.len(), 2);
}

/// A turn has locked the session and has not committed: neither waits for the other.
#[tokio::test]
async fn a_session_locked_by_a_turn_is_skipped() {
    let world = World::new().await;
    let id = world.turn("Part one.", TurnSettings::default()).await.session.id;
    let mut turn = world.pool.begin().await.unwrap();
    let lock = "select 1 from dalsegno.sessions for no key update";
    sqlx::query(lock).execute(&mut *turn).await.unwrap();
    let done = tokio::time::timeout(crate::app::SOON, cleanup(&world.pool, walk(), 10)).await;
    assert_eq!(kept_reasons(&done.unwrap().kept), [(KeepReason::InUse, 1)]);
    turn.commit().await.unwrap();
    assert!(sessions::get(&world.pool, id).await.is_ok());
}

#[tokio::test]
async fn a_session_that_gets_a_task_after_the_scan_survives() {
    let world = World::new().await;
    let id = world.turn("Part one.", TurnSettings::default()).await.session.id;
    let page = next_page(&world.pool, &mut walk(), 10).await.unwrap();
    world.add("Part two.").await;
    let mut tx = world.pool.begin().await.unwrap();
    let batch = cleanups::remove(&mut tx, &walk(), page.going).await.unwrap();
    assert_eq!((batch.sessions, batch.kept), (0, vec![KeepReason::TaskWaiting]));
    drop(tx);
    assert!(sessions::get(&world.pool, id).await.is_ok());
}

/// Tasks arrive for expired conversations, while two cleanups run.
#[tokio::test]
async fn a_cleanup_beside_running_turns_removes_no_live_row() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let world = World::new().await;
    fill(&world.pool, world.campaign.id, "copywriter", "sim", 300, 6, noon()).await;
    let turns = async {
        let mut rng = rand::rngs::StdRng::seed_from_u64(seed);
        let mut used = Vec::new();
        for n in 0..60 {
            let instance = format!("i{}", rng.random_range(1..=300));
            let prompt = format!("Part {n}.");
            let new = tasks::New { instance: &instance, ..world.ask(&prompt) };
            let task = world.add_new(&new).await.unwrap().task;
            let (resolved, begun) = world
                .try_begin(&task, world.lease(), settings_after_expiry(), Amount::ZERO)
                .await
                .unwrap();
            tokio::task::yield_now().await;
            world.commit(&begun, "Done.", settings_after_expiry()).await.unwrap();
            // In either order of task and cleanup.
            let remembers = resolved.inherited_summary || resolved.decision == Decision::Resume;
            assert!(remembers, "{instance}: {:?}", resolved.decision);
            used.push((resolved.session.id, prompt));
        }
        used
    };
    let (used, first, second) =
        tokio::join!(turns, cleanup(&world.pool, walk(), 3), cleanup(&world.pool, walk(), 5));
    for (session, prompt) in &used {
        let transcript = world.transcript(*session).await;
        assert!(transcript.contains(&format!("User: {prompt}")), "{prompt}: {transcript:?}");
        assert_eq!(transcript.last().map(String::as_str), Some("Assistant: Done."));
    }
    let rest = cleanup(&world.pool, walk(), 50).await;
    let n_gone = first.sessions + second.sessions + rest.sessions;
    let by_hand = "select count(*) from dalsegno.sessions where agent_type = 'copywriter' and closed_at is null";
    let n_open: i64 = sqlx::query_scalar(by_hand).fetch_one(&world.pool).await.unwrap();
    let mut instances: Vec<_> = used.iter().map(|(session, _)| session).collect();
    instances.sort_unstable();
    instances.dedup();
    assert_eq!(n_open, instances.len() as i64);
    assert!(n_gone > 200, "{n_gone}");
    assert_eq!(preview(&world.pool).await.sessions, 0);
}

/// After any number of interruptions, the result is the same.
#[tokio::test]
async fn an_interrupted_and_repeated_cleanup_has_the_same_result() {
    let worlds = [World::new().await, World::new().await];
    for world in &worlds {
        fill(&world.pool, world.campaign.id, "old", "sim", 120, 6, noon()).await;
        let soon = noon() + TimeDelta::days(20);
        fill(&world.pool, world.campaign.id, "young", "ollama", 20, 4, soon).await;
        world.add_new(&tasks::New { instance: "i7", ..world.ask("Wait.") }).await.unwrap();
        let own = "update dalsegno.sessions set agent_type = 'copywriter' where instance = 'i7' and agent_type = 'old'";
        sqlx::query(own).execute(&world.pool).await.unwrap();
    }
    let whole = cleanup(&worlds[0].pool, walk(), 10).await;
    assert_eq!(whole.sessions, 119);
    for nth in [2, 41, 90] {
        cancel_cleanup_at(&worlds[1].pool, nth).await;
    }
    cleanup(&worlds[1].pool, walk(), 2).await;
    let done = cleanup(&worlds[1].pool, walk(), 10).await;
    assert_eq!((done.sessions, &done.kept), (0, &whole.kept));
    assert_eq!(rows(&worlds[0].pool).await, rows(&worlds[1].pool).await);
}

/// Drops a cleanup while it removes the `nth` session, counted over all calls, and waits for the server's rollback.
async fn cancel_cleanup_at(pool: &PgPool, nth: u32) {
    let gate = format!(
        "create sequence if not exists public.removals;
         create or replace function public.stop_at_gate() returns trigger language plpgsql as $body$
         begin
           if nextval('public.removals') = {nth} then perform pg_advisory_xact_lock_shared(7); end if;
           return old;
         end $body$;
         create or replace trigger gate before delete on dalsegno.sessions for each row execute function public.stop_at_gate()"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(gate)).execute(pool).await.unwrap();
    let mut keeper = pool.begin().await.unwrap();
    sqlx::query("select pg_advisory_xact_lock(7)").execute(&mut *keeper).await.unwrap();
    let doomed = tokio::spawn({
        let pool = pool.clone();
        async move { cleanup(&pool, walk(), 2).await }
    });
    eventually("the cleanup waits at the gate", async || {
        let sql = "select 1 from pg_locks where locktype = 'advisory' and not granted
                     and database = (select oid from pg_database where datname = current_database())";
        sqlx::query(sql).fetch_optional(pool).await.unwrap()
    })
    .await;
    doomed.abort();
    assert!(doomed.await.unwrap_err().is_cancelled());
    keeper.commit().await.unwrap();
    eventually("the cleanup is rolled back", async || {
        let sql = "select 1 where not exists (select from pg_stat_activity
                    where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null)";
        sqlx::query(sql).fetch_optional(pool).await.unwrap()
    })
    .await;
}
