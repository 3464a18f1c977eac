//! Waiting tasks: their dependencies, their lanes meanwhile, and failures.

use dalsegno::{
    domain::{
        amount::Limit,
        campaigns, explanations,
        tasks::{self, After, Links, OnFailure, State, Task},
    },
    queue::admin,
};

use crate::{app::noon, turns::ground::Ground};

async fn explain(ground: &Ground, task: &Task) -> String {
    let mut conn = ground.pool.acquire().await.unwrap();
    let told = explanations::explain(&mut conn, task.id).await.unwrap();
    format!("{} {}", told.because, told.next)
}

async fn job_state(ground: &Ground, task: &Task) -> String {
    let mut conn = ground.pool.acquire().await.unwrap();
    let job_id = tasks::get(&mut *conn, task.id).await.unwrap().job_id;
    admin::explain(&mut *conn, job_id).await.unwrap().state
}

/// Adds a task that is cancelled if one of these fails.
async fn add_strict(ground: &Ground, instance: &str, others: &[&Task]) -> Task {
    let after: Vec<_> = others.iter().map(|other| After::Task(other.id)).collect();
    let links = Links { depends_on: &after, on_failure: OnFailure::Cancel, ..Links::default() };
    let added = ground.add_linked("writer", instance, "Go on.", None, Limit::default(), links);
    added.await.unwrap()
}

async fn cancelled_because(ground: &Ground, task: &Task) -> String {
    let mut conn = ground.pool.acquire().await.unwrap();
    tasks::detail(&mut conn, task.id).await.unwrap().cancelled_because.unwrap()
}

#[tokio::test]
async fn a_task_that_waits_blocks_no_lane_and_runs_when_the_last_of_the_others_has_ended() {
    let ground = Ground::new(&[]).await;
    let first = ground.add_for("writer", "one", "One. [[sim: say first]]").await;
    let second = ground.add_for("writer", "two", "Two. [[sim: say second]]").await;
    let waiting = ground.add_after("main", "Join. [[sim: say joined]]", &[&first, &second]).await;
    let later = ground.add("Meanwhile. [[sim: say meanwhile]]").await;
    assert_eq!(job_state(&ground, &waiting).await, "scheduled");
    let told = explain(&ground, &waiting).await;
    assert!(told.starts_with(&format!("It waits for 2 of 2 tasks: {}", first.id)), "{told}");

    ground.hold("writer", "two").await;
    let worker = ground.work().await;
    ground.done(&later).await;
    ground.done(&first).await;
    let told = explain(&ground, &waiting).await;
    assert!(told.starts_with(&format!("It waits for 1 of 2 tasks: {}", second.id)), "{told}");
    assert_eq!(ground.task(&waiting).await.state, State::Queued);
    ground.release("writer", "two").await;
    let joined = ground.done(&waiting).await;
    worker.stop().await;
    assert_eq!(joined.result.as_deref(), Some("joined"));
    assert_eq!(joined.session_id, ground.task(&later).await.session_id, "in its own conversation");
    assert!(ground.task(&second).await.ended_at <= joined.started_at);
}

#[tokio::test]
async fn what_has_ended_before_is_not_waited_for() {
    let ground = Ground::new(&[]).await;
    let worker = ground.work().await;
    let first = ground.done(&ground.add("One.").await).await;
    worker.stop().await;
    let waiting = ground.add_after("main", "Join.", &[&first]).await;
    assert_eq!(job_state(&ground, &waiting).await, "ready");
    // Ordered by commit, like later jobs of the lane.
    let later = ground.add("Later.").await;
    assert_eq!(job_state(&ground, &later).await, "blocked");
}

#[tokio::test]
async fn a_failure_is_told_or_cancels_as_was_asked_and_what_waits_for_that_in_turn() {
    let ground = Ground::new(&[]).await;
    let fails = ground.add_for("writer", "one", "One. [[sim: error 400]]").await;
    let stalls = ground.add_for("writer", "two", "Two.").await;
    let patient = ground.add_after("main", "Join. [[sim: say joined]]", &[&fails]).await;
    let strict = add_strict(&ground, "three", &[&stalls, &fails]).await;
    let behind = add_strict(&ground, "four", &[&strict]).await;
    ground.hold("writer", "two").await;
    let worker = ground.work().await;
    ground.done(&patient).await;
    let strict = ground.ended(&strict).await;
    let behind = ground.ended(&behind).await;
    worker.stop().await;
    assert_eq!([strict.state, behind.state], [State::Cancelled; 2]);
    let expected = format!("task {} of writer/one, which it waited for, has failed", fails.id);
    assert_eq!(cancelled_because(&ground, &strict).await, expected);
    let told = explain(&ground, &strict).await;
    assert!(told.starts_with(&format!("It was cancelled before it ran: {expected}.")), "{told}");
    let why = cancelled_because(&ground, &behind).await;
    assert!(why.contains(&strict.id.to_string()) && why.ends_with("was cancelled"), "{why}");
    assert_eq!(ground.kinds(&strict).await, ["task.cancelled"]);
    // Added after the failure, it is cancelled at once.
    let late = add_strict(&ground, "five", &[&fails]).await;
    assert_eq!(ground.task(&late).await.state, State::Cancelled);
}

