//! The plans of the statements, as a worker's prepared statements have them. The queue holds a million blocked and a
//! million ready jobs; in the normal run, a tenth of each.
//!
//! A plan that is right on a small table and wrong on a large one is the usual way in which a queue dies. Two things
//! are asserted of each statement: its plan reads no large table completely and joins none by hash or merge; and
//! running it reads few rows, also in the functions it calls, which EXPLAIN does not show.

use std::time::Instant;

use serde_json::Value;
use sqlx::{PgConnection, Row as _};

use super::{
    plan_data::{self, IDLE_WORKER, N_RUNNING, WORKER},
    statements::{
        CHANGE_PRIORITY, CLAIM, CLAIM_ALONE, DELETE_OLD_LANES, END_CANCELLED, END_DONE, END_FAIL,
        END_RETRY, END_SNOOZE, GIVE_BACK, HELD_LANES, LANE_AUDIT, LANE_MEMBERS, LANE_SWEEP,
        LIST_LANES, PROMOTE, RESCUE, RUNS_BY_MINUTE, UNMARK_CRASHES, WAITS, WORKER_RENEW,
        WORKER_RUNS, worker_session,
    },
};
use crate::app::TestDatabase;

const LARGE: [&str; 4] = ["jobs", "job_payloads", "lanes", "runs"];

struct PlanCase {
    name: &'static str,
    sql: &'static str,
    arguments: String,
    /// The most rows that it may read from all large tables together.
    max_rows: i64,
    /// The fewest rows that it must return: a statement that finds nothing has a plan too.
    min_answers: usize,
}

