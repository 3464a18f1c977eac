//! Forks: new conversations that begin as another one was after one of its turns.
//!
//! A fork is a session of a new instance of the agent. It takes over summary and messages as a successor does, up to that turn, and has
//! copies of them: neither session needs the other. The other session is not changed.
//!
//! Race: two forks are given the same name. The unique index lets one of them through, and the other takes the next name, or is refused.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::memory::{self, InheritedMemory};
use crate::{
    context::Manifest,
    domain::{
        StatementError,
        agents::{Agent, Catalogue, LookupError},
        campaigns,
        class::{Class, Classify, Kind},
        compactions, feed, ids, manifests,
        messages::{self, MaxWeight},
        session_summaries,
        sessions::{
            self, Config, Continuation, ForkPoint, NewSession, Origin, Position, Session,
            SessionRow,
        },
        turns::{self, DoneTurn},
    },
};

/// A request to fork a session.
#[derive(Debug, Clone, Copy)]
pub struct ForkRequest<'a> {
    pub session_id: Uuid,
    /// The last turn that the fork has, of this session or of another one of its conversation. If this session is a fork, a turn that it has
    /// taken over is forked from the session that ran it. `None`: the last one of this session that is done.
    pub turn: Option<i32>,
    /// A valid name for the new instance. `None`: one is made of the instance of this session, also if the turn is of another one.
    pub instance: Option<&'a str>,
    pub catalogue: &'a Catalogue,
    pub config: &'a Config,
}

