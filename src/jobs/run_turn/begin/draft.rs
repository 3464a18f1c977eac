//! A draft of a turn: its session, the entries that it adds, and its call.

use sqlx::PgConnection;

use super::{
    counts,
    entries::NewEntries,
    outlook::{Additions, Outlook, load_outlook},
    session::{add_left_out_notice, calibration, find_session, start_new_session},
    team,
    window::EarlierBegins,
};
use crate::{
    context::{Calibration, Pressure},
    domain::{compactions::ShowOutcome, conversations::ResolvedSession, messages::MaxWeight},
    jobs::{
        Services, compact_session,
        run_turn::{crash_points::CrashPoint, error::Error, load::assignment::Assignment},
    },
};

pub struct Draft<'a> {
    pub resolved: ResolvedSession,
    pub entries: NewEntries<'a>,
    pub outlook: Outlook,
    /// True if it has applied a reference to the archive, so that no successor would be smaller.
    pub is_smallest: bool,
}

/// Values that all drafts of a turn share.
pub struct DraftParams<'a> {
    services: &'a Services,
    assignment: &'a Assignment<'a>,
    lease: i64,
    pub calibration: Calibration,
    pub team: Vec<team::ColleagueStatus>,
    /// True if the provider has refused a call of this run as too long.
    was_refused: bool,
}

impl<'a> DraftParams<'a> {
    /// Finds or opens the turn's session, and reads what its drafts share. `lease` is that of the run.
    pub async fn find(
        conn: &mut PgConnection,
        services: &'a Services,
        assignment: &'a Assignment<'a>,
        lease: i64,
        before: EarlierBegins,
    ) -> Result<(Self, ResolvedSession), Error> {
        let now = services.clock.now();
        let mut resolved = find_session(&mut *conn, services, assignment, lease).await?;
        counts::forget_other_counts(&mut resolved.session, assignment);
        if let Some(counted) = before.counted {
            resolved.session.checkpoint = counts::checkpoint(counted, assignment);
        }
        services.crash_points.pass(CrashPoint::AfterResolve).map_err(Error::undone)?;
        let calibration = calibration(services, &resolved.session);
        let team = team::read_statuses(conn, assignment, now).await?;
        let was_refused = before.was_refused();
        Ok((Self { services, assignment, lease, calibration, team, was_refused }, resolved))
    }
}

impl<'a> Draft<'a> {
    /// Drafts the turn. Under pressure, it applies the compaction that was prepared ahead.
    pub async fn with_prepared(
        conn: &mut PgConnection,
        setting: &DraftParams<'a>,
        resolved: ResolvedSession,
    ) -> Result<Self, Error> {
        let draft = Self::of(&mut *conn, setting, resolved).await?;
        match draft.outlook.pressure >= Pressure::Apply || setting.was_refused {
            true => draft.apply_prepared(conn, setting).await,
            false => Ok(draft),
        }
    }

    async fn of(
        conn: &mut PgConnection,
        setting: &DraftParams<'a>,
        resolved: ResolvedSession,
    ) -> Result<Self, Error> {
        let now = setting.services.clock.now();
        add_left_out_notice(&mut *conn, &resolved, now).await?;
        let DraftParams { assignment, ref calibration, was_refused, .. } = *setting;
        let entries = NewEntries::before_call(
            &mut *conn,
            &resolved,
            assignment,
            calibration,
            was_refused,
            now,
        )
        .await?;
        let outlook = outlook(conn, setting, &resolved, &entries).await?;
        Ok(Self { resolved, entries, outlook, is_smallest: false })
    }

    /// Applies the compaction that was prepared ahead, if there is one: it costs this turn no call.
    async fn apply_prepared(
        mut self,
        conn: &mut PgConnection,
        setting: &DraftParams<'a>,
    ) -> Result<Self, Error> {
        let session = &mut self.resolved.session;
        let shown = compact_session::apply(&mut *conn, &*setting.services.clock, session.id).await;
        let ShowOutcome::Applied(compaction) = shown.map_err(Error::undone)? else {
            return Ok(self);
        };
        session.generation = compaction.generation;
        session.checkpoint = None;
        self.is_smallest = compaction.is_reference();
        // A successor without a successful turn is compacted in place. So is a session by a reference: its successor would take over the
        // messages that leave no room for the task.
        let has_answered = session.context_tokens > 0;
        if setting.assignment.route.rotates && has_answered && !self.is_smallest {
            // The compaction was made so that all later messages fit.
            return self.into_new_session(conn, setting, MaxWeight::UNLIMITED).await;
        }
        self.outlook = outlook(conn, setting, &self.resolved, &self.entries).await?;
        Ok(self)
    }

    /// Continues in a new session, which takes over messages up to this weight.
    pub async fn into_new_session(
        self,
        conn: &mut PgConnection,
        setting: &DraftParams<'a>,
        max_weight: MaxWeight,
    ) -> Result<Self, Error> {
        let DraftParams { services, assignment, lease, .. } = *setting;
        let before = (&self.resolved, max_weight);
        let resolved = start_new_session(&mut *conn, services, assignment, lease, before).await?;
        Self::of(conn, setting, resolved).await
    }
}

async fn outlook(
    conn: &mut PgConnection,
    setting: &DraftParams<'_>,
    resolved: &ResolvedSession,
    entries: &NewEntries<'_>,
) -> Result<Outlook, Error> {
    let DraftParams { services, assignment, calibration, team, .. } = setting;
    let given = Additions { calibration, words: &entries.words, team };
    load_outlook(conn, services, assignment, &resolved.session, &given).await
}
