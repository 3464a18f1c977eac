//! Tasks that end together, beside a turn that ends.

use dalsegno::domain::{
    erasures,
    posts::{New, Sender},
    tasks::Links,
};
use tokio::task::JoinHandle;

use super::*;

#[derive(Clone, Copy)]
enum Way {
    Cancel,
    Erase,
}

/// Ends them in one transaction: what was mentioned, and what hangs on it.
fn end_both(ground: &Ground, way: Way, mentioned: Uuid) -> JoinHandle<()> {
    let (pool, campaign_id, now) = (ground.pool.clone(), ground.campaign.id, ground.clock.now());
    tokio::spawn(async move {
        let mut tx = pool.begin().await.unwrap();
        match way {
            Way::Cancel => {
                tasks::cancel(&mut tx, mentioned, "not wanted", now).await.unwrap();
            }
            Way::Erase => {
                erasures::cancel_open(&mut tx, campaign_id, None, now).await.unwrap();
            }
        }
        tx.commit().await.unwrap();
    })
}

/// A turn that ends holds its task, and then the board for its post.
async fn beside_a_turn_that_ends(way: Way) -> Vec<Post> {
    let ground = ground(&["ann"], &[]).await;
    let posted = post(&ground, "@ann Write.").await;
    let mentioned = posted.tasks[0].task_id;
    let links = Links { parent_id: Some(mentioned), ..Links::default() };
    let below = ground.add_linked("writer", "main", "A part.", None, Default::default(), links);
    let below = below.await.unwrap();
    let mut turn = ground.pool.begin().await.unwrap();
    sqlx::query("select from dalsegno.tasks where id = $1 for update")
        .bind(below.id)
        .execute(&mut *turn)
        .await
        .unwrap();
    let ends = end_both(&ground, way, mentioned);
    eventually("it waits for the task that is held", async || {
        let waits = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        (ground.count(waits).await == 1).then_some(())
    })
    .await;
    let audience = posts::Audience::all();
    let new = New {
        campaign_id: ground.campaign.id,
        sender: Sender::System { task_id: None },
        audience: &audience,
        reply_to: None,
        text: "Meanwhile.",
    };
    posts::add(&mut *turn, &new, ground.clock.now()).await.unwrap();
    turn.commit().await.unwrap();
    ends.await.unwrap();
    let open = "select count(*) from dalsegno.tasks where ended_at is null";
    assert_eq!(ground.count(open).await, 0);
    board(&ground).await
}

#[tokio::test]
async fn a_task_is_cancelled_with_what_hangs_on_it_and_no_turn_waits_in_a_circle() {
    let board = beside_a_turn_that_ends(Way::Cancel).await;
    assert_eq!(board.len(), 3, "{:#?}", lines(&board));
    assert_eq!(board[2].text, "No answer comes from `ann`: its task was cancelled.");
}

#[tokio::test]
async fn an_erasure_ends_many_tasks_at_once_and_answers_nobody() {
    let board = beside_a_turn_that_ends(Way::Erase).await;
    assert_eq!(lines(&board)[1..], ["system > all: Meanwhile."]);
}
