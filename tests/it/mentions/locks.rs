//! Tasks that end together, while a turn ends.

use dalsegno::domain::{
    erasures,
    posts::{New, Sender},
    tasks::Links,
};
use tokio::task::JoinHandle;

use super::*;
use crate::app::{eventually, until_blocked};

#[derive(Clone, Copy)]
enum EndMethod {
    Cancel,
    Erase,
}

/// Ends the mentioned task and its dependent tasks: in one transaction, or like an erasure.
fn end_both(fixture: &Fixture, method: EndMethod, mentioned: Uuid) -> JoinHandle<()> {
    let (pool, campaign_id, now) = (fixture.pool.clone(), fixture.campaign.id, fixture.clock.now());
    tokio::spawn(async move {
        let mut tx = pool.begin().await.unwrap();
        let left = match method {
            EndMethod::Cancel => {
                tasks::cancel(&mut tx, mentioned, "not wanted", now).await.unwrap();
                Vec::new()
            }
            EndMethod::Erase => {
                let open = erasures::cancel_open(&mut tx, campaign_id, None, now).await.unwrap();
                open.unwrap().left
            }
        };
        tx.commit().await.unwrap();
        for id in left {
            let mut tx = pool.begin().await.unwrap();
            erasures::cancel_one(&mut tx, campaign_id, id, now).await.unwrap();
            tx.commit().await.unwrap();
        }
    })
}

/// Runs this beside the end of a turn, which locks its task, and then the board for its post.
async fn run_beside_ending_turn(method: EndMethod) -> Vec<Post> {
    let fixture = fixture(&["ann"], &[]).await;
    let posted = post(&fixture, "@ann Write.").await;
    let mentioned = posted.tasks[0].task_id;
    let links = Links { parent_id: Some(mentioned), ..Links::default() };
    let below = fixture.add_linked("writer", "main", "A part.", None, Default::default(), links);
    let below = below.await.unwrap();
    let mut turn = fixture.pool.begin().await.unwrap();
    sqlx::query("select from dalsegno.tasks where id = $1 for update")
        .bind(below.id)
        .execute(&mut *turn)
        .await
        .unwrap();
    let ends = end_both(&fixture, method, mentioned);
    until_blocked(&fixture.pool).await;
    let audience = posts::Audience::all();
    let new = New {
        campaign_id: fixture.campaign.id,
        sender: Sender::System { task_id: None },
        audience: &audience,
        reply_to: None,
        text: "Meanwhile.",
    };
    posts::add(&mut *turn, &new, fixture.clock.now()).await.unwrap();
    turn.commit().await.unwrap();
    ends.await.unwrap();
    let open = "select count(*) from dalsegno.tasks where ended_at is null";
    assert_eq!(fixture.count(open).await, 0);
    board(&fixture).await
}

#[tokio::test]
async fn cancelling_a_task_with_its_dependents_causes_no_deadlock_with_turns() {
    let board = run_beside_ending_turn(EndMethod::Cancel).await;
    assert_eq!(board.len(), 3, "{:#?}", lines(&board));
    assert_eq!(board[2].text, "`ann` did not answer: its task was cancelled.");
}

#[tokio::test]
async fn an_erasure_ends_many_tasks_at_once_and_posts_no_answers() {
    let board = run_beside_ending_turn(EndMethod::Erase).await;
    assert_eq!(lines(&board)[1..], ["system > all: Meanwhile."]);
}

/// A lost worker has left two of its turns; the second one ends by itself during the interruption.
#[tokio::test]
async fn stopping_turns_of_an_agent_causes_no_deadlock_with_an_ending_one() {
    let fixture = fixture(&["ann"], &[]).await;
    let mut victim = fixture.process(&[]);
    let posted = post(&fixture, "@ann @ann_2 Write. [[sim: slow 60000]]").await;
    let running = "select count(*) from dalsegno.turns where state = 'running'";
    eventually("both jobs run", async || (fixture.count(running).await == 2).then_some(())).await;
    let group = fixture.campaign.id.to_string();
    sqlx::query("select dalsegno.pause('group', $1)")
        .bind(&group)
        .execute(&fixture.pool)
        .await
        .unwrap();
    victim.signal(rustix::process::Signal::KILL);
    victim.ended().await;
    let rescuer = fixture.process(&[]);
    let back = "select count(*) from dalsegno.jobs where wait_reason = 'crash'";
    eventually("both jobs are given back", async || (fixture.count(back).await == 2).then_some(()))
        .await;
    drop(rescuer);
    let last: Uuid = sqlx::query_scalar("select task_id from dalsegno.turns where state = 'running' order by session_id desc limit 1")
        .fetch_one(&fixture.pool)
        .await
        .unwrap();
    let mut turn = fixture.pool.begin().await.unwrap();
    let lock = "select from dalsegno.tasks where id = $1 for update";
    sqlx::query(lock).bind(last).execute(&mut *turn).await.unwrap();
    let (pool, campaign_id, now) = (fixture.pool.clone(), fixture.campaign.id, fixture.clock.now());
    let stops = tokio::spawn(async move {
        let mut tx = pool.begin().await.unwrap();
        let whom = (campaign_id, "ann");
        let stopped =
            tasks::interrupt_agent(&mut tx, whom, tasks::InterruptMode::Soft, "not wanted", now)
                .await;
        let stopped = stopped.unwrap().len();
        tx.commit().await.unwrap();
        stopped
    });
    until_blocked(&fixture.pool).await;
    let audience = posts::Audience::all();
    let new = New {
        campaign_id: fixture.campaign.id,
        sender: Sender::System { task_id: None },
        audience: &audience,
        reply_to: None,
        text: "Meanwhile.",
    };
    posts::add(&mut *turn, &new, fixture.clock.now()).await.unwrap();
    turn.commit().await.unwrap();
    assert_eq!(stops.await.unwrap(), 2);
    let board = board(&fixture).await;
    assert_eq!(answers_of(&board, posted.post.id).len(), 2, "{board:?}");
}
