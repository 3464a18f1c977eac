//! The whole queue in the database, read in one statement and compared with the model.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{prop_assert, prop_assert_eq, test_runner::TestCaseError};
use serde::Deserialize;
use sqlx::PgConnection;
use uuid::Uuid;

use super::model::{LANES, Lane, Model, State};

/// Invariants of the tables after each sequence of steps. Each row is a violation.
const INVARIANTS: &str = "
    SELECT 'a lane with two heads: ' || lane_id FROM dalsegno.jobs
     WHERE lane_seq IS NOT NULL AND state <> 'blocked' GROUP BY lane_id HAVING count(*) > 1
    UNION ALL
    SELECT 'overtaken in its lane: ' || b.id FROM dalsegno.jobs AS h JOIN dalsegno.jobs AS b ON b.lane_id = h.lane_id
     WHERE h.lane_seq IS NOT NULL AND h.state <> 'blocked' AND b.state = 'blocked' AND b.lane_seq < h.lane_seq
    UNION ALL
    SELECT 'a lane without a pending promotion: ' || j.lane_id FROM dalsegno.jobs AS j JOIN dalsegno.lanes AS l ON l.id = j.lane_id
     WHERE j.state = 'blocked' AND l.held_at IS NULL
       AND NOT EXISTS (SELECT FROM dalsegno.jobs AS h WHERE h.lane_id = j.lane_id AND h.lane_seq IS NOT NULL AND h.state <> 'blocked')
       AND NOT EXISTS (SELECT FROM dalsegno.lane_sweeps AS s WHERE s.lane_id = j.lane_id)
    UNION ALL
    SELECT 'a place given twice, or not yet: ' || j.id FROM dalsegno.jobs AS j JOIN dalsegno.lanes AS l ON l.id = j.lane_id
     WHERE j.lane_seq >= l.next_seq
        OR EXISTS (SELECT FROM dalsegno.jobs AS o WHERE o.lane_id = j.lane_id AND o.lane_seq = j.lane_seq AND o.id <> j.id)
    UNION ALL
    SELECT 'a job without a payload, or the other way round: ' || coalesce(j.id, p.job_id)
      FROM dalsegno.jobs AS j FULL JOIN dalsegno.job_payloads AS p ON p.job_id = j.id WHERE j.id IS NULL OR p.job_id IS NULL
    UNION ALL
    SELECT 'a job that is live and dead: ' || id FROM dalsegno.jobs JOIN dalsegno.dead_jobs USING (id)
    UNION ALL
    SELECT 'a lease held twice: ' || lease FROM dalsegno.jobs WHERE lease IS NOT NULL GROUP BY lease HAVING count(*) > 1
    UNION ALL
    SELECT format('the counters say %s %s jobs of %s in %s, the tables %s', c.jobs, c.kind, c.queue, c.state, t.jobs)
      FROM dalsegno.job_counts AS c
      FULL JOIN (SELECT queue, kind, state, count(*) AS jobs FROM
                   (SELECT queue, kind, state FROM dalsegno.jobs UNION ALL SELECT queue, kind, 'dead' FROM dalsegno.dead_jobs) AS a
                  GROUP BY queue, kind, state) AS t USING (queue, kind, state)
     WHERE coalesce(c.jobs, 0) <> coalesce(t.jobs, 0)";

const SNAPSHOT: &str = "SELECT json_build_object(
    'jobs', (SELECT coalesce(json_object_agg(j.id, json_build_object(
        'state', j.state, 'wait_reason', j.wait_reason, 'hold_by', j.hold_by, 'attempt', j.attempt, 'crash_count', j.crash_count,
        'max_attempts', j.max_attempts, 'lease', j.lease, 'worker', j.worker_id, 'lane', l.key, 'place', j.lane_seq,
        'due', j.state = 'scheduled' AND j.run_at <= clock_timestamp(),
        'run_at', (extract(epoch FROM j.run_at) * 1000000)::bigint)), '{}')
        FROM dalsegno.jobs AS j LEFT JOIN dalsegno.lanes AS l ON l.id = j.lane_id),
    'dead', (SELECT coalesce(json_object_agg(d.id, json_build_object('reason', d.reason, 'attempt', d.attempt,
        'crash_count', d.crash_count, 'lease', d.lease, 'lane', d.lane_key)), '{}') FROM dalsegno.dead_jobs AS d),
    'runs', (SELECT coalesce(json_agg(json_build_array(r.job_id, greatest(r.lease, 0), r.outcome) ORDER BY r.ended_at, abs(r.lease)), '[]') FROM dalsegno.runs AS r),
    'lanes', (SELECT coalesce(json_object_agg(l.key, json_build_array(l.next_seq - 1, l.held_at IS NOT NULL, l.on_failure = 'hold')), '{}') FROM dalsegno.lanes AS l),
    'owed', (SELECT coalesce(json_agg(DISTINCT l.key), '[]') FROM dalsegno.lane_sweeps AS s JOIN dalsegno.lanes AS l ON l.id = s.lane_id),
    'requests', (SELECT coalesce(json_agg(c.job_id), '[]') FROM dalsegno.cancel_requests AS c),
    'workers', (SELECT coalesce(json_object_agg(w.id, json_build_array(w.lease_until > clock_timestamp(), w.draining, w.gone_reason)), '{}') FROM dalsegno.workers AS w)
)::text";

