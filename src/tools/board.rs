//! Tools for the campaign's board.

use futures_util::FutureExt as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::{
    Caller, Refusal,
    arguments::{bad_cursor, schema, short},
    change::{BeginResult, Change},
    pages::ToolAnswer,
    tool::{Access, Call, DEFAULT_TIMEOUT, Tool},
};
use crate::domain::{
    mentions::{self, PostResult},
    posts::{self, Audience, Post, Sender, Viewer},
    transaction,
};

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "board_history",
        description: "Reads the posts of the campaign's board that you may see, the newest first.",
        who: Access::Everybody,
        in_pages: true,
        timeout: DEFAULT_TIMEOUT,
        schema: |_| schema::<History>(),
        run: |call| history(call).boxed(),
    },
    Tool {
        name: "board_post",
        description: "Posts on the campaign's board. The operator and the lead see every post; name others in `to` so that they see it with their \
                      next turn. A post creates no task: use `dispatch` to hand out work.",
        who: Access::Everybody,
        in_pages: false,
        timeout: DEFAULT_TIMEOUT,
        schema: |_| schema::<NewPost>(),
        run: |call| post(call).boxed(),
    },
];

const DEFAULT_POSTS: u32 = 20;
pub(super) const MAX_POSTS: u32 = 100;
/// Maximum bytes of post texts read for one answer. A single text may have a megabyte, and a page shows 48,000 characters.
const MOST_BYTES: i64 = 256 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct History {
    /// Maximum number of posts; 20 unless you say otherwise.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewPost {
    /// Text of the post.
    text: String,
    /// Recipients besides the operator and the lead: names of agents, or `all`.
    to: Option<Vec<String>>,
    /// Id of the post that this one answers.
    reply_to: Option<String>,
}

async fn history(call: Call<'_>) -> Result<ToolAnswer, Refusal> {
    let asked: History = call.read()?;
    let limit = i64::from(asked.limit.unwrap_or(DEFAULT_POSTS).clamp(1, MAX_POSTS));
    let before = match &call.place {
        Some(place) => place.parse().map_err(|_| bad_cursor())?,
        None => i64::MAX,
    };
    let campaign_id = call.caller.campaign_id();
    let name = call.caller.label();
    let viewer = match call.caller {
        Caller::Turn(turn) => turn.viewer(&name),
        Caller::Operator(_) => Viewer::All,
    };
    let room = (limit + 1, MOST_BYTES);
    let mut tx = call.begin().await?;
    let found = posts::list_before(&mut *tx, campaign_id, viewer, before, room).await?;
    transaction::commit(tx).await?;
    let shown = &found[..found.len().min(usize::try_from(limit).unwrap_or(usize::MAX))];
    let n_bytes: usize = found.iter().map(|post| post.text.len()).sum();
    let is_full = i64::try_from(n_bytes).unwrap_or(i64::MAX) >= MOST_BYTES;
    let goes_on = found.len() > shown.len() || is_full;
    let next = shown.last().filter(|_| goes_on).map(|last| last.seq.to_string());
    let began = shown.first().map(|first| (first.seq + 1).to_string());
    let list = json!({ "posts": shown.iter().map(line).collect::<Vec<_>>() });
    Ok(ToolAnswer { began, ..ToolAnswer::list(&list, next)? })
}

fn line(post: &Post) -> serde_json::Value {
    json!({
        "id": post.id, "seq": post.seq, "sender": post.sender, "trust": post.trust, "to": post.audience, "reply_to": post.reply_to,
        "posted_at": post.posted_at, "text": post.text,
    })
}

async fn post(call: Call<'_>) -> Result<ToolAnswer, Refusal> {
    let asked: NewPost = call.read()?;
    let settings = &call.tools.settings;
    let catalogue = settings.agents.current();
    let audience = match &asked.to {
        Some(names) => Some(Audience::from_names(&catalogue, names).map_err(|error| {
            unknown(&error, catalogue.agents().map(|agent| agent.name.as_str()))
        })?),
        None => None,
    };
    let reply_to = asked.reply_to.as_deref().map(post_id).transpose()?;
    let mut change = match Change::begin(&call).await? {
        BeginResult::AlreadyMade(said) => return Ok(said),
        BeginResult::Started(change) => change,
    };
    let (campaign_id, now) = (call.caller.campaign_id(), call.now());
    let (post, tasks) = match call.caller {
        Caller::Operator(operator) => {
            let new = mentions::NewPost {
                campaign_id,
                text: &asked.text,
                to: asked.to.as_deref(),
                reply_to,
                idempotency_key: None,
                added_by: &operator.actor.label(),
            };
            let limits = (&settings.mentions, &settings.tasks);
            let posted = mentions::post(change.conn(), &catalogue, limits, &new, now).await?;
            let PostResult { post, tasks, .. } = posted;
            (post, tasks.into_iter().map(|called| called.task_id).collect::<Vec<_>>())
        }
        Caller::Turn(turn) => {
            let said = posts::SourceTurn {
                task_id: turn.task_id,
                session_id: turn.session_id,
                turn: turn.turn,
                message_id: None,
            };
            let (agent, instance) = (&turn.agent.name, &turn.instance);
            let new = posts::New {
                campaign_id,
                sender: Sender::Agent { agent, instance, said },
                audience: &audience.unwrap_or_else(Audience::operator),
                reply_to,
                text: &asked.text,
            };
            (posts::add(change.conn(), &new, now).await?, Vec::new())
        }
    };
    let told =
        json!({ "post_id": post.id, "seq": post.seq, "to": post.audience, "asked_tasks": tasks });
    change.commit(json!({ "post_id": post.id, "seq": post.seq }), &told).await
}

fn post_id(text: &str) -> Result<Uuid, Refusal> {
    text.parse().map_err(|_| {
        let shown = short(text);
        Refusal::of_text(format!(
            "`{shown}` is not the id of a post: take one that board_history shows"
        ))
    })
}

/// Builds the refusal of unknown names, with the names that exist.
fn unknown<'a>(error: &posts::Error, names: impl Iterator<Item = &'a str>) -> Refusal {
    let posts::Error::UnknownNames(unknown) = error else {
        return Refusal::of_text(error.to_string());
    };
    let unknown: Vec<String> = unknown.iter().map(|name| format!("`{}`", short(name))).collect();
    let known: Vec<&str> = names.collect();
    Refusal::of_text(format!(
        "nothing was posted: unknown name {}. Address the post to all, operator, {}",
        unknown.join(", "),
        known.join(", ")
    ))
}
