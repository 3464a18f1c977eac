//! The board of a campaign: visibility of posts, and the posts that a model is shown.

mod archive;
mod posting;
mod posts_in_turns;
mod random;
pub mod setup;
mod task_author;
mod trust;
mod visibility;

use chrono::{DateTime, Utc};
use dalsegno::domain::posts::{self, Audience, New, Post, Sender};
use uuid::Uuid;

use crate::{app::noon, conversations::world::World};

/// Builds an audience in which each name counts as known.
pub fn to(names: &[&str]) -> Audience {
    Audience::of(names.iter().copied(), |_| true).unwrap()
}

pub fn by_operator<'a>(campaign_id: Uuid, audience: &'a Audience, text: &'a str) -> New<'a> {
    New {
        campaign_id,
        sender: Sender::Operator { author: "cli:ann@host" },
        audience,
        reply_to: None,
        text,
    }
}

pub async fn post(world: &World, new: &New<'_>) -> Post {
    posts::add(&world.pool, new, at()).await.unwrap()
}

pub fn at() -> DateTime<Utc> {
    noon()
}

pub fn texts(posts: &[Post]) -> Vec<&str> {
    posts.iter().map(|post| post.text.as_str()).collect()
}