#[tokio::test]
async fn a_task_that_is_tried_again_is_waited_for_again() {
    let ground = Ground::new(&[]).await;
    let fails =
        ground.add_for("writer", "one", "One. [[sim: error 400 once]] [[sim: say one]]").await;
    let other = ground.add_for("writer", "two", "Two.").await;
    let waiting = ground.add_after("main", "Join.", &[&fails, &other]).await;
    ground.hold("writer", "two").await;
    // The simulation counts its calls for the lifetime of a process.
    let services = ground.services(&[]);
    let worker = ground.work_on(services.clone(), &[]).await;
    assert_eq!(ground.ended(&fails).await.state, State::Failed);
    worker.stop().await;
    let mut tx = ground.pool.begin().await.unwrap();
    tasks::retry(&mut tx, fails.id, noon()).await.unwrap();
    tx.commit().await.unwrap();
    ground.hold("writer", "one").await;
    ground.release("writer", "two").await;
    let worker = ground.work_on(services, &[]).await;
    ground.done(&other).await;
    assert_eq!(job_state(&ground, &waiting).await, "scheduled");
    ground.release("writer", "one").await;
    ground.done(&fails).await;
    ground.done(&waiting).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_task_that_was_cancelled_while_it_waited_waits_again_when_it_is_tried_again() {
    let ground = Ground::new(&[]).await;
    let other = ground.add_for("writer", "one", "One.").await;
    let waiting = ground.add_after("main", "Join.", &[&other]).await;
    ground.cancel(&waiting).await;
    assert_eq!(cancelled_because(&ground, &waiting).await, "not wanted");
    let mut tx = ground.pool.begin().await.unwrap();
    tasks::retry(&mut tx, waiting.id, noon()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(job_state(&ground, &waiting).await, "scheduled");
    let worker = ground.work().await;
    ground.done(&waiting).await;
    worker.stop().await;
    let has_ended = ground.task(&other).await.ended_at;
    assert!(has_ended <= ground.task(&waiting).await.started_at);
}

#[tokio::test]
async fn one_that_is_tried_again_forgives_what_had_failed_by_then_and_nothing_else() {
    let ground = Ground::new(&[]).await;
    let known = ground.add_for("writer", "one", "One. [[sim: error 400]]").await;
    let later = ground.add_for("writer", "two", "Two. [[sim: error 400]]").await;
    let fine = ground.add_for("writer", "three", "Three.").await;
    let unlucky = add_strict(&ground, "four", &[&known, &later]).await;
    let lucky = add_strict(&ground, "five", &[&known, &fine]).await;
    for instance in ["two", "three"] {
        ground.hold("writer", instance).await;
    }
    let worker = ground.work().await;
    for task in [&unlucky, &lucky] {
        assert_eq!(ground.ended(task).await.state, State::Cancelled);
        let mut tx = ground.pool.begin().await.unwrap();
        tasks::retry(&mut tx, task.id, noon()).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(job_state(&ground, task).await, "scheduled");
    }
    for instance in ["two", "three"] {
        ground.release("writer", instance).await;
    }
    assert_eq!(ground.ended(&unlucky).await.state, State::Cancelled);
    let why = cancelled_because(&ground, &unlucky).await;
    assert!(why.contains(&later.id.to_string()), "{why}");
    ground.done(&lucky).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_moment_beside_the_others_counts_too() {
    let ground = Ground::new(&[]).await;
    let worker = ground.work().await;
    let first = ground.done(&ground.add("One.").await).await;
    let after = [After::Task(first.id)];
    let links = Links { depends_on: &after, ..Links::default() };
    let run_at = noon() + chrono::TimeDelta::days(36_500);
    let waiting = ground.add_at(run_at, links).await;
    assert_eq!(job_state(&ground, &waiting).await, "scheduled");
    let sql = "select wait_reason || ' ' || (run_at = $2)::text from dalsegno.jobs where id = $1";
    let found: String = sqlx::query_scalar(sql)
        .bind(waiting.job_id)
        .bind(run_at)
        .fetch_one(&ground.pool)
        .await
        .unwrap();
    assert_eq!(found, "later true");
    worker.stop().await;
}

#[tokio::test]
async fn only_tasks_of_the_campaign_that_are_there_can_be_waited_for() {
    let ground = Ground::new(&[]).await;
    let task = ground.add("One.").await;
    let mut conn = ground.pool.acquire().await.unwrap();
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
        vec![After::Task(task.id)],
        vec![After::Task(uuid::Uuid::nil())],
        vec![After::Item { item: 0 }],
        vec![After::Key { key: "nobody".to_owned() }],
    ];
    for after in cases {
        let links = Links { depends_on: &after, ..Links::default() };
        let added = ground.add_linked("writer", "main", "x", None, Limit::default(), links);
        let error = added.await.unwrap_err();
        assert!(matches!(error, tasks::Error::NoPredecessor(_)), "{after:?}: {error}");
    }
    let many = vec![After::Task(task.id); 1_001];
    let links = Links { depends_on: &many, ..Links::default() };
    let added = ground.add_linked("writer", "main", "x", None, Limit::default(), links);
    let error = added.await.unwrap_err();
    assert!(matches!(error, tasks::Error::TooManyPredecessors(1_001)), "{error}");
    assert_eq!(ground.count("select count(*) from dalsegno.tasks").await, 1);
}

/// Workers of an earlier version do not know the kind, and leave its jobs to newer ones.
#[tokio::test]
async fn the_job_is_of_a_kind_of_its_own_and_people_see_what_it_waits_for() {
    let ground = Ground::new(&[]).await;
    let first = ground.add_for("writer", "one", "One.").await;
    let waiting = ground.add_after("main", "Join.", &[&first]).await;
    let mut conn = ground.pool.acquire().await.unwrap();
    let job = admin::find_job(&mut conn, waiting.job_id).await.unwrap();
    assert_eq!(job.summary.kind, "run_joined_turn");
    assert_eq!(job.summary.run_at.to_rfc3339(), "9999-12-31T00:00:00+00:00");
    let told = admin::explain(&mut *conn, waiting.job_id).await.unwrap();
    assert!(told.because.contains("blocks no other job"), "{}", told.because);
    assert!(told.next.contains("joins the lane"), "{}", told.next);
}
