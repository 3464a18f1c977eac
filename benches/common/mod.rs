//! Parts that the benches share: the server, a database of their own on it, and readings of the machine.

pub mod cpu;
pub mod size;

use dalsegno::db::embedded::{self, EmbeddedServer};
use sqlx::{Connection as _, Executor as _, PgConnection, PgPool, postgres::PgConnectOptions};
use tempfile::TempDir;

/// The server of `DATABASE_URL`, or a private one that syncs to disk like that of a first run.
pub struct Server {
    pub options: PgConnectOptions,
    private: Option<(EmbeddedServer, TempDir)>,
}

/// A database that one run of a bench has to itself.
#[derive(Clone)]
pub struct Database {
    pub options: PgConnectOptions,
    name: String,
    server: PgConnectOptions,
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "the environment says which server")]
    pub async fn start() -> anyhow::Result<Self> {
        if let Ok(url) = std::env::var("DATABASE_URL") {
            return Ok(Self { options: url.parse()?, private: None });
        }
        let folder = tempfile::tempdir()?;
        let data_dir = folder.path().join("data");
        let config = embedded::Config { data_dir, ..embedded::Config::default() };
        let embedded = embedded::start(&config).await?;
        Ok(Self { options: embedded.connect_options(), private: Some((embedded, folder)) })
    }

    pub async fn stop(self) -> anyhow::Result<()> {
        match self.private {
            Some((embedded, _folder)) => Ok(embedded.stop().await?),
            None => Ok(()),
        }
    }
}

impl Database {
    pub async fn create(server: &Server) -> anyhow::Result<Self> {
        Self::create_on(&server.options).await
    }

    pub async fn create_on(server: &PgConnectOptions) -> anyhow::Result<Self> {
        let name = format!("dalsegno_bench_{}", uuid::Uuid::new_v4().simple());
        run_on(server, format!("create database {name}")).await?;
        let options = server.clone().database(&name);
        Ok(Self { options, name, server: server.clone() })
    }

    /// Drops the database. Its pools have to be closed before.
    pub async fn remove(self) -> anyhow::Result<()> {
        run_on(&self.server, format!("drop database {} with (force)", self.name)).await
    }
}

/// Returns true if the command line names the scenario, or names none.
pub fn is_wanted(name: &str) -> bool {
    let mut named = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).peekable();
    named.peek().is_none() || named.any(|wanted| wanted == name)
}

/// Returns the position of the server's write-ahead log, in bytes.
pub async fn wal_bytes(pool: &PgPool) -> anyhow::Result<i64> {
    let bytes = sqlx::query_scalar("select (pg_current_wal_insert_lsn() - '0/0')::bigint");
    Ok(bytes.fetch_one(pool).await?)
}

async fn run_on(server: &PgConnectOptions, sql: String) -> anyhow::Result<()> {
    let mut connection = PgConnection::connect_with(server).await?;
    connection.execute(sqlx::AssertSqlSafe(sql)).await?;
    connection.close().await?;
    Ok(())
}
