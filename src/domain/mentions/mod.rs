//! Mentions: posts that call agents, and the answers that come back.
//!
//! ```text
//! post "@ann @bea …" ──▶ a task for each, in parallel          one transaction: tasks, jobs, post
//! end of such a task ──▶ a post that answers, for the caller   the transaction of the end: the answer, or why there is none
//! answer "@cid …"    ──▶ a task, if the agent may call others  the same transaction
//! ```
//!
//! Invariants:
//! - Each end of a task that came from a post is exactly one answering post. It has the agent's own words, or names the agent and the
//!   reason in the service's words.
//! - The answer is written in the transaction that ends the task, so a crash cannot double or lose it. A failed task leaves the others
//!   alone. A retried task ends twice. An erasure posts no answers, because it removes the board.
//! - The asker comes from the row of the post. In an agent's request the service names the asker, beside the text.
//! - Unknown names, and calls that a limit has cut, are reported to the author.
//! - Agents cannot call each other forever ([`Config`]). An answer calls no agents if too many answers that call are behind it, or if its
//!   text was posted too often. It also calls none if its task was asked to stop, or if the person's post behind it has led to too many
//!   tasks. One post calls a limited number of agents; this last limit also applies to people.
//!
//! Order of locks: lanes, tasks of joins, and tasks before the board. A caller that cancels several tasks posts their ends after all of
//! them have ended.

mod addressees;
mod agent_answers;
mod config;
mod error;
mod keyed;
mod limits;
mod parse;
mod post;

use uuid::Uuid;

use self::addressees::reader_of;
pub use self::{
    addressees::UnknownName,
    agent_answers::{AgentAnswer, HandedOn, add_mentioned_tasks},
    config::Config,
    error::Error,
    limits::LIMITS,
    post::{CalledAgent, NewPost, PostResult, post},
};
use super::{agents::AgentInstance, tasks};

/// Builds the task of each called agent.
fn build_tasks<'a>(
    campaign_id: Uuid,
    called: &'a [AgentInstance<'a>],
    prompt: &'a str,
    added_by: &'a str,
) -> Vec<tasks::New<'a>> {
    let new = |one: &'a AgentInstance<'a>| tasks::New {
        instance: one.instance,
        added_by: Some(added_by),
        ..tasks::New::for_agent(campaign_id, one.agent, prompt)
    };
    called.iter().map(new).collect()
}

/// Cuts the called agents down to the limit, and returns a note about the rest.
fn limit_fan_out<'a>(config: &Config, called: &mut Vec<AgentInstance<'a>>) -> Option<String> {
    let most = usize::from(config.max_fan_out);
    if called.len() <= most {
        return None;
    }
    let left_out: Vec<String> = called.split_off(most).iter().map(reader_of).collect();
    Some(format!(
        "A post can mention at most {most} agents (mentions.max_fan_out). No tasks were added for {}.",
        left_out.join(", ")
    ))
}
