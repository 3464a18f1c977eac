//! Adding posts.

use chrono::{DateTime, SubsecRound as _, Utc};
use sqlx::{PgExecutor, error::DatabaseError};
use uuid::Uuid;

use super::{
    Error, New, OPERATOR, Origin, Post, SYSTEM, Sender, SourceTurn, TEXT_MAX_BYTES, Trust, reader,
};
use crate::domain::{StatementError, ids, text};

/// Checks the text of a post. A post that also adds tasks checks it first: it is their prompt, too, and the author knows no prompt.
pub fn check_text(text: &str) -> Result<(), Error> {
    Ok(text::check("text of the post", text, TEXT_MAX_BYTES)?)
}

/// Writes a post, its visibility and its feed event in one statement. Locks the board until the transaction ends.
pub async fn add(
    executor: impl PgExecutor<'_>,
    new: &New<'_>,
    now: DateTime<Utc>,
) -> Result<Post, Error> {
    check_text(new.text)?;
    let id = ids::new_at(now);
    let (origin, sender, task_id, said) = new.sender.columns();
    let author = new.sender.author();
    let added = sqlx::query!(
        r#"select dalsegno.add_post($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) as "seq!",
                  dalsegno.trust_of_post($4, $13) as "trust!: Trust""#,
        new.campaign_id,
        id,
        now,
        origin as Origin,
        sender,
        new.audience.names(),
        new.text,
        new.reply_to,
        task_id,
        said.map(|said| said.session_id),
        said.map(|said| said.turn),
        said.and_then(|said| said.message_id),
        author,
    )
    .fetch_one(executor)
    .await
    .map_err(|error| refused(error, new))?;
    Ok(Post {
        id,
        seq: added.seq,
        sender,
        origin,
        trust: added.trust,
        author: author.map(str::to_owned),
        audience: new.audience.names().to_vec(),
        reply_to: new.reply_to,
        // Microseconds, as Postgres stores the time: later readers get the same value.
        posted_at: now.trunc_subsecs(6),
        task_id,
        session_id: said.map(|said| said.session_id),
        turn: said.map(|said| said.turn),
        text: new.text.to_owned(),
    })
}

impl Sender<'_> {
    fn author(&self) -> Option<&str> {
        match *self {
            Self::Operator { author } => Some(author),
            Self::System { .. } | Self::Agent { .. } => None,
        }
    }

    fn columns(&self) -> (Origin, String, Option<Uuid>, Option<SourceTurn>) {
        match *self {
            Self::Operator { .. } => (Origin::Operator, OPERATOR.to_owned(), None, None),
            Self::System { task_id } => (Origin::System, SYSTEM.to_owned(), task_id, None),
            Self::Agent { agent, instance, said } => {
                let name = reader(agent, instance).into_owned();
                (Origin::Agent, name, Some(said.task_id), Some(said))
            }
        }
    }
}

/// Maps errors of `dalsegno.add_post`.
fn refused(source: sqlx::Error, new: &New<'_>) -> Error {
    let said = source.as_database_error();
    let code = said.and_then(DatabaseError::code).unwrap_or_default().into_owned();
    let constraint = said.and_then(DatabaseError::constraint).unwrap_or_default();
    match (code.as_str(), constraint, new.reply_to) {
        ("DS404", "posts_reply_to", Some(reply_to)) => Error::UnknownPost(reply_to),
        ("DS404", _, _) => Error::UnknownCampaign(new.campaign_id),
        ("DS409", _, _) => Error::Closed(new.campaign_id),
        _ => StatementError { action: "add a post", source }.into(),
    }
}
