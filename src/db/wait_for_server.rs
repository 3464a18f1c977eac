//! Waiting for the server at the start, and checks of the pooler settings. Later steps of the start wait in the same
//! way.

use std::{error::Error as StdError, time::Duration};

use chrono::{DateTime, Utc};
use sqlx::{Connection as _, PgConnection, postgres::PgConnectOptions};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{CLOSE_LIMIT, Config, DIRECT_URL, Database, Error, Pooler, URL, address};
use crate::{causes::causes, clock};

const RECONNECT_PAUSE: Duration = Duration::from_millis(500);
/// Least time between two log lines about a database that is away.
const LOG_PERIOD: Duration = Duration::from_secs(10);

/// A path to the server, and the setting that configures it.
#[derive(Clone, Copy)]
struct ServerAddress<'a> {
    setting: &'static str,
    options: &'a PgConnectOptions,
    pooler: Pooler,
    /// Origin of its address, for messages.
    named_by: &'a str,
}

/// The log of a wait: the first failure, then one line per [`LOG_PERIOD`].
#[derive(Default)]
struct WaitLog {
    last: Option<Instant>,
}

impl WaitLog {
    fn warn(&mut self, error: &dyn StdError, server: &str, deadline: Instant) {
        let now = Instant::now();
        if self.is_due(now) {
            let remaining_secs = deadline.saturating_duration_since(now).as_secs();
            tracing::warn!(
                error = causes(error),
                server,
                remaining_secs,
                "waiting for the database"
            );
        }
    }

    fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.last.is_none_or(|last| now.duration_since(last) >= LOG_PERIOD);
        if is_due {
            self.last = Some(now);
        }
        is_due
    }
}

/// Reason why an attempt failed.
enum Failure<'a> {
    /// A retry does not help.
    Final(Error),
    Passing(ServerAddress<'a>, sqlx::Error),
    /// The deadline came during the attempt.
    Late(ServerAddress<'a>),
}

impl Database {
    /// Runs a step of the start, with retries for `connect_timeout_secs` while the database is away. `is_away` tells
    /// errors that waiting may solve. A step that waits long for something else, such as the schema, restarts that
    /// time.
    pub async fn retry_while_away<E: From<Error> + StdError + 'static>(
        &self,
        config: &Config,
        stop: &CancellationToken,
        is_away: impl Fn(&E) -> bool,
        step: impl AsyncFn() -> Result<(), E>,
    ) -> Result<(), E> {
        let limit = Duration::from_secs(config.connect_timeout_secs);
        let (mut deadline, mut log) = (None, WaitLog::default());
        loop {
            let began = Instant::now();
            let error = match stop.run_until_cancelled(step()).await {
                None => return Err(Error::Stopped.into()),
                Some(Err(error)) if is_away(&error) => error,
                Some(done) => return done,
            };
            // A step that only waited for a connection does not restart the time.
            let longest = limit + Duration::from_secs(config.acquire_timeout_secs);
            if began.elapsed() >= longest {
                deadline = None;
            }
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + limit);
            if Instant::now() + RECONNECT_PAUSE >= deadline {
                return Err(error);
            }
            log.warn(&error, &address(&self.options, &config.url_from), deadline);
            let pause = stop.run_until_cancelled(tokio::time::sleep(RECONNECT_PAUSE));
            pause.await.ok_or(Error::Stopped)?;
        }
    }

    /// Waits for the server. It connects outside the pool, whose timeout would hide the cause of a failure.
    pub(super) async fn wait_until_reachable(
        &self,
        config: &Config,
        stop: &CancellationToken,
    ) -> Result<(), Error> {
        let started = Instant::now();
        let deadline = started + Duration::from_secs(config.connect_timeout_secs);
        let (mut last, mut log) = (None, WaitLog::default());
        loop {
            let attempt = Box::pin(self.try_reach(config, deadline));
            let (way, error) = match stop.run_until_cancelled(attempt).await {
                None => return Err(Error::Stopped),
                Some(Ok(())) => return Ok(()),
                Some(Err(Failure::Final(error))) => return Err(error),
                Some(Err(Failure::Passing(way, error))) => (way, error),
                Some(Err(Failure::Late(way))) => (way, way.timed_out(last)),
            };
            let server = address(way.options, way.named_by);
            if Instant::now() + RECONNECT_PAUSE >= deadline {
                // Rounded up by the pause that would pass the deadline.
                let waited_secs = (started.elapsed() + RECONNECT_PAUSE).as_secs();
                let (setting, source) = (way.setting, error.into());
                return Err(Error::Connect { setting, server, waited_secs, source });
            }
            log.warn(&error, &server, deadline);
            last = Some((way.setting, error));
            let pause = stop.run_until_cancelled(tokio::time::sleep(RECONNECT_PAUSE));
            pause.await.ok_or(Error::Stopped)?;
        }
    }

    async fn try_reach<'a>(
        &'a self,
        config: &'a Config,
        deadline: Instant,
    ) -> Result<(), Failure<'a>> {
        let (pooler, named_by) = (self.pooler, config.url_from.as_str());
        let way = ServerAddress { setting: URL, options: &self.options, pooler, named_by };
        let mut conn = way.connect(deadline).await?;
        if let (Pooler::Transaction, Some(options)) = (self.pooler, &self.session_options) {
            let past = ServerAddress {
                setting: DIRECT_URL,
                options,
                pooler: Pooler::None,
                named_by: DIRECT_URL,
            };
            let mut direct = past.connect(deadline).await?;
            let there = past.until(deadline, location(&mut direct)).await?;
            let is_same = way.until(deadline, location(&mut conn)).await? == there;
            let _ = timeout(CLOSE_LIMIT, direct.close()).await;
            if !is_same {
                return Err(Failure::Final(Error::DirectElsewhere));
            }
        }
        // The server has accepted us. Errors of this measurement do not matter: the pool measures again.
        let _ = timeout_at(deadline, clock::follow_database(&mut conn)).await;
        let _ = timeout_at(deadline, conn.close()).await;
        Ok(())
    }
}

