//! Mentions on real workers with the simulation: called agents, answers and limits.

mod crashes;
mod from_agents;
mod from_people;
mod limits;
mod locks;
mod scale;

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

use crate::{app::eventually, turns::fixture::Fixture};

pub fn agent(name: &str, keys: &str) -> String {
    format!("---\nname: {name}\ndescription: Is {name}\n{keys}---\nYou are {name}.\n")
}

/// Sets up agents of these names, and the lead `planner`. Each ground has the writer, too.
pub async fn fixture(names: &[&str], settings: &[(&str, &str)]) -> Fixture {
    let fixture = Fixture::new(settings).await;
    fixture.write_agent("planner", &agent("planner", "lead: true\n"));
    for name in names {
        fixture.write_agent(name, &agent(name, ""));
    }
    fixture
}

pub fn catalogue(fixture: &Fixture) -> (Config, Arc<Catalogue>) {
    let config = fixture.config();
    let catalogue = Library::open(&config.agents).unwrap().current();
    (config, catalogue)
}

pub async fn try_post(fixture: &Fixture, text: &str) -> Result<PostResult, mentions::Error> {
    post_to(fixture, text, None).await
}

pub async fn post_to(
    fixture: &Fixture,
    text: &str,
    to: Option<&[String]>,
) -> Result<PostResult, mentions::Error> {
    let (config, catalogue) = catalogue(fixture);
    let asked = NewPost {
        campaign_id: fixture.campaign.id,
        text,
        to,
        reply_to: None,
        idempotency_key: None,
        added_by: "cli:test",
    };
    let mut tx = fixture.pool.begin().await.unwrap();
    let limits = (&config.mentions, &config.tasks);
    let posted = mentions::post(&mut tx, &catalogue, limits, &asked, fixture.clock.now()).await?;
    tx.commit().await.unwrap();
    Ok(posted)
}

pub async fn post(fixture: &Fixture, text: &str) -> PostResult {
    try_post(fixture, text).await.unwrap()
}

pub fn called(posted: &PostResult) -> Vec<String> {
    posted.tasks.iter().map(|one| posts::reader(&one.agent, &one.instance).into_owned()).collect()
}

pub async fn board(fixture: &Fixture) -> Vec<Post> {
    let all = posts::list_page(
        &fixture.pool,
        fixture.campaign.id,
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

pub fn answers_of(posts: &[Post], id: Uuid) -> Vec<&Post> {
    posts.iter().filter(|post| post.reply_to == Some(id)).collect()
}

/// Waits until all tasks have ended, including those added meanwhile.
pub async fn wait_for_all_tasks(fixture: &Fixture) {
    eventually("all tasks have ended", async || {
        let open = "select count(*) from dalsegno.tasks where ended_at is null";
        (fixture.count(open).await == 0).then_some(())
    })
    .await;
    fixture.settled().await;
}

pub async fn task(fixture: &Fixture, posted: &PostResult, place: usize) -> Task {
    tasks::get(&fixture.pool, posted.tasks[place].task_id).await.unwrap()
}
