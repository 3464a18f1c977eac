//! A parent with its children: the continuation in its own conversation, and cancellation of dependent tasks.

use dalsegno::{
    domain::{
        agents::{Catalogue, Library},
        tasks::{
            self, CancelOutcome, Cancellation, CancelledTask, DescendantCounts, FanOut, FannedOut,
            New, State, Task,
        },
    },
    queue::admin,
};
use uuid::Uuid;

use crate::turns::fixture::Fixture;

/// Adds one child per prompt, each for an instance of its own.
pub async fn fan_out(
    fixture: &Fixture,
    parent: &Task,
    prompts: &[String],
    continuation: &str,
    key: Option<&str>,
) -> Result<FannedOut, tasks::BulkError> {
    let config = fixture.config();
    let catalogue = Library::open(&config.agents).unwrap().current();
    let (agent, instances): (_, Vec<String>) = (
        catalogue.agent("writer").unwrap(),
        (0..prompts.len()).map(|n| format!("part-{n}")).collect(),
    );
    let keys: Vec<Option<String>> =
        (0..prompts.len()).map(|n| key.map(|key| tasks::child_key(key, n))).collect();
    let children: Vec<New<'_>> = prompts
        .iter()
        .zip(&instances)
        .zip(&keys)
        .map(|((prompt, instance), key)| New {
            instance,
            idempotency_key: key.as_deref(),
            ..New::for_agent(fixture.campaign.id, agent, prompt)
        })
        .collect();
    let what = FanOut {
        parent,
        agent,
        children: &children,
        continuation,
        idempotency_key: key,
        added_by: None,
    };
    let mut tx = fixture.pool.begin().await.unwrap();
    use dalsegno::clock::Clock as _;
    let made = tasks::fan_out(&mut tx, &config.tasks, &what, fixture.clock.now()).await?;
    tx.commit().await.unwrap();
    Ok(made)
}

pub async fn get(fixture: &Fixture, id: Uuid) -> Task {
    tasks::get(&fixture.pool, id).await.unwrap()
}

/// Sets up a parent that is done, with two children of which one stalls.
async fn family(fixture: &Fixture) -> (Task, FannedOut) {
    let worker = fixture.start_worker().await;
    let parent = fixture.done(&fixture.add("Plan. [[sim: say two parts]]").await).await;
    worker.stop().await;
    let prompts = ["One. [[sim: stall]]".to_owned(), "Two.".to_owned()];
    let made = fan_out(fixture, &parent, &prompts, "Go on.", None).await.unwrap();
    (parent, made)
}

async fn states(fixture: &Fixture, made: &FannedOut) -> Vec<State> {
    let mut states = Vec::new();
    for placed in made.children.iter().chain([&made.continuation]) {
        states.push(get(fixture, placed.id).await.state);
    }
    states
}

async fn cancel(fixture: &Fixture, id: Uuid) -> Result<Cancellation, tasks::Error> {
    let mut tx = fixture.pool.begin().await.unwrap();
    let cancelled = tasks::cancel(&mut tx, id, "no budget left", crate::app::noon()).await?;
    tx.commit().await.unwrap();
    Ok(cancelled)
}

fn below(cancel: CancelOutcome, cancelled: u64, stopping: u64) -> Cancellation {
    Cancellation { cancel, below: DescendantCounts { cancelled, stopping } }
}

#[tokio::test]
async fn a_parent_resumes_its_work_in_its_own_conversation() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let parent = fixture.done(&fixture.add("Plan. [[sim: say two parts]]").await).await;
    let prompts = [1, 2].map(|n| format!("Part {n}. [[sim: say part {n}]]"));
    let made = fan_out(&fixture, &parent, &prompts, "All of it. [[sim: say all]]", Some("plan-1"));
    let made = made.await.unwrap();
    let continuation = fixture.done(&get(&fixture, made.continuation.id).await).await;
    worker.stop().await;
    assert_eq!(continuation.session_id, parent.session_id);
    let transcript = fixture.transcript(parent.session_id.unwrap()).await;
    let said: Vec<_> = transcript.iter().map(|line| line.split('.').next().unwrap()).collect();
    assert_eq!(said.len(), 5, "{transcript:?}");
    assert_eq!((said[0], said[3]), ("User: Plan", "User: All of it"));
    assert!(said[2].contains("part 1") && said[2].contains("part 2"), "{}", said[2]);
    let mut conn = fixture.pool.acquire().await.unwrap();
    for child in &made.children {
        let detail = tasks::detail(&mut conn, child.id).await.unwrap();
        assert_eq!(detail.parent_id, Some(parent.id));
    }
    let detail = tasks::detail(&mut conn, continuation.id).await.unwrap();
    assert_eq!((detail.parent_id, detail.continues_id), (None, Some(parent.id)));
    assert!(!detail.waiting.unwrap().waits);
    // Repeated with its key, it returns the same tasks.
    let again = fan_out(&fixture, &parent, &prompts, "All of it. [[sim: say all]]", Some("plan-1"));
    let again = again.await.unwrap();
    assert!(again.children.iter().chain([&again.continuation]).all(|placed| !placed.created));
    assert_eq!(again.continuation.id, made.continuation.id);
    let other = fan_out(&fixture, &parent, &prompts, "Another question.", Some("plan-1")).await;
    assert!(matches!(other, Err(tasks::BulkError::Items(_))), "{other:?}");
}

