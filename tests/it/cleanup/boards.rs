//! The archiving of old posts: which ones, and which stay.

use chrono::{DateTime, TimeDelta, Utc};
use dalsegno::domain::{
    cleanups::{self, BoardRules, Preview, Walk},
    posts::{self, Archive, Audience, Config, ListDirection, New, Sender, Viewer},
    transaction::{begin, commit},
};
use uuid::Uuid;

use super::{config, job, memory_config};
use crate::{
    app::{eventually, noon},
    conversations::world::{TurnSettings, World},
};

const DAY: TimeDelta = TimeDelta::days(1);

async fn post(world: &World, names: &[&str], at: DateTime<Utc>) -> posts::Post {
    let audience = Audience::of(names.iter().copied(), |_| true).unwrap();
    let sender = Sender::Operator { author: "cli:ann@host" };
    let campaign_id = world.campaign.id;
    let new = New { campaign_id, sender, audience: &audience, reply_to: None, text: "Hello." };
    posts::add(&world.pool, &new, at).await.unwrap()
}

fn walk(world: &World, (keep_days, keep_posts): (u32, u32), now: DateTime<Utc>) -> Walk {
    let rules = BoardRules::new(Config { keep_days, keep_posts }, &world.catalogue);
    Walk::new(now, &config(), &memory_config()).archiving(rules)
}

async fn preview(world: &World, walk: &Walk) -> Preview {
    let mut conn = world.pool.acquire().await.unwrap();
    cleanups::preview(&mut conn, walk.clone()).await.unwrap()
}

/// Archives as the job does. Returns the number of archived posts, which is that of the preview.
async fn archive(world: &World, walk: &Walk) -> i64 {
    let expected = preview(world, walk).await.posts_archived;
    let mut n_archived = 0;
    let mut tx = begin(&world.pool).await.unwrap();
    for board in cleanups::due_boards(&mut tx, walk, Uuid::nil()).await.unwrap() {
        loop {
            let n_posts = cleanups::archive_board(&mut tx, walk, &board).await.unwrap();
            n_archived += n_posts;
            if n_posts == 0 {
                break;
            }
        }
    }
    commit(tx).await.unwrap();
    assert_eq!(n_archived, expected, "the preview differs from the archiving");
    n_archived
}

async fn archive_of(world: &World, viewer: Viewer<'_>) -> Archive {
    let mut conn = world.pool.acquire().await.unwrap();
    posts::archive_of(&mut conn, world.campaign.id, viewer).await.unwrap()
}

async fn set_cursor(world: &World, seq: i64) {
    let sql = "update dalsegno.sessions set board_cursor = $1";
    sqlx::query(sql).bind(seq).execute(&world.pool).await.unwrap();
}

#[tokio::test]
async fn old_and_superfluous_posts_are_archived_and_a_preview_equals_it() {
    let world = World::new().await;
    for _ in 0..4 {
        post(&world, &["all"], noon()).await;
    }
    post(&world, &["copywriter"], noon()).await;
    for _ in 0..3 {
        post(&world, &["all"], noon() + DAY * 10).await;
    }
    let now = noon() + DAY * 12;
    assert_eq!(archive(&world, &walk(&world, (0, 0), now)).await, 0, "no limit");
    assert_eq!(archive(&world, &walk(&world, (12, 8), now)).await, 0, "within both limits");
    assert_eq!(archive(&world, &walk(&world, (7, 0), now)).await, 5);
    assert_eq!(archive(&world, &walk(&world, (7, 0), now)).await, 0, "once");
    assert_eq!(archive(&world, &walk(&world, (7, 1), now)).await, 2);

    let all = archive_of(&world, Viewer::All).await;
    assert_eq!((all.archived_seq, all.posts), (7, 7));
    assert_eq!(all.senders.len(), 1);
    let sender = &all.senders[0];
    assert_eq!((sender.sender.as_str(), sender.posts), ("operator", 7));
    assert_eq!((sender.first_at, sender.last_at), (noon(), noon() + DAY * 10));
    // Each reader has the numbers of the posts that it sees.
    assert_eq!(archive_of(&world, Viewer::Reader("copywriter")).await.posts, 7);
    assert_eq!(archive_of(&world, Viewer::Reader("reviewer")).await.posts, 6);
    // Everything can still be read.
    let along = ListDirection::After(0);
    let listed = posts::list_page(&world.pool, world.campaign.id, Viewer::All, along, 100).await;
    assert_eq!(listed.unwrap().len(), 8);
}

#[tokio::test]
async fn a_post_that_an_agent_has_not_seen_or_that_an_open_task_answers_stays() {
    let world = World::new().await;
    post(&world, &["reviewer"], noon()).await;
    post(&world, &["copywriter"], noon()).await;
    let asked = post(&world, &["planner"], noon()).await;
    post(&world, &["all"], noon()).await;
    let now = TurnSettings::default();
    let session = world.turn("Write.", now).await.session;
    let rules = walk(&world, (0, 1), noon());
    // The writer has seen nothing, and may not see the first post.
    let told = preview(&world, &rules).await;
    assert_eq!((told.posts_archived, told.posts_held), (1, 2));
    assert_eq!(archive(&world, &rules).await, 1);
    // A planner's task answers the third post.
    set_cursor(&world, 4).await;
    let task = world.add_later("Plan.").await;
    let of_post = "update dalsegno.tasks set post_id = $2 where id = $1";
    sqlx::query(of_post).bind(task.id).bind(asked.id).execute(&world.pool).await.unwrap();
    assert_eq!(archive(&world, &rules).await, 1);
    let told = preview(&world, &rules).await;
    assert_eq!((told.posts_archived, told.posts_held), (0, 1));
    let end = "update dalsegno.tasks set state = 'cancelled', ended_at = now(), cancelled_because = 'x' where id = $1";
    sqlx::query(end).bind(task.id).execute(&world.pool).await.unwrap();
    assert_eq!(archive(&world, &rules).await, 1);
    // The last post is new to the session again. An expired session holds nothing.
    post(&world, &["all"], noon()).await;
    set_cursor(&world, 3).await;
    assert_eq!(archive(&world, &rules).await, 0);
    let expired = world.session(session.id).await.expires_at + DAY;
    assert_eq!(archive(&world, &walk(&world, (0, 1), expired)).await, 1);
}

#[tokio::test]
async fn the_cleanup_archives_posts_and_records_their_number() {
    let world = World::new().await;
    for _ in 0..5 {
        post(&world, &["all"], noon()).await;
    }
    cleanups::request(&world.pool, "cli:ann@vm").await.unwrap();
    let worker = job::Worker::with(&world.pool, 0, &[("board.keep_posts", "2")]);
    let run = eventually("the cleanup has ended", async || {
        let runs = cleanups::list(&world.pool, None, 50).await.unwrap();
        runs.into_iter().next().filter(|run| run.ended_at.is_some())
    })
    .await;
    worker.stop().await;
    assert_eq!((run.outcome.as_deref(), run.posts_archived), (Some("done"), 3));
    assert_eq!(archive_of(&world, Viewer::All).await.archived_seq, 3);
}
