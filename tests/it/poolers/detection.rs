//! Detection of transaction poolers, without false positives.
//!
//! These poolers ignore `extra_float_digits`, which would otherwise reveal them.

use std::{net::SocketAddr, path::PathBuf};

use dalsegno::{
    db,
    domain::class::{Classify as _, Kind},
    queue::admin,
};
use futures_util::future::join_all;
use sqlx::{Connection as _, Executor as _, PgConnection, postgres::PgConnectOptions};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, UnixStream},
};

use super::{
    pgbouncer::{NEW, OLD, PgBouncer},
    refusals::open_at,
};
use crate::{app::TestDatabase, queue::proxy::Proxy};

/// Starts a pooler without prepared statements, with these settings.
async fn start_pooler_without_statements(
    version: &str,
    database: &TestDatabase,
    mode: &str,
    settings: &str,
) -> Option<PgBouncer> {
    let settings =
        format!("pool_mode = {mode}\nignore_startup_parameters = extra_float_digits\n{settings}");
    PgBouncer::start(version, &database.options, &settings).await
}

/// Opens other clients, each with a transaction.
async fn open_clients(pgbouncer: &PgBouncer, n: usize) -> Vec<PgConnection> {
    let options: PgConnectOptions = pgbouncer.url().parse().unwrap();
    join_all((0..n).map(|_| async {
        let mut other = PgConnection::connect_with(&options).await.unwrap();
        other.execute("begin").await.unwrap();
        other
    }))
    .await
}

/// Returns an address whose connections go to several poolers in turn.
async fn start_balancer(sockets: Vec<PathBuf>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for socket in sockets.iter().cycle() {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut server = UnixStream::connect(socket).await.unwrap();
            tokio::spawn(async move { copy_bidirectional(&mut client, &mut server).await });
        }
    });
    address
}

#[tokio::test]
async fn a_pooler_that_ignores_startup_parameters_is_refused() {
    const TURNS: &str = "server_round_robin = 1\ndefault_pool_size = 20";
    let database = TestDatabase::migrated().await;
    for (version, settings, n_idle, n_busy) in [
        (OLD, "", 0, 0),
        (OLD, "default_pool_size = 1", 0, 0),
        (OLD, "", 3, 0),
        (OLD, TURNS, 3, 0),
        (OLD, TURNS, 4, 0),
        (OLD, "default_pool_size = 2", 0, 1),
        (NEW, "max_prepared_statements = 0", 0, 0),
    ] {
        let Some(pgbouncer) =
            start_pooler_without_statements(version, &database, "transaction", settings).await
        else {
            return;
        };
        let mut idle = open_clients(&pgbouncer, n_idle).await;
        for other in &mut idle {
            other.execute("rollback").await.unwrap();
        }
        let _busy = open_clients(&pgbouncer, n_busy).await;
        let error = open_at(pgbouncer.url(), "none").await.unwrap_err();
        assert!(
            matches!(error, db::Error::PoolerNotSet),
            "{version} {settings} {n_idle} {n_busy}: {error:?}\n{}",
            pgbouncer.log()
        );
    }
}

#[tokio::test]
async fn several_poolers_behind_one_address_are_refused() {
    let database = TestDatabase::migrated().await;
    let mut poolers = Vec::new();
    for _ in 0..3 {
        let Some(pgbouncer) =
            start_pooler_without_statements(OLD, &database, "transaction", "").await
        else {
            return;
        };
        poolers.push(pgbouncer);
    }
    let address = start_balancer(poolers.iter().map(PgBouncer::socket).collect()).await;
    let (user, name) = (database.options.get_username(), &database.name);
    let url = format!("postgres://{user}@{address}/{name}?sslmode=disable");
    let error = open_at(url, "none").await.unwrap_err();
    assert!(matches!(error, db::Error::PoolerNotSet), "{error:?}");
}

#[tokio::test]
async fn a_pooler_in_session_mode_works_like_a_direct_connection() {
    let database = TestDatabase::migrated().await;
    for (version, settings) in [
        (OLD, ""),
        (NEW, ""),
        (NEW, "max_prepared_statements = 200"),
        (OLD, "server_round_robin = 1"),
        // Fewer than there are clients.
        (OLD, "default_pool_size = 2"),
    ] {
        let Some(pgbouncer) =
            start_pooler_without_statements(version, &database, "session", settings).await
        else {
            return;
        };
        for _ in 0..2 {
            let opened = open_at(pgbouncer.url(), "none").await;
            opened.unwrap_or_else(|error| panic!("{version} {settings}: {error}"));
        }
    }
}

#[tokio::test]
async fn a_balancer_that_only_forwards_bytes_works_like_a_direct_connection() {
    let database = TestDatabase::migrated().await;
    let proxy = Proxy::start(&database.options).await;
    open_at(proxy.url(&database.options), "none").await.unwrap();
}

/// For example, if the pooler was added while a process was running.
#[tokio::test]
async fn a_statement_lost_by_a_pooler_names_the_setting() {
    let database = TestDatabase::migrated().await;
    let Some(pgbouncer) =
        start_pooler_without_statements(OLD, &database, "transaction", "default_pool_size = 1")
            .await
    else {
        return;
    };
    let options: PgConnectOptions = pgbouncer.url().parse().unwrap();
    let mut first = PgConnection::connect_with(&options).await.unwrap();
    admin::health(&mut first).await.unwrap();
    let mut second = PgConnection::connect_with(&options).await.unwrap();
    let error = admin::health(&mut second).await.unwrap_err();
    let class = error.class();
    assert_eq!((class.kind, class.retryable), (Kind::Internal, false), "{error:?}");
    assert!(class.advice.unwrap().contains("database.pooler = \"transaction\""), "{class:?}");
}
