//! Answers of agents that call other agents.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use super::{
    Config, Error, UnknownName,
    addressees::{Addressees, reader_of},
    build_tasks, limit_fan_out,
};
use crate::domain::{
    StatementError,
    agents::Catalogue,
    posts::{self, Audience, Post, Sender},
    tasks,
};

/// An answer that is about to be posted, by an agent that may call others.
#[derive(Debug, Clone, Copy)]
pub struct AgentAnswer<'a> {
    pub campaign_id: Uuid,
    /// The task that gave the answer.
    pub task_id: Uuid,
    /// The post that the task answers.
    pub asked_in: Uuid,
    pub agent: &'a str,
    pub instance: &'a str,
    pub text: &'a str,
}

/// The tasks and notes that an answer leads to, besides its post.
#[derive(Debug, Clone, Default)]
pub struct HandedOn {
    everybody: bool,
    /// Reader names of the addressees besides the asker.
    names: Vec<String>,
    task_ids: Vec<Uuid>,
    tree: tasks::Tree,
    /// Notes for the agent.
    notes: Vec<String>,
}

const TASK_STOPPED_NOTE: &str =
    "No task was added: this task was asked to stop. Its answer is kept.";

/// Adds the tasks for the agents that an answer mentions. The result goes to the end of the turn. `None`: there is nothing to do.
///
/// Must be called before the turn is ended, because lanes are locked before everything else.
///
/// If the tasks are refused, for example because the budget is spent, the agent is told so and its turn still ends well.
pub async fn add_mentioned_tasks(
    conn: &mut PgConnection,
    catalogue: &Catalogue,
    (config, limits): (&Config, &tasks::Config),
    spoken: &AgentAnswer<'_>,
    now: DateTime<Utc>,
) -> Result<Option<HandedOn>, Error> {
    let speaker = posts::reader(spoken.agent, spoken.instance);
    let mut addressees = Addressees::of(spoken.text, catalogue).without(&speaker);
    let mut handed_on = HandedOn {
        everybody: addressees.everybody,
        notes: unknown(&addressees.unknown).into_iter().chain(addressees.refusal_notes()).collect(),
        ..HandedOn::default()
    };
    let mut called = std::mem::take(&mut addressees.agents);
    if called.is_empty() {
        let says_nothing = handed_on.notes.is_empty() && !handed_on.everybody;
        return Ok((!says_nothing).then_some(handed_on));
    }
    if tasks::is_asked_to_stop(&mut *conn, spoken.task_id).await? {
        return Ok(Some(handed_on.without_calls(TASK_STOPPED_NOTE.to_owned())));
    }
    let max_depth = i64::from(config.max_depth);
    let past = posts::AnswerChainQuery {
        campaign_id: spoken.campaign_id,
        post_id: spoken.asked_in,
        max_depth,
    };
    let behind = posts::load_ancestry(&mut *conn, past).await?;
    let tree = tasks::Tree { campaign_id: spoken.campaign_id, root_post_id: behind.first };
    handed_on.tree = tree;
    if let Some(cut) = too_often(&mut *conn, config, &speaker, spoken, &behind, now).await? {
        return Ok(Some(handed_on.without_calls(cut)));
    }
    handed_on.notes.extend(limit_fan_out(config, &mut called));
    if let Some(cut) = too_many(&mut *conn, config, tree, called.len()).await? {
        return Ok(Some(handed_on.without_calls(cut)));
    }
    handed_on.names = called.iter().map(reader_of).collect();
    let news = build_tasks(spoken.campaign_id, &called, spoken.text, &speaker);
    let undone = |source| StatementError { action: "add a task for a mention", source };
    let mut inner = conn.begin().await.map_err(undone)?;
    match tasks::add_many(&mut inner, limits, spoken.campaign_id, &news, now).await {
        Ok(placed) => {
            inner.commit().await.map_err(undone)?;
            handed_on.task_ids = placed.iter().map(|placed| placed.id).collect();
            Ok(Some(handed_on))
        }
        Err(error) => {
            inner.rollback().await.map_err(undone)?;
            match Error::from(error) {
                Error::Task(tasks::Error::Database(error)) => Err(error.into()),
                Error::Task(tasks::Error::Queue(error)) => Err(tasks::Error::from(error).into()),
                refused => {
                    let names = handed_on.names.join(", ");
                    Ok(Some(
                        handed_on
                            .without_calls(format!("No tasks were added for {names}: {refused}.")),
                    ))
                }
            }
        }
    }
}

