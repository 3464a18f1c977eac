//! Paused agents: their tasks wait with an explanation, and others run.

use dalsegno::{
    domain::{
        agent_pauses::{self, PauseScope},
        agents::SessionMode as Mode,
        amount::Limit,
        campaign_control, explanations, statuses,
        tasks::{self, State, Task},
    },
    queue::admin,
};
use futures_util::future::join_all;
use uuid::Uuid;

use super::interrupts::{SLOW, slow_answers};
use crate::{
    app::{eventually, noon},
    providers::fake_ollama::Play,
    turns::fixture::Fixture,
};

const EDITOR: &str = "---\nname: editor\ndescription: Edits\n---\nYou edit.\n";
const ACTOR: &str = "cli:ann@host";

async fn fixture(settings: &[(&str, &str)]) -> Fixture {
    let fixture = Fixture::new(settings).await;
    fixture.write_agent("editor", EDITOR);
    fixture
}

fn campaign_place(fixture: &Fixture) -> PauseScope<'static> {
    PauseScope { campaign_id: Some(fixture.campaign.id), agent: "writer" }
}

const ALL_CAMPAIGNS: PauseScope<'static> = PauseScope { campaign_id: None, agent: "writer" };

async fn pause(fixture: &Fixture, place: PauseScope<'_>) {
    let mut tx = fixture.pool.begin().await.unwrap();
    agent_pauses::pause(&mut tx, place, "too expensive", ACTOR, noon()).await.unwrap();
    tx.commit().await.unwrap();
}

async fn resume(fixture: &Fixture, place: PauseScope<'_>) -> i64 {
    let mut tx = fixture.pool.begin().await.unwrap();
    let resumed = agent_pauses::resume(&mut tx, place, ACTOR, noon()).await.unwrap();
    tx.commit().await.unwrap();
    resumed.released
}

async fn explain(fixture: &Fixture, task: &Task) -> explanations::Explanation {
    let mut conn = fixture.pool.acquire().await.unwrap();
    explanations::explain(&mut conn, task.id).await.unwrap()
}

/// Waits until the job of a task is held, and returns the number of its runs.
async fn wait_until_held(fixture: &Fixture, task: &Task) -> usize {
    eventually("the job is held", async || {
        let mut conn = fixture.pool.acquire().await.unwrap();
        let job = admin::find_job(&mut conn, task.job_id).await.ok()?;
        assert!(job.summary.state != "dead", "{job:?}");
        (job.summary.state == "held").then(|| {
            assert_eq!(job.summary.attempt, 0, "no attempt is used up: {job:?}");
            job.runs.len()
        })
    })
    .await
}

