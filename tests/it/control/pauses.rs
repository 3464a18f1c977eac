//! Paused agents: their tasks wait with an explanation, and others run.

use dalsegno::{
    domain::{
        agent_pauses::{self, Place},
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
    turns::ground::Ground,
};

const EDITOR: &str = "---\nname: editor\ndescription: Edits\n---\nYou edit.\n";
const BY: &str = "cli:ann@host";

async fn ground(settings: &[(&str, &str)]) -> Ground {
    let ground = Ground::new(settings).await;
    ground.write_agent("editor", EDITOR);
    ground
}

fn here(ground: &Ground) -> Place<'static> {
    Place { campaign_id: Some(ground.campaign.id), agent: "writer" }
}

const EVERYWHERE: Place<'static> = Place { campaign_id: None, agent: "writer" };

async fn pause(ground: &Ground, place: Place<'_>) {
    let mut tx = ground.pool.begin().await.unwrap();
    agent_pauses::pause(&mut tx, place, "too expensive", BY, noon()).await.unwrap();
    tx.commit().await.unwrap();
}

async fn resume(ground: &Ground, place: Place<'_>) -> i64 {
    let mut tx = ground.pool.begin().await.unwrap();
    let resumed = agent_pauses::resume(&mut tx, place, BY, noon()).await.unwrap();
    tx.commit().await.unwrap();
    resumed.released
}

async fn explain(ground: &Ground, task: &Task) -> explanations::Explanation {
    let mut conn = ground.pool.acquire().await.unwrap();
    explanations::explain(&mut conn, task.id).await.unwrap()
}

/// Waits until the job of a task is held, and returns the number of its runs.
async fn is_held(ground: &Ground, task: &Task) -> usize {
    eventually("the job is held", async || {
        let mut conn = ground.pool.acquire().await.unwrap();
        let job = admin::find_job(&mut conn, task.job_id).await.ok()?;
        assert!(job.summary.state != "dead", "{job:?}");
        (job.summary.state == "held").then(|| {
            assert_eq!(job.summary.attempt, 0, "no attempt is burned: {job:?}");
            job.runs.len()
        })
    })
    .await
}

