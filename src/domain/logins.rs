//! Credentials that hit their limit: they are paused until a time, on all workers at once.

use crate::domain::class::{Class, Classify, Kind};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgExecutor};

use super::{Failed, sessions, tasks::RunTurn};
use crate::queue::{self, Job as _, admin};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resting {
    pub login: String,
    pub until: DateTime<Utc>,
    pub why: String,
}

/// A credential of a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Login {
    pub provider: String,
    pub login: String,
    /// True: the configuration of the process that answers has it.
    pub is_configured: bool,
    /// End of the pause, while it is paused.
    pub rests_until: Option<DateTime<Utc>>,
    pub why: Option<String>,
    /// Open sessions that began with this credential and stay with it.
    pub sessions: i64,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("credential `{0}` is not paused: `dalsegno login ls` lists the paused ones")]
    NotResting(String),
    #[error(
        "credentials `{login}` of several providers are paused ({}): name one provider with `--provider`, or in the field `provider`",
        .providers.join(", ")
    )]
    Ambiguous { login: String, providers: Vec<String> },
    #[error("cannot wake the tasks that wait for a credential: {0}")]
    Wake(#[from] queue::Error),
    #[error(transparent)]
    Database(#[from] Failed),
}

impl Error {
    pub const NOT_RESTING: Class = Class::of(Kind::NotFound, "login_not_resting");
    pub const AMBIGUOUS: Class = Class::of(Kind::Conflict, "ambiguous_login");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::NotResting(_) => Self::NOT_RESTING,
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
) -> Result<Vec<Login>, Failed> {
    let plain = |provider: &str, login: &str, is_configured| Login {
        provider: provider.to_owned(),
        login: login.to_owned(),
        is_configured,
        rests_until: None,
        why: None,
        sessions: 0,
    };
    let mut all: Vec<Login> =
        configured.iter().map(|(provider, login)| plain(provider, login, true)).collect();
    let place = |all: &mut Vec<Login>, provider: &str, login: &str| {
        let known = all.iter().position(|one| one.provider == provider && one.login == login);
        known.unwrap_or_else(|| {
            all.push(plain(provider, login, false));
            all.len() - 1
        })
    };
    for (provider, resting) in all_resting(&mut *conn, now).await? {
        let at = place(&mut all, &provider, &resting.login);
        (all[at].rests_until, all[at].why) = (Some(resting.until), Some(resting.why));
    }
    for on_login in sessions::by_login(conn).await? {
        let at = place(&mut all, &on_login.provider, &on_login.login);
        all[at].sessions = on_login.sessions;
    }
    Ok(all)
}

/// Ends the rest of a login on all workers, and wakes the tasks that were put off: those that waited for something else
/// are put off again. Gives its provider, and how many tasks. Without a provider the name has to be that of one resting login. The caller
/// commits, or rolls back after an error.
pub async fn resume(
    conn: &mut PgConnection,
    (provider, login): (Option<&str>, &str),
    now: DateTime<Utc>,
) -> Result<(String, i64), Error> {
    let mut providers = sqlx::query_scalar!(
        "delete from dalsegno.resting_logins where login = $1 and until > $2 and ($3::text is null or provider = $3)
         returning provider",
        login,
        now,
        provider,
    )
    .fetch_all(&mut *conn)
    .await
    .map_err(Failed::to("resume a credential"))?;
    let provider = providers.pop().ok_or_else(|| Error::NotResting(login.to_owned()))?;
    if !providers.is_empty() {
        providers.push(provider);
        providers.sort();
        return Err(Error::Ambiguous { login: login.to_owned(), providers });
    }
    Ok((provider, admin::wake_snoozed(conn, RunTurn::KIND).await?))
}

/// Pauses a credential. Of two times the later one counts.
pub async fn rest(
    executor: impl PgExecutor<'_>,
    provider: &str,
    resting: &Resting,
) -> Result<(), Failed> {
    sqlx::query!(
        "insert into dalsegno.resting_logins as r (provider, login, until, why) values ($1, $2, $3, $4)
         on conflict (provider, login) do update set until = excluded.until, why = excluded.why
          where r.until < excluded.until",
        provider,
        resting.login,
        resting.until,
        resting.why,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(Failed::to("pause a credential"))
}

/// Lists the credentials of a provider that are paused at this time.
pub async fn resting(
    executor: impl PgExecutor<'_>,
    provider: &str,
    now: DateTime<Utc>,
) -> Result<Vec<Resting>, Failed> {
    sqlx::query_as!(
        Resting,
        "select login, until, why from dalsegno.resting_logins where provider = $1 and until > $2 order by login",
        provider,
        now,
    )
    .fetch_all(executor)
    .await
    .map_err(Failed::to("list paused credentials"))
}

async fn all_resting(
    executor: impl PgExecutor<'_>,
    now: DateTime<Utc>,
) -> Result<Vec<(String, Resting)>, Failed> {
    let rows = sqlx::query!(
        "select provider, login, until, why from dalsegno.resting_logins where until > $1 order by provider, login",
        now,
    )
    .fetch_all(executor)
    .await
    .map_err(Failed::to("list paused credentials"))?;
    let resting = rows
        .into_iter()
        .map(|row| (row.provider, Resting { login: row.login, until: row.until, why: row.why }));
    Ok(resting.collect())
}
