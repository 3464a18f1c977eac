//! The compaction job on a real worker.

use std::sync::Arc;

use dalsegno::{
    domain::compactions::{self, Cause, CompactSession},
    jobs::compact_session::compact,
    queue::{EnqueueResult, Identity, Registry, Run, run_worker},
    shutdown::Shutdown,
    transcript::Role,
};
use uuid::Uuid;

use super::{Setup, WatchedProvider};
use crate::{
    app::{SOON, eventually},
    context::support,
    queue_runtime::fixture::Fixture,
};

/// Runs queued jobs until none is left, and returns the error of the last dead job.
async fn run_jobs(setup: &Arc<Setup>) -> Option<String> {
    let handle = |job: CompactSession, run: Run, setup: Arc<Setup>| async move {
        compact(&setup.folder(), &job, &run).await
    };
    let registry = Registry::new(Arc::clone(setup)).with(handle);
    let shutdown = Shutdown::new();
    let config = dalsegno::queue::Config { queues: vec!["turns".to_owned()], ..Fixture::config() };
    let pool = setup.world.pool.clone();
    let running =
        tokio::spawn(run_worker(config, Identity::default(), registry, pool, shutdown.clone()));
    eventually("the queue is empty", async || {
        let n_jobs: i64 =
            sqlx::query_scalar("select count(*) from dalsegno.jobs where kind = 'compact_session'")
                .fetch_one(&setup.world.pool)
                .await
                .unwrap();
        (n_jobs == 0).then_some(())
    })
    .await;
    shutdown.soft.cancel();
    tokio::time::timeout(SOON, running).await.unwrap().unwrap().unwrap();
    sqlx::query_scalar("select error from dalsegno.dead_jobs order by id desc limit 1")
        .fetch_optional(&setup.world.pool)
        .await
        .unwrap()
}

async fn request(setup: &Setup, id: Uuid, cause: Cause) -> EnqueueResult {
    let mut tx = setup.world.pool.begin().await.unwrap();
    let enqueued = compactions::request(&mut tx, id, cause).await.unwrap();
    tx.commit().await.unwrap();
    enqueued
}

#[tokio::test]
async fn an_automatic_job_prepares_a_summary_and_a_requested_one_also_applies_it() {
    let setup = Arc::new(Setup::new(WatchedProvider::honest()).await);
    let id = setup.chat(24).await;
    let first = request(&setup, id, Cause::Auto).await;
    let again = request(&setup, id, Cause::Auto).await;
    assert_eq!(
        (again.job_id, again.created),
        (first.job_id, false),
        "a repeated request returns the same job"
    );
    assert_eq!(run_jobs(&setup).await, None);
    assert_eq!(setup.session(id).await.generation, 0);
    let n_asked = setup.provider.n_summaries();

    request(&setup, id, Cause::Manual).await;
    assert_eq!(run_jobs(&setup).await, None);
    assert_eq!(setup.session(id).await.generation, 1);
    assert_eq!(setup.provider.n_summaries(), n_asked, "the prepared summary is used");
}

#[tokio::test]
async fn a_job_after_another_compaction_does_nothing() {
    let setup = Arc::new(Setup::new(WatchedProvider::honest()).await);
    let id = setup.chat(24).await;
    request(&setup, id, Cause::Manual).await;
    request(&setup, id, Cause::Manual).await;
    assert_eq!(run_jobs(&setup).await, None);
    assert_eq!(setup.compactions(id).await.len(), 1);
    assert_eq!(setup.session(id).await.generation, 1);
}

#[tokio::test]
async fn only_a_requested_compaction_reports_that_there_was_nothing_to_compact() {
    let setup = Arc::new(Setup::new(WatchedProvider::honest()).await);
    let id = setup.chat(2).await;
    let said = async || -> Vec<serde_json::Value> {
        let sql = "select data from dalsegno.feed where kind = 'session.compaction_not_needed'";
        sqlx::query_scalar(sql).fetch_all(&setup.world.pool).await.unwrap()
    };
    request(&setup, id, Cause::Auto).await;
    assert_eq!(run_jobs(&setup).await, None);
    assert!(said().await.is_empty());
    // The conversation is small, as intended, and no job has died.
    request(&setup, id, Cause::Manual).await;
    assert_eq!(run_jobs(&setup).await, None);
    let said = said().await;
    assert_eq!(said.len(), 1);
    let because = said[0]["because"].as_str().unwrap();
    assert!(because.contains("there is nothing to compact"), "{because}");
}

