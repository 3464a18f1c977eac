//! `database.direct_url`: leads to the server itself, or is named in an error.

use dalsegno::db;
use tokio::net::TcpListener;

use super::{
    pgbouncer::{DOCUMENTED, NEW, OLD, PgBouncer},
    refusals::open,
};
use crate::{
    app::TestDatabase,
    cluster::{scratch_folder, url},
    service::dalsegno,
};

const IGNORING: &str = "ignore_startup_parameters = extra_float_digits";

async fn open_direct(pgbouncer: &PgBouncer, direct: &str) -> Result<(), db::Error> {
    let set = [
        ("database.url", &*pgbouncer.url()),
        ("database.pooler", "transaction"),
        ("database.direct_url", direct),
        ("database.connect_timeout_secs", "5"),
    ];
    open(&set).await
}

#[tokio::test]
async fn a_direct_address_of_another_database_is_refused() {
    let (database, other) = (TestDatabase::migrated().await, TestDatabase::empty().await);
    let Some(pgbouncer) = PgBouncer::start(NEW, &database.options, DOCUMENTED).await else {
        return;
    };
    open_direct(&pgbouncer, &database.url()).await.unwrap();
    let error = open_direct(&pgbouncer, &other.url()).await.unwrap_err();
    assert!(matches!(error, db::Error::DirectElsewhere), "{error:?}");
}

#[tokio::test]
async fn a_direct_address_of_a_transaction_pooler_is_refused() {
    let database = TestDatabase::migrated().await;
    let Some(pgbouncer) = PgBouncer::start(NEW, &database.options, DOCUMENTED).await else {
        return;
    };
    for (version, settings) in [
        (NEW, DOCUMENTED.to_owned()),
        (NEW, format!("{DOCUMENTED}\n{IGNORING}")),
        (OLD, "pool_mode = transaction".to_owned()),
        (OLD, format!("pool_mode = transaction\n{IGNORING}")),
    ] {
        let Some(direct) = PgBouncer::start(version, &database.options, &settings).await else {
            return;
        };
        let error = open_direct(&pgbouncer, &direct.url()).await.unwrap_err();
        assert!(matches!(error, db::Error::DirectPooled), "{version} {settings}: {error:?}");
        assert!(error.to_string().starts_with("database.direct_url leads through"), "{error}");
    }
    let session = format!("pool_mode = session\n{IGNORING}");
    let Some(direct) = PgBouncer::start(OLD, &database.options, &session).await else { return };
    open_direct(&pgbouncer, &direct.url()).await.unwrap();
}

#[tokio::test]
async fn errors_of_the_direct_address_contain_it() {
    let database = TestDatabase::migrated().await;
    let Some(pgbouncer) = PgBouncer::start(NEW, &database.options, DOCUMENTED).await else {
        return;
    };
    // Accepts connections in its backlog, and never answers.
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mute = mute.local_addr().unwrap().to_string();
    for place in ["127.0.0.1:1", mute.as_str()] {
        let error =
            open_direct(&pgbouncer, &format!("postgres://me@{place}/mine")).await.unwrap_err();
        let words = error.to_string();
        assert!(words.contains(&format!("{place}/mine (from database.direct_url)")), "{words}");
    }
    let error = open_direct(&pgbouncer, &url("no_such_database")).await.unwrap_err();
    assert!(matches!(error, db::Error::Refused { setting: db::DIRECT_URL, .. }), "{error:?}");
    assert!(error.to_string().contains("correct database.direct_url"), "{error}");
}

#[tokio::test]
async fn doctor_names_the_unreachable_one_of_both_addresses() {
    let database = TestDatabase::migrated().await;
    let Some(pgbouncer) = PgBouncer::start(NEW, &database.options, DOCUMENTED).await else {
        return;
    };
    let folder = scratch_folder();
    let mut doctor = dalsegno(folder.path());
    doctor.args(["doctor", "--json"]).envs([
        ("DATABASE_URL", pgbouncer.url().as_str()),
        ("DALSEGNO_DATABASE__POOLER", "transaction"),
        ("DALSEGNO_DATABASE__DIRECT_URL", "postgres://me@127.0.0.1:1/mine"),
    ]);
    let found = doctor.output().await.unwrap();
    let findings: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    let mut all = findings.as_array().unwrap().iter();
    let finding = all.find(|finding| finding["check"] == "database").unwrap();
    assert_eq!(finding["status"], "fail", "{findings}");
    assert!(finding["fix"].as_str().unwrap().contains("database.direct_url"), "{finding}");
}
