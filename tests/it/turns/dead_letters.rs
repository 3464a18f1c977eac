//! A task that has failed has one dead letter. Retrying the letter retries the task, and a task that moves on leaves no
//! letter.

use std::sync::Arc;

use dalsegno::{
    clock::Clock as _,
    domain::tasks::{self, RetriedJob, State, Task},
    jobs::Services,
    queue::admin,
};

use super::Fixture;

const COUNT_DEAD_LETTERS: &str = "select count(*) from dalsegno.dead_jobs";
/// The job of a task dies as it does when its workers are lost: the task itself is not written.
const KILL_JOB: &str = "with job as (delete from dalsegno.jobs where id = $1 returning *),
                payload as (delete from dalsegno.job_payloads where job_id = $1 returning *)
           insert into dalsegno.dead_jobs (id, enqueued_at, lease, priority, attempt, max_attempts, crash_count, queue, kind, lane_key,
                                           group_key, reason, error, payload, headers)
           select j.id, j.enqueued_at, 1, j.priority, 1, 5, 3, j.queue, j.kind, l.key, j.group_key, 'worker_lost', 'three workers were lost',
                  p.payload, p.headers
             from job as j, payload as p, dalsegno.lanes as l where l.id = j.lane_id";

impl Fixture {
    /// Fails a task. The services remember how often the simulation has failed.
    async fn failed(&self, prompt: &str) -> (Task, Arc<Services>) {
        let services = self.services(&[]);
        let task = self.run(&self.add(prompt).await, &services).await;
        assert_eq!(task.state, State::Failed, "{task:?}");
        (task, services)
    }

    async fn retry_task(&self, task: &Task) {
        let mut tx = self.pool.begin().await.unwrap();
        tasks::retry(&mut tx, task.id, self.clock.now()).await.unwrap();
        tx.commit().await.unwrap();
    }

    async fn retry_job(&self, job_id: i64) -> Result<RetriedJob, tasks::Error> {
        let mut tx = self.pool.begin().await.unwrap();
        let retried = tasks::retry_job(&mut tx, job_id, self.clock.now()).await?;
        tx.commit().await.unwrap();
        Ok(retried)
    }

    async fn run(&self, task: &Task, services: &Arc<Services>) -> Task {
        let worker = self.start_worker_on(Arc::clone(services), &[]).await;
        let task = self.ended(task).await;
        worker.stop().await;
        task
    }

    /// Retries a task like an older version, which left its dead letter.
    async fn retry_as_before(&self, task: &Task) {
        let keep = "create table public.kept as select * from dalsegno.dead_jobs";
        sqlx::query(keep).execute(&self.pool).await.unwrap();
        self.retry_task(task).await;
        let leave = "insert into dalsegno.dead_jobs select * from public.kept";
        sqlx::query(leave).execute(&self.pool).await.unwrap();
        sqlx::query("drop table public.kept").execute(&self.pool).await.unwrap();
    }
}

#[tokio::test]
async fn retrying_the_job_of_a_failed_task_retries_the_task() {
    let fixture = Fixture::new(&[]).await;
    let (task, services) = fixture.failed("Write. [[sim: error 404 once]]").await;
    assert_eq!(fixture.count(COUNT_DEAD_LETTERS).await, 1);
    let retried = fixture.retry_job(task.job_id).await.unwrap();
    assert_eq!((retried.id, retried.state.as_str()), (task.job_id, "ready"));
    assert_eq!((retried.task_id, retried.task_state), (Some(task.id), Some(State::Queued)));
    assert_ne!(retried.job_id, Some(task.job_id));
    assert_eq!(fixture.count(COUNT_DEAD_LETTERS).await, 0);
    assert_eq!(fixture.run(&task, &services).await.state, State::Done);
    // A task that has its answer cannot be retried.
    let again = fixture.retry_job(retried.job_id.unwrap()).await.unwrap_err();
    assert!(matches!(again, tasks::Error::Ended { state: State::Done, .. }), "{again}");
}

