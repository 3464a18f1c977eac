//! Mentions: who is called by a post, and what comes back to whoever called.
//!
//! ```text
//! post "@ann @bea …" ──▶ a task for each, in parallel          one transaction: tasks, jobs, post
//! end of such a task ──▶ a post that answers, for the caller   the transaction of the end: the answer, or why there is none
//! answer "@cid …"    ──▶ a task, if the agent may call others  the same transaction
//! ```
//!
//! Invariants:
//! - Each end of a task that came from a post is exactly one post that answers it: the agent's own words, or the service's that name
//!   the agent and the reason. It is written with the end of the task, so no crash doubles it or loses it, and one that fails
//!   leaves the others alone. One that is tried again ends twice. An erasure ends them without a word, because the board goes.
//! - Who asks is told from the row of the post: an agent's request says so in the words of the service, beside its text.
//! - Nothing is dropped without a word: names of nobody, and calls that a bound has cut, are told to whoever posted.
//! - Agents cannot call each other for ever ([`Config`]): an answer calls nobody if too many answers that called are in its past,
//!   if it has been said before, if the post of a person that it goes back to has led to too many tasks, and never more than so
//!   many. People are bound by the last rule alone. The answer of a task that was asked to stop calls nobody.
//!
//! Order of locks: lanes, which tasks join, and tasks before the board. Whoever cancels several tasks posts their ends when all of
//! them have ended.

mod addressees;
mod config;
mod error;
mod hand_on;
mod keyed;
mod parse;
mod post;

use uuid::Uuid;

use self::addressees::reader_of;
pub use self::{
    addressees::UnknownName,
    config::Config,
    error::Error,
    hand_on::{HandedOn, Spoken, hand_on},
    post::{Asked, Called, Posted, post},
};
use super::{
    agents::Addressed,
    amount::Limit,
    tasks::{self, Links},
};

/// What each of those who are called is asked.
fn asked<'a>(
    campaign_id: Uuid,
    called: &'a [Addressed<'a>],
    prompt: &'a str,
    added_by: &'a str,
) -> Vec<tasks::New<'a>> {
    let new = |one: &'a Addressed<'a>| tasks::New {
        campaign_id,
        agent: one.agent,
        instance: one.instance,
        node: None,
        prompt,
        session_mode: None,
        budget: Limit::default(),
        idempotency_key: None,
        priority: None,
        run_at: None,
        added_by: Some(added_by),
        traceparent: None,
        labels: Default::default(),
        links: Links::default(),
    };
    called.iter().map(new).collect()
}

/// Those whom a bound leaves out, and what is said about it.
fn cut_fan_out<'a>(config: &Config, called: &mut Vec<Addressed<'a>>) -> Option<String> {
    let most = usize::from(config.max_fan_out);
    if called.len() <= most {
        return None;
    }
    let left_out: Vec<String> = called.split_off(most).iter().map(reader_of).collect();
    Some(format!(
        "A post calls at most {most} agents (mentions.max_fan_out). These were not asked: {}.",
        left_out.join(", ")
    ))
}
