//! Soft interrupts that meet the begin of a wait: the run and the interrupt look at each other's rows before both commit.

use dalsegno::domain::{
    tasks::{self, CancelOutcome, InterruptMode, State, Task},
    turns,
};

use super::interrupts::{interrupt, slow_answers, wait_until_running};
use crate::{
    app::eventually,
    providers::fake_ollama::Play,
    queue_sql::statements::END_SNOOZE,
    turns::{budgets::used_up, fixture::Fixture},
};

/// The transaction of the run that lets the task wait is open when the interrupt begins.
#[tokio::test]
async fn a_soft_interrupt_that_finds_a_run_which_begins_to_wait_cancels_the_task() {
    let (_fake, fixture) = slow_answers([Play::gated("The answer", " counts.")]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add_for("slow", "main", "Write.").await;
    wait_until_running(&fixture, &task).await;
    let job = "select id, lease from dalsegno.jobs where kind = 'run_turn' and state = 'running'";
    let (job_id, lease): (i64, i64) = sqlx::query_as(job).fetch_one(&fixture.pool).await.unwrap();
    let mut run = fixture.pool.begin().await.unwrap();
    tasks::count_wait(&mut run, task.id).await.unwrap();
    let snooze = sqlx::query(END_SNOOZE).bind(job_id).bind(lease).bind(None::<&str>);
    let snooze = snooze.bind(36_000.0_f64).bind("no space").bind("limit");
    snooze.execute(&mut *run).await.unwrap();

    let commit = async {
        eventually("the interrupt waits for the run", async || {
            let waits = "select count(*) from pg_stat_activity
                          where datname = current_database() and wait_event_type = 'Lock' and query like '%stop_asked_at%'";
            (fixture.count(waits).await == 1).then_some(())
        })
        .await;
        run.commit().await.unwrap();
    };
    let (interrupted, ()) = tokio::join!(interrupt(&fixture, &task, InterruptMode::Soft), commit);
    assert_eq!(interrupted.cancel, CancelOutcome::AtOnce);
    assert_eq!(fixture.task(&task).await.state, State::Cancelled);
    assert_eq!(fixture.turns(&task).await[0].state, turns::State::Interrupted);
    worker.stop().await;
}

/// Starts a worker on this queued task while the transaction of an interrupt is open, and commits it when the run waits for its lock.
async fn run_beside_interrupt(fixture: &Fixture, task: &Task) {
    let mut interrupt = fixture.pool.begin().await.unwrap();
    let ask = "update dalsegno.tasks set stop_asked_at = now() where id = $1";
    sqlx::query(ask).bind(task.id).execute(&mut *interrupt).await.unwrap();
    let worker = fixture.start_worker().await;
    eventually("the run waits for the lock on its task", async || {
        // Where it begins the turn, whose budget it then finds used up, or where it counts the wait for a rate limit. Of a query, only
        // the beginning is shown.
        let waits = "select count(*) from pg_stat_activity
                      where datname = current_database() and wait_event_type = 'Lock'
                        and (query like '-- Begins a turn:%' or query like '%n_waits = n_waits + 1%')";
        (fixture.count(waits).await == 1).then_some(())
    })
    .await;
    interrupt.commit().await.unwrap();
    assert_eq!(fixture.ended(task).await.state, State::Cancelled);
    let told = fixture.kinds(task).await;
    assert!(!told.iter().any(|kind| kind == "task.waiting"), "{told:?}");
    worker.stop().await;
}

#[tokio::test]
async fn a_run_that_was_asked_to_stop_does_not_begin_to_wait_for_a_budget() {
    let fixture = used_up().await;
    let task = fixture.add("Write.").await;
    run_beside_interrupt(&fixture, &task).await;
    assert_eq!(fixture.count("select count(*) from dalsegno.budget_waits").await, 0);
}

#[tokio::test]
async fn a_run_that_was_asked_to_stop_does_not_begin_to_wait_for_a_rate_limit() {
    let rules = "[{ provider = \"sim\", requests_per_minute = 60 }]";
    let fixture = Fixture::new(&[("rate_limits.rules", rules)]).await;
    let worker = fixture.start_worker().await;
    for instance in ["one", "two", "three", "four"] {
        fixture.add_for("writer", instance, "Write.").await;
    }
    // The test's clock stands still, so the limit serves no further call.
    let waits = "select count(*) from dalsegno.rate_limit_waits where granted_at is null";
    eventually("a task waits for the limit", async || {
        let ended = "select count(*) from dalsegno.tasks where ended_at is not null";
        ((fixture.count(waits).await, fixture.count(ended).await) == (1, 3)).then_some(())
    })
    .await;
    worker.stop().await;
    let task = fixture.add_for("writer", "five", "Write.").await;
    run_beside_interrupt(&fixture, &task).await;
    assert_eq!(fixture.count(waits).await, 1, "only the fourth task waits");
}