#[derive(Deserialize)]
struct QueueSnapshot {
    jobs: BTreeMap<i64, JobRow>,
    dead: BTreeMap<i64, DeadRow>,
    runs: Vec<(i64, i64, String)>,
    lanes: BTreeMap<String, (i64, bool, bool)>,
    owed: BTreeSet<String>,
    requests: BTreeSet<i64>,
    workers: BTreeMap<Uuid, (bool, bool, Option<String>)>,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
struct JobRow {
    state: String,
    wait_reason: Option<String>,
    hold_by: Option<String>,
    attempt: i16,
    crash_count: i16,
    max_attempts: i16,
    lease: Option<i64>,
    worker: Option<Uuid>,
    lane: Option<String>,
    place: Option<i64>,
    due: bool,
    run_at: i64,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
struct DeadRow {
    reason: String,
    attempt: i16,
    crash_count: i16,
    lease: i64,
    lane: Option<String>,
}

/// Checks the tables, compares them with the model, and lets the model learn the times.
pub async fn compare(conn: &mut PgConnection, model: &mut Model) -> Result<(), TestCaseError> {
    let findings: Vec<String> = sqlx::query_scalar(INVARIANTS).fetch_all(&mut *conn).await.unwrap();
    prop_assert!(findings.is_empty(), "{findings:?}");
    let text: String = sqlx::query_scalar(SNAPSHOT).fetch_one(conn).await.unwrap();
    let picture: QueueSnapshot = serde_json::from_str(&text).unwrap();
    for (id, row) in &picture.jobs {
        if let Some(job) = model.jobs.get_mut(id) {
            job.run_at = row.run_at;
        }
    }
    prop_assert_eq!(picture.jobs, jobs(model));
    prop_assert_eq!(picture.dead, dead(model));
    let mut runs: BTreeMap<i64, Vec<(i64, String)>> = BTreeMap::new();
    for (id, lease, outcome) in picture.runs {
        runs.entry(id).or_default().push((lease, outcome));
    }
    let expected = model.runs.iter().map(|(id, runs)| (*id, words(runs))).collect();
    prop_assert_eq!(runs, expected);
    prop_assert_eq!(picture.lanes, lanes(model));
    let owed = model.owed.iter().map(|lane| LANES[*lane].to_owned()).collect();
    prop_assert_eq!(picture.owed, owed, "lanes with a pending promotion");
    prop_assert_eq!(&picture.requests, &model.requests, "requests to cancel");
    prop_assert_eq!(picture.workers, workers(model));
    nothing_is_lost(model)
}

/// Checks that each enqueued job is live, dead, or has ended with a run that records it.
fn nothing_is_lost(model: &Model) -> Result<(), TestCaseError> {
    for (id, outcome) in &model.ended {
        let runs = model.runs.get(id).map_or(&[][..], |runs| runs);
        let ends = runs.iter().filter(|run| ["done", "cancelled"].contains(&run.1)).count();
        prop_assert_eq!(ends, 1, "job {} ended {} times", id, ends);
        prop_assert_eq!(runs.last().map(|run| run.1), Some(*outcome));
    }
    for (id, job) in &model.jobs {
        let runs = model.runs.get(id).map_or(0, Vec::len);
        prop_assert!(job.attempt >= 0 && job.attempt as usize <= runs + 1, "{id}: {job:?}");
    }
    Ok(())
}

fn words(runs: &[(i64, &'static str)]) -> Vec<(i64, String)> {
    runs.iter().map(|(lease, outcome)| (*lease, (*outcome).to_owned())).collect()
}

fn jobs(model: &Model) -> BTreeMap<i64, JobRow> {
    let row = |job: &super::model::Job| {
        let (lease, worker) = match job.state {
            State::Running { lease, worker } => (Some(lease), Some(worker)),
            _ => (None, None),
        };
        let wait_reason = match job.state {
            State::Scheduled(reason) => Some(reason.to_owned()),
            _ => None,
        };
        JobRow {
            state: job.state.word().to_owned(),
            wait_reason,
            hold_by: job.hold_by.map(str::to_owned),
            attempt: job.attempt,
            crash_count: job.crash_count,
            max_attempts: job.spec.max_attempts,
            lease,
            worker,
            lane: job.spec.lane.map(|lane| LANES[lane].to_owned()),
            place: job.place,
            due: job.due,
            run_at: job.run_at,
        }
    };
    model.jobs.iter().map(|(id, job)| (*id, row(job))).collect()
}

fn dead(model: &Model) -> BTreeMap<i64, DeadRow> {
    let row = |dead: &super::model::DeadJob| DeadRow {
        reason: dead.reason.to_owned(),
        attempt: dead.attempt,
        crash_count: dead.crash_count,
        lease: dead.lease,
        lane: dead.spec.lane.map(|lane| LANES[lane].to_owned()),
    };
    model.dead.iter().map(|(id, dead)| (*id, row(dead))).collect()
}

fn lanes(model: &Model) -> BTreeMap<String, (i64, bool, bool)> {
    let row = |lane: &Lane| (lane.n_places, lane.held, lane.hold_on_failure);
    let named = LANES.iter().zip(&model.lanes).filter(|(_, lane)| lane.exists);
    named.map(|(name, lane)| ((*name).to_owned(), row(lane))).collect()
}

fn workers(model: &Model) -> BTreeMap<Uuid, (bool, bool, Option<String>)> {
    let row = |worker: &super::model::Worker| {
        (worker.leased, worker.draining, worker.gone.map(str::to_owned))
    };
    model.workers.iter().map(|worker| (worker.id, row(worker))).collect()
}
