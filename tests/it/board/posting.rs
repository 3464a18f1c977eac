//! Posting, and reading posts.

use dalsegno::domain::posts::{
    self, Error, ListDirection, New, Sender, SourceTurn, TEXT_MAX_BYTES, Viewer, list_page,
};
use serde_json::{Value, json};
use sqlx::PgPool;
use uuid::Uuid;

use super::{at, by_operator, post, texts, to};
use crate::conversations::world::World;

fn said() -> SourceTurn {
    SourceTurn {
        task_id: Uuid::new_v4(),
        session_id: Uuid::new_v4(),
        turn: 3,
        message_id: Some(Uuid::new_v4()),
    }
}

async fn events(pool: &PgPool) -> Vec<Value> {
    let sql = "select data from dalsegno.feed where kind = 'post.added' order by id";
    sqlx::query_scalar(sql).fetch_all(pool).await.unwrap()
}

#[tokio::test]
async fn a_post_round_trips_and_its_feed_event_omits_the_text() {
    let world = World::new().await;
    let id = world.campaign.id;
    let (ann, all) = (to(&["ann", "operator"]), to(&["all"]));
    let question = post(&world, &by_operator(id, &ann, "Which tides?\u{1b}[2J\u{1}")).await;
    let sender = Sender::Agent { agent: "ann", instance: "2", said: said() };
    let answer = New { sender, reply_to: Some(question.id), ..by_operator(id, &all, "Both.") };
    let answer = post(&world, &answer).await;
    assert_eq!((question.seq, answer.seq), (1, 2));
    assert_eq!((answer.sender.as_str(), answer.reply_to), ("ann/2", Some(question.id)));
    let read = list_page(&world.pool, id, Viewer::All, ListDirection::After(0), 10).await.unwrap();
    assert_eq!(read, [question, answer]);
    let told = events(&world.pool).await;
    assert_eq!(told[0]["audience"], json!(["ann", "operator"]));
    assert_eq!((&told[1]["seq"], &told[1]["sender"]), (&json!(2), &json!("ann/2")));
    assert!(!told.iter().any(|data| data.to_string().contains("tides")), "{told:?}");
}

#[tokio::test]
async fn an_invalid_post_is_refused_with_advice_and_takes_no_number() {
    let world = World::new().await;
    let (id, all) = (world.campaign.id, to(&["all"]));
    let add = async |new: &New<'_>| posts::add(&world.pool, new, at()).await.unwrap_err();
    let new = by_operator(id, &all, "Hello.");
    let unknown = Uuid::new_v4();
    let error = add(&New { reply_to: Some(unknown), ..new }).await;
    assert!(matches!(error, Error::UnknownPost(post) if post == unknown), "{error:?}");
    let error = add(&New { campaign_id: unknown, ..new }).await;
    assert!(matches!(error, Error::UnknownCampaign(_)), "{error:?}");
    for text in ["", " \n", "a\0b", &"x".repeat(TEXT_MAX_BYTES + 1)] {
        assert!(matches!(add(&New { text, ..new }).await, Error::Text(_)), "{}", text.len());
    }
    // The answered post belongs to another campaign.
    let other = World::over(world.pool.clone(), Default::default()).await;
    let elsewhere = post(&other, &by_operator(other.campaign.id, &all, "Elsewhere.")).await;
    assert!(matches!(
        add(&New { reply_to: Some(elsewhere.id), ..new }).await,
        Error::UnknownPost(_)
    ));
    let longest = "x".repeat(TEXT_MAX_BYTES);
    assert_eq!(post(&world, &New { text: &longest, ..new }).await.seq, 1);
}

#[tokio::test]
async fn a_closed_campaign_refuses_posts_of_people_and_takes_those_of_running_turns() {
    let world = World::new().await;
    let (id, all) = (world.campaign.id, to(&["all"]));
    sqlx::query("update dalsegno.campaigns set status = 'closed', closed_at = now()")
        .execute(&world.pool)
        .await
        .unwrap();
    let new = by_operator(id, &all, "Hello?");
    let error = posts::add(&world.pool, &new, at()).await.unwrap_err();
    assert!(matches!(error, Error::Closed(_)), "{error:?}");
    let sender = Sender::Agent { agent: "ann", instance: "main", said: said() };
    assert_eq!(post(&world, &New { sender, ..new }).await.seq, 1);
}

#[tokio::test]
async fn post_numbers_follow_the_order_of_commits() {
    let world = World::new().await;
    let (id, all) = (world.campaign.id, to(&["all"]));
    let (pool, new) = (&world.pool, by_operator(id, &all, "First."));
    let mut slow = pool.begin().await.unwrap();
    assert_eq!(posts::add(&mut *slow, &new, at()).await.unwrap().seq, 1);
    // Waits for the first transaction, and is not visible before its end.
    let (campaign, later) = (id, pool.clone());
    let second = tokio::spawn(async move {
        let all = to(&["all"]);
        posts::add(&later, &by_operator(campaign, &all, "Second."), at()).await.unwrap().seq
    });
    let waits =
        "select exists (select from pg_locks where not granted and pid <> pg_backend_pid())";
    crate::app::eventually("the second waits", async || {
        let waits: bool = sqlx::query_scalar(waits).fetch_one(pool).await.unwrap();
        waits.then_some(())
    })
    .await;
    let n_posts = "select count(*) from dalsegno.posts where campaign_id = $1";
    let n_posts: i64 = sqlx::query_scalar(n_posts).bind(id).fetch_one(pool).await.unwrap();
    assert_eq!(n_posts, 0);
    slow.rollback().await.unwrap();
    // A rollback leaves no gap.
    assert_eq!(second.await.unwrap(), 1);
}

#[tokio::test]
async fn the_board_is_paged_both_ways_for_its_viewer() {
    let world = World::new().await;
    let id = world.campaign.id;
    let (ann, bea) = (to(&["ann"]), to(&["bea"]));
    for number in 1..=7 {
        let audience = if number % 3 == 0 { &bea } else { &ann };
        post(&world, &by_operator(id, audience, &number.to_string())).await;
    }
    let page = async |way, limit| {
        let posts = list_page(&world.pool, id, Viewer::Reader("ann"), way, limit).await.unwrap();
        texts(&posts).join(" ")
    };
    assert_eq!(page(ListDirection::After(0), 3).await, "1 2 4");
    assert_eq!(page(ListDirection::After(4), 3).await, "5 7");
    assert_eq!(page(ListDirection::Before(i64::MAX), 3).await, "7 5 4");
    assert_eq!(page(ListDirection::Before(4), 3).await, "2 1");
}

#[tokio::test]
async fn nothing_changes_a_post() {
    let world = World::new().await;
    let all = to(&["all"]);
    post(&world, &by_operator(world.campaign.id, &all, "Said.")).await;
    for sql in ["update dalsegno.posts set text = 'never'", "delete from dalsegno.posts"] {
        let error = sqlx::query(sql).execute(&world.pool).await.unwrap_err();
        assert_eq!(error.as_database_error().unwrap().code().unwrap(), "DS405", "{sql}");
    }
}