#[tokio::test]
async fn tasks_of_a_paused_agent_wait_from_every_source_while_others_run() {
    let fixture = fixture(&[]).await;
    let worker = fixture.start_worker().await;
    fixture.done(&fixture.add("Write part one.").await).await;
    pause(&fixture, campaign_place(&fixture)).await;
    let first = fixture.add("Write part two.").await;
    let behind = fixture.add("Write part three.").await;
    let instance = fixture.add_for("writer", "second", "Write.").await;
    let alone =
        fixture.add_as("writer", "third", "Write.", Some(Mode::None), Limit::default()).await;
    let in_sql: Uuid = sqlx::query_scalar(
        "select task_id from dalsegno.add_task($1, 'writer', 'Write.', 'fourth')",
    )
    .bind(fixture.campaign.id)
    .fetch_one(&fixture.pool)
    .await
    .unwrap();
    let in_sql = tasks::get(&fixture.pool, in_sql).await.unwrap();
    let heads = [&first, &instance, &alone, &in_sql];
    for task in heads {
        assert_eq!(wait_until_held(&fixture, task).await, 1);
    }
    // Tasks of other agents run, before and after.
    let others = join_all((0..4).map(|_| fixture.add_for("editor", "main", "Edit."))).await;
    for task in &others {
        fixture.done(task).await;
    }
    for task in heads.into_iter().chain([&behind]) {
        assert_eq!(fixture.task(task).await.state, State::Queued);
        let told = explain(&fixture, task).await;
        assert!(
            told.because
                .contains("`writer` is paused in this campaign by ann on the command line of host"),
            "{told:?}"
        );
        assert!(told.because.contains("too expensive"), "{told:?}");
        let how = format!("dalsegno agent resume writer --campaign {}", fixture.campaign.id);
        assert!(told.next.contains(&how), "{told:?}");
    }
    let catalogue = dalsegno::domain::agents::Catalogue::load(&fixture.config().agents).unwrap();
    let statuses = {
        let mut conn = fixture.pool.acquire().await.unwrap();
        statuses::list_with_pauses(&mut conn, fixture.campaign.id, &catalogue, noon())
            .await
            .unwrap()
    };
    let of = |name: &str| {
        statuses.iter().find(|standing| standing.status.name(&catalogue) == name).unwrap()
    };
    assert_eq!(
        (of("writer").status.state, of("writer").status.waiting),
        (statuses::State::Waiting, 2)
    );
    assert!(of("writer").pause.is_some() && of("writer/second").pause.is_some());
    assert!(of("editor").pause.is_none());

    // The pause outlives the worker, and a new worker does not poll the jobs.
    worker.stop().await;
    let worker = fixture.start_worker().await;
    fixture.done(&fixture.add_for("editor", "main", "Edit once more.").await).await;
    for task in heads {
        assert_eq!(wait_until_held(&fixture, task).await, 1, "no worker has checked again");
    }
    assert_eq!(resume(&fixture, campaign_place(&fixture)).await, 4);
    for task in heads.into_iter().chain([&behind]) {
        let task = fixture.done(task).await;
        let turns = fixture.turns(&task).await;
        assert_eq!((turns.len(), turns[0].attempt), (1, 1), "{turns:?}");
    }
    let prompts = fixture.transcript(fixture.session(&first).await.id).await;
    let prompts: Vec<_> = prompts.iter().filter(|line| line.starts_with("User")).collect();
    assert_eq!(
        prompts,
        ["User: Write part one.", "User: Write part two.", "User: Write part three."]
    );
    assert_eq!(fixture.kinds(&first).await[0], "task.waiting");
    let kinds: Vec<String> = fixture.feed().await.into_iter().map(|event| event.kind).collect();
    assert!(
        kinds.iter().any(|kind| kind == "agent.paused")
            && kinds.iter().any(|kind| kind == "agent.resumed")
    );
    fixture.settled().await;
    worker.stop().await;
}

#[tokio::test]
async fn a_pause_lets_the_running_turn_end_and_begins_no_other() {
    let (fake, fixture) = slow_answers([Play::gated("An answer", " in two parts.")]).await;
    fixture.write_agent("writer", &SLOW.replace("name: slow", "name: writer"));
    let worker = fixture.start_worker().await;
    let running = fixture.add("Write slowly.").await;
    let next = fixture.add("Write part two.").await;
    eventually("the task runs", async || {
        (fixture.task(&running).await.state == State::Running).then_some(())
    })
    .await;
    let behind = explain(&fixture, &next).await.because;
    assert!(
        behind.starts_with("It waits for turn 1 of this conversation, which started "),
        "{behind}"
    );
    assert!(
        behind.ends_with(&format!(" (pid {}). It is next in line.", std::process::id())),
        "{behind}"
    );
    pause(&fixture, campaign_place(&fixture)).await;
    let told = explain(&fixture, &running).await;
    assert!(told.because.starts_with("It is in turn 1 of its session. Attempt 1 of "), "{told:?}");
    assert!(told.next.ends_with("this turn goes on to its end, and no other starts."), "{told:?}");
    fake.open();
    fixture.done(&running).await;
    assert_eq!(wait_until_held(&fixture, &next).await, 1);
    // A cancelled task ends while it waits, and frees its place in the lane.
    fixture.cancel(&next).await;
    assert_eq!(fixture.task(&next).await.state, State::Cancelled);
    let last = fixture.add("Write part three.").await;
    wait_until_held(&fixture, &last).await;
    assert_eq!(resume(&fixture, campaign_place(&fixture)).await, 1);
    fixture.done(&last).await;
    fixture.settled().await;
    worker.stop().await;
}

