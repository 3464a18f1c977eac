//! Finding, rebuilding or creating the session of a task, in the caller's transaction.

use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    NewSession,
    decide::{Decision, Inherit, SessionRequest, decide, inherit},
    expiry::{self, Inheritance},
    memory::{self, InheritedMemory},
};
use crate::domain::{
    agents::SessionMode as Mode,
    compactions, facts, ids,
    messages::{self, MaxWeight},
    session_summaries,
    sessions::{self, Continuation, Error, Origin, Position, Reason, SessionRow, State},
    turns,
};

/// The session of a task, locked until the end of the transaction.
#[derive(Debug)]
pub struct ResolvedSession {
    pub session: SessionRow,
    pub decision: Decision,
    /// Messages taken over from the predecessor, and what was left out of them.
    pub inherited: messages::InheritResult,
    pub inherited_summary: bool,
}

impl ResolvedSession {
    pub(super) fn without_inheritance(session: SessionRow, decision: Decision) -> Self {
        let inherited = messages::InheritResult::default();
        Self { session, decision, inherited, inherited_summary: false }
    }

    /// Returns true if the conversation's last turn was cut off, in this session or in the one that it continues. The actions of that turn
    /// may or may not have taken effect.
    pub fn was_interrupted(&self) -> bool {
        self.session.state == State::Interrupted
    }
}

/// Finds the open session that a task of a conversation would continue, and locks it.
pub async fn find_current(
    conn: &mut PgConnection,
    (campaign_id, agent, instance): (Uuid, &str, &str),
    mode: Mode,
    task_id: Uuid,
) -> Result<Option<SessionRow>, Error> {
    match mode {
        Mode::None => sessions::find_ephemeral(conn, task_id).await,
        Mode::Continue | Mode::Fresh => {
            sessions::find_open(conn, campaign_id, agent, instance).await
        }
    }
}

/// Finds, rebuilds or begins the session of a task. `lease` is the caller's.
///
/// A turn that a lost worker left running is first ended as interrupted, and its reservation is released.
pub async fn resolve(
    conn: &mut PgConnection,
    opening: &NewSession<'_>,
    wanted: &SessionRequest<'_>,
    lease: i64,
    inheritance: &Inheritance<'_>,
) -> Result<ResolvedSession, Error> {
    let NewSession { campaign_id, agent, instance, .. } = *opening;
    let of = (campaign_id, agent, instance);
    let open = find_current(&mut *conn, of, wanted.mode, wanted.task_id).await?;
    // A larger lease on the locked row belongs to a later run. That run has the conversation, also between two of its turns.
    if let Some(theirs) = open.as_ref().filter(|open| open.lease > Some(lease)) {
        return Err(Error::Overtaken(theirs.id));
    }
    let open = match open {
        Some(open) => Some(end_leftover_turn(&mut *conn, open, opening).await?),
        None => None,
    };
    let others_spoke = match &open {
        Some(open) if wanted.mode == Mode::Fresh => {
            turns::has_turns_of_others(&mut *conn, open.id, wanted.task_id).await?
        }
        _ => false,
    };
    let decision = decide(open.as_ref(), wanted, others_spoke);
    match (decision, open) {
        (Decision::Resume, Some(session)) => {
            Ok(ResolvedSession::without_inheritance(session, decision))
        }
        (Decision::Rebuild(Reason::Expired), Some(open)) if !open.ephemeral => {
            expiry::replace_expired(conn, &open, opening, lease, inheritance).await
        }
        (Decision::Rebuild(reason), Some(open)) => {
            let max_weight = match reason {
                // All of it was too much.
                Reason::ContextFull => MaxWeight::of_newest(inheritance.max_weight.newest),
                _ => inheritance.max_weight,
            };
            open_successor(conn, (&open, reason), opening, lease, max_weight).await
        }
        (_, _) if wanted.mode == Mode::Continue => {
            expiry::create(conn, opening, lease, inheritance).await
        }
        (_, _) => {
            let ephemeral = wanted.mode == Mode::None;
            if !ephemeral {
                session_summaries::delete(&mut *conn, campaign_id, agent, instance).await?;
            }
            let id = ids::new_at(opening.now);
            let session = sessions::open(conn, id, opening, Some(lease), ephemeral, None).await?;
            Ok(ResolvedSession::without_inheritance(session, decision))
        }
    }
}

async fn end_leftover_turn(
    conn: &mut PgConnection,
    open: SessionRow,
    opening: &NewSession<'_>,
) -> Result<SessionRow, Error> {
    if open.state != State::Running {
        return Ok(open);
    }
    turns::interrupt_leftover(&mut *conn, &open, opening.now).await?;
    sessions::lock(conn, open.id).await
}

/// Closes a session that does not run, and opens its successor.
pub async fn open_successor(
    conn: &mut PgConnection,
    (open, reason): (&SessionRow, Reason),
    opening: &NewSession<'_>,
    lease: i64,
    inherit_max_weight: MaxWeight,
) -> Result<ResolvedSession, Error> {
    let id = ids::new_at(opening.now);
    let part = inherit(open, reason);
    let remembers = part != Inherit::Nothing;
    let generation = match remembers {
        true => compactions::find_inheritable(&mut *conn, open.id, open.generation).await?,
        false => 0,
    };
    let takes_summary = generation > 0;
    if part == Inherit::Nothing && !open.ephemeral {
        let NewSession { campaign_id, agent, instance, .. } = *opening;
        session_summaries::delete(&mut *conn, campaign_id, agent, instance).await?;
    }
    // Closed first: the index admits one open session.
    sessions::close(&mut *conn, open.id, reason, Some(id), opening.now).await?;
    facts::request(&mut *conn, open.campaign_id, open.id).await?;
    let successor = Continuation {
        origin: Origin::Predecessor { id: open.id, because: reason },
        goes_on: remembers.then(|| Position::of(open)),
        takes_summary,
        learnt_by: Some(open),
    };
    let session =
        sessions::open(&mut *conn, id, opening, Some(lease), open.ephemeral, Some(successor))
            .await?;
    let inherited = match part {
        Inherit::Nothing => messages::InheritResult::default(),
        Inherit::All | Inherit::Text => {
            let whole = InheritedMemory::of_successor(open, generation, inherit_max_weight);
            let part = InheritedMemory { text_only: part == Inherit::Text, ..whole };
            memory::inherit(&mut *conn, open, id, part, opening.now).await?
        }
    };
    Ok(ResolvedSession {
        session,
        decision: Decision::Rebuild(reason),
        inherited,
        inherited_summary: takes_summary,
    })
}
