//! Compactions beside each other, beside turns, and across the ends of workers and sessions.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use dalsegno::{
    context::{
        compaction::pins,
        parts::Task,
        posts::{Post, Posts},
    },
    domain::{
        Amount,
        compactions::{self, Outcome},
        conversations::resolve,
        messages, tasks,
        turn_phases::{self, AnsweredTurn, Begin, BoardProgress, ShownPosts, StartedTurn},
    },
    jobs::compact_session::{Cause, Folder, LoadedView, ShowOutcome, prepare},
    transcript::Role,
};
use serde_json::json;
use sqlx::PgPool;
use tokio::time::timeout;
use uuid::Uuid;

use super::{Setup, WatchedProvider};
use crate::{
    app::{SOON, eventually},
    context::support::{message, prose},
    conversations::world::{TurnSettings, done, inheritance, measured, opening, wanted},
    http::lossy_proxy::LossyProxy,
    turns::{
        faults::{refuse_ledger, refuse_writes},
        heavy::{SCRIPTS, text, weigh},
    },
};

const OTHER_HASH: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

#[tokio::test]
async fn of_two_concurrent_summaries_one_is_shown_and_one_becomes_stale() {
    let provider = WatchedProvider::blocking_until(2);
    let setup = Setup::new(provider).await;
    let id = setup.chat(24).await;
    let transcript = setup.world.transcript(id).await;
    let folder = setup.folder();
    let (one, other) =
        tokio::join!(prepare(&folder, id, Cause::Auto), prepare(&folder, id, Cause::Manual));
    let mut generations = [one.unwrap().generation, other.unwrap().generation];
    generations.sort_unstable();
    assert_eq!(generations, [1, 2]);
    assert_eq!(setup.session(id).await.compaction_breaker, Some(json!({ "attempts": [24, 24] })));

    let ShowOutcome::Applied(shown) = setup.apply(id).await else { panic!("nothing was shown") };
    assert_eq!((shown.generation, shown.parent), (2, 0));
    assert_eq!(setup.apply(id).await, ShowOutcome::Stale);
    let outcomes: Vec<_> = setup.compactions(id).await.iter().map(|made| made.outcome).collect();
    assert_eq!(outcomes, [Outcome::Stale, Outcome::Applied]);
    // Undoing it does not apply the other one.
    assert_eq!(setup.revert(id).await.unwrap(), 0);
    assert_eq!(setup.apply(id).await, ShowOutcome::Stale);
    assert_eq!(setup.world.transcript(id).await, transcript);
}

#[tokio::test]
async fn a_lost_workers_prepared_summary_is_found_and_not_requested_again() {
    let setup = Setup::new(WatchedProvider::honest()).await;
    let id = setup.chat(24).await;
    let prepared = setup.prepare(id, Cause::Auto).await.unwrap();
    let n_asked = setup.provider.n_summaries();
    // The worker dies before anything is applied, the conversation continues, and another worker takes over.
    setup.commit_turn("Part 25 is about INV-0025.", &[message(Role::Assistant, "Written.")]).await;
    let found = setup.prepare(id, Cause::Auto).await.unwrap();
    assert_eq!((found.generation, found.is_earlier), (prepared.generation, true));
    assert_eq!(setup.provider.n_summaries(), n_asked);
    assert!(matches!(setup.apply(id).await, ShowOutcome::Applied(_)));
    let context = setup.context(id).await;
    assert!((1..=25).all(|turn| context.contains(&format!("INV-{turn:04}"))));
}

#[tokio::test]
async fn a_crash_during_a_summary_call_returns_no_attempt() {
    let provider = WatchedProvider::blocking_until(2);
    let setup = Setup::new(provider).await;
    let id = setup.chat(24).await;
    let folder = setup.folder();
    let dies = async {
        let running = prepare(&folder, id, Cause::Auto);
        tokio::select! {
            _ = running => panic!("it waits for a second call, so it cannot end"),
            () = async { while setup.provider.n_summaries() == 0 { tokio::task::yield_now().await } } => {}
        }
    };
    dies.await;
    let breaker = setup.session(id).await.compaction_breaker.unwrap();
    assert_eq!(breaker["attempts"], json!([24]));
    assert_eq!(setup.compactions(id).await.len(), 0);
}

/// Returns the number of attempts at the writes of which some were refused.
async fn n_writes(pool: &PgPool) -> i64 {
    sqlx::query_scalar("select last_value from public.refused").fetch_one(pool).await.unwrap()
}