#[tokio::test]
async fn no_statement_scans_the_whole_queue() {
    let database = TestDatabase::migrated().await;
    let begun = Instant::now();
    plan_data::fill(&database).await;
    println!("filled in {:?}", begun.elapsed());
    let mut conn = worker_session(&database).await;
    let mut findings: Vec<String> = Vec::new();
    for look in plan_cases(&mut conn).await {
        findings.extend(look.at(&mut conn).await);
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

/// The most rows of jobs that one of these statements may read: a page of members, and one for each lane that is looked at.
const MAX_OF_LANE: i64 = 210;

#[tokio::test]
async fn lanes_with_most_of_the_jobs_are_not_read_as_a_whole() {
    let database = TestDatabase::migrated().await;
    plan_data::fill_two_lanes(&database).await;
    let mut conn = worker_session(&database).await;
    let many = r#"'[{"kind": "k", "lane": "lane-301"}, {"kind": "k", "lane": "lane-302"}]'"#;
    for (name, sql, arguments) in [
        ("enqueue", "SELECT * FROM dalsegno.enqueue('k', lane => $1)", "'lane-300'"),
        ("enqueue many", "SELECT * FROM dalsegno.enqueue_many($1)", many),
        ("held lanes", HELD_LANES, "10"),
        ("hold a lane", "SELECT dalsegno.hold_lane($1, 'a look')", "'lane-2'"),
        ("release a lane", "SELECT dalsegno.release_lane($1)", "'lane-2'"),
        ("jobs for later", LANE_MEMBERS, "1, 101"),
        ("jobs in order", LANE_MEMBERS, "2, 101"),
        ("a lane without jobs", LANE_MEMBERS, "3, 101"),
        ("purge of lanes", DELETE_OLD_LANES, "8000, 1000"),
    ] {
        run(&mut conn, &format!("PREPARE looked_at AS {sql}")).await;
        run(&mut conn, "BEGIN").await;
        let before = rows_read(&mut conn, &["jobs"]).await;
        run(&mut conn, &format!("EXECUTE looked_at ({arguments})")).await;
        let after = rows_read(&mut conn, &["jobs"]).await;
        run(&mut conn, "ROLLBACK").await;
        run(&mut conn, "DEALLOCATE looked_at").await;
        assert_eq!(after.1, before.1, "{name}: reads all jobs");
        let n_rows = after.0 - before.0;
        assert!(n_rows <= MAX_OF_LANE, "{name}: {n_rows} rows");
    }
}

async fn plan_cases(conn: &mut PgConnection) -> Vec<PlanCase> {
    let (ids, leases) = running_of(conn, WORKER).await;
    let (id, lease) = (ids[0], leases[0]);
    let ready = "SELECT id FROM dalsegno.jobs WHERE state = 'ready' LIMIT 1";
    let ready: i64 = sqlx::query_scalar(ready).fetch_one(&mut *conn).await.unwrap();
    let (ids, leases) = (array(&ids), array(&leases));
    let claim = |n: i64, queue: &str, after: &str| {
        format!("{n}, '{{{queue}}}', '{WORKER}', -1::smallint, '-infinity', 0, '{after}', '{{k}}'")
    };
    let floored = format!(
        "500, '{{default}}', '{WORKER}', 100::smallint, now() - interval '59 minutes', 0, '', '{{k}}'"
    );
    let excused = array(&(1..=N_RUNNING).map(|i| -i).collect::<Vec<_>>());
    let look = |name, sql, arguments, max_rows, min_answers| PlanCase {
        name,
        sql,
        arguments,
        max_rows,
        min_answers,
    };
    vec![
        look("claim of 500", CLAIM, claim(500, "default", ""), 3_000, 500),
        look("claim of 1", CLAIM, claim(1, "default", ""), 12, 1),
        look("claim above a floor", CLAIM, floored, 3_000, 500),
        look("claim of 500 by turns", CLAIM, claim(500, "grouped", ""), 5_000, 500),
        look("claim of 1 by turns", CLAIM, claim(1, "grouped", "group-999"), 150, 1),
        look("claim beside urgent jobs", CLAIM, claim(1, "urgent", ""), 400, 1),
        look("claim of an empty queue", CLAIM, claim(1, "no-jobs", ""), 10, 0),
        look("claim alone", CLAIM_ALONE, format!("'{{default}}', '{IDLE_WORKER}', '{{k}}'"), 10, 1),
        look("end 500", END_DONE, format!("{ids}, {leases}"), 4_000, 500),
        look("end 1", END_DONE, format!("'{{{id}}}', '{{{lease}}}'"), 15, 1),
        look("retry", END_RETRY, format!("{id}, {lease}, 'e', 1, 60, NULL"), 10, 1),
        look("snooze", END_SNOOZE, format!("{id}, {lease}, NULL, 60, 'r', 'provider'"), 10, 1),
        look("fail", END_FAIL, format!("{id}, {lease}, 'failed', 'e', false"), 10, 1),
        look("fail and hold", END_FAIL, format!("{id}, {lease}, 'failed', 'e', true"), 10, 1),
        look("end cancelled", END_CANCELLED, format!("{id}, {lease}, NULL"), 10, 1),
        look("give back 500", GIVE_BACK, format!("{ids}, {leases}, 'drain'"), 2_000, 500),
        look("renew", WORKER_RENEW, format!("'{WORKER}', 30, {ids}, {leases}"), 1_000, 1),
        look("rescue 500", RESCUE, format!("'{WORKER}', 30, 2, 1000"), 3_000, 500),
        look("excuse 500", UNMARK_CRASHES, format!("{excused}, {excused}"), 1_000, 500),
        look("change a priority", CHANGE_PRIORITY, format!("{ready}, 7::smallint"), 10, 1),
        look("promote 1,000", PROMOTE, "1000".to_owned(), 30_000, 1),
        look("sweep 1,000 lanes", LANE_SWEEP, "1000".to_owned(), 6_000, 1),
        look("audit 1,000 lanes", LANE_AUDIT, "0, 1000".to_owned(), 60, 1),
        look("lanes", LIST_LANES, "false, '', 201".to_owned(), 500, 201),
        look("lanes after one", LIST_LANES, "false, 'lane-7', 201".to_owned(), 500, 201),
        look("held lanes", LIST_LANES, "true, '', 201".to_owned(), 10, 0),
        look("runs of a queue", RUNS_BY_MINUTE, "'rare', 10000, 168".to_owned(), 200, 1),
        look("waits by reason", WAITS, "10000".to_owned(), 30_000, 1),
        look(
            "runs of workers",
            WORKER_RUNS,
            format!("'{{{WORKER}}}', now(), 500, NULL"),
            1_500,
            500,
        ),
    ]
}

impl PlanCase {
    /// Returns the errors found in its plan and its run.
    async fn at(&self, conn: &mut PgConnection) -> Vec<String> {
        run(conn, &format!("PREPARE looked_at AS {}", self.sql)).await;
        let execute = format!("EXECUTE looked_at ({})", self.arguments);
        let mut findings = Vec::new();
        run(conn, "BEGIN").await;
        let plan = run(conn, &format!("EXPLAIN (FORMAT JSON) {execute}")).await;
        let plan: Value = plan[0].get(0);
        check_plan(&plan[0]["Plan"], &mut findings);
        run(conn, &execute).await;
        run(conn, "ROLLBACK").await;

        run(conn, "BEGIN").await;
        let before = rows_read(conn, &LARGE).await;
        let begun = Instant::now();
        let n_answers = run(conn, &execute).await.len();
        let took = begun.elapsed();
        let after = rows_read(conn, &LARGE).await;
        run(conn, "ROLLBACK").await;
        run(conn, "DEALLOCATE looked_at").await;
        let n_rows = after.0 - before.0;
        if n_rows > self.max_rows {
            findings.push(format!("read {n_rows} rows"));
        }
        if after.1 > before.1 {
            findings.push(format!("read {} tables as a whole", after.1 - before.1));
        }
        if n_answers < self.min_answers {
            findings.push(format!("answered {n_answers} rows"));
        }
        println!("{}: {took:?}, {n_rows} rows read", self.name);
        if !findings.is_empty() {
            findings.push(format!("its plan is {plan:#}"));
        }
        findings.iter().map(|finding| format!("{}: {finding}", self.name)).collect()
    }
}

/// Collects the nodes whose cost grows with the queue.
fn check_plan(node: &Value, findings: &mut Vec<String>) {
    let kind = node["Node Type"].as_str().unwrap_or_default();
    let mut relations = Vec::new();
    relations_of(node, &mut relations);
    let joins = ["Hash Join", "Merge Join"].contains(&kind);
    if (joins || kind == "Seq Scan") && !relations.is_empty() {
        findings.push(format!("{kind} over {relations:?}"));
    }
    for child in node["Plans"].as_array().into_iter().flatten() {
        check_plan(child, findings);
    }
}

/// Collects the large tables that a node reads, itself or through its inputs. Subplans that run once are not inputs.
fn relations_of(node: &Value, relations: &mut Vec<String>) {
    if let Some(name) = node["Relation Name"].as_str().filter(|name| LARGE.contains(name)) {
        relations.push(name.to_owned());
    }
    for child in node["Plans"].as_array().into_iter().flatten() {
        let beside =
            ["InitPlan", "SubPlan"].map(Value::from).contains(&child["Parent Relationship"]);
        if !beside {
            relations_of(child, relations);
        }
    }
}

/// Returns the rows that the session has read from these tables, and the number of scans of a whole table. The
/// counts are reset when they are sent to the server's statistics, which does not happen inside a transaction.
async fn rows_read(conn: &mut PgConnection, tables: &[&str]) -> (i64, i64) {
    let sql = "SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint, coalesce(sum(seq_scan), 0)::bigint
                 FROM pg_stat_xact_user_tables WHERE schemaname = 'dalsegno' AND relname = ANY ($1)";
    sqlx::query_as(sql).bind(tables).fetch_one(conn).await.unwrap()
}

async fn running_of(conn: &mut PgConnection, worker: &str) -> (Vec<i64>, Vec<i64>) {
    let sql = "SELECT id, lease FROM dalsegno.jobs WHERE state = 'running' AND worker_id = $1::uuid ORDER BY id";
    let rows: Vec<(i64, i64)> = sqlx::query_as(sql).bind(worker).fetch_all(conn).await.unwrap();
    assert_eq!(rows.len() as i64, N_RUNNING);
    rows.into_iter().unzip()
}

fn array(numbers: &[i64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
    format!("'{{{}}}'", numbers.join(","))
}

async fn run(conn: &mut PgConnection, sql: &str) -> Vec<sqlx::postgres::PgRow> {
    let ran = sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).fetch_all(conn).await;
    ran.unwrap_or_else(|error| panic!("{error}: {sql}"))
}
