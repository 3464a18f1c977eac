//! Finding, rebuilding or creating the session of a task, in the caller's transaction.

use sqlx::PgConnection;

use super::{
    Opening,
    decide::{Decision, Inherit, Wanted, decide, inherit},
    expiry::{self, Inheritance},
};
use crate::domain::{
    agents::SessionMode as Mode,
    compactions, facts, ids, messages, nodes, session_summaries,
    sessions::{self, Error, Live, Position, Reason, State, Successor},
    turns,
};

/// The session of a task, locked until the end of the transaction.
#[derive(Debug)]
pub struct Resolved {
    pub session: Live,
    pub decision: Decision,
    /// Messages taken over from the predecessor, and what was left out of them.
    pub inherited: messages::Handed,
    pub inherited_summary: bool,
}

impl Resolved {
    pub(super) fn without_inheritance(session: Live, decision: Decision) -> Self {
        let inherited = messages::Handed::default();
        Self { session, decision, inherited, inherited_summary: false }
    }

    /// Returns true if the conversation's last turn was cut off, in this session or in the one that it continues. The actions of that turn
    /// may or may not have taken effect.
    pub fn interrupted(&self) -> bool {
        self.session.state == State::Interrupted
    }
}

/// Finds, rebuilds or begins the session of a task. `lease` is the caller's.
///
/// A turn that a lost worker left running is first ended as interrupted, and its reservation is released.
pub async fn resolve(
    conn: &mut PgConnection,
    opening: &Opening<'_>,
    wanted: &Wanted<'_>,
    lease: i64,
    inheritance: &Inheritance<'_>,
) -> Result<Resolved, Error> {
    let open = match wanted.mode {
        Mode::None => sessions::find_ephemeral(&mut *conn, wanted.task_id).await?,
        Mode::Continue | Mode::Fresh => {
            let Opening { campaign_id, agent, instance, .. } = *opening;
            sessions::find_open(&mut *conn, campaign_id, agent, instance).await?
        }
    };
    // A larger lease on the locked row belongs to a later run. That run has the conversation, also between two of its turns.
    if let Some(theirs) = open.as_ref().filter(|open| open.lease > Some(lease)) {
        return Err(Error::Overtaken(theirs.id));
    }
    let open = match open {
        Some(open) => Some(without_leftover(&mut *conn, open, opening).await?),
        None => None,
    };
    let others_spoke = match &open {
        Some(open) if wanted.mode == Mode::Fresh => {
            turns::others_spoke(&mut *conn, open.id, wanted.task_id).await?
        }
        _ => false,
    };
    let decision = decide(open.as_ref(), wanted, others_spoke);
    match (decision, open) {
        (Decision::Resume, Some(session)) => Ok(Resolved::without_inheritance(session, decision)),
        (Decision::Rebuild(Reason::Expired), Some(open)) if !open.ephemeral => {
            expiry::succeed(conn, &open, opening, lease, inheritance).await
        }
        (Decision::Rebuild(reason), Some(open)) => {
            succeed(conn, (&open, reason), opening, lease, inheritance.max_weight).await
        }
        (_, _) if wanted.mode == Mode::Continue => {
            expiry::create(conn, opening, lease, inheritance).await
        }
        (_, _) => {
            let ephemeral = wanted.mode == Mode::None;
            if !ephemeral {
                let Opening { campaign_id, agent, instance, .. } = *opening;
                session_summaries::forget(&mut *conn, campaign_id, agent, instance).await?;
            }
            let id = ids::at(opening.now);
            let session = sessions::open(conn, id, opening, lease, ephemeral, None).await?;
            Ok(Resolved::without_inheritance(session, decision))
        }
    }
}

async fn without_leftover(
    conn: &mut PgConnection,
    open: Live,
    opening: &Opening<'_>,
) -> Result<Live, Error> {
    if open.state != State::Running {
        return Ok(open);
    }
    turns::interrupt_leftover(&mut *conn, &open, opening.now).await?;
    sessions::lock(conn, open.id).await
}

/// Closes a session that does not run, and opens its successor.
pub async fn succeed(
    conn: &mut PgConnection,
    (open, reason): (&Live, Reason),
    opening: &Opening<'_>,
    lease: i64,
    inherit_max_weight: i64,
) -> Result<Resolved, Error> {
    let id = ids::at(opening.now);
    let part = inherit(open, reason);
    let remembers = part != Inherit::Nothing;
    let takes_summary = remembers && open.generation > 0;
    if part == Inherit::Nothing && !open.ephemeral {
        let Opening { campaign_id, agent, instance, .. } = *opening;
        session_summaries::forget(&mut *conn, campaign_id, agent, instance).await?;
    }
    // Closed first: the index admits one open session.
    sessions::close(&mut *conn, open.id, reason, Some(id), opening.now).await?;
    facts::request(&mut *conn, open.campaign_id, open.id).await?;
    let successor = Successor {
        predecessor_id: open.id,
        because: reason,
        goes_on: remembers.then(|| Position::of(open)),
        takes_summary,
        learnt_by: Some(open),
    };
    let session =
        sessions::open(&mut *conn, id, opening, lease, open.ephemeral, Some(successor)).await?;
    let mut after_seq = 0;
    if takes_summary {
        after_seq =
            compactions::inherit(&mut *conn, open.id, id, open.generation, opening.now).await?;
    }
    let inherited = match part {
        Inherit::Nothing => messages::Handed::default(),
        Inherit::All | Inherit::Text => {
            let text_only = part == Inherit::Text;
            let max_weight = inherit_max_weight;
            let without_turns = open.rejected_turns.as_slice();
            let part = messages::Inherited { after_seq, max_weight, text_only, without_turns };
            messages::inherit(&mut *conn, open.id, id, part).await?
        }
    };
    if remembers {
        facts::inherit_showings(&mut *conn, open.id, id).await?;
        hand_place_on(&mut *conn, open, id, takes_summary).await?;
    }
    Ok(Resolved {
        session,
        decision: Decision::Rebuild(reason),
        inherited,
        inherited_summary: takes_summary,
    })
}

/// Places the successor at the node of its predecessor. The node's instructions are sent again, unless they came along as a message or in
/// front of the summary.
async fn hand_place_on(
    conn: &mut PgConnection,
    open: &Live,
    id: uuid::Uuid,
    takes_summary: bool,
) -> Result<(), Error> {
    let Some(stay) = nodes::current(&mut *conn, open.id).await? else { return Ok(()) };
    let mut has_entry = match stay.entry_id {
        Some(entry_id) => messages::holds(&mut *conn, id, entry_id).await?,
        None => false,
    };
    if !has_entry && takes_summary {
        has_entry = compactions::is_of_node_since(&mut *conn, id, stay.first_seq).await?;
    }
    Ok(nodes::inherit(conn, open.id, id, has_entry).await?)
}
