//! Checks of the database: server binaries, reachability, version, schema, clock, connections, plans.

use std::error::Error;

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::{Finding, budgets, busy, claude, cleanup, embeddings, prices, queue, rights, webhooks};
use crate::{
    causes::causes,
    clock::Clock,
    config::Config,
    db::{self, Database, MigrationState, Pooler, SUPPORTED_MAJORS, Use, embedded},
    domain::installation,
};

const WHY_BINARIES: &str =
    "without a configured server, the service runs a private one from these binaries";
const WHY_REACH: &str = "tasks, sessions and the queue live in Postgres: nothing works without it";
const WHY_VERSION: &str = "the SQL of the service is tested on these versions only";
const WHY_SCHEMA: &str = "this binary needs the tables that its migrations create";
const WHY_CLOCK: &str = "rows have the time of the database; logs, files and certificates have the time of this machine";
const WHY_CONNECTIONS: &str = "a process without a free connection stops claiming jobs";
const WHY_PLANS: &str =
    "the statements of the queue expect generic plans; planning each call costs many times more";

/// Largest clock difference that is accepted; a larger one misleads people who compare logs with data.
const MAX_SKEW_MS: i64 = 1_000;

pub(super) async fn examine(
    config: &Config,
    clock: &dyn Clock,
    stop: &CancellationToken,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut own = config.database.clone();
    // A diagnosis does not download binaries.
    own.embedded.fetch = false;
    if config.database.url.is_none() {
        findings.push(binaries(&config.database.embedded).await);
        if !embedded::exists(&config.database.embedded) {
            let what = "there is no cluster yet; `dalsegno serve` creates one";
            findings.push(Finding::skipped("database", what, WHY_REACH));
            findings.extend(skip_checks("there is no database yet"));
            return findings;
        }
    }
    // Start-up waits up to a minute for a server; a diagnosis should not.
    own.connect_timeout_secs = own.connect_timeout_secs.min(3);
    match Database::open(&own, Use::Look, stop).await {
        Ok(database) => {
            findings.push(Finding::ok("database", database.describe(), WHY_REACH));
            let looked = stop.run_until_cancelled(check_open(config, &database, clock)).await;
            findings.extend(looked.unwrap_or_default());
            if let Err(error) = database.close().await {
                findings.push(unreachable(config, &error));
            }
        }
        Err(error) => {
            findings.push(unreachable(config, &error));
            findings.extend(skip_checks("the database cannot be checked"));
        }
    }
    findings
}

async fn check_open(config: &Config, database: &Database, clock: &dyn Clock) -> Vec<Finding> {
    let pool = &database.pool;
    let mut findings = vec![
        version(pool).await,
        schema(pool).await,
        skew(pool, clock).await,
        connections(config, pool).await,
        plans(pool).await,
    ];
    if matches!(
        db::migration_state(pool).await,
        Ok(MigrationState::Current | MigrationState::Newer)
    ) {
        findings.extend(queue::examine(database).await);
        findings.push(cleanup::examine(pool, clock.now()).await);
        findings.push(rights::examine(config, pool).await);
        findings.extend(claude::paused(config, pool, clock.now()).await);
        findings.push(busy::examine(config, pool, clock.now()).await);
        findings.push(budgets::examine(pool, clock.now()).await);
        findings.extend(Box::pin(prices::calls(config, pool, clock.now())).await);
        findings.extend(claude::budgets(config, pool).await);
        findings.extend(webhooks::examine(pool, clock.now()).await);
        findings.extend(embeddings::examine(config, pool).await);
    }
    findings
}

/// Lists findings for the checks that need an open database.
fn skip_checks(what: &str) -> [Finding; 5] {
    [
        ("version", WHY_VERSION),
        ("migrations", WHY_SCHEMA),
        ("clock", WHY_CLOCK),
        ("connections", WHY_CONNECTIONS),
        ("plans", WHY_PLANS),
    ]
    .map(|(check, why)| Finding::skipped(check, what, why))
}