#[tokio::test]
async fn a_global_pause_holds_beside_a_campaign_pause_which_ends_on_close() {
    let fixture = fixture(&[]).await;
    let worker = fixture.start_worker().await;
    pause(&fixture, ALL_CAMPAIGNS).await;
    pause(&fixture, campaign_place(&fixture)).await;
    let task = fixture.add("Write part one.").await;
    wait_until_held(&fixture, &task).await;
    let told = explain(&fixture, &task).await;
    assert!(
        told.because.contains("It is also paused in all campaigns by ann on the command line"),
        "{told:?}"
    );
    assert!(told.next.contains("agent resume writer --everywhere"), "{told:?}");
    let mut tx = fixture.pool.begin().await.unwrap();
    let resumed =
        agent_pauses::resume(&mut tx, campaign_place(&fixture), ACTOR, noon()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(resumed.released, 1, "the campaign pause held the job");
    assert_eq!(resumed.paused_everywhere_because.as_deref(), Some("too expensive"));
    eventually("the global pause holds the job", async || {
        let mut conn = fixture.pool.acquire().await.unwrap();
        let job = admin::find_job(&mut conn, task.job_id).await.unwrap();
        (job.runs.len() == 2 && job.summary.state == "held").then_some(())
    })
    .await;
    assert!(explain(&fixture, &task).await.next.contains("agent resume writer --everywhere"));
    pause(&fixture, campaign_place(&fixture)).await;
    let mut tx = fixture.pool.begin().await.unwrap();
    let again =
        agent_pauses::pause(&mut tx, campaign_place(&fixture), "another reason", ACTOR, noon())
            .await
            .unwrap();
    assert!(!again.changed && again.pause.reason == "too expensive", "{again:?}");
    campaign_control::close(&mut tx, fixture.campaign.id, noon()).await.unwrap();
    tx.commit().await.unwrap();
    let mut conn = fixture.pool.acquire().await.unwrap();
    let error =
        agent_pauses::resume(&mut conn, campaign_place(&fixture), ACTOR, noon()).await.unwrap_err();
    assert!(error.to_string().contains("is not paused in campaign"), "{error}");
    drop(conn);
    assert_eq!(resume(&fixture, ALL_CAMPAIGNS).await, 1);
    fixture.done(&task).await;
    fixture.settled().await;
    worker.stop().await;
}

/// A job that is held at the moment its pause ends would wait forever.
#[tokio::test]
async fn no_job_stays_held_by_a_pause_that_ends_while_workers_hold_jobs() {
    let fixture = fixture(&[]).await;
    let workers = [fixture.start_worker().await, fixture.start_worker().await];
    let mut tasks = Vec::new();
    for round in 0..25 {
        pause(&fixture, campaign_place(&fixture)).await;
        // An instance of its own where the test waits for the first task: in a shared one it may be behind others.
        let is_awaited = round % 3 == 0;
        let instance = if is_awaited { format!("own{round}") } else { format!("i{}", round % 5) };
        for _ in 0..3 {
            tasks.push(fixture.add_for("writer", &instance, "Write.").await);
        }
        if is_awaited {
            wait_until_held(&fixture, tasks.iter().rev().nth(2).unwrap()).await;
        }
        resume(&fixture, campaign_place(&fixture)).await;
    }
    for task in &tasks {
        fixture.done(task).await;
    }
    fixture.settled().await;
    let held = "select count(*) from dalsegno.runs where outcome = 'given_back'";
    println!("{} jobs were held meanwhile", fixture.count(held).await);
    assert!(fixture.count(held).await >= 9);
    let [one, other] = workers;
    one.stop().await;
    other.stop().await;
}
