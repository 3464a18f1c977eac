//! Refused poolers, and the text of the errors.

use dalsegno::{
    config::Config,
    db::{self, Database, Use},
    settings::{Environment, Flags},
};
use tokio_util::sync::CancellationToken;

use super::pgbouncer::{DOCUMENTED, NEW, OLD, PgBouncer};
use crate::app::TestDatabase;

pub async fn open(set: &[(&str, &str)]) -> Result<(), db::Error> {
    let set = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let config = Config::load(&Environment::default(), &Flags { file: None, set }).unwrap();
    let opened = Database::open(&config.database, Use::Join, &CancellationToken::new()).await;
    opened?.close().await
}

async fn open_through(pgbouncer: &PgBouncer, pooler: &str) -> Result<(), db::Error> {
    open_at(pgbouncer.url(), pooler).await
}

pub async fn open_at(url: String, pooler: &str) -> Result<(), db::Error> {
    let set = [
        ("database.url", url),
        ("database.pooler", pooler.to_owned()),
        ("database.connect_timeout_secs", "20".to_owned()),
    ];
    open(&set.each_ref().map(|(key, value)| (*key, value.as_str()))).await
}

#[tokio::test]
async fn a_pooler_without_prepared_statements_is_refused() {
    let database = TestDatabase::migrated().await;
    let unlike = [
        (OLD, "pool_mode = transaction"),
        // The check must not depend on which server connection it gets.
        (OLD, "pool_mode = transaction\ndefault_pool_size = 1"),
        (NEW, "pool_mode = transaction\nmax_prepared_statements = 0"),
        (NEW, "pool_mode = statement\nmax_prepared_statements = 200"),
        (NEW, "pool_mode = session\nmax_prepared_statements = 200"),
    ];
    for (version, settings) in unlike {
        let Some(pgbouncer) = PgBouncer::start(version, &database.options, settings).await else {
            return;
        };
        // A second client finds the state that the first one has left.
        for _ in 0..2 {
            let error = open_through(&pgbouncer, "transaction").await.unwrap_err();
            assert!(
                matches!(error, db::Error::PoolerNotSupported),
                "{version} {settings}: {error:?}\n{}",
                pgbouncer.log()
            );
            let words = error.to_string();
            assert!(words.contains("1.21") && words.contains("max_prepared_statements"), "{words}");
        }
    }
}

#[tokio::test]
async fn an_unconfigured_pooler_is_refused() {
    let database = TestDatabase::migrated().await;
    let ignoring = format!("{DOCUMENTED}\nignore_startup_parameters = extra_float_digits");
    for (version, settings) in
        [(NEW, DOCUMENTED), (NEW, ignoring.as_str()), (OLD, "pool_mode = transaction")]
    {
        let Some(pgbouncer) = PgBouncer::start(version, &database.options, settings).await else {
            return;
        };
        let error = open_through(&pgbouncer, "none").await.unwrap_err();
        assert!(matches!(error, db::Error::PoolerNotSet), "{version} {settings}: {error:?}");
        assert!(error.to_string().contains("database.pooler = \"transaction\""), "{error}");
    }
}

#[tokio::test]
async fn a_configured_pooler_that_is_missing_is_refused() {
    let database = TestDatabase::migrated().await;
    let url = database.url();
    let set = [("database.url", url.as_str()), ("database.pooler", "transaction")];
    let error = open(&set).await.unwrap_err();
    assert!(error.to_string().contains("database.pooler = \"none\""), "{error}");
}