fn unreachable(config: &Config, error: &db::Error) -> Finding {
    let log = config.service.data_dir.join("postgres/server.log");
    let fix = match error {
        db::Error::Refused { setting, .. } => format!(
            "correct the role, the password and the database in {setting}, or let the role in (pg_hba.conf)"
        ),
        db::Error::PoolerNotSet
        | db::Error::PoolerNotSupported
        | db::Error::DirectElsewhere
        | db::Error::DirectPooled => {
            "do what the message says; docs/how-to/pgbouncer.md has an example".to_owned()
        }
        db::Error::Connect { setting: db::DIRECT_URL, .. } => {
            "start the server, or correct database.direct_url".to_owned()
        }
        db::Error::Connect { .. } if config.database.url.is_some() => {
            "start the server, or set DATABASE_URL=postgres://user:password@host:port/database"
                .to_owned()
        }
        db::Error::Embedded(error) if error.is_in_use() => {
            "wait until the other command has ended, then run doctor again".to_owned()
        }
        _ => format!("read {}, or set DATABASE_URL to a server of your own", log.display()),
    };
    Finding::fail("database", causes(error), WHY_REACH, fix)
}

async fn binaries(config: &embedded::Config) -> Finding {
    match embedded::find_binaries(config).await {
        Ok(found) => Finding::ok("binaries", found, WHY_BINARIES),
        Err(error) => {
            let fix = match &error {
                embedded::Error::BadBinDir { .. } => {
                    "correct database.embedded.bin_dir, or remove it"
                }
                embedded::Error::NoServerBinaries { .. } => {
                    "install PostgreSQL (Debian: apt-get install postgresql), or set DATABASE_URL"
                }
                _ => "do what the message says, or set DATABASE_URL",
            };
            Finding::fail("binaries", causes(&error), WHY_BINARIES, fix)
        }
    }
}

async fn version(pool: &PgPool) -> Finding {
    match db::server_version(pool).await {
        Ok(number) => judge_version(number),
        Err(error) => unreadable("version", &error, WHY_VERSION),
    }
}

/// Judges a version; `number` is `server_version_num`.
fn judge_version(number: u32) -> Finding {
    let (major, minor) = (number / 10_000, number % 10_000);
    let what = format!("PostgreSQL {major}.{minor}");
    let (oldest, newest) = (SUPPORTED_MAJORS.start(), SUPPORTED_MAJORS.end());
    match major {
        _ if major < *oldest => {
            let fix = format!("upgrade the server to PostgreSQL {oldest} or newer");
            Finding::fail("version", what, WHY_VERSION, fix)
        }
        _ if major > *newest => {
            let fix = format!("use PostgreSQL {oldest} to {newest}, or a newer Dalsegno");
            Finding::warn("version", what, WHY_VERSION, fix)
        }
        _ => Finding::ok("version", what, WHY_VERSION),
    }
}

async fn schema(pool: &PgPool) -> Finding {
    const MEND: &str = "dalsegno migrate up";
    match db::migration_state(pool).await {
        Err(error @ db::Error::OlderSchema { .. }) => {
            let fix = "create a new database, or run the version that wrote this one";
            Finding::fail("migrations", error.to_string(), WHY_SCHEMA, fix)
        }
        Err(error) => unreadable("migrations", &error, WHY_SCHEMA),
        Ok(MigrationState::Current) => match installation::get(pool).await {
            Ok(installation) => {
                let what =
                    format!("up to date; the id of this installation is {}", installation.id);
                Finding::ok("migrations", what, WHY_SCHEMA)
            }
            Err(error) => unreadable("migrations", &error, WHY_SCHEMA),
        },
        Ok(MigrationState::Newer) => {
            let what = "the schema is newer than this binary, and still supports it";
            Finding::warn("migrations", what, WHY_SCHEMA, "deploy the newer binary everywhere")
        }
        Ok(MigrationState::Pending { n_pending }) => {
            Finding::fail("migrations", format!("{n_pending} missing"), WHY_SCHEMA, MEND)
        }
    }
}

