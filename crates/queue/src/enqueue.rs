//! Enqueueing jobs from Rust.
//!
//! The functions call `dalsegno.enqueue` and `dalsegno.enqueue_many`, as any other language can. With a connection in
//! an open transaction, the job exists if and only if the transaction commits.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor, types::Json};

use super::{error::Error, job::Job};

/// The due time of a job that waits for a signal: the value of `dalsegno.never()`.
pub(super) const NEVER: Option<DateTime<Utc>> = DateTime::from_timestamp(253_402_214_400, 0);

/// Optional properties of a job beside its payload. The rest comes from the policy of its kind.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The serial lane it joins.
    pub lane: Option<String>,
    /// Group whose jobs get a fair share of the workers.
    pub group_key: Option<String>,
    /// Priority: 0 is the most urgent; 100 if unset.
    pub priority: Option<i32>,
    /// Earliest moment of the first run.
    pub run_at: Option<DateTime<Utc>>,
    /// Key under which a second call with the same payload finds the job of the first.
    pub idempotency_key: Option<String>,
    /// Names and values for the handler, such as `traceparent`.
    pub headers: Option<Value>,
    /// Queue, instead of the policy's.
    pub queue: Option<String>,
    /// Deadline per run in seconds, instead of the policy's.
    pub timeout_secs: Option<i32>,
}

/// A job that a call created or found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnqueueResult {
    /// Its id.
    pub job_id: i64,
    /// False if an earlier call with the same idempotency key created it.
    pub created: bool,
    /// Current state: `ready`, `blocked` or `scheduled` for a new job; any state for one that was found.
    pub state: String,
}

/// A job whose Rust type the caller does not have: its kind and payload are data.
#[derive(Debug, Clone, Copy)]
pub struct JobData<'a> {
    pub kind: &'a str,
    pub payload: &'a Value,
    pub queue: &'a str,
    /// Failed attempts after which the job is dead.
    pub max_attempts: i16,
}

/// Enqueues one job.
pub async fn enqueue<J: Job>(
    executor: impl PgExecutor<'_>,
    job: &J,
    options: &Options,
) -> Result<EnqueueResult, Error> {
    let policy = J::policy();
    let named = JobData {
        kind: J::KIND,
        payload: &encode(job)?,
        queue: options.queue.as_deref().unwrap_or(policy.queue),
        max_attempts: policy.max_attempts,
    };
    enqueue_named(executor, named, options).await
}

