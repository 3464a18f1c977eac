//! Waiting for the server at the start, and looking at the way to it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::{Connection as _, PgConnection, postgres::PgConnectOptions};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{Config, Database, Error, Pooler, address};
use crate::{causes::causes, clock};

const RECONNECT_PAUSE: Duration = Duration::from_millis(500);

/// Why an attempt failed.
enum Failure {
    /// Waiting does not help.
    Final(Error),
    Passing(sqlx::Error),
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Passing(error)
    }
}

impl Database {
    /// Connects outside the pool: the pool answers every failure alike, with a timeout that hides its cause.
    pub(super) async fn wait_until_reachable(
        &self,
        config: &Config,
        stop: &CancellationToken,
    ) -> Result<(), Error> {
        let started = Instant::now();
        let deadline = started + Duration::from_secs(config.connect_timeout_secs);
        // The deadline may come in the middle of an attempt; what the one before met says more.
        let mut last = sqlx::Error::Io(std::io::ErrorKind::TimedOut.into());
        loop {
            let attempt = timeout_at(deadline, self.try_reach(deadline));
            let error = match stop.run_until_cancelled(attempt).await {
                None => return Err(Error::Stopped),
                Some(Ok(Ok(()))) => return Ok(()),
                Some(Ok(Err(Failure::Final(error)))) => return Err(error),
                Some(Ok(Err(Failure::Passing(error)))) => error,
                Some(Err(_elapsed)) => last,
            };
            if Instant::now() + RECONNECT_PAUSE >= deadline {
                let waited_secs = started.elapsed().as_secs();
                let server = address(&self.options, &config.url_from);
                return Err(Error::Connect { server, waited_secs, source: error });
            }
            let server = address(&self.options, &config.url_from);
            tracing::warn!(error = causes(&error), server, "waiting for the database");
            last = error;
            let pause = stop.run_until_cancelled(tokio::time::sleep(RECONNECT_PAUSE));
            pause.await.ok_or(Error::Stopped)?;
        }
    }

    async fn try_reach(&self, deadline: Instant) -> Result<(), Failure> {
        let mut conn = self.connect(&self.options).await?;
        if !self.pooler.is_as_configured(&self.options, &mut conn).await? {
            return Err(Failure::Final(self.pooler.contradiction()));
        }
        if let (Pooler::Transaction, Some(direct)) = (self.pooler, &self.session_options) {
            let mut direct = self.connect(direct).await?;
            let is_same = location(&mut conn).await? == location(&mut direct).await?;
            let _ = timeout_at(deadline, direct.close()).await;
            if !is_same {
                return Err(Failure::Final(Error::DirectElsewhere));
            }
        }
        // It let us in, which is all that was asked. The pool measures its clock again.
        let _ = timeout_at(deadline, clock::follow_database(&mut conn)).await;
        let _ = timeout_at(deadline, conn.close()).await;
        Ok(())
    }

    async fn connect(&self, options: &PgConnectOptions) -> Result<PgConnection, Failure> {
        let connected = PgConnection::connect_with(options).await;
        connected.map_err(|error| match self.pooler.explain(&error) {
            Some(explained) => Failure::Final(explained),
            None if is_refusal(&error) => Failure::Final(Error::Refused(error)),
            None => Failure::Passing(error),
        })
    }
}

/// The database and the start of its server: the same on every way to it, and another on a standby.
async fn location(conn: &mut PgConnection) -> Result<(DateTime<Utc>, String), sqlx::Error> {
    let row = sqlx::query!(
        r#"select pg_postmaster_start_time() as "started_at!", current_database()::text as "name!""#
    );
    let row = row.fetch_one(conn).await?;
    Ok((row.started_at, row.name))
}

/// Errors that waiting does not mend: wrong password, no such role or database, no such permission.
fn is_refusal(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| code.starts_with("28") || code == "3D000" || code == "42501")
}