#[tokio::test]
async fn a_task_has_at_most_one_dead_letter_and_none_once_it_is_done() {
    let fixture = Fixture::new(&[]).await;
    let (task, services) = fixture.failed("Write. [[sim: error 404 2 times]]").await;
    fixture.retry_task(&task).await;
    assert_eq!(fixture.count(COUNT_DEAD_LETTERS).await, 0);
    let again = fixture.run(&task, &services).await;
    assert_eq!(again.state, State::Failed, "{again:?}");
    let letters: Vec<i64> = sqlx::query_scalar("select id from dalsegno.dead_jobs")
        .fetch_all(&fixture.pool)
        .await
        .unwrap();
    assert_eq!(letters, [again.job_id]);
    fixture.retry_task(&task).await;
    assert_eq!(fixture.run(&task, &services).await.state, State::Done);
    assert_eq!(fixture.count(COUNT_DEAD_LETTERS).await, 0);
}

#[tokio::test]
async fn a_dead_letter_of_an_older_version_runs_nothing_and_is_removed() {
    let fixture = Fixture::new(&[]).await;
    let (task, services) = fixture.failed("Write. [[sim: error 404 once]]").await;
    fixture.retry_as_before(&task).await;
    // While the task is queued, and when it is done.
    let retried = fixture.retry_job(task.job_id).await.unwrap();
    assert!(retried.is_removed(), "{retried:?}");
    assert_eq!((retried.task_id, retried.task_state), (Some(task.id), Some(State::Queued)));
    assert_eq!(fixture.count(COUNT_DEAD_LETTERS).await, 0);
    assert_eq!(fixture.count("select count(*) from dalsegno.jobs").await, 1, "the task's own");
    assert_eq!(fixture.run(&task, &services).await.state, State::Done);
    let unknown = fixture.retry_job(task.job_id).await.unwrap_err();
    assert!(matches!(unknown, tasks::Error::Queue(_)), "{unknown}");
}

#[tokio::test]
async fn a_dead_letter_of_an_earlier_job_retries_its_failed_task() {
    let fixture = Fixture::new(&[]).await;
    let (task, services) = fixture.failed("Write. [[sim: error 404 2 times]]").await;
    fixture.retry_as_before(&task).await;
    assert_eq!(fixture.run(&task, &services).await.state, State::Failed);
    assert_eq!(fixture.count(COUNT_DEAD_LETTERS).await, 2);
    let retried = fixture.retry_job(task.job_id).await.unwrap();
    assert_eq!((retried.task_id, retried.task_state), (Some(task.id), Some(State::Queued)));
    assert_eq!(fixture.count(COUNT_DEAD_LETTERS).await, 0);
    assert_eq!(fixture.run(&task, &services).await.state, State::Done);
}

/// A job retried in SQL, where the queue does not know tasks; or by an older version.
#[tokio::test]
async fn a_superseded_job_of_a_task_does_not_block_its_conversation() {
    let fixture = Fixture::new(&[]).await;
    let (task, services) = fixture.failed("Write. [[sim: error 404 once]]").await;
    fixture.retry_as_before(&task).await;
    assert_eq!(fixture.run(&task, &services).await.state, State::Done);
    admin::retry_job(&fixture.pool, task.job_id).await.unwrap();
    let next = fixture.add("Write more.").await;
    assert_eq!(fixture.run(&next, &services).await.state, State::Done);
    let mut conn = fixture.pool.acquire().await.unwrap();
    let runs = admin::runs_of(&mut *conn, task.job_id).await.unwrap();
    let outcomes: Vec<_> = runs.iter().map(|run| run.outcome.as_str()).collect();
    assert_eq!(outcomes, ["done", "failed"], "{runs:?}");
    assert_eq!(fixture.count(COUNT_DEAD_LETTERS).await, 0);
}