#[tokio::test]
async fn a_paid_summary_waits_for_the_database_and_is_not_asked_for_again() {
    let setup = Setup::new(WatchedProvider::honest()).await;
    let id = setup.chat(24).await;
    // Like a server that is shut down.
    refuse_ledger(&setup.world.pool, 3, "57P01").await;
    setup.prepare(id, Cause::Auto).await.unwrap();
    let n_asked = i64::try_from(setup.provider.n_summaries()).unwrap();
    assert_eq!(setup.ledger().await.0, n_asked);
    assert_eq!(n_writes(&setup.world.pool).await, n_asked + 3);
}

#[tokio::test]
async fn a_charged_summary_waits_for_the_database_and_is_not_asked_for_again() {
    let setup = Setup::new(WatchedProvider::honest()).await;
    let id = setup.chat(24).await;
    let summaries = "insert on dalsegno.compactions for each row";
    refuse_writes(&setup.world.pool, summaries, 3, "57P01").await;
    let prepared = setup.prepare(id, Cause::Auto).await.unwrap();
    assert!(!prepared.is_earlier);
    assert_eq!(n_writes(&setup.world.pool).await, 4);
    assert_eq!(setup.compactions(id).await.len(), 1);
    let n_asked = i64::try_from(setup.provider.n_summaries()).unwrap();
    assert_eq!(setup.ledger().await.0, n_asked);
}

#[tokio::test]
async fn a_stopped_run_tries_three_times_to_charge_its_summary() {
    let setup = Setup::new(WatchedProvider::honest()).await;
    let id = setup.chat(24).await;
    refuse_ledger(&setup.world.pool, 1_000, "57P01").await;
    setup.cancel.cancel();
    let prepared = timeout(SOON, setup.prepare(id, Cause::Auto)).await.expect("it ends");
    assert!(prepared.is_err(), "{prepared:?}");
    let n_asked = i64::try_from(setup.provider.n_summaries()).unwrap();
    assert_eq!((n_asked, n_writes(&setup.world.pool).await), (1, 3));
}

#[tokio::test]
async fn a_summary_whose_charge_was_committed_without_an_answer_is_charged_once() {
    let setup = Setup::new(WatchedProvider::honest()).await;
    let id = setup.chat(24).await;
    let options = setup.world.pool.connect_options();
    let words = &["insert into dalsegno.usage", "COMMIT"];
    let proxy = LossyProxy::start(&options, words).await;
    let lossy = PgPool::connect(&proxy.url).await.unwrap();
    let folder = Folder { pool: &lossy, ..setup.folder() };
    prepare(&folder, id, Cause::Auto).await.unwrap();
    assert!(proxy.has_lost(), "each commit was answered");
    let n_asked = i64::try_from(setup.provider.n_summaries()).unwrap();
    assert_eq!(setup.ledger().await.0, n_asked);
}

/// Returns the CPU time of this thread, without waits and other processes.
fn work_of_thread() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

/// One thread runs all tasks, as on a busy worker.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn reading_a_long_conversation_blocks_no_other_transaction() {
    let setup = Arc::new(Setup::new(WatchedProvider::blocking_until(2)).await);
    for _ in 0..6 {
        let answer = message(Role::Assistant, &prose(7, 10_000));
        setup.commit_turn("Part one.", &[answer]).await;
    }
    // These turns are kept verbatim, and have to fit.
    let id = setup.chat(4).await;
    let mut conn = setup.world.pool.acquire().await.unwrap();
    let session = dalsegno::domain::sessions::read_live(&mut *conn, id).await.unwrap();
    let loaded = LoadedView::read(&mut conn, &session).await.unwrap();
    drop(conn);
    let began = work_of_thread();
    pins::collect(&[], loaded.view().unwrap().tail);
    // Time of reading alone.
    let reading = work_of_thread() - began;

    let longest = Arc::new(Mutex::new(Duration::ZERO));
    let beside = tokio::spawn({
        let longest = Arc::clone(&longest);
        async move {
            let mut ticks = tokio::time::interval(Duration::from_millis(1));
            loop {
                let (thread, before) = (std::thread::current().id(), work_of_thread());
                ticks.tick().await;
                // A blocking task keeps its thread; the other tasks move to another thread.
                if thread == std::thread::current().id() {
                    let mut longest = longest.lock().unwrap();
                    *longest = longest.max(work_of_thread() - before);
                }
            }
        }
    });
    let running = tokio::spawn({
        let setup = Arc::clone(&setup);
        async move { prepare(&setup.folder(), id, Cause::Auto).await.map(|_| ()) }
    });
    eventually("the conversation has been read", async || {
        (setup.provider.n_summaries() > 0).then_some(())
    })
    .await;
    beside.abort();
    running.abort();
    let longest = *longest.lock().unwrap();
    println!("{reading:?} of reading, {longest:?} without a tick");
    assert!(longest < reading / 2, "{longest:?} without a tick beside {reading:?} of reading");
}

