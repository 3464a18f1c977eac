//! Mentions on real workers with the simulation: called agents, answers and limits.

mod bounds;
mod called;
mod crashes;
mod handed_on;
mod locks;
mod many;

use dalsegno::{
    clock::Clock as _,
    config::Config,
    domain::{
        agents::{Catalogue, Library},
        mentions::{self, NewPost, PostResult},
        posts::{self, ListDirection, Post, Viewer},
        tasks::{self, Task},
    },
};
use std::sync::Arc;
use uuid::Uuid;

use crate::{app::eventually, turns::ground::Ground};

pub fn agent(name: &str, keys: &str) -> String {
    format!("---\nname: {name}\ndescription: Is {name}\n{keys}---\nYou are {name}.\n")
}

/// Sets up agents of these names, and the lead `planner`. Each ground has the writer, too.
pub async fn ground(names: &[&str], settings: &[(&str, &str)]) -> Ground {
    let ground = Ground::new(settings).await;
    ground.write_agent("planner", &agent("planner", "lead: true\n"));
    for name in names {
        ground.write_agent(name, &agent(name, ""));
    }
    ground
}

pub fn catalogue(ground: &Ground) -> (Config, Arc<Catalogue>) {
    let config = ground.config();
    let catalogue = Library::open(&config.agents).unwrap().current();
    (config, catalogue)
}

pub async fn try_post(ground: &Ground, text: &str) -> Result<PostResult, mentions::Error> {
    post_to(ground, text, None).await
}

pub async fn post_to(
    ground: &Ground,
    text: &str,
    to: Option<&[String]>,
) -> Result<PostResult, mentions::Error> {
    let (config, catalogue) = catalogue(ground);
    let asked = NewPost {
        campaign_id: ground.campaign.id,
        text,
        to,
        reply_to: None,
        idempotency_key: None,
        added_by: "cli:test",
    };
    let mut tx = ground.pool.begin().await.unwrap();
    let limits = (&config.mentions, &config.tasks);
    let posted = mentions::post(&mut tx, &catalogue, limits, &asked, ground.clock.now()).await?;
    tx.commit().await.unwrap();
    Ok(posted)
}

pub async fn post(ground: &Ground, text: &str) -> PostResult {
    try_post(ground, text).await.unwrap()
}

pub fn called(posted: &PostResult) -> Vec<String> {
    posted.tasks.iter().map(|one| posts::reader(&one.agent, &one.instance).into_owned()).collect()
}

pub async fn board(ground: &Ground) -> Vec<Post> {
    let all = posts::list_page(
        &ground.pool,
        ground.campaign.id,
        Viewer::All,
        ListDirection::After(0),
        10_000,
    );
    all.await.unwrap()
}

/// Formats posts as `sender > audience: text`, without the simulation's note about itself.
pub fn lines(posts: &[Post]) -> Vec<String> {
    let line =
        |post: &Post| format!("{} > {}: {}", post.sender, post.audience.join(" "), post.text);
    posts.iter().map(line).collect()
}

pub fn answers_to(posts: &[Post], id: Uuid) -> Vec<&Post> {
    posts.iter().filter(|post| post.reply_to == Some(id)).collect()
}

/// Waits until all tasks have ended, including those added meanwhile.
pub async fn all_ended(ground: &Ground) {
    eventually("all tasks have ended", async || {
        let open = "select count(*) from dalsegno.tasks where ended_at is null";
        (ground.count(open).await == 0).then_some(())
    })
    .await;
    ground.settled().await;
}

pub async fn task(ground: &Ground, posted: &PostResult, place: usize) -> Task {
    tasks::get(&ground.pool, posted.tasks[place].task_id).await.unwrap()
}