async fn skew(pool: &PgPool, clock: &dyn Clock) -> Finding {
    let before = clock.machine_now();
    let theirs =
        match sqlx::query_scalar!(r#"select clock_timestamp() as "now!""#).fetch_one(pool).await {
            Ok(theirs) => theirs,
            Err(error) => return unreadable("clock", &error, WHY_CLOCK),
        };
    // The database has read its clock between our two readings, so their middle is compared.
    let ours = before + (clock.machine_now() - before) / 2;
    let skew_ms = (theirs - ours).num_milliseconds();
    let what =
        format!("the clocks of this machine and the database differ by {} ms", skew_ms.abs());
    match skew_ms.abs() <= MAX_SKEW_MS {
        true => Finding::ok("clock", what, WHY_CLOCK),
        false => Finding::warn("clock", what, WHY_CLOCK, "synchronise both clocks (chrony, NTP)"),
    }
}

async fn connections(config: &Config, pool: &PgPool) -> Finding {
    let row = sqlx::query!(
        r#"select current_setting('max_connections')::int as "max!",
                  (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as "used!""#
    );
    let row = match row.fetch_one(pool).await {
        Ok(row) => row,
        Err(error) => return unreadable("connections", &error, WHY_CONNECTIONS),
    };
    // Beside the pool, each of the two worker pools has a claimer, a listener, a heartbeat, upkeep, and writers.
    let own = 2 * (4 + u32::try_from(config.queue.end_batches_in_flight).unwrap_or(u32::MAX));
    let wanted = config.database.max_connections + own;
    if config.database.pooler == Pooler::Transaction {
        let what = format!(
            "this process uses up to {wanted} of PgBouncer's max_client_conn; PgBouncer limits the connections to the server"
        );
        return Finding::ok("connections", what, WHY_CONNECTIONS);
    }
    let what = format!("{} of {} in use; this process uses up to {wanted}", row.used, row.max);
    match i64::from(row.used) + i64::from(wanted) <= i64::from(row.max) {
        true => Finding::ok("connections", what, WHY_CONNECTIONS),
        false => {
            let fix = "lower database.max_connections, or raise max_connections of the server";
            Finding::warn("connections", what, WHY_CONNECTIONS, fix)
        }
    }
}

/// Checks the planner settings. The service sets them on each of its connections, except those that a pooler shares.
async fn plans(pool: &PgPool) -> Finding {
    const CHECK: &str = "plans";
    let row = sqlx::query!(
        r#"select current_setting('plan_cache_mode') as "mode!", current_setting('jit') as "jit!""#
    );
    let row = match row.fetch_one(pool).await {
        Ok(row) => row,
        Err(error) => return unreadable(CHECK, &error, WHY_PLANS),
    };
    let what = format!("plan_cache_mode = {}, jit = {}", row.mode, row.jit);
    match (row.mode.as_str(), row.jit.as_str()) {
        ("force_generic_plan", "off") => Finding::ok(CHECK, what, WHY_PLANS),
        _ => {
            let fix = "for the role of database.url: alter role NAME set plan_cache_mode = force_generic_plan; alter role NAME set jit = off; then RECONNECT in PgBouncer";
            Finding::warn(CHECK, what, WHY_PLANS, fix)
        }
    }
}

fn unreadable(check: &'static str, error: &dyn Error, why: &'static str) -> Finding {
    let fix = "grant the role access to the database, or read the server's log";
    Finding::fail(check, causes(error), why, fix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;

    #[test]
    fn server_versions_are_checked_against_the_supported_range() {
        let status = |number| judge_version(number).status;
        assert_eq!(status(130_023), Status::Fail);
        assert_eq!(status(140_000), Status::Ok);
        assert_eq!(status(180_004), Status::Ok);
        assert_eq!(status(190_000), Status::Warn);
        assert!(judge_version(130_023).fix.contains("PostgreSQL 14"));
    }
}