#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    #[error(
        "cannot fork session {session_id} at turn {number}: the turn is not done; `dalsegno turn ls {session_id}` lists the states of its turns"
    )]
    NotDone { session_id: Uuid, number: i32 },
    #[error(
        "cannot fork session {0}: it has no turn that is done; `dalsegno session show {0}` names the session before it, if there is one"
    )]
    NoneDone(Uuid),
    #[error(
        "a fork has at least one turn, and {number} is before the first: `dalsegno task add --campaign {campaign_id} --agent {agent} --instance NAME PROMPT` begins a conversation without any"
    )]
    BeforeFirst { number: i32, campaign_id: Uuid, agent: String },
    #[error(
        "cannot fork session {0}: it has expired; the next task of its conversation opens a session that can be forked"
    )]
    Expired(Uuid),
    #[error(
        "agent `{agent}` already has an instance `{instance}` in this campaign: choose another name, or none for a new one"
    )]
    InstanceTaken { agent: String, instance: String },
    #[error(transparent)]
    Agent(#[from] LookupError),
    #[error(transparent)]
    Campaign(#[from] campaigns::Error),
    #[error(transparent)]
    Session(#[from] sessions::Error),
    #[error(transparent)]
    Turn(#[from] turns::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl ForkError {
    pub const NOT_DONE: Class = Class::of(Kind::Conflict, "turn_not_done");
    pub const EXPIRED: Class = Class::of(Kind::Conflict, "session_expired");
    pub const INSTANCE_TAKEN: Class = Class::of(Kind::Conflict, "instance_taken");
}

impl Classify for ForkError {
    fn class(&self) -> Class {
        match self {
            Self::NotDone { .. } | Self::NoneDone(_) => Self::NOT_DONE,
            Self::BeforeFirst { .. } => turns::Error::UNKNOWN,
            Self::Expired(_) => Self::EXPIRED,
            Self::InstanceTaken { .. } => Self::INSTANCE_TAKEN,
            Self::Agent(error) => error.class(),
            Self::Campaign(error) => error.class(),
            Self::Session(error) => error.class(),
            Self::Turn(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

/// The longest name of an instance.
const INSTANCE_MAX_CHARS: usize = 64;

/// Opens a session that begins as another one was after a turn.
pub async fn fork(
    conn: &mut PgConnection,
    request: &ForkRequest<'_>,
    now: DateTime<Utc>,
) -> Result<Session, ForkError> {
    let given = sessions::get(&mut *conn, request.session_id).await?;
    let campaign_id = given.campaign_id;
    if campaigns::lock_against_erasure(&mut *conn, campaign_id).await? == campaigns::Status::Closed
    {
        return Err(campaigns::Error::Closed(campaign_id).into());
    }
    let session_id = match request.turn {
        Some(number) if number < 1 => {
            return Err(ForkError::BeforeFirst { number, campaign_id, agent: given.agent });
        }
        Some(number) => turns::find_session(&mut *conn, given.id, number).await?,
        None => given.id,
    };
    let parent = sessions::lock_against_removal(&mut *conn, session_id).await?;
    if parent.expires_at <= now {
        return Err(ForkError::Expired(parent.id));
    }
    let turn = find_turn(&mut *conn, parent.id, request.turn).await?;
    let context = find_context(&mut *conn, parent.id, turn.number).await?;
    let generation =
        compactions::find_inheritable(&mut *conn, parent.id, context.generation).await?;
    let last_seq = messages::last_seq_of_turn(&mut *conn, parent.id, turn.number).await?;
    let continuation = Continuation {
        origin: Origin::Fork(ForkPoint {
            parent_id: parent.id,
            turn: turn.number,
            context_tokens: context.tokens.unwrap_or(parent.context_tokens).max(1),
        }),
        goes_on: Some(Position {
            last_seq,
            turn_count: turn.number,
            board_cursor: turn.board_cursor.unwrap_or(parent.board_cursor),
            interrupted: false,
        }),
        takes_summary: generation > 0,
        learnt_by: Some(&parent),
    };
    let id = open(&mut *conn, request, (&parent, &given.instance), continuation, now).await?;
    let without_turns =
        left_out_after(&mut *conn, &parent, turn.number, context.without_turns).await?;
    let part = InheritedMemory {
        generation,
        up_to_turn: turn.number,
        up_to_seq: last_seq,
        max_weight: MaxWeight::UNLIMITED,
        text_only: false,
        without_turns: &without_turns,
    };
    let inherited = memory::inherit(&mut *conn, &parent, id, part, now).await?;
    let session = sessions::get(&mut *conn, id).await?;
    let event = feed::New {
        campaign_id: Some(campaign_id),
        task_id: None,
        session_id: Some(id),
        kind: feed::Kind::SessionForked,
        data: json!({
            "forked_from_session": parent.id,
            "forked_at_turn": turn.number,
            "agent": session.agent,
            "instance": session.instance,
            "inherited_messages": inherited.messages,
            "inherited_summary": generation > 0,
        }),
    };
    feed::append(conn, &[event], now).await?;
    Ok(session)
}

async fn find_turn(
    conn: &mut PgConnection,
    session_id: Uuid,
    number: Option<i32>,
) -> Result<DoneTurn, ForkError> {
    if let Some(turn) = turns::last_done(&mut *conn, session_id, number).await? {
        return Ok(turn);
    }
    let Some(number) = number else { return Err(ForkError::NoneDone(session_id)) };
    match turns::find(conn, session_id, number).await? {
        Some(_) => Err(ForkError::NotDone { session_id, number }),
        None => Err(turns::Error::Unknown { session_id, number }.into()),
    }
}

/// The context of the last call of a turn.
struct LastContext {
    /// The compaction that it showed; 0: none.
    generation: i32,
    /// `None`: no context of the turn is stored.
    tokens: Option<i64>,
    /// Turns that it left out, because the provider had rejected their prompts.
    without_turns: Vec<i32>,
}

async fn find_context(
    conn: &mut PgConnection,
    session_id: Uuid,
    turn: i32,
) -> Result<LastContext, StatementError> {
    let stored = manifests::stored_of_turn(&mut *conn, session_id, turn).await?.pop();
    let tokens = stored.as_ref().map(|it| it.real_tokens.unwrap_or(it.estimated_tokens));
    // A newer version may have stored one that this version cannot read.
    let manifest = stored.and_then(|it| serde_json::from_value::<Manifest>(it.manifest).ok());
    let (generation, without_turns) = match manifest {
        Some(manifest) => (manifest.generation().unwrap_or(0), manifest.without_turns),
        None => (compactions::generation_before(conn, session_id, turn).await?, Vec::new()),
    };
    Ok(LastContext { generation, tokens, without_turns })
}

/// Returns the turns that the conversation left out after the answer of a turn, and those that it leaves out by now. `without_turns` are those
/// of the call: its answer has taken the turns of its own task back in.
async fn left_out_after(
    conn: &mut PgConnection,
    parent: &SessionRow,
    number: i32,
    mut without_turns: Vec<i32>,
) -> Result<Vec<i32>, StatementError> {
    if !without_turns.is_empty()
        && let Some(answered) = turns::find(&mut *conn, parent.id, number).await?
    {
        let task_id = answered.task_id;
        let of_task = turns::of_task(&mut *conn, task_id).await?;
        let prompt = messages::find_prompt(&mut *conn, parent.id, task_id).await?;
        without_turns.retain(|turn| {
            let is_of_task = of_task.iter().any(|it| it.place() == (parent.id, *turn));
            !is_of_task && prompt.is_none_or(|prompt| prompt.turn != *turn)
        });
    }
    without_turns.extend(&parent.rejected_turns);
    Ok(without_turns)
}

/// Opens the session under the wished name, or under the first one that is free of those made of `base`. Returns its id.
async fn open(
    conn: &mut PgConnection,
    request: &ForkRequest<'_>,
    (parent, base): (&SessionRow, &str),
    continuation: Continuation<'_>,
    now: DateTime<Utc>,
) -> Result<Uuid, ForkError> {
    let agent = request.catalogue.agent(&parent.agent)?;
    let taken = taken_instances(&mut *conn, parent).await?;
    let n_generated = if request.instance.is_some() { 0 } else { u32::MAX };
    let generated = (1..=n_generated).map(|n| generated_name(base, n));
    let names = request.instance.map(str::to_owned).into_iter().chain(generated);
    let id = ids::new_at(now);
    for instance in names.filter(|name| !taken.contains(name)) {
        let prompt_hash = prompt_hash(request.catalogue, agent, parent, &instance);
        let opening = NewSession {
            campaign_id: parent.campaign_id,
            agent: &parent.agent,
            instance: &instance,
            provider: &parent.provider,
            model: &parent.model,
            prompt_hash: &prompt_hash,
            task_id: None,
            fence_seed: rand::random(),
            expires_at: request.config.expires_at(&parent.provider, agent.ttl_days, now),
            now,
        };
        match sessions::open(&mut *conn, id, &opening, None, false, Some(continuation)).await {
            Ok(_) => return Ok(id),
            Err(sessions::Error::Overtaken(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let instance = request.instance.unwrap_or_default().to_owned();
    Err(ForkError::InstanceTaken { agent: parent.agent.clone(), instance })
}

/// Returns the instances of the agent that have or had a conversation.
async fn taken_instances(
    conn: &mut PgConnection,
    parent: &SessionRow,
) -> Result<HashSet<String>, StatementError> {
    let (campaign_id, agent) = (parent.campaign_id, parent.agent.as_str());
    let mut taken = sessions::instances(&mut *conn, campaign_id, agent).await?;
    taken.extend(session_summaries::instances(conn, campaign_id, agent).await?);
    Ok(taken.into_iter().collect())
}

fn generated_name(instance: &str, n: u32) -> String {
    let end = format!("-fork-{n}");
    let begin: String = instance.chars().take(INSTANCE_MAX_CHARS - end.len()).collect();
    format!("{begin}{end}")
}

/// Returns the hash of the prompt of the parent, as the new instance would have it: only the lead's own instance has the roster. If the
/// prompt has changed since, that of the parent, so that the next task finds the change.
fn prompt_hash(
    catalogue: &Catalogue,
    agent: &Agent,
    parent: &SessionRow,
    instance: &str,
) -> String {
    match catalogue.prompt_hash(agent, &parent.instance) == parent.prompt_hash {
        true => catalogue.prompt_hash(agent, instance),
        false => parent.prompt_hash.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::agents;

    #[test]
    fn generated_names_are_valid_and_differ() {
        assert_eq!(generated_name("main", 2), "main-fork-2");
        let long = "a".repeat(INSTANCE_MAX_CHARS);
        let names = [1, 2, 10, u32::MAX].map(|n| generated_name(&long, n));
        assert!(names.iter().all(|name| agents::is_name(name)), "{names:?}");
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
    }
}