#[tokio::test]
async fn a_compaction_applied_during_a_turn_loses_nothing_of_the_turn() {
    let setup = Setup::new(WatchedProvider::honest()).await;
    let id = setup.chat(24).await;
    let world = &setup.world;
    let task = world.add("Part 25 is about INV-0025.").await;
    let (_, begun) = world.begin(&task, world.lease(), TurnSettings::default()).await;
    let spoken =
        Task { entry_id: task.id, prompt: &task.prompt, asked_by: None, is_correction: false };
    let sent = setup.assembled(id, spoken).await;
    setup.prepare(id, Cause::Manual).await.unwrap();
    assert!(matches!(setup.apply(id).await, ShowOutcome::Applied(_)));
    let answer = message(Role::Assistant, "It is filed as INV-9925.");
    setup.end(&begun, &[answer], &done("said", TurnSettings::default())).await;

    assert_eq!(setup.session(id).await.generation, 1);
    assert_eq!(setup.world.transcript(id).await.len(), 50);
    let context = setup.context(id).await;
    assert!((1..=25).all(|turn| context.contains(&format!("INV-{turn:04}"))));
    assert!(context.contains("INV-9925"));
    // The context of the turn can be restored.
    setup.revert(id).await.unwrap();
    let again = setup.assembled(id, spoken).await;
    // Its task is removed from the history here, so the answers around it become one message.
    let n_before = sent.messages.len() - 2;
    assert_eq!(n_before, 47);
    assert!(again.messages[..n_before] == sent.messages[..n_before]);
}

/// Begins a turn that shows posts, and returns their place, too.
async fn begin_with_posts(
    setup: &Setup,
    task: &tasks::Task,
    entries: &[messages::New],
) -> (StartedTurn, i64) {
    let (now, lease) = (TurnSettings::default(), setup.world.lease());
    let rule = inheritance(i64::MAX, now.at);
    let mut tx = setup.world.pool.begin().await.unwrap();
    let resolved =
        resolve(&mut tx, &opening(task, now), &wanted(task, now), lease, &rule).await.unwrap();
    let begin = Begin {
        chain: None,
        minted: None,
        session: &resolved.session,
        task_id: task.id,
        job_id: task.job_id,
        lease,
        attempt: 1,
        reserve: Amount::ZERO,
        budgets: &[],
        messages: entries,
        shows_posts: true,
        events: &[],
        now: now.at,
    };
    let begun = turn_phases::begin(&mut tx, &begin).await.unwrap();
    tx.commit().await.unwrap();
    (begun, resolved.session.last_seq + i64::try_from(entries.len()).unwrap())
}

/// Ends a turn that has shown a post.
async fn end_with_post(setup: &Setup, begun: &StartedTurn, seq: i64, text: &str) {
    let post = Post {
        id: Uuid::from_u128(7),
        seq: 1,
        sender: "user".into(),
        to: "copywriter".into(),
        trust: None,
        posted_at: "2026-11-20T12:00:00Z".into(),
        reply_to: None,
        text: text.into(),
    };
    let posts = Posts { left_out: 0, posts: vec![post], archived: None };
    let entry = measured(Uuid::new_v4(), message(Role::Posts, &posts.to_entry()));
    let shown = ShownPosts { posts: &[1], entry: &entry, seq };
    let board = BoardProgress { cursor: 1, shown: Some(shown) };
    let answered = AnsweredTurn { board: Some(board), ..done("Written.", TurnSettings::default()) };
    setup.end(begun, &[message(Role::Assistant, "Written.")], &answered).await;
}

