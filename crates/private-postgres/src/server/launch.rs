//! Starts the server of a cluster from any state that it was left in.

use std::process::Stdio;
use std::time::Duration;

use secrecy::SecretString;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use tokio::time::{Instant, sleep, timeout};

use super::Server;
use super::takeover::{self, DataFolderState};
use crate::address::{Address, DATABASE};
use crate::binaries::Binaries;
use crate::command::Runner;
use crate::home::Home;
use crate::occupancy::Vacancy;
use crate::pidfile::PidFile;
use crate::{Error, Purpose, init, log_file, poll, settings};
use dalsegno_base::causes::causes;

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// A cluster on disk, with the settings of its server.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub home: Home,
    pub binaries: Binaries,
    pub runner: Runner,
    pub purpose: Purpose,
    pub password: SecretString,
    pub start_limit: Duration,
    pub stop_limit: Duration,
}

impl Cluster {
    /// Takes over the running server or starts one; returns when it accepts connections.
    pub async fn adopt_or_launch(&self, mut address: Address, port: Port) -> Result<Server, Error> {
        let deadline = Instant::now() + self.start_limit;
        loop {
            let vacancy = match takeover::wait_until_settled(&self.home, deadline).await? {
                DataFolderState::Vacant(vacancy) => vacancy,
                DataFolderState::Running(record) => match self.adopt(&record).await? {
                    Some(server) => return Ok(server),
                    None => continue,
                },
            };
            match self.launch(vacancy, &address, deadline).await {
                Err(Error::EndedAtStart { tail, .. })
                    if Instant::now() < deadline && is_transient(&tail) =>
                {
                    tracing::info!(%address, "cannot start the private Postgres yet, trying again");
                    if port == Port::MayChange && lost_its_port(&tail) {
                        address = address.with_new_port()?;
                    }
                    sleep(RETRY_PAUSE).await;
                }
                result => return result,
            }
        }
    }

    pub fn connect_options(&self, address: &Address) -> PgConnectOptions {
        address.connect_options(&self.password)
    }

    /// Takes over a running server. Ends one that refuses our connections (its folder was moved, its password replaced).
    async fn adopt(&self, record: &PidFile) -> Result<Option<Server>, Error> {
        let server = Server {
            pid: record.pid,
            address: Address::from_pid_file(record),
            home: self.home.clone(),
            child: None,
        };
        match self.ensure_database(&server.address).await {
            Ok(()) => {
                tracing::info!(pid = server.pid, address = %server.address, "using the private Postgres that is already running");
                Ok(Some(server))
            }
            Err(error) => {
                tracing::warn!(
                    pid = server.pid,
                    error = causes(&error),
                    "restarting a private Postgres that refuses all connections"
                );
                server.stop(self.stop_limit).await?;
                Ok(None)
            }
        }
    }

    async fn launch(
        &self,
        vacancy: Vacancy,
        address: &Address,
        deadline: Instant,
    ) -> Result<Server, Error> {
        let begun = Instant::now();
        let (mut server, log_start) = self.spawn(vacancy, address)?;
        self.wait_until_ready(&mut server, log_start, deadline).await?;
        self.ensure_database(address)
            .await
            .map_err(|source| self.connect_error(source, log_start))?;
        tracing::info!(pid = server.pid, %address, took_ms = begun.elapsed().as_millis(), "private Postgres started");
        Ok(server)
    }