#[tokio::test]
async fn cancelling_a_parents_job_equals_cancelling_the_parent() {
    let fixture = Fixture::new(&[]).await;
    let (parent, made) = family(&fixture).await;
    let cancel = async |job_id| {
        let mut tx = fixture.pool.begin().await.unwrap();
        let cancelled = tasks::cancel_job(&mut tx, job_id, "by its job", crate::app::noon()).await;
        tx.commit().await.unwrap();
        cancelled
    };
    let told = cancel(parent.job_id).await.unwrap();
    assert_eq!(told.cancel, admin::CancelOutcome::AlreadyEnded);
    let cancellation = below(CancelOutcome::HadEnded, 3, 0);
    assert_eq!(told.task, Some(CancelledTask { task_id: parent.id, cancellation }));
    assert_eq!(states(&fixture, &made).await, [State::Cancelled; 3]);
    assert_eq!(fixture.count("select count(*) from dalsegno.jobs").await, 0);
    // Once more: the job is gone. Jobs without a task are cancelled by the queue.
    let told = cancel(parent.job_id).await.unwrap();
    assert_eq!((told.cancel, told.task), (admin::CancelOutcome::AlreadyEnded, None));
    let unknown = cancel(1_000_000).await.unwrap_err();
    assert!(matches!(unknown, tasks::Error::Queue(_)), "{unknown:?}");
    // A task that has not begun ends with its job.
    let waiting = fixture.add("Plan again.").await;
    assert_eq!(cancel(waiting.job_id).await.unwrap().cancel, admin::CancelOutcome::AtOnce);
    assert_eq!(get(&fixture, waiting.id).await.state, State::Cancelled);
}

#[tokio::test]
async fn cancelling_a_parent_cancels_its_tree_and_reports_the_reason_to_all() {
    let fixture = Fixture::new(&[]).await;
    let (parent, made) = family(&fixture).await;
    let worker = fixture.start_worker().await;
    let first = get(&fixture, made.children[0].id).await;
    crate::app::eventually("the first child runs", async || {
        (fixture.task(&first).await.state == State::Running).then_some(())
    })
    .await;
    let told = cancel(&fixture, parent.id).await.unwrap();
    // The parent has ended. Its first child runs and is told to stop; the second one may have ended.
    assert_eq!(told.cancel, CancelOutcome::HadEnded);
    assert!(told.below.stopping >= 1 && told.below.cancelled >= 1, "{told:?}");
    fixture.ended(&first).await;
    worker.stop().await;
    let second = get(&fixture, made.children[1].id).await;
    assert_eq!(get(&fixture, parent.id).await.state, State::Done);
    let states = states(&fixture, &made).await;
    // The second one may have been faster.
    assert_eq!((states[0], states[2]), (State::Cancelled, State::Cancelled), "{second:?}");
    let mut conn = fixture.pool.acquire().await.unwrap();
    for id in [made.children[0].id, made.continuation.id] {
        let why = tasks::detail(&mut conn, id).await.unwrap().cancelled_because.unwrap();
        let expected = format!(
            "no budget left (together with task {} of writer/main, on which it depends)",
            parent.id
        );
        assert_eq!(why, expected);
    }
    assert!(matches!(cancel(&fixture, parent.id).await, Err(tasks::Error::Ended { .. })));
    // The ends have woken no task.
    let left = "select count(*) from dalsegno.jobs";
    assert_eq!(fixture.count(left).await, 0);
}