impl HandedOn {
    /// Returns the audience of the answer.
    pub fn audience(&self, asker: &str) -> Result<Audience, posts::Error> {
        if self.everybody {
            return Ok(Audience::all());
        }
        let names = self.names.iter().map(String::as_str);
        Audience::of(std::iter::once(asker).chain(names), |_| true)
    }

    /// Completes the hand-on after the answer is posted: links the tasks to the post, and posts the notes.
    pub async fn link_tasks_to_post(
        &self,
        conn: &mut PgConnection,
        post: &Post,
        campaign_id: Uuid,
        now: DateTime<Utc>,
    ) -> Result<(), posts::Error> {
        tasks::set_post(&mut *conn, &self.task_ids, post.id, self.tree).await?;
        if self.notes.is_empty() {
            return Ok(());
        }
        let notice = posts::New {
            campaign_id,
            sender: Sender::System { task_id: post.task_id },
            audience: &Audience::of([post.sender.as_str()], |_| true)?,
            reply_to: Some(post.id),
            text: &self.notes.join("\n"),
        };
        posts::add(conn, &notice, now).await.map(drop)
    }

    /// Drops the calls and keeps the reason. Only the asker sees the answer.
    fn without_calls(self, why: String) -> Self {
        let mut notes = self.notes;
        notes.push(why);
        Self { notes, ..Self::default() }
    }
}

/// Returns the reason if this answer may not call agents: too many answers behind it, or the same text too often.
async fn too_often(
    conn: &mut PgConnection,
    config: &Config,
    speaker: &str,
    spoken: &AgentAnswer<'_>,
    behind: &posts::AnswerChain,
    now: DateTime<Utc>,
) -> Result<Option<String>, Error> {
    let (max_depth, max_repeats) = (i64::from(config.max_depth), i64::from(config.max_repeats));
    let since = now - TimeDelta::seconds(config.repeat_window_secs.into());
    if behind.n_answers >= max_depth {
        return Ok(Some(format!(
            "No task was added: {max_depth} answers in a row each mentioned the next agent, which is the limit (mentions.max_depth). A person has to continue."
        )));
    }
    let said = posts::RepeatedText {
        campaign_id: spoken.campaign_id,
        sender: speaker,
        text: spoken.text,
        since,
    };
    if posts::count_repetitions(conn, said).await? >= max_repeats {
        return Ok(Some(format!(
            "No task was added: the same text was posted {max_repeats} times within {} s, the limit (mentions.max_repeats).",
            config.repeat_window_secs
        )));
    }
    Ok(None)
}

/// Returns the reason if the tasks would exceed the limit of the person's post behind them. Tasks that concurrent turns are about to add
/// are not counted: counting them would serialize the ends of all turns of a campaign.
async fn too_many(
    conn: &mut PgConnection,
    config: &Config,
    tree: tasks::Tree,
    n_called: usize,
) -> Result<Option<String>, Error> {
    let (n_tasks, max_tasks) =
        (tasks::count_of_tree(conn, tree).await?, i64::from(config.max_tasks));
    let n_more = i64::try_from(n_called).unwrap_or(i64::MAX);
    Ok((n_tasks.saturating_add(n_more) > max_tasks).then(|| {
        format!(
            "No task was added: one post has led to {n_tasks} tasks, the limit is {max_tasks} (mentions.max_tasks). A person has to continue."
        )
    }))
}

fn unknown(names: &[UnknownName]) -> Vec<String> {
    let words = |unknown: &UnknownName| match &unknown.nearest {
        Some(near) => format!("Unknown name `{}`: did you mean `{near}`?", unknown.name),
        None => format!("Unknown name `{}`.", unknown.name),
    };
    names.iter().map(words).collect()
}
