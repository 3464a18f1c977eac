//! The compaction job on a real worker.

use std::sync::Arc;

use dalsegno::{
    domain::compactions::{self, Cause, CompactSession},
    jobs::compact_session::compact,
    queue::{Enqueued, Identity, Registry, Run, run_worker},
    shutdown::Shutdown,
    transcript::Role,
};
use uuid::Uuid;

use super::{Stage, Watched};
use crate::{
    app::{SOON, eventually},
    context::support,
    queue_runtime::ground::Ground,
};

/// Runs queued jobs until none is left, and returns the error of the last dead job.
async fn work(stage: &Arc<Stage>) -> Option<String> {
    let handle = |job: CompactSession, run: Run, stage: Arc<Stage>| async move {
        compact(&stage.folder(), &job, &run).await
    };
    let registry = Registry::new(Arc::clone(stage)).with(handle);
    let shutdown = Shutdown::new();
    let config = dalsegno::queue::Config { queues: vec!["turns".to_owned()], ..Ground::config() };
    let pool = stage.world.pool.clone();
    let running =
        tokio::spawn(run_worker(config, Identity::default(), registry, pool, shutdown.clone()));
    eventually("the queue is empty", async || {
        let n_jobs: i64 =
            sqlx::query_scalar("select count(*) from dalsegno.jobs where kind = 'compact_session'")
                .fetch_one(&stage.world.pool)
                .await
                .unwrap();
        (n_jobs == 0).then_some(())
    })
    .await;
    shutdown.soft.cancel();
    tokio::time::timeout(SOON, running).await.unwrap().unwrap().unwrap();
    sqlx::query_scalar("select error from dalsegno.dead_jobs order by id desc limit 1")
        .fetch_optional(&stage.world.pool)
        .await
        .unwrap()
}

async fn request(stage: &Stage, id: Uuid, cause: Cause) -> Enqueued {
    let mut tx = stage.world.pool.begin().await.unwrap();
    let enqueued = compactions::request(&mut tx, id, cause).await.unwrap();
    tx.commit().await.unwrap();
    enqueued
}

#[tokio::test]
async fn the_automatic_job_prepares_and_the_one_of_a_person_shows_too() {
    let stage = Arc::new(Stage::new(Watched::honest()).await);
    let id = stage.chat(24).await;
    let first = request(&stage, id, Cause::Auto).await;
    let again = request(&stage, id, Cause::Auto).await;
    assert_eq!((again.job_id, again.created), (first.job_id, false), "one wish, one job");
    assert_eq!(work(&stage).await, None);
    assert_eq!(stage.session(id).await.generation, 0);
    let n_asked = stage.provider.n_summaries();

    request(&stage, id, Cause::Manual).await;
    assert_eq!(work(&stage).await, None);
    assert_eq!(stage.session(id).await.generation, 1);
    assert_eq!(stage.provider.n_summaries(), n_asked, "what was prepared is used");
}

#[tokio::test]
async fn a_job_that_comes_after_another_compaction_does_nothing() {
    let stage = Arc::new(Stage::new(Watched::honest()).await);
    let id = stage.chat(24).await;
    request(&stage, id, Cause::Manual).await;
    request(&stage, id, Cause::Manual).await;
    assert_eq!(work(&stage).await, None);
    assert_eq!(stage.compactions(id).await.len(), 1);
    assert_eq!(stage.session(id).await.generation, 1);
}

#[tokio::test]
async fn a_person_is_told_that_there_was_nothing_to_compact_and_nobody_else_is() {
    let stage = Arc::new(Stage::new(Watched::honest()).await);
    let id = stage.chat(2).await;
    let said = async || -> Vec<serde_json::Value> {
        let sql = "select data from dalsegno.feed where kind = 'session.compaction_not_needed'";
        sqlx::query_scalar(sql).fetch_all(&stage.world.pool).await.unwrap()
    };
    request(&stage, id, Cause::Auto).await;
    assert_eq!(work(&stage).await, None);
    assert!(said().await.is_empty());
    // The conversation is small, as intended, and no job has died.
    request(&stage, id, Cause::Manual).await;
    assert_eq!(work(&stage).await, None);
    let said = said().await;
    assert_eq!(said.len(), 1);
    let because = said[0]["because"].as_str().unwrap();
    assert!(because.contains("there is nothing to compact"), "{because}");
}

