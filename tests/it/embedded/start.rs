use std::time::Instant;

use dalsegno::db::embedded::{self, Listen};
use sqlx::{Connection, PgConnection, PgPool};

use super::support::{EmbeddedSetup, count, postmasters, send, servers, wait_for};
use crate::app::SOON;

#[tokio::test]
async fn data_survives_stop_and_start() {
    let setup = EmbeddedSetup::new();
    let begun = Instant::now();
    let postgres = embedded::start(&setup.config).await.unwrap();
    println!("first start {:?}: {}", begun.elapsed(), postgres.describe());
    let mut connection = PgConnection::connect_with(&postgres.connect_options()).await.unwrap();
    sqlx::query("CREATE TABLE kept AS SELECT 42::bigint AS value")
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    let begun = Instant::now();
    postgres.stop().await.unwrap();
    println!("stop {:?}", begun.elapsed());
    assert_eq!(servers(&setup.cluster()), Vec::<u32>::new());

    let begun = Instant::now();
    let postgres = embedded::start(&setup.config).await.unwrap();
    println!("warm start {:?}", begun.elapsed());
    assert_eq!(count(postgres.connect_options(), "SELECT value FROM kept").await, 42);
    postgres.stop().await.unwrap();
}

#[tokio::test]
async fn the_server_is_durable_private_and_speaks_utf8() {
    let setup = EmbeddedSetup::new();
    let postgres = embedded::start(&setup.config).await.unwrap();
    let pool = PgPool::connect_with(postgres.connect_options()).await.unwrap();
    for (setting, expected) in [
        ("fsync", "on"),
        ("full_page_writes", "on"),
        ("synchronous_commit", "on"),
        ("server_encoding", "UTF8"),
        ("lc_collate", "C"),
        ("max_connections", "100"),
        ("listen_addresses", ""),
        ("data_checksums", "on"),
    ] {
        let found: String = sqlx::query_scalar("SELECT setting FROM pg_settings WHERE name = $1 UNION ALL SELECT datcollate::text FROM pg_database WHERE $1 = 'lc_collate' AND datname = current_database() LIMIT 1")
            .bind(setting).fetch_one(&pool).await.unwrap();
        assert_eq!(found, expected, "{setting}");
    }
    let lower: String = sqlx::query_scalar("SELECT lower('ÄÉ')").fetch_one(&pool).await.unwrap();
    assert_eq!(lower, "äé");
    pool.close().await;
    let wrong = postgres.connect_options().password("guessed");
    assert!(PgConnection::connect_with(&wrong).await.unwrap_err().to_string().contains("password"));
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(setup.home().join("password")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    let password = std::fs::read_to_string(setup.home().join("password")).unwrap();
    let attached = embedded::attach(&setup.config).await.unwrap();
    let shown = format!("{postgres:?} {attached:?}");
    assert!(!shown.contains(password.trim()), "{shown}");
    postgres.stop().await.unwrap();
}

#[tokio::test]
async fn loopback_is_used_on_request_and_for_long_paths() {
    let mut setup = EmbeddedSetup::new();
    setup.config.listen = Listen::Loopback;
    let postgres = embedded::start(&setup.config).await.unwrap();
    assert!(postgres.describe().address.starts_with("127.0.0.1:"));
    assert_eq!(count(postgres.connect_options(), "SELECT 1::bigint").await, 1);
    postgres.stop().await.unwrap();

    let mut setup = EmbeddedSetup::new();
    setup.config.data_dir = setup.folder.path().join("long".repeat(30));
    let postgres = embedded::start(&setup.config).await.unwrap();
    assert!(postgres.describe().address.starts_with("127.0.0.1:"));
    let attached = embedded::attach(&setup.config).await.unwrap().unwrap();
    assert_eq!(count(attached.connect_options(), "SELECT 1::bigint").await, 1);
    postgres.stop().await.unwrap();

    setup.config.listen = Listen::Socket;
    let error = embedded::start(&setup.config).await.unwrap_err().to_string();
    assert!(error.contains("longer than"), "{error}");
}

#[tokio::test]
async fn other_processes_attach_without_ownership() {
    let setup = EmbeddedSetup::new();
    assert!(embedded::attach(&setup.config).await.unwrap().is_none());
    assert!(!setup.config.data_dir.exists(), "attaching creates nothing");
    let postgres = embedded::start(&setup.config).await.unwrap();
    let attached = embedded::attach(&setup.config).await.unwrap().unwrap();
    assert_eq!(attached.pid(), postgres.describe().pid);
    assert_eq!(count(attached.connect_options(), "SELECT 1::bigint").await, 1);
    drop(attached);
    assert_eq!(count(postgres.connect_options(), "SELECT 1::bigint").await, 1);
    postgres.stop().await.unwrap();
    assert!(embedded::attach(&setup.config).await.unwrap().is_none());
}

#[tokio::test]
async fn a_killed_server_of_a_running_service_restarts() {
    let setup = EmbeddedSetup::new();
    let postgres = embedded::start(&setup.config).await.unwrap();
    let first = postgres.describe().pid;
    send(first, rustix::process::Signal::KILL);
    let deadline = Instant::now() + SOON;
    let options = postgres.connect_options();
    while postgres.describe().pid == first {
        assert!(Instant::now() < deadline);
        tokio::task::yield_now().await;
    }
    assert_eq!(count(options, "SELECT 1::bigint").await, 1);
    assert_eq!(postmasters(&setup.cluster()), [postgres.describe().pid]);
    postgres.stop().await.unwrap();
    assert_eq!(servers(&setup.cluster()), Vec::<u32>::new());
}

#[tokio::test]
async fn a_dropped_service_ends_its_server() {
    let setup = EmbeddedSetup::new();
    drop(embedded::start(&setup.config).await.unwrap());
    let cluster = setup.cluster();
    let gone = tokio::task::spawn_blocking(move || {
        wait_for(SOON, || servers(&cluster).is_empty().then_some(()))
    });
    assert!(gone.await.unwrap().is_some());
}