#[tokio::test]
async fn tasks_of_a_paused_agent_wait_whatever_way_they_came_while_others_run() {
    let ground = ground(&[]).await;
    let worker = ground.work().await;
    ground.done(&ground.add("Write part one.").await).await;
    pause(&ground, here(&ground)).await;
    let first = ground.add("Write part two.").await;
    let behind = ground.add("Write part three.").await;
    let instance = ground.add_for("writer", "second", "Write.").await;
    let alone =
        ground.add_as("writer", "third", "Write.", Some(Mode::None), Limit::default()).await;
    let in_sql: Uuid = sqlx::query_scalar(
        "select task_id from dalsegno.add_task($1, 'writer', 'Write.', 'fourth')",
    )
    .bind(ground.campaign.id)
    .fetch_one(&ground.pool)
    .await
    .unwrap();
    let in_sql = tasks::get(&ground.pool, in_sql).await.unwrap();
    let heads = [&first, &instance, &alone, &in_sql];
    for task in heads {
        assert_eq!(is_held(&ground, task).await, 1);
    }
    // Tasks of other agents run, before and after.
    let others = join_all((0..4).map(|_| ground.add_for("editor", "main", "Edit."))).await;
    for task in &others {
        ground.done(task).await;
    }
    for task in heads.into_iter().chain([&behind]) {
        assert_eq!(ground.task(task).await.state, State::Queued);
        let told = explain(&ground, task).await;
        assert!(
            told.because.contains("`writer` is paused in this campaign by cli:ann@host"),
            "{told:?}"
        );
        assert!(told.because.contains("too expensive"), "{told:?}");
        let how = format!("dalsegno agent resume writer --campaign {}", ground.campaign.id);
        assert!(told.next.contains(&how), "{told:?}");
    }
    let catalogue = dalsegno::domain::agents::Catalogue::load(&ground.config().agents).unwrap();
    let statuses = {
        let mut conn = ground.pool.acquire().await.unwrap();
        statuses::standings(&mut conn, ground.campaign.id, &catalogue, noon()).await.unwrap()
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
    let worker = ground.work().await;
    ground.done(&ground.add_for("editor", "main", "Edit once more.").await).await;
    for task in heads {
        assert_eq!(is_held(&ground, task).await, 1, "nobody has looked again");
    }
    assert_eq!(resume(&ground, here(&ground)).await, 4);
    for task in heads.into_iter().chain([&behind]) {
        let task = ground.done(task).await;
        let turns = ground.turns(&task).await;
        assert_eq!((turns.len(), turns[0].attempt), (1, 1), "{turns:?}");
    }
    let prompts = ground.transcript(ground.session(&first).await.id).await;
    let prompts: Vec<_> = prompts.iter().filter(|line| line.starts_with("User")).collect();
    assert_eq!(
        prompts,
        ["User: Write part one.", "User: Write part two.", "User: Write part three."]
    );
    assert_eq!(ground.kinds(&first).await[0], "task.waiting");
    let kinds: Vec<String> = ground.feed().await.into_iter().map(|event| event.kind).collect();
    assert!(
        kinds.iter().any(|kind| kind == "agent.paused")
            && kinds.iter().any(|kind| kind == "agent.resumed")
    );
    ground.settled().await;
    worker.stop().await;
}

#[tokio::test]
async fn a_turn_that_runs_ends_and_the_next_one_does_not_begin() {
    let (fake, ground) = slow_answers([Play::gated("An answer", " in two parts.")]).await;
    ground.write_agent("writer", &SLOW.replace("name: slow", "name: writer"));
    let worker = ground.work().await;
    let running = ground.add("Write slowly.").await;
    let next = ground.add("Write part two.").await;
    eventually("it runs", async || {
        (ground.task(&running).await.state == State::Running).then_some(())
    })
    .await;
    let behind = explain(&ground, &next).await.because;
    assert!(
        behind.starts_with("It waits for turn 1 of this conversation, which started "),
        "{behind}"
    );
    assert!(
        behind.ends_with(&format!(" (pid {}). It is next in line.", std::process::id())),
        "{behind}"
    );
    pause(&ground, here(&ground)).await;
    let told = explain(&ground, &running).await;
    assert!(told.because.starts_with("It is in turn 1 of its session. Attempt 1 of "), "{told:?}");
    assert!(told.next.ends_with("this turn goes on to its end, and no other starts."), "{told:?}");
    fake.open();
    ground.done(&running).await;
    assert_eq!(is_held(&ground, &next).await, 1);
    // A cancelled task ends while it waits, and frees its place in the lane.
    ground.cancel(&next).await;
    assert_eq!(ground.task(&next).await.state, State::Cancelled);
    let last = ground.add("Write part three.").await;
    is_held(&ground, &last).await;
    assert_eq!(resume(&ground, here(&ground)).await, 1);
    ground.done(&last).await;
    ground.settled().await;
    worker.stop().await;
}

#[tokio::test]
async fn a_pause_in_all_campaigns_holds_beside_one_in_a_campaign_and_closing_ends_that_one() {
    let ground = ground(&[]).await;
    let worker = ground.work().await;
    pause(&ground, EVERYWHERE).await;
    pause(&ground, here(&ground)).await;
    let task = ground.add("Write part one.").await;
    is_held(&ground, &task).await;
    assert_eq!(resume(&ground, here(&ground)).await, 1, "it was held for the nearer one");
    eventually("it is held for the other", async || {
        let mut conn = ground.pool.acquire().await.unwrap();
        let job = admin::find_job(&mut conn, task.job_id).await.unwrap();
        (job.runs.len() == 2 && job.summary.state == "held").then_some(())
    })
    .await;
    assert!(explain(&ground, &task).await.next.contains("agent resume writer --everywhere"));
    pause(&ground, here(&ground)).await;
    let mut tx = ground.pool.begin().await.unwrap();
    let again =
        agent_pauses::pause(&mut tx, here(&ground), "another reason", BY, noon()).await.unwrap();
    assert!(!again.changed && again.pause.reason == "too expensive", "{again:?}");
    campaign_control::close(&mut tx, ground.campaign.id, noon()).await.unwrap();
    tx.commit().await.unwrap();
    let mut conn = ground.pool.acquire().await.unwrap();
    let error = agent_pauses::resume(&mut conn, here(&ground), BY, noon()).await.unwrap_err();
    assert!(error.to_string().contains("is not paused in campaign"), "{error}");
    drop(conn);
    assert_eq!(resume(&ground, EVERYWHERE).await, 1);
    ground.done(&task).await;
    ground.settled().await;
    worker.stop().await;
}

/// A job that is held at the moment its pause ends would wait forever.
#[tokio::test]
async fn no_job_is_left_held_by_a_pause_that_ends_while_workers_hold() {
    let ground = ground(&[]).await;
    let workers = [ground.work().await, ground.work().await];
    let mut tasks = Vec::new();
    for round in 0..25 {
        pause(&ground, here(&ground)).await;
        // An instance of its own where the test waits for the first task: in a shared one it may be behind others.
        let is_awaited = round % 3 == 0;
        let instance = if is_awaited { format!("own{round}") } else { format!("i{}", round % 5) };
        for _ in 0..3 {
            tasks.push(ground.add_for("writer", &instance, "Write.").await);
        }
        if is_awaited {
            is_held(&ground, tasks.iter().rev().nth(2).unwrap()).await;
        }
        resume(&ground, here(&ground)).await;
    }
    for task in &tasks {
        ground.done(task).await;
    }
    ground.settled().await;
    let held = "select count(*) from dalsegno.runs where outcome = 'given_back'";
    println!("{} jobs were held meanwhile", ground.count(held).await);
    assert!(ground.count(held).await >= 9);
    let [one, other] = workers;
    one.stop().await;
    other.stop().await;
}
