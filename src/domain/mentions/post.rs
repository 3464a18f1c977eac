//! Posts of people.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Config, Error, UnknownName,
    addressees::{Addressees, reader_of},
    build_tasks,
    keyed::{self, UnderKey},
    limit_fan_out,
};
use crate::domain::{
    agents::{AgentInstance, Catalogue, MAIN},
    posts::{self, Audience, Post, Sender},
    tasks,
};

/// A post to write.
#[derive(Debug, Clone, Copy)]
pub struct NewPost<'a> {
    pub campaign_id: Uuid,
    pub text: &'a str,
    /// Addressees besides the mentioned ones, as written by the person. Without them and without a mention, the lead is called.
    pub to: Option<&'a [String]>,
    pub reply_to: Option<Uuid>,
    /// Idempotency key: a repeated request under the same key is posted once.
    pub idempotency_key: Option<&'a str>,
    /// The author's name in the audit log.
    pub added_by: &'a str,
}

/// A post and the tasks that it led to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PostResult {
    #[serde(flatten)]
    pub post: Post,
    /// False if an earlier call with the same idempotency key created the post.
    pub created: bool,
    /// The agents that were called, each with its task.
    pub tasks: Vec<CalledAgent>,
    /// Mentioned names that no agent has.
    pub unknown: Vec<UnknownName>,
    /// Calls that were not made, each with the reason.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CalledAgent {
    pub task_id: Uuid,
    pub agent: String,
    pub instance: String,
}

const NO_LEAD: &str = "No task was added: the post mentions no agent, and no agent is the lead. It is on the board; mention an agent with `@name`.";
const ONLY_UNKNOWN: &str =
    "No task was added: the post mentions no known agent. It is on the board.";

/// Adds a post, and a task for each agent that it mentions. After an error the caller must roll back.
pub async fn post(
    conn: &mut PgConnection,
    catalogue: &Catalogue,
    limits: (&Config, &tasks::Config),
    new: &NewPost<'_>,
    now: DateTime<Utc>,
) -> Result<PostResult, Error> {
    let Some(key) = new.idempotency_key else {
        return add(conn, catalogue, limits, new, now).await;
    };
    match keyed::find_by_key(&mut *conn, new, key).await? {
        UnderKey::Existing(posted) => Ok(*posted),
        UnderKey::Unused(key) => {
            let posted = add(&mut *conn, catalogue, limits, new, now).await?;
            keyed::store_result(conn, key, &posted).await?;
            Ok(posted)
        }
    }
}

async fn add(
    conn: &mut PgConnection,
    catalogue: &Catalogue,
    (config, limits): (&Config, &tasks::Config),
    new: &NewPost<'_>,
    now: DateTime<Utc>,
) -> Result<PostResult, Error> {
    posts::check_text(new.text)?;
    let beside = new.to.map(|names| Audience::from_names(catalogue, names)).transpose()?;
    let addressees = Addressees::of(new.text, catalogue);
    let (mut called, mut notes) = choose_called(&addressees, catalogue, new);
    notes.extend(addressees.refusal_notes());
    let cut = limit_fan_out(config, &mut called);
    let news = build_tasks(new.campaign_id, &called, new.text, new.added_by);
    let placed = match news.is_empty() {
        true => Vec::new(),
        false => tasks::add_many(&mut *conn, limits, new.campaign_id, &news, now).await?,
    };
    let added = posts::New {
        campaign_id: new.campaign_id,
        sender: Sender::Operator { author: new.added_by },
        audience: &audience(&addressees, &called, beside.as_ref())?,
        reply_to: new.reply_to,
        text: new.text,
    };
    let post = posts::add(&mut *conn, &added, now).await?;
    let ids: Vec<Uuid> = placed.iter().map(|placed| placed.id).collect();
    let tree = tasks::Tree { campaign_id: new.campaign_id, root_post_id: post.id };
    tasks::set_post(&mut *conn, &ids, post.id, tree).await?;
    if let Some(cut) = cut {
        let said = posts::New {
            sender: Sender::System { task_id: None },
            audience: &Audience::operator(),
            reply_to: Some(post.id),
            text: &cut,
            ..added
        };
        posts::add(conn, &said, now).await?;
        notes.push(cut);
    }
    let tasks = ids.into_iter().zip(called).map(|(task_id, one)| CalledAgent {
        task_id,
        agent: one.agent.name.clone(),
        instance: one.instance.to_owned(),
    });
    let tasks = tasks.collect();
    Ok(PostResult { post, created: true, tasks, unknown: addressees.unknown, notes })
}

fn choose_called<'a>(
    addressees: &Addressees<'a>,
    catalogue: &'a Catalogue,
    new: &NewPost<'_>,
) -> (Vec<AgentInstance<'a>>, Vec<String>) {
    let is_for_all = addressees.everybody || !addressees.agents.is_empty();
    if is_for_all || addressees.operator || new.to.is_some() {
        return (addressees.agents.clone(), Vec::new());
    }
    // An unusable name means that the author had another addressee than the lead in mind.
    if addressees.has_unusable() {
        let note = addressees.are_all_unknown().then(|| ONLY_UNKNOWN.to_owned());
        return (Vec::new(), note.into_iter().collect());
    }
    match catalogue.lead() {
        Some(agent) => (vec![AgentInstance { agent, instance: MAIN }], Vec::new()),
        None => (Vec::new(), vec![no_lead(catalogue)]),
    }
}

fn no_lead(catalogue: &Catalogue) -> String {
    let broken: Vec<&str> = catalogue.broken_agents().collect();
    match broken.is_empty() {
        true => NO_LEAD.to_owned(),
        false => format!(
            "{NO_LEAD} The files of these agents have problems, and one of them may be the lead: {}.",
            broken.join(", ")
        ),
    }
}

/// Builds the audience: the called agents and the names given beside the text. If there are none, the operator.
fn audience(
    addressees: &Addressees<'_>,
    called: &[AgentInstance<'_>],
    beside: Option<&Audience>,
) -> Result<Audience, posts::Error> {
    if addressees.everybody {
        return Ok(Audience::all());
    }
    let mut names: Vec<String> = beside.map_or_else(Vec::new, |beside| beside.names().to_vec());
    names.extend(called.iter().map(reader_of));
    if addressees.operator || names.is_empty() {
        names.push(posts::OPERATOR.to_owned());
    }
    // All names are checked by now.
    Audience::of(names.iter().map(String::as_str), |_| true)
}
