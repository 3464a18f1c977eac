//! Recording a fact in its place in time.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Config, EndReason, Error, Fact, Source, Trust, key};
use crate::domain::{StatementError, ids};

/// A statement about a user.
#[derive(Debug, Clone, Copy)]
pub struct Statement<'a> {
    pub user: &'a str,
    pub attribute: &'a str,
    pub text: &'a str,
    pub said_at: DateTime<Utc>,
    pub expires_at: Option<DateTime<Utc>>,
    pub found: StatementOrigin<'a>,
}

/// The origin of a statement, which comes from rows and never from the text.
#[derive(Debug, Clone, Copy)]
pub enum StatementOrigin<'a> {
    /// Read from a request in a session.
    Extracted { campaign_id: Uuid, session_id: Uuid, turn: i32, task_id: Uuid, agent: &'a str },
    /// Written by an agent in its turn.
    Written { campaign_id: Uuid, session_id: Uuid, turn: i32, task_id: Uuid, agent: &'a str },
    /// Stated by a person.
    Stated { by: &'a str },
    /// Written by a person in place of another fact, which was said in this campaign.
    Edited { by: &'a str, campaign_id: Option<Uuid> },
}

/// The result of recording a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordOutcome {
    /// The fact. It may have ended already, if a later statement was known before.
    New(Box<Fact>),
    /// This fact says the same.
    Known(Uuid),
    /// This fact says the same, and was shown to the session.
    AlreadyShown(Uuid),
    /// The user has too many facts.
    Full,
}

/// Facts about one attribute around a moment.
struct Timeline {
    /// The fact that held at the moment.
    before: Option<Uuid>,
    /// The fact that was said next.
    next: Option<(Uuid, DateTime<Utc>)>,
}

/// Records a statement, closes the fact that it contradicts, and places it before later ones.
pub async fn record(
    conn: &mut PgConnection,
    stated: &Statement<'_>,
    (config, language): (&Config, &str),
    now: DateTime<Utc>,
) -> Result<RecordOutcome, Error> {
    super::check_name(stated.user)?;
    key::check(stated.attribute, stated.text)?;
    if let Some(end) = stated.expires_at.filter(|end| *end <= now) {
        return Err(Error::Expired(end));
    }
    lock_user(&mut *conn, stated.user).await?;
    end_expired(&mut *conn, stated, now).await?;
    if let Some(known) = find_known(&mut *conn, stated).await? {
        return Ok(known);
    }
    let Timeline { before, next } = timeline(&mut *conn, stated).await?;
    if before.is_none() && next.is_none() && is_full(&mut *conn, stated.user, config, now).await? {
        return Ok(RecordOutcome::Full);
    }
    let fact = stated.as_fact(next, now);
    // The earlier fact is closed first: an attribute has only one open fact at any moment.
    if let Some(before) = before {
        close(&mut *conn, before, fact.id, stated.said_at).await?;
    }
    insert(conn, &fact, language).await?;
    Ok(RecordOutcome::New(Box::new(fact)))
}

/// Makes writers about one user wait for each other until the end of the transaction.
pub(super) async fn lock_user(conn: &mut PgConnection, user: &str) -> Result<(), StatementError> {
    sqlx::query!("select pg_advisory_xact_lock(hashtextextended('dalsegno facts ' || $1, 0))", user)
        .fetch_one(conn)
        .await
        .map(|_| ())
        .map_err(StatementError::to("wait for other writers of facts about a user"))
}

/// Ends the expired facts with this text or attribute, so that the statement can be stored again. They are read as [`EndReason::Expired`].
async fn end_expired(
    conn: &mut PgConnection,
    stated: &Statement<'_>,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "update dalsegno.facts set valid_until = greatest(expires_at, valid_from), ended_because = 'revoked'
          where user_name = $1 and valid_until is null and expires_at <= $2 and (attribute_key = $3 or text_key = $4)",
        stated.user,
        now,
        key(stated.attribute),
        key(stated.text),
    )
    .execute(conn)
    .await
    .map(|_| ())
    .map_err(StatementError::to("end facts that have expired"))
}

/// Finds a fact that says the same, of the same attribute, or of any attribute for a sentence. It holds now, held at the moment, or was
/// shown to the session. A shown fact is ignored if the session knew by then that it had ended, from facts that it was told or from its own
/// messages.
async fn find_known(
    conn: &mut PgConnection,
    stated: &Statement<'_>,
) -> Result<Option<RecordOutcome>, StatementError> {
    let session_id = match stated.found {
        StatementOrigin::Extracted { session_id, .. }
        | StatementOrigin::Written { session_id, .. } => Some(session_id),
        StatementOrigin::Stated { .. } | StatementOrigin::Edited { .. } => None,
    };
    let found = sqlx::query!(
        r#"select f.id, f.valid_until is null or f.valid_from <= $3 and f.valid_until > $3 as "is_known!"
             from dalsegno.facts as f
            where f.user_name = $1 and f.text_key = $2 and (f.attribute_key = $5 or $6)
              and (f.valid_until is null or f.valid_from <= $3 and f.valid_until > $3
                   or exists (select from dalsegno.fact_showings as s where s.session_id = $4 and s.fact_id = f.id)
                      and not exists (
                        select from dalsegno.facts as n
                         where n.user_name = f.user_name and n.attribute_key = f.attribute_key
                           and n.valid_from > f.valid_from and n.valid_from <= $3
                           and (n.session_id = $4
                                or exists (select from dalsegno.fact_showings as s where s.session_id = $4 and s.fact_id = n.id))))
            order by f.valid_until is not null, f.id limit 1"#,
        stated.user,
        key(stated.text),
        stated.said_at,
        session_id,
        key(stated.attribute),
        key::is_sentence(stated.text),
    )
    .fetch_optional(conn)
    .await
    .map_err(StatementError::to("find a fact with the same content"))?;
    Ok(found.map(|found| match found.is_known {
        true => RecordOutcome::Known(found.id),
        false => RecordOutcome::AlreadyShown(found.id),
    }))
}

async fn timeline(
    conn: &mut PgConnection,
    stated: &Statement<'_>,
) -> Result<Timeline, StatementError> {
    let row = sqlx::query!(
        r#"select (select id from dalsegno.facts
                    where user_name = $1 and attribute_key = $2 and valid_from <= $3 and (valid_until is null or valid_until > $3)
                    order by valid_from desc, id desc limit 1) as before,
                  n.id as "next?", n.valid_from as "next_from?"
             from (select) as one
             left join lateral (select id, valid_from from dalsegno.facts
                                 where user_name = $1 and attribute_key = $2 and valid_from > $3
                                 order by valid_from, id limit 1) as n on true"#,
        stated.user,
        key(stated.attribute),
        stated.said_at,
    )
    .fetch_one(conn)
    .await
    .map_err(StatementError::to("find a contradicted fact"))?;
    Ok(Timeline { before: row.before, next: row.next.zip(row.next_from) })
}