/// Between the death of a job and the sweep that ends its task.
#[tokio::test]
async fn a_task_with_a_newly_dead_job_is_retried_or_cancelled_without_a_dead_letter() {
    let fixture = Fixture::new(&[]).await;
    let [retried, cancelled] = [
        fixture.add_for("writer", "one", "Write.").await,
        fixture.add_for("writer", "two", "Write.").await,
    ];
    for task in [&retried, &cancelled] {
        sqlx::query(KILL_JOB).bind(task.job_id).execute(&fixture.pool).await.unwrap();
    }
    assert_eq!(fixture.count(COUNT_DEAD_LETTERS).await, 2);
    fixture.cancel(&cancelled).await;
    assert_eq!(fixture.task(&cancelled).await.state, State::Cancelled);
    let told = fixture.retry_job(retried.job_id).await.unwrap();
    assert_eq!((told.task_state, told.state.as_str()), (Some(State::Queued), "ready"));
    assert_eq!(fixture.count(COUNT_DEAD_LETTERS).await, 0);
    assert_eq!(fixture.run(&retried, &fixture.services(&[])).await.state, State::Done);
}

#[tokio::test]
async fn a_task_fails_a_minute_after_its_third_worker_was_lost() {
    let fixture = Fixture::new(&[]).await;
    let [cut_off, crashed] = [
        fixture.add_for("writer", "one", "Write.").await,
        fixture.add_for("writer", "two", "Write.").await,
    ];
    for task in [&cut_off, &crashed] {
        sqlx::query(KILL_JOB).bind(task.job_id).execute(&fixture.pool).await.unwrap();
    }
    let a_minute_ago =
        "update dalsegno.dead_jobs set died_at = died_at - interval '1 minute' where id = $1";
    sqlx::query(a_minute_ago).bind(crashed.job_id).execute(&fixture.pool).await.unwrap();
    let worker = fixture.start_worker().await;
    assert_eq!(fixture.ended(&crashed).await.state, State::Failed);
    assert_eq!(fixture.task(&cut_off).await.state, State::Queued);
    // Its worker has come back, and removes the crash mark.
    admin::retry_job(&fixture.pool, cut_off.job_id).await.unwrap();
    assert_eq!(fixture.ended(&cut_off).await.state, State::Done);
    worker.stop().await;
}

/// It has waited for another task, and waits again in the transaction that ends it.
#[tokio::test]
async fn a_waiting_task_runs_again_after_its_job_has_died() {
    let fixture = Fixture::new(&[]).await;
    let first = fixture.add_for("writer", "one", "Write.").await;
    let task = fixture.add_after("two", "Join.", &[&first]).await;
    fixture.hold("writer", "two").await;
    fixture.run(&first, &fixture.services(&[])).await;
    let is_let_go = "select count(*) from dalsegno.task_waits where over_at is not null";
    assert_eq!(fixture.count(is_let_go).await, 1);
    sqlx::query(KILL_JOB).bind(task.job_id).execute(&fixture.pool).await.unwrap();
    fixture.release("writer", "two").await;
    fixture.retry_job(task.job_id).await.unwrap();
    assert_eq!(fixture.run(&task, &fixture.services(&[])).await.state, State::Done);
    assert_eq!(fixture.count(COUNT_DEAD_LETTERS).await, 0);
}

/// The policy of the lane keeps a failed job at its head.
#[tokio::test]
async fn a_retried_task_does_not_wait_behind_its_own_failed_job() {
    let fixture = Fixture::new(&[]).await;
    let lane = tasks::lane(fixture.campaign.id, "writer", "main");
    let hold = "select dalsegno.set_lane_policy($1, 'hold')";
    sqlx::query(hold).bind(&lane).execute(&fixture.pool).await.unwrap();
    let (task, services) = fixture.failed("Write. [[sim: error 404 once]]").await;
    let held = "select count(*) from dalsegno.jobs where state = 'held' and hold_by = 'failure'";
    assert_eq!(fixture.count(held).await, 1);
    fixture.retry_job(task.job_id).await.unwrap();
    assert_eq!(fixture.count(held).await, 0);
    assert_eq!(fixture.run(&task, &services).await.state, State::Done);
}