/// More turns than are kept verbatim, so short that a summary would be longer.
#[tokio::test]
async fn a_person_gets_an_answer_and_no_dead_letter_where_a_summary_would_save_nothing() {
    let stage = Arc::new(Stage::new(Watched::honest()).await);
    let mut id = Uuid::nil();
    for turn in 1..=5 {
        let answer = support::message(Role::Assistant, "Yes.");
        id = stage.say(&format!("Is {turn} a number?"), &[answer]).await;
    }
    let job_id = request(&stage, id, Cause::Manual).await.job_id;
    assert_eq!(work(&stage).await, None);
    // However much happens in the campaign before the person looks.
    let others = "insert into dalsegno.feed (created_at, campaign_id, kind)
                  select now(), campaign_id, 'turn.progress' from dalsegno.sessions, generate_series(1, 1500) where id = $1";
    sqlx::query(others).bind(id).execute(&stage.world.pool).await.unwrap();
    let answer = compactions::answer(&stage.world.pool, (id, job_id, 0)).await;
    let Some(compactions::Answer::Nothing { because }) = answer.unwrap() else {
        panic!("it was compacted, or is not over")
    };
    assert!(because.contains("a compaction would save nothing"), "{because}");
    assert_eq!(stage.provider.n_summaries(), 0);
}

#[tokio::test]
async fn a_person_gets_an_answer_where_the_session_was_closed_meanwhile() {
    let stage = Arc::new(Stage::new(Watched::honest()).await);
    let id = stage.chat(24).await;
    let job_id = request(&stage, id, Cause::Manual).await.job_id;
    let close = "update dalsegno.sessions set state = 'closed', closed_at = now(), closed_because = 'reset' where id = $1";
    sqlx::query(close).bind(id).execute(&stage.world.pool).await.unwrap();
    assert_eq!(work(&stage).await, None);
    let answer = compactions::answer(&stage.world.pool, (id, job_id, 0)).await;
    let Some(compactions::Answer::Nothing { because }) = answer.unwrap() else {
        panic!("it was compacted, or is not over")
    };
    assert!(because.contains("closed"), "{because}");
}

#[tokio::test]
async fn the_answer_to_a_compaction_is_what_the_session_shows_or_that_there_is_none_yet() {
    let stage = Arc::new(Stage::new(Watched::honest()).await);
    let id = stage.chat(24).await;
    let job_id = request(&stage, id, Cause::Manual).await.job_id;
    let asked = (id, job_id, 0);
    let pool = &stage.world.pool;
    assert_eq!(compactions::answer(pool, asked).await.unwrap(), None);
    assert_eq!(work(&stage).await, None);
    let answer = compactions::answer(pool, asked).await.unwrap();
    assert_eq!(answer, Some(compactions::Answer::Compacted { generation: 1 }));
}

/// Requested while the session was open; a turn has replaced the session since.
#[tokio::test]
async fn the_automatic_job_of_a_session_that_was_closed_ends_without_a_word() {
    let stage = Arc::new(Stage::new(Watched::honest()).await);
    let id = stage.chat(24).await;
    request(&stage, id, Cause::Auto).await;
    let close = "update dalsegno.sessions set state = 'closed', closed_at = now(), closed_because = 'reset' where id = $1";
    sqlx::query(close).bind(id).execute(&stage.world.pool).await.unwrap();
    assert_eq!(work(&stage).await, None);
    assert_eq!((stage.provider.n_summaries(), stage.compactions(id).await.len()), (0, 0));
}
