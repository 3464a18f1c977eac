//! Waiting tasks: their dependencies, their lanes meanwhile, and failures.

use dalsegno::{
    domain::{
        amount::Limit,
        campaigns, explanations,
        tasks::{self, Links, OnFailure, State, Task, TaskLink},
    },
    queue::admin,
};

use crate::{app::noon, turns::fixture::Fixture};

async fn explain(fixture: &Fixture, task: &Task) -> String {
    let mut conn = fixture.pool.acquire().await.unwrap();
    let told = explanations::explain(&mut conn, task.id).await.unwrap();
    format!("{} {}", told.because, told.next)
}

async fn job_state(fixture: &Fixture, task: &Task) -> String {
    let mut conn = fixture.pool.acquire().await.unwrap();
    let job_id = tasks::get(&mut *conn, task.id).await.unwrap().job_id;
    admin::explain(&mut *conn, job_id).await.unwrap().state
}

/// Adds a task that is cancelled if one of these fails.
async fn add_strict(fixture: &Fixture, instance: &str, others: &[&Task]) -> Task {
    let after: Vec<_> = others.iter().map(|other| TaskLink::Task(other.id)).collect();
    let links = Links { depends_on: &after, on_failure: OnFailure::Cancel, ..Links::default() };
    let added = fixture.add_linked("writer", instance, "Go on.", None, Limit::default(), links);
    added.await.unwrap()
}

async fn cancelled_because(fixture: &Fixture, task: &Task) -> String {
    let mut conn = fixture.pool.acquire().await.unwrap();
    tasks::detail(&mut conn, task.id).await.unwrap().cancelled_because.unwrap()
}

#[tokio::test]
async fn a_waiting_task_blocks_no_lane_and_runs_after_its_last_predecessor() {
    let fixture = Fixture::new(&[]).await;
    let first = fixture.add_for("writer", "one", "One. [[sim: say first]]").await;
    let second = fixture.add_for("writer", "two", "Two. [[sim: say second]]").await;
    let waiting = fixture.add_after("main", "Join. [[sim: say joined]]", &[&first, &second]).await;
    let later = fixture.add("Meanwhile. [[sim: say meanwhile]]").await;
    assert_eq!(job_state(&fixture, &waiting).await, "scheduled");
    let told = explain(&fixture, &waiting).await;
    assert!(told.starts_with(&format!("It waits for 2 of 2 tasks: {}", first.id)), "{told}");

    fixture.hold("writer", "two").await;
    let worker = fixture.start_worker().await;
    fixture.done(&later).await;
    fixture.done(&first).await;
    let told = explain(&fixture, &waiting).await;
    assert!(told.starts_with(&format!("It waits for 1 of 2 tasks: {}", second.id)), "{told}");
    assert_eq!(fixture.task(&waiting).await.state, State::Queued);
    fixture.release("writer", "two").await;
    let joined = fixture.done(&waiting).await;
    worker.stop().await;
    assert_eq!(joined.result.as_deref(), Some("joined"));
    assert_eq!(
        joined.session_id,
        fixture.task(&later).await.session_id,
        "the continuation runs in its own conversation"
    );
    assert!(fixture.task(&second).await.ended_at <= joined.started_at);
}

#[tokio::test]
async fn predecessors_that_have_already_ended_are_not_waited_for() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let first = fixture.done(&fixture.add("One.").await).await;
    worker.stop().await;
    let waiting = fixture.add_after("main", "Join.", &[&first]).await;
    assert_eq!(job_state(&fixture, &waiting).await, "ready");
    // Ordered by commit, like later jobs of the lane.
    let later = fixture.add("Later.").await;
    assert_eq!(job_state(&fixture, &later).await, "blocked");
}