/// Ahead of time, and in the turn itself. Its entries are so heavy that no turn would stay verbatim.
#[tokio::test]
async fn a_compaction_during_a_turn_loses_none_of_its_posts() {
    const POST: &str = "The mole is closed on Mondays.";
    for is_waiting in [false, true] {
        let setup = Setup::new(WatchedProvider::honest()).await;
        let id = setup.chat(14).await;
        let task = setup.world.add("Part 15.").await;
        let heavy = text(SCRIPTS[0].1, 2_200, weigh);
        let prompt = |text: &str| measured(task.id, message(Role::User, text));
        let entries = match is_waiting {
            false => vec![prompt(&heavy)],
            // With the results of other tasks, for example.
            true => {
                vec![measured(Uuid::new_v4(), message(Role::Notice, &heavy)), prompt("Part 15.")]
            }
        };
        let ended_to_seq = setup.session(id).await.last_seq;
        let (begun, posts_seq) = begin_with_posts(&setup, &task, &entries).await;
        let folder = Folder { waiting: is_waiting.then_some(&task), ..setup.folder() };
        prepare(&folder, id, Cause::Auto).await.unwrap();
        end_with_post(&setup, &begun, posts_seq, POST).await;

        assert!(matches!(setup.apply(id).await, ShowOutcome::Applied(_)));
        let shown = setup.compactions(id).await.remove(0);
        assert!(shown.to_seq <= ended_to_seq, "{shown:?}");
        assert!(setup.context(id).await.contains(POST), "is_waiting: {is_waiting}");
    }
}

#[tokio::test]
async fn reverting_restores_each_earlier_view_exactly() {
    let setup = Setup::new(WatchedProvider::honest()).await;
    let task =
        Task { entry_id: Uuid::max(), prompt: "Go on.", asked_by: None, is_correction: false };
    let id = setup.chat(24).await;
    let whole = setup.assembled(id, task).await;
    setup.prepare(id, Cause::Manual).await.unwrap();
    setup.apply(id).await;
    let shorter = setup.assembled(id, task).await;
    assert!(shorter.weight < whole.weight);
    assert_eq!(setup.revert(id).await.unwrap(), 0);
    let back = setup.assembled(id, task).await;
    assert_eq!((back.manifest.sha256, back.messages), (whole.manifest.sha256, whole.messages));
    let nothing = setup.revert(id).await.unwrap_err();
    assert!(matches!(nothing, compactions::Error::NothingToUndo(_)), "{nothing}");

    // Two compactions in sequence, from a side branch.
    setup.prepare(id, Cause::Manual).await.unwrap();
    setup.apply(id).await;
    setup.chat(12).await;
    let first = setup.assembled(id, task).await;
    assert_eq!(setup.session(id).await.generation, 2);
    setup.prepare(id, Cause::Manual).await.unwrap();
    setup.apply(id).await;
    assert_eq!(setup.revert(id).await.unwrap(), 2);
    assert_eq!(setup.assembled(id, task).await.manifest.sha256, first.manifest.sha256);
}

#[tokio::test]
async fn a_successor_compacts_on_from_its_inherited_summary() {
    let setup = Setup::new(WatchedProvider::honest()).await;
    let id = setup.chat(24).await;
    setup.prepare(id, Cause::Auto).await.unwrap();
    setup.apply(id).await;
    let changed = TurnSettings { prompt_hash: OTHER_HASH, ..TurnSettings::default() };
    let resolved = setup.world.turn("Part 25.", changed).await;
    let successor = resolved.session.id;
    assert!(resolved.inherited_summary && successor != id);
    let refused = setup.prepare(id, Cause::Auto).await.unwrap_err();
    assert!(refused.to_string().contains("is closed"), "{refused}");

    for turn in 26..=45 {
        let prompt = format!("{} It is INV-{turn:04}.", prose(turn, 10));
        setup.world.turn(&prompt, changed).await;
    }
    let prepared = setup.prepare(successor, Cause::Auto).await.unwrap();
    assert_eq!(prepared.generation, 2);
    setup.apply(successor).await;
    let made = setup.compactions(successor).await;
    assert_eq!((made[0].cause, made[1].parent), (Cause::Inherited, 1));
    let context = setup.context(successor).await;
    let numbers = (1..=24).chain(26..=45);
    assert!(numbers.clone().all(|turn| context.contains(&format!("INV-{turn:04}"))));
    assert_eq!(setup.revert(successor).await.unwrap(), 1);
    assert!(setup.revert(successor).await.is_err(), "earlier messages belong to the predecessor");
}