impl<'a> ServerAddress<'a> {
    /// Connects, and checks that the connection passes the pooler that the settings name.
    async fn connect(self, deadline: Instant) -> Result<PgConnection, Failure<'a>> {
        let mut conn = self.until(deadline, PgConnection::connect_with(self.options)).await?;
        let looked = self.pooler.is_as_configured(self.options, &mut conn);
        match self.until(deadline, looked).await? {
            true => Ok(conn),
            false => Err(Failure::Final(self.contradiction())),
        }
    }

    async fn until<T>(
        self,
        deadline: Instant,
        step: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, Failure<'a>> {
        match timeout_at(deadline, step).await {
            Ok(done) => done.map_err(|error| self.failure(error)),
            Err(_elapsed) => Err(Failure::Late(self)),
        }
    }

    fn failure(self, error: sqlx::Error) -> Failure<'a> {
        if self.pooler.is_contradicted_by(&error) {
            return Failure::Final(self.contradiction());
        }
        match is_refusal(&error) {
            true => Failure::Final(Error::Refused { setting: self.setting, source: error }),
            false => Failure::Passing(self, error),
        }
    }

    /// Builds the error for a pooler, or a missing one, that contradicts the setting.
    fn contradiction(self) -> Error {
        match (self.setting, self.pooler) {
            (DIRECT_URL, _) => Error::DirectPooled,
            (_, Pooler::None) => Error::PoolerNotSet,
            (_, Pooler::Transaction) => Error::PoolerNotSupported,
        }
    }

    /// Returns the last error on this path, if there is one: it says more than a timeout in the middle of an attempt.
    fn timed_out(self, last: Option<(&'static str, sqlx::Error)>) -> sqlx::Error {
        match last {
            Some((setting, error)) if setting == self.setting => error,
            _ => sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Reads the database and the start time of its server: equal on every path to it, different on a standby.
async fn location(conn: &mut PgConnection) -> Result<(DateTime<Utc>, String), sqlx::Error> {
    let row = sqlx::query!(
        r#"select pg_postmaster_start_time() as "started_at!", current_database()::text as "name!""#
    );
    let row = row.fetch_one(conn).await?;
    Ok((row.started_at, row.name))
}

/// Returns true for errors that waiting does not solve: a wrong password, an unknown role or database, a missing
/// permission.
fn is_refusal(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| code.starts_with("28") || code == "3D000" || code == "42501")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_is_logged_and_then_one_per_period() {
        let (mut log, begin) = (WaitLog::default(), Instant::now());
        let due =
            (0..50).filter(|n| log.is_due(begin + RECONNECT_PAUSE * *n)).collect::<Vec<u32>>();
        assert_eq!(due, [0, 20, 40]);
    }
}
