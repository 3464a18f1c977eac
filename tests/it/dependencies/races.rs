//! Concurrent ends, additions and cancellations: each signal is sent exactly once.

use dalsegno::domain::{
    Amount,
    tasks::{self, End, Task},
};
use sqlx::{Postgres, Transaction};

use crate::{
    app::{eventually, noon},
    turns::fixture::Fixture,
};

async fn end(tx: &mut Transaction<'_, Postgres>, task: &Task) {
    let done = End::Done { result: "It is done.", result_json: None };
    tasks::end(tx, task.id, done, Amount::ZERO, noon()).await.unwrap();
}

async fn waits(fixture: &Fixture, task: &Task) -> bool {
    let sql = "select coalesce(wait_reason, '') = 'signal' from dalsegno.jobs where id = $1";
    sqlx::query_scalar(sql).bind(task.job_id).fetch_one(&fixture.pool).await.unwrap()
}

/// Returns how often its job was released.
async fn n_signals(fixture: &Fixture) -> i64 {
    fixture
        .count(
            "select coalesce(sum(total), 0)::bigint from dalsegno.transition_counts
              where kind = 'run_joined_turn' and event = 'due'",
        )
        .await
}

#[tokio::test]
async fn two_concurrent_ends_send_one_signal() {
    let fixture = Fixture::new(&[]).await;
    for round in 0..40 {
        let one = fixture.add_for("writer", "one", "One.").await;
        let two = fixture.add_for("writer", "two", "Two.").await;
        let waiting = fixture.add_after(&format!("w{round}"), "Join.", &[&one, &two]).await;
        let mut first = fixture.pool.begin().await.unwrap();
        let mut second = fixture.pool.begin().await.unwrap();
        // Neither sees the other's end when it writes its own.
        end(&mut first, &one).await;
        end(&mut second, &two).await;
        assert!(waits(&fixture, &waiting).await);
        let (a, b) = tokio::join!(first.commit(), second.commit());
        a.and(b).unwrap();
        assert!(!waits(&fixture, &waiting).await, "round {round}");
        assert_eq!(n_signals(&fixture).await, round + 1);
    }
}

#[tokio::test]
async fn an_end_during_the_addition_of_its_dependent_is_not_missed() {
    let fixture = Fixture::new(&[]).await;
    for (round, end_first) in [true, false, true, false].into_iter().enumerate() {
        let one = fixture.add_for("writer", "one", "One.").await;
        let mut ending = fixture.pool.begin().await.unwrap();
        if end_first {
            end(&mut ending, &one).await;
        }
        let mut adding = fixture.pool.begin().await.unwrap();
        let waiting = fixture.add_after_in(&mut adding, &format!("w{round}"), &one).await;
        // The open addition does not block the end.
        if !end_first {
            end(&mut ending, &one).await;
        }
        let (a, b) = tokio::join!(adding.commit(), ending.commit());
        a.and(b).unwrap();
        assert!(!waits(&fixture, &waiting).await, "round {round}");
    }
}

#[tokio::test]
async fn a_signal_missed_because_of_a_lock_is_sent_by_the_sweep() {
    let fixture = Fixture::new(&[]).await;
    let one = fixture.add_for("writer", "one", "One.").await;
    let waiting = fixture.add_after("main", "Join. [[sim: say joined]]", &[&one]).await;
    // A person locks the job, and then rolls back.
    let mut person = fixture.pool.begin().await.unwrap();
    let lock = "select from dalsegno.jobs where id = $1 for update";
    sqlx::query(lock).bind(waiting.job_id).execute(&mut *person).await.unwrap();
    let mut ending = fixture.pool.begin().await.unwrap();
    end(&mut ending, &one).await;
    tokio::time::timeout(crate::app::SOON, ending.commit()).await.unwrap().unwrap();
    person.rollback().await.unwrap();
    assert!(waits(&fixture, &waiting).await);
    let worker = fixture.start_worker().await;
    fixture.done(&waiting).await;
    worker.stop().await;
}

#[tokio::test]
async fn many_concurrent_ends_and_cancellations_leave_no_task_waiting() {
    let fixture = Fixture::new(&[]).await;
    let mut others = Vec::new();
    for n in 0..24 {
        others.push(fixture.add_for("writer", &format!("o{n}"), "x").await);
    }
    let mut waiting = Vec::new();
    for n in 0..12 {
        // Each task waits for another half of the tasks, so that any two ends share some.
        let half: Vec<&Task> = others
            .iter()
            .enumerate()
            .filter(|(m, _)| (m * 7 + n) % 12 < 6)
            .map(|(_, t)| t)
            .collect();
        waiting.push(fixture.add_after(&format!("w{n}"), "Join.", &half).await);
    }
    let end_of = async |task: &Task| {
        let mut tx = fixture.pool.begin().await.unwrap();
        end(&mut tx, task).await;
        tx.commit().await.unwrap();
    };
    // All cancelled tasks wait for the first: none of them gets its signal before.
    let (first, others) = others.split_first().unwrap();
    let cancels = waiting.iter().take(4).map(async |task| fixture.cancel(task).await);
    let others = futures_util::future::join_all(others.iter().map(end_of));
    tokio::join!(others, futures_util::future::join_all(cancels));
    end_of(first).await;
    let not_over = "select count(*) from dalsegno.task_waits where over_at is null";
    let mut conn = fixture.pool.acquire().await.unwrap();
    eventually("every wait has ended", async || {
        super::end_due_waits(&mut conn).await;
        (fixture.count(not_over).await == 0).then_some(())
    })
    .await;
    assert_eq!(n_signals(&fixture).await, 8);
}