#[tokio::test]
async fn cancelling_a_waiting_task_cancels_the_children_that_it_waits_for() {
    let fixture = Fixture::new(&[]).await;
    let (parent, made) = family(&fixture).await;
    let apart = fan_out(&fixture, &parent, &["Apart.".to_owned()], "Go on.", None).await.unwrap();
    let told = cancel(&fixture, made.continuation.id).await.unwrap();
    assert_eq!(told, below(CancelOutcome::AtOnce, 2, 0));
    assert_eq!(states(&fixture, &made).await, [State::Cancelled; 3]);
    assert_eq!(states(&fixture, &apart).await, [State::Queued; 2], "a task of another round");
}

#[tokio::test]
async fn grandchildren_are_cancelled_too_and_a_queued_task_cannot_add_children() {
    let fixture = Fixture::new(&[]).await;
    let (parent, made) = family(&fixture).await;
    let child = get(&fixture, made.children[0].id).await;
    let refused = fan_out(&fixture, &child, &["x".to_owned()], "y", None).await.unwrap_err();
    assert!(matches!(refused, tasks::BulkError::All(tasks::Error::NoParent { .. })), "{refused}");
    let none = fan_out(&fixture, &parent, &[], "y", None).await.unwrap_err();
    assert!(matches!(none, tasks::BulkError::All(tasks::Error::NChildren(0))), "{none}");
    let runs = "update dalsegno.tasks set state = 'running', started_at = now() where id = $1";
    sqlx::query(runs).bind(child.id).execute(&fixture.pool).await.unwrap();
    let running = Task { state: State::Running, ..child };
    let below = fan_out(&fixture, &running, &["Below.".to_owned()], "Then.", None).await.unwrap();
    cancel(&fixture, parent.id).await.unwrap();
    assert_eq!(states(&fixture, &below).await, [State::Cancelled; 2]);
    let mut conn = fixture.pool.acquire().await.unwrap();
    let job = get(&fixture, made.continuation.id).await.job_id;
    assert_eq!(admin::explain(&mut *conn, job).await.unwrap().state, "ended");
}

#[tokio::test]
async fn a_child_added_during_the_cancellation_is_cancelled_or_refused() {
    let fixture = Fixture::new(&[]).await;
    let config = fixture.config();
    let catalogue = Library::open(&config.agents).unwrap().current();
    let worker = fixture.start_worker().await;
    let parent = fixture.done(&fixture.add("Plan. [[sim: say a part]]").await).await;
    worker.stop().await;
    let child = New { prompt: "Part.", ..child_of(&fixture, &catalogue) };
    let what = FanOut {
        parent: &parent,
        agent: catalogue.agent("writer").unwrap(),
        children: &[child],
        continuation: "Go on.",
        idempotency_key: None,
        added_by: None,
    };
    let mut handing = fixture.pool.begin().await.unwrap();
    let made =
        tasks::fan_out(&mut handing, &config.tasks, &what, crate::app::noon()).await.unwrap();
    let commit = async {
        crate::app::until_blocked(&fixture.pool).await;
        handing.commit().await.unwrap();
    };
    let (cancelled, ()) = tokio::join!(cancel(&fixture, parent.id), commit);
    assert_eq!(cancelled.unwrap(), below(CancelOutcome::HadEnded, 2, 0));
    assert_eq!(states(&fixture, &made).await, [State::Cancelled; 2]);

    // A running task ends after its cancellation.
    let running = fixture.add("More. [[sim: stall]]").await;
    let worker = fixture.start_worker().await;
    crate::app::eventually("the task runs", async || {
        (fixture.task(&running).await.state == State::Running).then_some(())
    })
    .await;
    let mut asking = fixture.pool.begin().await.unwrap();
    let asked = tasks::cancel(&mut asking, running.id, "no budget left", crate::app::noon()).await;
    assert_eq!(asked.unwrap(), below(CancelOutcome::Requested, 0, 0));
    let parent = Task { state: State::Running, ..running };
    let what = FanOut { parent: &parent, ..what };
    let refused = tasks::fan_out(&mut asking, &config.tasks, &what, crate::app::noon()).await;
    let refused = refused.unwrap_err();
    assert!(matches!(refused, tasks::BulkError::All(tasks::Error::BeingCancelled(_))), "{refused}");
    asking.rollback().await.unwrap();
    fixture.cancel(&parent).await;
    worker.stop().await;
}

fn child_of<'a>(fixture: &Fixture, catalogue: &'a Catalogue) -> New<'a> {
    New {
        instance: "part",
        ..New::for_agent(fixture.campaign.id, catalogue.agent("writer").unwrap(), "x")
    }
}