    fn spawn(&self, vacancy: Vacancy, address: &Address) -> Result<(Server, u64), Error> {
        settings::write(&self.home, self.purpose)?;
        init::make_servers_dir(&self.home.run(), &self.runner)?;
        let (log, log_start) = log_file::open(&self.home.log_file())?;
        let second =
            log.try_clone().map_err(Error::folder("open the log", &self.home.log_file()))?;
        let program = self.binaries.program("postgres");
        let mut command = self.runner.command(&program, self.home.root());
        command.arg("-D").arg(self.home.data());
        let config_file = format!("config_file={}", self.home.settings_file().display());
        let cluster_name = format!("cluster_name={}", self.home.cluster_name());
        for setting in [config_file, cluster_name].into_iter().chain(address.server_settings()) {
            command.arg("-c").arg(setting);
        }
        command.stdin(vacancy.into_stdin()).stdout(Stdio::from(log)).stderr(Stdio::from(second));
        let mut command = tokio::process::Command::from(command);
        let child = command.spawn().map_err(|source| Error::Run { program, source })?;
        let server = Server {
            pid: child.id().unwrap_or_default(),
            address: address.clone(),
            home: self.home.clone(),
            child: Some(child),
        };
        Ok((server, log_start))
    }

    async fn wait_until_ready(
        &self,
        server: &mut Server,
        log_start: u64,
        deadline: Instant,
    ) -> Result<(), Error> {
        let log = self.home.log_file();
        let ready = poll::until(deadline, || {
            if !server.is_alive() {
                return Err(Error::EndedAtStart {
                    log: log.clone(),
                    tail: log_file::tail(&log, log_start),
                });
            }
            let record = PidFile::read(&self.home.data())?;
            Ok(record.filter(|record| record.pid == server.pid && record.is_ready))
        });
        match ready.await? {
            Some(_) => Ok(()),
            None => Err(Error::StartTimeout {
                waited_secs: self.start_limit.as_secs(),
                tail: log_file::tail(&log, log_start),
                log,
            }),
        }
    }

    /// Checks that the server accepts our connection. Creates the database if a first start was cut off between the
    /// cluster and the database.
    async fn ensure_database(&self, address: &Address) -> Result<(), sqlx::Error> {
        let options = self.connect_options(address).database("postgres");
        let work = async {
            let mut connection = PgConnection::connect_with(&options).await?;
            let exists: Option<i32> =
                sqlx::query_scalar("SELECT 1 FROM pg_database WHERE datname = $1")
                    .bind(DATABASE)
                    .fetch_optional(&mut connection)
                    .await?;
            if exists.is_none() {
                sqlx::query("CREATE DATABASE dalsegno").execute(&mut connection).await?;
            }
            connection.close().await
        };
        let late = |_| sqlx::Error::Io(std::io::ErrorKind::TimedOut.into());
        timeout(CONNECT_LIMIT, work).await.map_err(late)?
    }

    fn connect_error(&self, source: sqlx::Error, log_start: u64) -> Error {
        let log = self.home.log_file();
        Error::Connect { source, tail: log_file::tail(&log, log_start), log }
    }
}

/// Says if clients already use the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Port {
    MayChange,
    Stays,
}

/// Returns true for failures that pass: a port that was taken by another process, or shared memory that the last
/// backends of an earlier server still hold. The server's locale is C, so its messages are in English.
fn is_transient(tail: &str) -> bool {
    lost_its_port(tail) || tail.contains("pre-existing shared memory block")
}

fn lost_its_port(tail: &str) -> bool {
    tail.contains("could not create any TCP/IP sockets")
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::{Config, choose_account, home, prepare};

    #[tokio::test]
    async fn another_port_is_chosen_when_the_first_is_taken() {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let config = Config { start_timeout_secs: 20, ..Config::default() };
        let account = choose_account(&config, folder.path()).unwrap();
        let home = home::choose(&config, folder.path(), account.as_ref()).unwrap();
        let cluster = prepare(&config, home, account).await.unwrap();
        let thief = TcpListener::bind("127.0.0.1:0").unwrap();
        let lost = Address::Loopback { port: thief.local_addr().unwrap().port() };
        let server = cluster.adopt_or_launch(lost.clone(), Port::MayChange).await.unwrap();
        assert_ne!(server.address, lost);
        server.stop(Duration::from_secs(10)).await.unwrap();
    }
}
