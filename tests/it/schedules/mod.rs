//! Schedules: each moment fires once, with several schedulers, deaths of schedulers and changes of clocks.

mod fire;
mod moments;
mod recurring;
mod service;

use chrono::{DateTime, Utc};
use dalsegno::domain::schedules::{self, New, Source};
use serde_json::Value;
use sqlx::PgPool;

/// Stores a schedule of pings.
async fn put(pool: &PgPool, name: &str, cron: &str, time_zone: &str, since: DateTime<Utc>) {
    let new = New {
        name,
        source: Source::User,
        cron,
        time_zone,
        catch_up_secs: 86_400,
        kind: "ping",
        queue: "upkeep",
        lane: None,
        payload: &Value::Object(serde_json::Map::new()),
    };
    schedules::put(pool, &new, since).await.unwrap();
}

/// Returns all moments that were fired, in order.
async fn slots(pool: &PgPool, name: &str) -> Vec<DateTime<Utc>> {
    let sql = "select slot from dalsegno.schedule_slots where schedule = $1 order by slot";
    sqlx::query_scalar(sql).bind(name).fetch_all(pool).await.unwrap()
}

/// Counts the jobs of a kind in the queue.
async fn n_jobs(pool: &PgPool, kind: &str) -> i64 {
    let sql = "select count(*) from dalsegno.jobs where kind = $1";
    sqlx::query_scalar(sql).bind(kind).fetch_one(pool).await.unwrap()
}

/// Stores the built-in schedule, as the service does.
pub async fn put_nightly(pool: &PgPool, since: DateTime<Utc>) {
    let new = New {
        name: "cleanup",
        source: Source::BuiltIn,
        cron: "0 0 2 * * *",
        time_zone: "UTC",
        catch_up_secs: 86_400,
        kind: "cleanup",
        queue: "upkeep",
        lane: Some("cleanup"),
        payload: &Value::Object(serde_json::Map::new()),
    };
    schedules::put(pool, &new, since).await.unwrap();
}
