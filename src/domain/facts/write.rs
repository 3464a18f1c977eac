//! Facts that an agent writes with its tool.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{
    Config, Error, Fact, RecordOutcome, Statement, StatementOrigin, get, lock_user_of, record,
    record_showings, user_of,
};
use crate::domain::StatementError;

/// The turn in which an agent writes a fact.
#[derive(Debug, Clone, Copy)]
pub struct WritingTurn<'a> {
    pub campaign_id: Uuid,
    pub session_id: Uuid,
    pub turn: i32,
    pub task_id: Uuid,
    /// Name of the agent instance.
    pub agent: &'a str,
}

/// A fact that an agent has written, or the fact that says the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenFact {
    pub fact: Fact,
    /// False: the fact was known before.
    pub is_new: bool,
}

/// Records a statement of an agent about the user of its campaign. It follows the rules of extracted facts: a later statement closes an
/// earlier one, nothing is stored twice, and what the session was shown is not new. The session counts as shown the fact, so that no later
/// reading of it yields the fact again.
pub async fn write(
    conn: &mut PgConnection,
    by: &WritingTurn<'_>,
    (attribute, text): (&str, &str),
    settings: (&Config, &str),
    now: DateTime<Utc>,
) -> Result<WrittenFact, Error> {
    let user = lock_user(&mut *conn, by.campaign_id).await?;
    let config = settings.0;
    if count_of_turn(&mut *conn, by).await? >= config.answer_max {
        return Err(Error::TurnFull { limit: config.answer_max });
    }
    let WritingTurn { campaign_id, session_id, turn, task_id, agent } = *by;
    let stated = Statement {
        user: &user,
        attribute,
        text,
        said_at: now,
        expires_at: config.extracted_for().map(|period| now + period),
        found: StatementOrigin::Written { campaign_id, session_id, turn, task_id, agent },
    };
    match record(&mut *conn, &stated, settings, now).await? {
        RecordOutcome::New(fact) => {
            record_showings(conn, (session_id, campaign_id), &[fact.id], now).await?;
            Ok(WrittenFact { fact: *fact, is_new: true })
        }
        RecordOutcome::Known(id) | RecordOutcome::AlreadyShown(id) => {
            Ok(WrittenFact { fact: get(conn, &user, id).await?, is_new: false })
        }
        RecordOutcome::Full => Err(Error::Full { user, limit: config.user_max }),
    }
}

/// Returns the user of a campaign, and makes other writers about this user wait. Meanwhile the campaign may have another user.
async fn lock_user(conn: &mut PgConnection, campaign_id: Uuid) -> Result<String, Error> {
    let user = user_of(&mut *conn, campaign_id).await?.ok_or(Error::NoUser)?;
    let locked = lock_user_of(conn, campaign_id, &user.user).await?;
    locked.filter(|now| now.user == user.user).map(|now| now.user).ok_or(Error::NoUser)
}

/// Counts the facts that a turn has written.
async fn count_of_turn(
    executor: impl PgExecutor<'_>,
    by: &WritingTurn<'_>,
) -> Result<usize, StatementError> {
    let n_facts = sqlx::query_scalar!(
        r#"select count(*) as "n!" from dalsegno.facts
            where campaign_id = $1 and session_id = $2 and turn = $3 and is_written"#,
        by.campaign_id,
        by.session_id,
        by.turn,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("count the facts of a turn"))?;
    Ok(usize::try_from(n_facts).unwrap_or(usize::MAX))
}
