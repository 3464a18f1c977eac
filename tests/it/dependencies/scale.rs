//! A thousand children.

use dalsegno::domain::tasks::State;

use super::cascade::{fan_out, get};
use crate::turns::fixture::Fixture;

const N_CHILDREN: usize = 1_000;

/// Cancelled with all its dependent tasks in one transaction.
#[tokio::test]
async fn a_thousand_children_are_cancelled_with_their_parent() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let parent = fixture.done(&fixture.add("Plan.").await).await;
    worker.stop().await;
    let prompts: Vec<String> = (0..N_CHILDREN).map(|n| format!("Part {n}.")).collect();
    let made = fan_out(&fixture, &parent, &prompts, "All.", None).await.unwrap();
    fixture.cancel(&parent).await;
    assert_eq!(get(&fixture, made.continuation.id).await.state, State::Cancelled);
    let open = "select count(*) from dalsegno.tasks where ended_at is null";
    let left = "select count(*) from dalsegno.jobs";
    assert_eq!((fixture.count(open).await, fixture.count(left).await), (0, 0));
}

#[cfg(feature = "chaos")]
mod chaos {
    use std::time::{Duration, Instant};

    use dalsegno::domain::{
        Amount,
        tasks::{self, End},
    };

    use super::*;
    use crate::app::noon;

    /// Measures the time from eight open children to the end of the continuation's turn, and the cost of an end, on an
    /// idle machine.
    #[tokio::test]
    async fn a_join_of_a_thousand_takes_less_than_a_second() {
        let fixture = Fixture::new(&[]).await;
        let worker = fixture.start_worker().await;
        let parent = fixture.done(&fixture.add("Plan.").await).await;
        let prompts: Vec<String> = (0..N_CHILDREN).map(|n| format!("Part {n}.")).collect();
        let started = Instant::now();
        worker.stop().await;
        let made =
            fan_out(&fixture, &parent, &prompts, "All. [[sim: say all]]", None).await.unwrap();
        println!("adding {N_CHILDREN} children: {:?}", started.elapsed());

        let started = Instant::now();
        let end = async |id| {
            let mut tx = fixture.pool.begin().await.unwrap();
            let result = End::Done { result: "It is done.", result_json: None };
            tasks::end(&mut tx, id, result, Amount::ZERO, noon()).await.unwrap();
            tx.commit().await.unwrap();
        };
        let ids: Vec<_> = made.children.iter().map(|child| child.id).collect();
        // As many at once as the pool has connections.
        for some in ids.chunks(8).take(ids.len() / 8 - 1) {
            futures_util::future::join_all(some.iter().map(|id| end(*id))).await;
        }
        let ends = started.elapsed();
        sqlx::query("delete from dalsegno.jobs where kind = 'run_turn'")
            .execute(&fixture.pool)
            .await
            .unwrap();
        let worker = fixture.start_worker().await;
        // A first task excludes the worker's start from the measurement.
        fixture.done(&fixture.add_for("writer", "first", "Begin.").await).await;
        let started = Instant::now();
        futures_util::future::join_all(ids[ids.len() - 8..].iter().map(|id| end(*id))).await;
        let signalled = started.elapsed();
        let continuation = fixture.done(&get(&fixture, made.continuation.id).await).await;
        let joined = started.elapsed();
        println!(
            "{} ends, eight at once: {ends:?}; the last eight: {signalled:?}; resumed and answered: {joined:?}",
            N_CHILDREN - 8
        );
        worker.stop().await;
        assert_eq!(
            (continuation.state, fixture.turns(&continuation).await.len()),
            (State::Done, 1)
        );
        assert!(joined < Duration::from_secs(1), "{joined:?}");
    }
}
