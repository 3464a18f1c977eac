//! A draft of a turn: its session, the entries that it adds, and its call.

use sqlx::PgConnection;

use super::{
    entries::NewEntries,
    outlook::{Additions, Outlook, load_outlook},
    session::{add_left_out_notice, start_new_session},
    team,
};
use crate::{
    context::Calibration,
    domain::{compactions::ShowOutcome, conversations::ResolvedSession},
    jobs::{
        Services, compact_session,
        run_turn::{error::Error, load::assignment::Assignment},
    },
};

pub struct Draft<'a> {
    pub resolved: ResolvedSession,
    pub entries: NewEntries<'a>,
    pub outlook: Outlook,
}

/// Values that all drafts of a turn share.
pub struct DraftParams<'a, 's> {
    pub services: &'s Services,
    pub assignment: &'a Assignment<'a>,
    pub lease: i64,
    pub calibration: &'s Calibration,
    pub team: &'s [team::ColleagueStatus],
    /// True if the provider has refused a call of this run as too long.
    pub was_refused: bool,
}

impl<'a> Draft<'a> {
    pub async fn of(
        conn: &mut PgConnection,
        setting: &DraftParams<'a, '_>,
        resolved: ResolvedSession,
    ) -> Result<Self, Error> {
        let now = setting.services.clock.now();
        add_left_out_notice(&mut *conn, &resolved, now).await?;
        let DraftParams { assignment, calibration, was_refused, .. } = *setting;
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
        Ok(Self { resolved, entries, outlook })
    }

    /// Applies the compaction that was prepared ahead, if there is one: it costs this turn no call.
    pub async fn apply_prepared(
        mut self,
        conn: &mut PgConnection,
        setting: &DraftParams<'a, '_>,
    ) -> Result<Self, Error> {
        let session = &mut self.resolved.session;
        let shown = compact_session::apply(&mut *conn, &*setting.services.clock, session.id).await;
        let ShowOutcome::Applied(compaction) = shown.map_err(Error::undone)? else {
            return Ok(self);
        };
        session.generation = compaction.generation;
        session.checkpoint = None;
        // A successor without a successful turn is compacted in place.
        let has_answered = session.context_tokens > 0;
        if setting.assignment.route.rotates && has_answered {
            // The compaction was made so that all later messages fit.
            return self.into_new_session(conn, setting, i64::MAX).await;
        }
        self.outlook = outlook(conn, setting, &self.resolved, &self.entries).await?;
        Ok(self)
    }

    /// Continues in a new session, which takes over messages up to this weight.
    pub async fn into_new_session(
        self,
        conn: &mut PgConnection,
        setting: &DraftParams<'a, '_>,
        max_weight: i64,
    ) -> Result<Self, Error> {
        let DraftParams { services, assignment, lease, .. } = *setting;
        let before = (&self.resolved, max_weight);
        let resolved = start_new_session(&mut *conn, services, assignment, lease, before).await?;
        Self::of(conn, setting, resolved).await
    }
}

async fn outlook(
    conn: &mut PgConnection,
    setting: &DraftParams<'_, '_>,
    resolved: &ResolvedSession,
    entries: &NewEntries<'_>,
) -> Result<Outlook, Error> {
    let DraftParams { services, assignment, calibration, team, .. } = *setting;
    let given = Additions { calibration, words: &entries.words, team };
    load_outlook(conn, services, assignment, &resolved.session, &given).await
}