/// Enqueues a job into this lane, unless one already waits there. A waiting job begins after the caller's commit, so it
/// sees what the caller writes. Two concurrent callers may enqueue one job each.
pub async fn enqueue_unless_waiting<J: Job>(
    conn: &mut PgConnection,
    job: &J,
    lane: &str,
) -> Result<(), Error> {
    // A claim takes a stronger lock and skips locked rows. There is one index for the head of a lane and one for the
    // jobs behind it. The order keeps the planner on the second one if most jobs belong to a few lanes.
    let waiting = sqlx::query_scalar!(
        r#"WITH lane AS MATERIALIZED (SELECT l.id FROM dalsegno.lanes AS l WHERE l.key = $1),
                head AS MATERIALIZED (
                    SELECT j.id FROM lane AS l CROSS JOIN LATERAL (
                        SELECT i.id FROM dalsegno.jobs AS i
                         WHERE i.lane_id = l.id AND i.lane_seq IS NOT NULL AND i.state <> 'blocked' AND i.state IN ('ready', 'scheduled')
                         LIMIT 1 FOR KEY SHARE SKIP LOCKED) AS j),
                next AS MATERIALIZED (
                    SELECT j.id FROM lane AS l CROSS JOIN LATERAL (
                        SELECT i.id FROM dalsegno.jobs AS i WHERE i.lane_id = l.id AND i.state = 'blocked'
                         ORDER BY i.lane_seq LIMIT 1 FOR KEY SHARE SKIP LOCKED) AS j)
           SELECT id AS "id!" FROM head UNION ALL SELECT id FROM next LIMIT 1"#,
        lane,
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(Error::of("find a waiting job"))?;
    if waiting.is_none() {
        let options = Options { lane: Some(lane.to_owned()), ..Options::default() };
        enqueue(conn, job, &options).await?;
    }
    Ok(())
}

/// Enqueues a job whose kind is known by its name alone, as [`enqueue`]. Ignores `queue` of the options.
pub async fn enqueue_named(
    executor: impl PgExecutor<'_>,
    job: JobData<'_>,
    options: &Options,
) -> Result<EnqueueResult, Error> {
    sqlx::query_as!(
        EnqueueResult,
        r#"SELECT job_id AS "job_id!", created AS "created!", state AS "state!"
             FROM dalsegno.enqueue(kind => $1, payload => $2, queue => $3, lane => $4, group_key => $5, priority => $6,
                  run_at => $7, max_attempts => $8, idempotency_key => $9, headers => $10, timeout_secs => $11)"#,
        job.kind,
        job.payload,
        job.queue,
        options.lane,
        options.group_key,
        options.priority.unwrap_or(100),
        options.run_at,
        i32::from(job.max_attempts),
        options.idempotency_key,
        options.headers,
        options.timeout_secs,
    )
    .fetch_one(executor)
    .await
    .map_err(Error::of("enqueue a job"))
}

/// Enqueues many jobs of one kind in one statement, all or none. They join their lanes in this order.
pub async fn enqueue_many<J: Job>(
    executor: impl PgExecutor<'_>,
    jobs: impl IntoIterator<Item = (J, Options)>,
) -> Result<Vec<EnqueueResult>, Error> {
    let rows = jobs
        .into_iter()
        .map(|(job, options)| Row::new(&job, options))
        .collect::<Result<Vec<_>, _>>()?;
    sqlx::query_as!(
        EnqueueResult,
        r#"SELECT job_id AS "job_id!", created AS "created!", state AS "state!" FROM dalsegno.enqueue_many($1) ORDER BY ord"#,
        Json(rows) as _,
    )
    .fetch_all(executor)
    .await
    .map_err(Error::of("enqueue many jobs"))
}

/// Enqueues jobs that wait for a call of `dalsegno.signal`, as [`enqueue_many`]. Until then they have no place in their
/// lanes and block no other job. Ignores `run_at` of the options: the signal sets the time.
pub async fn enqueue_waiting<J: Job>(
    conn: &mut PgConnection,
    mut jobs: Vec<(J, Options)>,
) -> Result<Vec<EnqueueResult>, Error> {
    for (_, options) in &mut jobs {
        options.run_at = NEVER;
    }
    let enqueued = enqueue_many(&mut *conn, jobs).await?;
    let new: Vec<i64> = enqueued.iter().filter(|job| job.created).map(|job| job.job_id).collect();
    sqlx::query!("SELECT dalsegno.await_signal($1)", &new)
        .fetch_one(conn)
        .await
        .map_err(Error::of("let jobs wait for a signal"))?;
    Ok(enqueued)
}

/// Returns the known keys among these idempotency keys, each with its job.
pub async fn jobs_of_keys(
    executor: impl PgExecutor<'_>,
    keys: &[String],
) -> Result<Vec<(String, i64)>, Error> {
    sqlx::query!(
        r#"SELECT key AS "key!: String", job_id FROM dalsegno.idempotency_keys WHERE key = ANY ($1)"#,
        keys,
    )
    .map(|row| (row.key, row.job_id))
    .fetch_all(executor)
    .await
    .map_err(Error::of("look up idempotency keys"))
}

/// Returns the positions of those jobs whose idempotency key already belongs to a different job.
pub async fn taken_keys<'a, J: Job + 'a>(
    executor: impl PgExecutor<'_>,
    jobs: impl IntoIterator<Item = (&'a J, &'a Options)>,
) -> Result<Vec<usize>, Error> {
    let (mut keys, mut lanes, mut payloads) = (Vec::new(), Vec::new(), Vec::new());
    for (job, options) in jobs {
        keys.push(options.idempotency_key.as_deref());
        lanes.push(options.lane.as_deref());
        payloads.push(encode(job)?);
    }
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    // The same comparison as in `dalsegno.enqueue`.
    let places = sqlx::query_scalar!(
        r#"SELECT u.place AS "place!"
             FROM unnest($2::text[], $3::text[], $4::jsonb[]) WITH ORDINALITY AS u (key, lane, payload, place)
             JOIN dalsegno.idempotency_keys AS i ON i.key = u.key
            WHERE i.fingerprint <> sha256(convert_to(jsonb_build_array($1::text, u.lane, u.payload)::text, 'UTF8'))
            ORDER BY u.place"#,
        J::KIND,
        &keys as &[Option<&str>],
        &lanes as &[Option<&str>],
        &payloads,
    )
    .fetch_all(executor)
    .await
    .map_err(Error::of("look up idempotency keys"))?;
    Ok(places.into_iter().filter_map(|place| usize::try_from(place - 1).ok()).collect())
}

/// One element of the array that `dalsegno.enqueue_many` takes.
#[derive(Serialize)]
struct Row {
    kind: &'static str,
    payload: Value,
    queue: String,
    lane: Option<String>,
    group_key: Option<String>,
    priority: Option<i32>,
    run_at: Option<DateTime<Utc>>,
    max_attempts: i16,
    idempotency_key: Option<String>,
    headers: Option<Value>,
    timeout_secs: Option<i32>,
}

impl Row {
    fn new<J: Job>(job: &J, options: Options) -> Result<Self, Error> {
        let policy = J::policy();
        Ok(Self {
            kind: J::KIND,
            payload: encode(job)?,
            queue: options.queue.unwrap_or_else(|| policy.queue.to_owned()),
            lane: options.lane,
            group_key: options.group_key,
            priority: options.priority,
            run_at: options.run_at,
            max_attempts: policy.max_attempts,
            idempotency_key: options.idempotency_key,
            headers: options.headers,
            timeout_secs: options.timeout_secs,
        })
    }
}

fn encode<J: Job>(job: &J) -> Result<Value, Error> {
    serde_json::to_value(job).map_err(|source| Error::EncodePayload { kind: J::KIND, source })
}