#[tokio::test]
async fn a_failure_is_shown_or_cancels_dependents_in_turn_as_requested() {
    let fixture = Fixture::new(&[]).await;
    let fails = fixture.add_for("writer", "one", "One. [[sim: error 400]]").await;
    let stalls = fixture.add_for("writer", "two", "Two.").await;
    let patient = fixture.add_after("main", "Join. [[sim: say joined]]", &[&fails]).await;
    let strict = add_strict(&fixture, "three", &[&stalls, &fails]).await;
    let behind = add_strict(&fixture, "four", &[&strict]).await;
    fixture.hold("writer", "two").await;
    let worker = fixture.start_worker().await;
    fixture.done(&patient).await;
    let strict = fixture.ended(&strict).await;
    let behind = fixture.ended(&behind).await;
    worker.stop().await;
    assert_eq!([strict.state, behind.state], [State::Cancelled; 2]);
    let expected = format!("task {} of writer/one, which it waited for, has failed", fails.id);
    assert_eq!(cancelled_because(&fixture, &strict).await, expected);
    let told = explain(&fixture, &strict).await;
    assert!(told.starts_with(&format!("It was cancelled before it ran: {expected}.")), "{told}");
    let why = cancelled_because(&fixture, &behind).await;
    assert!(why.contains(&strict.id.to_string()) && why.ends_with("was cancelled"), "{why}");
    assert_eq!(fixture.kinds(&strict).await, ["task.cancelled"]);
    // Added after the failure, it is cancelled at once.
    let late = add_strict(&fixture, "five", &[&fails]).await;
    assert_eq!(fixture.task(&late).await.state, State::Cancelled);
}

