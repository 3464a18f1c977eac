//! What the doctor sees that takes more than a process to show.

use dalsegno::{
    clock::ManualClock,
    config::{Environment, Flags},
    doctor::{self, Finding, Status},
};

use tokio_util::sync::CancellationToken;

use sqlx::Connection as _;

use crate::app::{TestDatabase, eventually, noon};

async fn examine(database: &TestDatabase, clock: &ManualClock) -> Vec<Finding> {
    let environment = Environment::from([("DATABASE_URL", database.url().as_str())]);
    doctor::examine(&environment, &Flags::default(), clock, &CancellationToken::new()).await
}

#[tokio::test]
async fn a_clock_that_is_off_is_a_warning() {
    let database = TestDatabase::migrated().await;
    let findings = examine(&database, &ManualClock::at(noon())).await;
    let clock = findings.iter().find(|finding| finding.check == "clock").unwrap();
    assert_eq!(clock.status, Status::Warn, "{clock:?}");
    assert!(findings.iter().all(|finding| finding.status != Status::Fail));
}

#[tokio::test]
async fn a_schema_from_the_future_is_a_warning() {
    let database = TestDatabase::migrated().await;
    let newer =
        "insert into dalsegno.migrations (version, description, success, checksum, execution_time)
                 values (99990101000000, 'from the future', true, '', 0)";
    sqlx::query(newer).execute(&database.pool().await).await.unwrap();
    let findings = examine(&database, &ManualClock::at(noon())).await;
    let schema = findings.iter().find(|finding| finding.check == "migrations").unwrap();
    assert_eq!(schema.status, Status::Warn, "{schema:?}");
}

#[tokio::test]
async fn a_queue_without_workers_is_a_warning() {
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    let enqueue = "select dalsegno.enqueue(kind => 'ping', payload => '{}', queue => 'upkeep')";
    sqlx::query(enqueue).execute(&pool).await.unwrap();
    let findings = examine(&database, &ManualClock::at(noon())).await;
    let workers = findings.iter().find(|finding| finding.check == "workers").unwrap();
    assert_eq!((workers.status, workers.what.contains("upkeep")), (Status::Warn, true));
    let notify = findings.iter().find(|finding| finding.check == "notify").unwrap();
    assert_eq!(notify.status, Status::Ok, "{notify:?}");
}

#[tokio::test]
async fn how_long_somebody_has_been_writing_is_told() {
    let database = TestDatabase::migrated().await;
    let mut writer = database.pool().await.begin().await.unwrap();
    sqlx::query("select pg_current_xact_id()").execute(&mut *writer).await.unwrap();
    let mut conn = sqlx::PgConnection::connect_with(&database.options).await.unwrap();
    let age = async |conn: &mut sqlx::PgConnection| {
        dalsegno::queue::admin::health(conn).await.unwrap().oldest_writer_secs
    };
    eventually("its age is seen", async || (age(&mut conn).await > 1.0).then_some(())).await;
    let findings = examine(&database, &ManualClock::at(noon())).await;
    let writers = findings.iter().find(|finding| finding.check == "writers").unwrap();
    assert!(writers.status == Status::Ok && writers.why.contains("follows"), "{writers:?}");
}
