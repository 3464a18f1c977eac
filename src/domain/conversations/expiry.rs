//! The successor of an expired session: it begins with a summary, whether a cleanup has removed the session by then or not.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Decision, NewSession, ResolvedSession};
use crate::domain::{
    compactions, facts, ids,
    messages::{InheritResult, MaxWeight},
    session_summaries::{self, SessionSummary, SummaryText},
    sessions::{self, Continuation, Error, Origin, Position, Reason, SessionRow},
};

/// Rules for what a successor takes over.
#[derive(Clone, Copy)]
pub struct Inheritance<'a> {
    /// Maximum weight of the messages that the successor of an unexpired session takes over.
    pub max_weight: MaxWeight,
    /// Summaries of sessions that expired until this moment are not used any more.
    pub forgotten_until: DateTime<Utc>,
    /// Renders the kept summary of an expired session. Pure: the result is the same if a cleanup or a turn has stored it.
    pub render: &'a (dyn Fn(&SessionSummary) -> Option<SummaryText> + Sync),
}

/// Closes an expired session, and opens its successor.
pub(super) async fn replace_expired(
    conn: &mut PgConnection,
    open: &SessionRow,
    opening: &NewSession<'_>,
    lease: i64,
    inheritance: &Inheritance<'_>,
) -> Result<ResolvedSession, Error> {
    session_summaries::store(&mut *conn, &[open.id], inheritance.forgotten_until, opening.now)
        .await?;
    let id = ids::new_at(opening.now);
    // Closed first: the index admits one open session.
    sessions::close(&mut *conn, open.id, Reason::Expired, Some(id), opening.now).await?;
    facts::request(&mut *conn, open.campaign_id, open.id).await?;
    begin(conn, id, Some(open.id), opening, lease, inheritance).await
}

/// Opens a session where there is none: the first of its conversation, or the successor of one that a cleanup has removed.
pub(super) async fn create(
    conn: &mut PgConnection,
    opening: &NewSession<'_>,
    lease: i64,
    inheritance: &Inheritance<'_>,
) -> Result<ResolvedSession, Error> {
    begin(conn, ids::new_at(opening.now), None, opening, lease, inheritance).await
}

async fn begin(
    conn: &mut PgConnection,
    id: Uuid,
    predecessor_id: Option<Uuid>,
    opening: &NewSession<'_>,
    lease: i64,
    inheritance: &Inheritance<'_>,
) -> Result<ResolvedSession, Error> {
    let NewSession { campaign_id, agent, instance, now, .. } = *opening;
    let forgotten_until = inheritance.forgotten_until;
    let kept =
        session_summaries::take(&mut *conn, campaign_id, agent, instance, forgotten_until).await?;
    let rendered = kept.and_then(|kept| (inheritance.render)(&kept).map(|made| (kept, made)));
    let predecessor_id = rendered.as_ref().map(|(kept, _)| kept.session_id).or(predecessor_id);
    let successor = predecessor_id.map(|id| Continuation {
        origin: Origin::Predecessor { id, because: Reason::Expired },
        goes_on: rendered.as_ref().map(|(kept, _)| Position {
            last_seq: kept.last_seq,
            turn_count: kept.turn_count,
            board_cursor: kept.board_cursor,
            interrupted: kept.interrupted,
        }),
        takes_summary: rendered.is_some(),
        learnt_by: None,
    });
    let session = sessions::open(&mut *conn, id, opening, Some(lease), false, successor).await?;
    if let Some((kept, made)) = &rendered {
        compactions::store_inherited_summary(&mut *conn, id, kept, made, now).await?;
    }
    Ok(ResolvedSession {
        session,
        decision: match predecessor_id {
            Some(_) => Decision::Rebuild(Reason::Expired),
            None => Decision::Create { ephemeral: false },
        },
        inherited: InheritResult::default(),
        inherited_summary: rendered.is_some(),
    })
}
