//! Changes of facts by people.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Config, EndReason, Error, Fact, RecordOutcome, Statement, StatementOrigin, check_name, get,
    key,
    record::{lock_user, record},
    users::check_and_lock_campaign,
};
use crate::domain::{StatementError, campaigns, operation_keys};

/// The facts that were removed about a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = FactsForgotten)]
pub struct ForgetResult {
    pub facts: i64,
    /// Sessions in which facts were said or shown: their transcripts and summaries stay. The newest 10,000; some may be removed already.
    pub sessions: Vec<Uuid>,
}

/// Records a person's statement about a user. It closes the fact that it contradicts.
pub async fn record_statement(
    conn: &mut PgConnection,
    (user, attribute, text): (&str, &str, &str),
    expires_at: Option<DateTime<Utc>>,
    by: &str,
    settings: (&Config, &str),
    now: DateTime<Utc>,
) -> Result<Fact, Error> {
    let found = StatementOrigin::Stated { by };
    let stated = Statement { user, attribute, text, said_at: now, expires_at, found };
    write(conn, &stated, settings, now).await
}

/// Replaces the text of a current fact. The older fact stays, with its time. A fact of a closed campaign cannot be edited: a person has to
/// state a new one.
pub async fn edit(
    conn: &mut PgConnection,
    (user, id): (&str, Uuid),
    text: &str,
    by: &str,
    settings: (&Config, &str),
    now: DateTime<Utc>,
) -> Result<Fact, Error> {
    lock_user(&mut *conn, user).await?;
    let before = get_current(&mut *conn, user, id, now).await?;
    key::check(&before.attribute, text)?;
    // The new text belongs to the same campaign, and is erased with it.
    if let Some(campaign_id) = before.campaign_id {
        match check_and_lock_campaign(&mut *conn, campaign_id).await {
            Err(Error::Campaign(campaigns::Error::Closed(id))) => {
                return Err(Error::SaidInClosed(id));
            }
            held => held?,
        }
    }
    end(&mut *conn, &before, EndReason::Edited, now).await?;
    let stated = Statement {
        user,
        attribute: &before.attribute,
        text,
        said_at: now,
        expires_at: before.expires_at,
        found: StatementOrigin::Edited { by, campaign_id: before.campaign_id },
    };
    let fact = write(&mut *conn, &stated, settings, now).await?;
    sqlx::query!("update dalsegno.facts set replaced_by = $2 where id = $1", before.id, fact.id)
        .execute(conn)
        .await
        .map_err(StatementError::to("record the successor of a fact"))?;
    Ok(fact)
}

/// Ends a fact. It stays listed with those that ended.
pub async fn revoke(
    conn: &mut PgConnection,
    user: &str,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<Fact, Error> {
    lock_user(&mut *conn, user).await?;
    let fact = get_current(&mut *conn, user, id, now).await?;
    end(&mut *conn, &fact, EndReason::Revoked, now).await?;
    get(conn, user, id).await
}

/// Removes all facts about a user for good, including those that ended. Requests up to now are not read for facts any more. Later requests
/// are, in campaigns that still work for this user. Transcripts stay.
pub async fn forget(
    conn: &mut PgConnection,
    user: &str,
    now: DateTime<Utc>,
) -> Result<ForgetResult, Error> {
    check_name(user)?;
    lock_user(&mut *conn, user).await?;
    // Locked in the order in which sessions are shown facts, which avoids a deadlock.
    let row = sqlx::query!(
        r#"with going as materialized (select id, session_id from dalsegno.facts where user_name = $1 order by id for update),
                concerned as materialized (
                  select s.session_id from dalsegno.fact_showings as s where s.fact_id in (select id from going)
                  union select session_id from going where session_id is not null),
                gone as (delete from dalsegno.facts where id in (select id from going) returning 1),
                later as (update dalsegno.campaign_users set since = $2 where user_name = $1)
           select (select count(*) from gone) as "facts!",
                  array(select session_id from concerned order by session_id desc limit 10000) as "sessions!""#,
        user,
        now,
    )
    .fetch_one(&mut *conn)
    .await
    .map_err(StatementError::to("forget a user"))?;
    operation_keys::remove_of_user(conn, user).await?;
    Ok(ForgetResult { facts: row.facts, sessions: row.sessions })
}

async fn write(
    conn: &mut PgConnection,
    stated: &Statement<'_>,
    settings: (&Config, &str),
    now: DateTime<Utc>,
) -> Result<Fact, Error> {
    match record(conn, stated, settings, now).await? {
        RecordOutcome::New(fact) => Ok(*fact),
        RecordOutcome::Known(id) | RecordOutcome::AlreadyShown(id) => Err(Error::Known(id)),
        RecordOutcome::Full => {
            Err(Error::Full { user: stated.user.to_owned(), limit: settings.0.user_max })
        }
    }
}

async fn get_current(
    conn: &mut PgConnection,
    user: &str,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<Fact, Error> {
    let fact = get(conn, user, id).await?;
    match (fact.is_current(now), fact.valid_until.or(fact.expires_at)) {
        (false, Some(end)) => Err(Error::Ended(end)),
        _ => Ok(fact),
    }
}

async fn end(
    conn: &mut PgConnection,
    fact: &Fact,
    because: EndReason,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "update dalsegno.facts set valid_until = greatest($2, valid_from), ended_because = $3 where id = $1",
        fact.id,
        now,
        because as EndReason,
    )
    .execute(conn)
    .await
    .map(|_| ())
    .map_err(StatementError::to("end a fact"))
}
