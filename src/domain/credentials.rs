//! Credentials that hit their limit: they are paused until a time, on all workers at once.

use crate::domain::class::{Class, Classify, Kind};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgExecutor};

use super::{StatementError, sessions, tasks::RunTurn};
use crate::queue::{self, Job as _, admin};

/// A credential that is paused because it hit its limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PausedCredential {
    pub name: String,
    pub until: DateTime<Utc>,
    pub why: String,
}

/// A credential of a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CredentialStatus {
    pub provider: String,
    pub name: String,
    /// True: the configuration of the process that answers has it.
    pub is_configured: bool,
    /// End of the pause, while it is paused.
    pub paused_until: Option<DateTime<Utc>>,
    pub why: Option<String>,
    /// Open sessions that began with this credential and stay with it.
    pub sessions: i64,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("credential `{0}` is not paused: `dalsegno credential ls` lists the paused ones")]
    NotPaused(String),
    #[error(
        "credential `{name}` is paused at several providers ({}): name one of them with `--provider`, or in the field `provider`",
        .providers.join(", ")
    )]
    Ambiguous { name: String, providers: Vec<String> },
    #[error("cannot wake the tasks that wait for a credential: {0}")]
    Wake(#[from] queue::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Error {
    pub const NOT_PAUSED: Class = Class::of(Kind::NotFound, "credential_not_paused");
    pub const AMBIGUOUS: Class = Class::of(Kind::Conflict, "ambiguous_credential");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::NotPaused(_) => Self::NOT_PAUSED,
            Self::Ambiguous { .. } => Self::AMBIGUOUS,
            Self::Wake(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

/// Lists the credentials that are configured, paused, or in use by open sessions. `configured`: provider and name.
pub async fn list(
    conn: &mut PgConnection,
    configured: &[(&str, &str)],
    now: DateTime<Utc>,
) -> Result<Vec<CredentialStatus>, StatementError> {
    let unpaused = |provider: &str, name: &str, is_configured| CredentialStatus {
        provider: provider.to_owned(),
        name: name.to_owned(),
        is_configured,
        paused_until: None,
        why: None,
        sessions: 0,
    };
    let mut all: Vec<CredentialStatus> =
        configured.iter().map(|(provider, name)| unpaused(provider, name, true)).collect();
    let place = |all: &mut Vec<CredentialStatus>, provider: &str, name: &str| {
        let known = all.iter().position(|one| one.provider == provider && one.name == name);
        known.unwrap_or_else(|| {
            all.push(unpaused(provider, name, false));
            all.len() - 1
        })
    };
    for (provider, paused) in all_paused(&mut *conn, now).await? {
        let at = place(&mut all, &provider, &paused.name);
        (all[at].paused_until, all[at].why) = (Some(paused.until), Some(paused.why));
    }
    for in_use in sessions::uses_by_credential(conn).await? {
        let at = place(&mut all, &in_use.provider, &in_use.credential);
        all[at].sessions = in_use.sessions;
    }
    Ok(all)
}

/// Lists the paused credentials. Sessions are counted only if there is one.
pub async fn list_paused(
    conn: &mut PgConnection,
    now: DateTime<Utc>,
) -> Result<Vec<CredentialStatus>, StatementError> {
    if all_paused(&mut *conn, now).await?.is_empty() {
        return Ok(Vec::new());
    }
    let all = list(conn, &[], now).await?;
    Ok(all.into_iter().filter(|one| one.paused_until.is_some()).collect())
}

/// Ends the pause of a credential on all workers, and wakes all tasks that wait until a time: those that wait for something
/// else go back to waiting. Returns its provider and the number of woken tasks. Without a provider the name has to belong to
/// exactly one paused credential. The caller commits, or rolls back after an error.
pub async fn resume(
    conn: &mut PgConnection,
    (provider, name): (Option<&str>, &str),
    now: DateTime<Utc>,
) -> Result<(String, i64), Error> {
    let mut providers = sqlx::query_scalar!(
        "delete from dalsegno.paused_credentials where credential = $1 and until > $2 and ($3::text is null or provider = $3)
         returning provider",
        name,
        now,
        provider,
    )
    .fetch_all(&mut *conn)
    .await
    .map_err(StatementError::to("resume a credential"))?;
    let provider = providers.pop().ok_or_else(|| Error::NotPaused(name.to_owned()))?;
    if !providers.is_empty() {
        providers.push(provider);
        providers.sort();
        return Err(Error::Ambiguous { name: name.to_owned(), providers });
    }
    Ok((provider, admin::wake_snoozed(conn, RunTurn::KIND).await?))
}

/// Pauses a credential. Of two times the later one counts.
pub async fn pause(
    executor: impl PgExecutor<'_>,
    provider: &str,
    paused: &PausedCredential,
) -> Result<(), StatementError> {
    sqlx::query!(
        "insert into dalsegno.paused_credentials as p (provider, credential, until, why) values ($1, $2, $3, $4)
         on conflict (provider, credential) do update set until = excluded.until, why = excluded.why
          where p.until < excluded.until",
        provider,
        paused.name,
        paused.until,
        paused.why,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(StatementError::to("pause a credential"))
}

/// Lists the credentials of a provider that are paused at this time.
pub async fn paused(
    executor: impl PgExecutor<'_>,
    provider: &str,
    now: DateTime<Utc>,
) -> Result<Vec<PausedCredential>, StatementError> {
    sqlx::query_as!(
        PausedCredential,
        "select credential as name, until, why from dalsegno.paused_credentials where provider = $1 and until > $2 order by credential",
        provider,
        now,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("look for paused credentials"))
}

async fn all_paused(
    executor: impl PgExecutor<'_>,
    now: DateTime<Utc>,
) -> Result<Vec<(String, PausedCredential)>, StatementError> {
    let rows = sqlx::query!(
        "select provider, credential, until, why from dalsegno.paused_credentials where until > $1 order by provider, credential",
        now,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the paused credentials"))?;
    let paused = rows.into_iter().map(|row| {
        (row.provider, PausedCredential { name: row.credential, until: row.until, why: row.why })
    });
    Ok(paused.collect())
}
