//! A draft of a turn: its session, the entries that it adds, and its call.

use sqlx::PgConnection;

use super::{
    entries::NewEntries,
    outlook::{Additions, Outlook, look},
    session::{go_on_anew, say_what_was_left_out},
    team,
};
use crate::{
    context::Calibration,
    domain::{compactions::Shown, conversations::Resolved},
    jobs::{
        Services, compact_session,
        run_turn::{error::Error, load::assignment::Assignment},
    },
};

pub struct Draft<'a> {
    pub resolved: Resolved,
    pub entries: NewEntries<'a>,
    pub outlook: Outlook,
}

/// Values that all drafts of a turn share.
pub struct Setting<'a, 's> {
    pub services: &'s Services,
    pub assignment: &'a Assignment<'a>,
    pub lease: i64,
    pub calibration: &'s Calibration,
    pub team: &'s [team::Presence],
    /// True if the provider has refused a call of this run as too long.
    pub was_refused: bool,
}

impl<'a> Draft<'a> {
    pub async fn of(
        conn: &mut PgConnection,
        setting: &Setting<'a, '_>,
        resolved: Resolved,
    ) -> Result<Self, Error> {
        let now = setting.services.clock.now();
        say_what_was_left_out(&mut *conn, &resolved, now).await?;
        let Setting { assignment, calibration, was_refused, .. } = *setting;
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
    pub async fn compacted(
        mut self,
        conn: &mut PgConnection,
        setting: &Setting<'a, '_>,
    ) -> Result<Self, Error> {
        let session = &mut self.resolved.session;
        let shown = compact_session::apply(&mut *conn, &*setting.services.clock, session.id).await;
        let Shown::Applied(compaction) = shown.map_err(Error::undone)? else { return Ok(self) };
        session.generation = compaction.generation;
        session.checkpoint = None;
        // A successor without a successful turn is compacted in place.
        let has_answered = session.context_tokens > 0;
        if setting.assignment.route.rotates && has_answered {
            // The compaction was made so that all later messages fit.
            return self.anew(conn, setting, i64::MAX).await;
        }
        self.outlook = outlook(conn, setting, &self.resolved, &self.entries).await?;
        Ok(self)
    }

    /// Continues in a new session, which takes over messages up to this weight.
    pub async fn anew(
        self,
        conn: &mut PgConnection,
        setting: &Setting<'a, '_>,
        max_weight: i64,
    ) -> Result<Self, Error> {
        let Setting { services, assignment, lease, .. } = *setting;
        let before = (&self.resolved, max_weight);
        let resolved = go_on_anew(&mut *conn, services, assignment, lease, before).await?;
        Self::of(conn, setting, resolved).await
    }
}

async fn outlook(
    conn: &mut PgConnection,
    setting: &Setting<'_, '_>,
    resolved: &Resolved,
    entries: &NewEntries<'_>,
) -> Result<Outlook, Error> {
    let Setting { services, assignment, calibration, team, .. } = *setting;
    let given = Additions { calibration, words: &entries.words, team };
    look(conn, services, assignment, &resolved.session, &given).await
}