#[tokio::test]
async fn a_retried_predecessor_is_waited_for_again() {
    let fixture = Fixture::new(&[]).await;
    let fails =
        fixture.add_for("writer", "one", "One. [[sim: error 400 once]] [[sim: say one]]").await;
    let other = fixture.add_for("writer", "two", "Two.").await;
    let waiting = fixture.add_after("main", "Join.", &[&fails, &other]).await;
    fixture.hold("writer", "two").await;
    // The simulation counts its calls for the lifetime of a process.
    let services = fixture.services(&[]);
    let worker = fixture.start_worker_on(services.clone(), &[]).await;
    assert_eq!(fixture.ended(&fails).await.state, State::Failed);
    worker.stop().await;
    let mut tx = fixture.pool.begin().await.unwrap();
    tasks::retry(&mut tx, fails.id, noon()).await.unwrap();
    tx.commit().await.unwrap();
    fixture.hold("writer", "one").await;
    fixture.release("writer", "two").await;
    let worker = fixture.start_worker_on(services, &[]).await;
    fixture.done(&other).await;
    assert_eq!(job_state(&fixture, &waiting).await, "scheduled");
    fixture.release("writer", "one").await;
    fixture.done(&fails).await;
    fixture.done(&waiting).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_task_cancelled_while_waiting_waits_again_after_a_retry() {
    let fixture = Fixture::new(&[]).await;
    let other = fixture.add_for("writer", "one", "One.").await;
    let waiting = fixture.add_after("main", "Join.", &[&other]).await;
    fixture.cancel(&waiting).await;
    assert_eq!(cancelled_because(&fixture, &waiting).await, "not wanted");
    let mut tx = fixture.pool.begin().await.unwrap();
    tasks::retry(&mut tx, waiting.id, noon()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(job_state(&fixture, &waiting).await, "scheduled");
    let worker = fixture.start_worker().await;
    fixture.done(&waiting).await;
    worker.stop().await;
    let has_ended = fixture.task(&other).await.ended_at;
    assert!(has_ended <= fixture.task(&waiting).await.started_at);
}

#[tokio::test]
async fn a_retry_ignores_only_the_failures_known_by_then() {
    let fixture = Fixture::new(&[]).await;
    let known = fixture.add_for("writer", "one", "One. [[sim: error 400]]").await;
    let later = fixture.add_for("writer", "two", "Two. [[sim: error 400]]").await;
    let fine = fixture.add_for("writer", "three", "Three.").await;
    let unlucky = add_strict(&fixture, "four", &[&known, &later]).await;
    let lucky = add_strict(&fixture, "five", &[&known, &fine]).await;
    for instance in ["two", "three"] {
        fixture.hold("writer", instance).await;
    }
    let worker = fixture.start_worker().await;
    for task in [&unlucky, &lucky] {
        assert_eq!(fixture.ended(task).await.state, State::Cancelled);
        let mut tx = fixture.pool.begin().await.unwrap();
        tasks::retry(&mut tx, task.id, noon()).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(job_state(&fixture, task).await, "scheduled");
    }
    for instance in ["two", "three"] {
        fixture.release("writer", instance).await;
    }
    assert_eq!(fixture.ended(&unlucky).await.state, State::Cancelled);
    let why = cancelled_because(&fixture, &unlucky).await;
    assert!(why.contains(&later.id.to_string()), "{why}");
    fixture.done(&lucky).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_start_time_applies_in_addition_to_predecessors() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let first = fixture.done(&fixture.add("One.").await).await;
    let after = [TaskLink::Task(first.id)];
    let links = Links { depends_on: &after, ..Links::default() };
    let run_at = noon() + chrono::TimeDelta::days(36_500);
    let waiting = fixture.add_at(run_at, links).await;
    assert_eq!(job_state(&fixture, &waiting).await, "scheduled");
    let sql = "select wait_reason || ' ' || (run_at = $2)::text from dalsegno.jobs where id = $1";
    let found: String = sqlx::query_scalar(sql)
        .bind(waiting.job_id)
        .bind(run_at)
        .fetch_one(&fixture.pool)
        .await
        .unwrap();
    assert_eq!(found, "later true");
    worker.stop().await;
}

#[tokio::test]
async fn only_existing_tasks_of_the_campaign_can_be_predecessors() {
    let fixture = Fixture::new(&[]).await;
    let task = fixture.add("One.").await;
    let mut conn = fixture.pool.acquire().await.unwrap();
    let new = campaigns::New {
        name: "Another",
        brief: "",
        client_context: None,
        limit: Limit::default(),
    };
    let another = campaigns::create(&mut conn, &new, noon()).await.unwrap();
    let sql = "update dalsegno.tasks set campaign_id = $2 where id = $1";
    sqlx::query(sql).bind(task.id).bind(another.id).execute(&mut *conn).await.unwrap();
    let cases = [
        vec![TaskLink::Task(task.id)],
        vec![TaskLink::Task(uuid::Uuid::nil())],
        vec![TaskLink::Item { item: 0 }],
        vec![TaskLink::Key { key: "unknown".to_owned() }],
    ];
    for after in cases {
        let links = Links { depends_on: &after, ..Links::default() };
        let added = fixture.add_linked("writer", "main", "x", None, Limit::default(), links);
        let error = added.await.unwrap_err();
        assert!(matches!(error, tasks::Error::NoPredecessor(_)), "{after:?}: {error}");
    }
    let many = vec![TaskLink::Task(task.id); 1_001];
    let links = Links { depends_on: &many, ..Links::default() };
    let added = fixture.add_linked("writer", "main", "x", None, Limit::default(), links);
    let error = added.await.unwrap_err();
    assert!(matches!(error, tasks::Error::TooManyPredecessors(1_001)), "{error}");
    assert_eq!(fixture.count("select count(*) from dalsegno.tasks").await, 1);
}

/// Workers of an earlier version do not know the kind, and leave its jobs to newer ones.
#[tokio::test]
async fn the_waiting_job_has_its_own_kind_and_its_predecessors_are_shown() {
    let fixture = Fixture::new(&[]).await;
    let first = fixture.add_for("writer", "one", "One.").await;
    let waiting = fixture.add_after("main", "Join.", &[&first]).await;
    let mut conn = fixture.pool.acquire().await.unwrap();
    let job = admin::find_job(&mut conn, waiting.job_id).await.unwrap();
    assert_eq!(job.summary.kind, "run_joined_turn");
    assert_eq!(job.summary.run_at.to_rfc3339(), "9999-12-31T00:00:00+00:00");
    let told = admin::explain(&mut *conn, waiting.job_id).await.unwrap();
    assert!(told.because.contains("blocks no other job"), "{}", told.because);
    assert!(told.next.contains("joins the lane"), "{}", told.next);
}