async fn is_full(
    conn: &mut PgConnection,
    user: &str,
    config: &Config,
    now: DateTime<Utc>,
) -> Result<bool, StatementError> {
    let n_facts = sqlx::query_scalar!(
        r#"select count(*) as "n!" from dalsegno.facts
            where user_name = $1 and valid_until is null and (expires_at is null or expires_at > $2)"#,
        user,
        now,
    )
    .fetch_one(conn)
    .await
    .map_err(StatementError::to("count the facts about a user"))?;
    Ok(n_facts >= config.user_max)
}

async fn close(
    conn: &mut PgConnection,
    id: Uuid,
    by: Uuid,
    at: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "update dalsegno.facts set valid_until = $3, ended_because = 'contradicted', replaced_by = $2 where id = $1",
        id,
        by,
        at,
    )
    .execute(conn)
    .await
    .map(|_| ())
    .map_err(StatementError::to("close a fact that is contradicted"))
}

async fn insert(
    conn: &mut PgConnection,
    fact: &Fact,
    language: &str,
) -> Result<(), StatementError> {
    sqlx::query!(
        "insert into dalsegno.facts
                (id, user_name, attribute, attribute_key, text, text_key, source, trust, author, campaign_id, session_id, turn, task_id,
                 recorded_at, valid_from, valid_until, ended_because, replaced_by, expires_at, language, is_written)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)",
        fact.id,
        fact.user,
        fact.attribute,
        key(&fact.attribute),
        fact.text,
        key(&fact.text),
        stored_source(fact.source) as Source,
        fact.trust as Trust,
        fact.author,
        fact.campaign_id,
        fact.session_id,
        fact.turn,
        fact.task_id,
        fact.recorded_at,
        fact.valid_from,
        fact.valid_until,
        fact.ended_because as Option<EndReason>,
        fact.replaced_by,
        fact.expires_at,
        language,
        fact.source == Source::Written,
    )
    .execute(conn)
    .await
    .map(|_| ())
    .map_err(StatementError::to("store a fact"))
}

/// Returns the source as its column has it. Older versions of the service do not know written facts.
fn stored_source(source: Source) -> Source {
    if source == Source::Written { Source::Extracted } else { source }
}

impl Statement<'_> {
    fn as_fact(&self, next: Option<(Uuid, DateTime<Utc>)>, now: DateTime<Utc>) -> Fact {
        let (source, trust, author) = match self.found {
            StatementOrigin::Extracted { agent, .. } => (Source::Extracted, Trust::Agent, agent),
            StatementOrigin::Written { agent, .. } => (Source::Written, Trust::Agent, agent),
            StatementOrigin::Stated { by } => (Source::Stated, Trust::Operator, by),
            StatementOrigin::Edited { by, .. } => (Source::Edited, Trust::Operator, by),
        };
        let (campaign_id, session_id, turn, task_id) = match self.found {
            StatementOrigin::Extracted { campaign_id, session_id, turn, task_id, .. }
            | StatementOrigin::Written { campaign_id, session_id, turn, task_id, .. } => {
                (Some(campaign_id), Some(session_id), Some(turn), Some(task_id))
            }
            StatementOrigin::Edited { campaign_id, .. } => (campaign_id, None, None, None),
            StatementOrigin::Stated { .. } => (None, None, None, None),
        };
        Fact {
            id: ids::new_at(now),
            user: self.user.to_owned(),
            attribute: self.attribute.to_owned(),
            text: self.text.to_owned(),
            source,
            trust,
            author: author.to_owned(),
            campaign_id,
            session_id,
            turn,
            task_id,
            recorded_at: now,
            valid_from: self.said_at,
            valid_until: next.map(|(_, from)| from),
            ended_because: next.map(|_| EndReason::Contradicted),
            replaced_by: next.map(|(id, _)| id),
            expires_at: self.expires_at,
        }
    }
}