/// More turns than are kept verbatim, so short that a summary would be longer.
#[tokio::test]
async fn a_requested_compaction_without_savings_is_answered_and_leaves_no_dead_letter() {
    let setup = Arc::new(Setup::new(WatchedProvider::honest()).await);
    let mut id = Uuid::nil();
    for turn in 1..=5 {
        let answer = support::message(Role::Assistant, "Yes.");
        id = setup.commit_turn(&format!("Is {turn} a number?"), &[answer]).await;
    }
    let job_id = request(&setup, id, Cause::Manual).await.job_id;
    assert_eq!(run_jobs(&setup).await, None);
    // However much happens in the campaign before the person looks.
    let others = "insert into dalsegno.feed (created_at, campaign_id, kind)
                  select now(), campaign_id, 'turn.progress' from dalsegno.sessions, generate_series(1, 1500) where id = $1";
    sqlx::query(others).bind(id).execute(&setup.world.pool).await.unwrap();
    let answer = compactions::read_answer(&setup.world.pool, (id, job_id, 0)).await;
    let Some(compactions::Answer::Nothing { because }) = answer.unwrap() else {
        panic!("the compaction succeeded or has not ended")
    };
    assert!(because.contains("a compaction would save nothing"), "{because}");
    assert_eq!(setup.provider.n_summaries(), 0);
}

#[tokio::test]
async fn a_requested_compaction_of_a_closed_session_is_answered() {
    let setup = Arc::new(Setup::new(WatchedProvider::honest()).await);
    let id = setup.chat(24).await;
    let job_id = request(&setup, id, Cause::Manual).await.job_id;
    let close = "update dalsegno.sessions set state = 'closed', closed_at = now(), closed_because = 'reset' where id = $1";
    sqlx::query(close).bind(id).execute(&setup.world.pool).await.unwrap();
    assert_eq!(run_jobs(&setup).await, None);
    let answer = compactions::read_answer(&setup.world.pool, (id, job_id, 0)).await;
    let Some(compactions::Answer::Nothing { because }) = answer.unwrap() else {
        panic!("the compaction succeeded or has not ended")
    };
    assert!(because.contains("closed"), "{because}");
}

#[tokio::test]
async fn the_answer_to_a_compaction_is_the_shown_summary_or_pending() {
    let setup = Arc::new(Setup::new(WatchedProvider::honest()).await);
    let id = setup.chat(24).await;
    let job_id = request(&setup, id, Cause::Manual).await.job_id;
    let asked = (id, job_id, 0);
    let pool = &setup.world.pool;
    assert_eq!(compactions::read_answer(pool, asked).await.unwrap(), None);
    assert_eq!(run_jobs(&setup).await, None);
    let answer = compactions::read_answer(pool, asked).await.unwrap();
    assert_eq!(answer, Some(compactions::Answer::Compacted { generation: 1 }));
}

/// Requested while the session was open; a turn has replaced the session since.
#[tokio::test]
async fn the_automatic_job_of_a_closed_session_ends_silently() {
    let setup = Arc::new(Setup::new(WatchedProvider::honest()).await);
    let id = setup.chat(24).await;
    request(&setup, id, Cause::Auto).await;
    let close = "update dalsegno.sessions set state = 'closed', closed_at = now(), closed_because = 'reset' where id = $1";
    sqlx::query(close).bind(id).execute(&setup.world.pool).await.unwrap();
    assert_eq!(run_jobs(&setup).await, None);
    assert_eq!((setup.provider.n_summaries(), setup.compactions(id).await.len()), (0, 0));
}
