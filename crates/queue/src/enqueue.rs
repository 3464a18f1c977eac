//! Putting jobs on the queue from Rust.
//!
//! These are thin calls of `dalsegno.enqueue` and `dalsegno.enqueue_many`, which any other language calls the same
//! way. Pass a connection with an open transaction, and the job exists exactly if the transaction commits.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor, types::Json};

use super::{error::Error, job::Job};

/// When a job is due that waits for a signal, as `dalsegno.never()` says it.
const NEVER: Option<DateTime<Utc>> = DateTime::from_timestamp(253_402_214_400, 0);

/// What may be said about a job beside its payload. The rest comes from the policy of its kind.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The serial lane it joins.
    pub lane: Option<String>,
    /// The group it shares the workers fairly with.
    pub group_key: Option<String>,
    /// 0 is the most urgent; 100 if not given.
    pub priority: Option<i32>,
    /// Not before this moment.
    pub run_at: Option<DateTime<Utc>>,
    /// A second call with the same key and payload finds the job of the first.
    pub idempotency_key: Option<String>,
    /// Names and values for the handler, such as `traceparent`.
    pub headers: Option<Value>,
    /// Another queue than the policy's.
    pub queue: Option<String>,
    /// Another deadline per run than the policy's.
    pub timeout_secs: Option<i32>,
}

/// The job that a call made or found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enqueued {
    /// Its id.
    pub job_id: i64,
    /// False if an earlier call with the same idempotency key made it.
    pub created: bool,
    /// The state it is in: `ready`, `blocked`, `scheduled`, or how far the earlier call's job has come.
    pub state: String,
}

/// A job whose type the caller does not have: its kind and its payload are data.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    pub kind: &'a str,
    pub payload: &'a Value,
    pub queue: &'a str,
    /// Failed attempts after which the job is dead.
    pub max_attempts: i16,
}

/// Puts one job on the queue.
pub async fn enqueue<J: Job>(
    executor: impl PgExecutor<'_>,
    job: &J,
    options: &Options,
) -> Result<Enqueued, Error> {
    let policy = J::policy();
    let named = Named {
        kind: J::KIND,
        payload: &encode(job)?,
        queue: options.queue.as_deref().unwrap_or(policy.queue),
        max_attempts: policy.max_attempts,
    };
    enqueue_named(executor, named, options).await
}

/// Puts a job into this lane, unless one waits there that is not begun before the caller's commit: it will see what the caller writes.
/// Two callers at once may put one each.
pub async fn enqueue_unless_waiting<J: Job>(
    conn: &mut PgConnection,
    job: &J,
    lane: &str,
) -> Result<(), Error> {
    // Whoever claims takes a stronger lock, and passes over what it cannot get. The head of a lane and those behind it have an index each.
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
                         LIMIT 1 FOR KEY SHARE SKIP LOCKED) AS j)
           SELECT id AS "id!" FROM head UNION ALL SELECT id FROM next LIMIT 1"#,
        lane,
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(Error::of("look for a job that waits"))?;
    if waiting.is_none() {
        let options = Options { lane: Some(lane.to_owned()), ..Options::default() };
        enqueue(conn, job, &options).await?;
    }
    Ok(())
}

/// As [`enqueue`], of a kind that is known by its name alone. The queue of the options is not looked at.
pub async fn enqueue_named(
    executor: impl PgExecutor<'_>,
    job: Named<'_>,
    options: &Options,
) -> Result<Enqueued, Error> {
    sqlx::query_as!(
        Enqueued,
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

/// Puts many jobs of one kind on the queue in one statement, all or none. They join their lanes in this order.
pub async fn enqueue_many<J: Job>(
    executor: impl PgExecutor<'_>,
    jobs: impl IntoIterator<Item = (J, Options)>,
) -> Result<Vec<Enqueued>, Error> {
    let rows = jobs
        .into_iter()
        .map(|(job, options)| Row::new(&job, options))
        .collect::<Result<Vec<_>, _>>()?;
    sqlx::query_as!(
        Enqueued,
        r#"SELECT job_id AS "job_id!", created AS "created!", state AS "state!" FROM dalsegno.enqueue_many($1) ORDER BY ord"#,
        Json(rows) as _,
    )
    .fetch_all(executor)
    .await
    .map_err(Error::of("enqueue many jobs"))
}

/// As [`enqueue_many`], of jobs that wait until `dalsegno.signal` is called for them, which may be long before anybody looks: they
/// have no place in their lanes and hold nobody up. The moments of the options are not looked at: the signal names one.
pub async fn enqueue_waiting<J: Job>(
    conn: &mut PgConnection,
    mut jobs: Vec<(J, Options)>,
) -> Result<Vec<Enqueued>, Error> {
    for (_, options) in &mut jobs {
        options.run_at = NEVER;
    }
    let enqueued = enqueue_many(&mut *conn, jobs).await?;
    let new: Vec<i64> = enqueued.iter().filter(|job| job.created).map(|job| job.job_id).collect();
    sqlx::query!("SELECT dalsegno.await_signal($1)", &new)
        .fetch_one(conn)
        .await
        .map_err(Error::of("have jobs wait for a signal"))?;
    Ok(enqueued)
}

/// Which jobs idempotency keys stand for, of those that stand for any.
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

/// Which of these jobs have an idempotency key that already stands for another one, by their places.
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
    // As `dalsegno.enqueue` compares them.
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
