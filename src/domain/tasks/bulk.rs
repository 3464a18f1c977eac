//! Taking many tasks in at once: all or none, in a handful of statements however many there are.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Config, Error, New,
    add::{admit, check, event, job, mode_of},
    node::place,
};
use crate::domain::{Failed, feed, ids};
use crate::queue;

/// How many one call takes.
pub const MAX_TASKS: usize = 10_000;

/// One of many, in the order in which they were given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = BulkAdded)]
pub struct Placed {
    pub id: Uuid,
    /// False: an earlier call with this idempotency key made it, or an earlier one of these.
    pub created: bool,
}

/// Why none of them was taken in.
#[derive(Debug, thiserror::Error)]
pub enum BulkError {
    /// By their places, from 0.
    #[error("{} of the tasks cannot be taken in, and none was: mend them, then ask again", .0.len())]
    Items(Vec<(usize, Error)>),
    #[error(transparent)]
    All(#[from] Error),
}

/// A task that is to be written, if its job is new.
struct Draft<'a> {
    id: Uuid,
    new: &'a New<'a>,
    job: super::RunTurn,
    options: queue::Options,
}

/// As [`add()`](super::add()), of many in one campaign. After an error the caller rolls back.
pub async fn add_many(
    conn: &mut PgConnection,
    config: &Config,
    campaign_id: Uuid,
    news: &[New<'_>],
    now: DateTime<Utc>,
) -> Result<Vec<Placed>, BulkError> {
    let drafts = drafts(config, news, now)?;
    refuse_taken_keys(conn, &drafts).await?;
    let jobs = drafts.iter().map(|draft| (draft.job.clone(), draft.options.clone()));
    let enqueued = queue::enqueue_many(&mut *conn, jobs).await.map_err(Error::from)?;
    let created: Vec<(&Draft<'_>, i64)> = drafts
        .iter()
        .zip(&enqueued)
        .filter(|(_, enqueued)| enqueued.created)
        .map(|(draft, enqueued)| (draft, enqueued.job_id))
        .collect();
    if !created.is_empty() {
        // Only what is new: whoever asks again is told of the tasks that are there, whatever became of the campaign.
        admit(&mut *conn, campaign_id).await?;
        insert(&mut *conn, campaign_id, &created, now).await.map_err(Error::from)?;
        let added: Vec<_> = created.iter().map(|(draft, _)| (draft.new, draft.id)).collect();
        place(&mut *conn, &added).await.map_err(Error::from)?;
        let events: Vec<feed::New> =
            created.iter().map(|(draft, _)| event(draft.new, draft.id)).collect();
        feed::append(&mut *conn, &events, now).await.map_err(Error::from)?;
    }
    let before = added_before(conn, &enqueued).await.map_err(Error::from)?;
    let placed = drafts.iter().zip(&enqueued).map(|(draft, enqueued)| match enqueued.created {
        true => Ok(Placed { id: draft.id, created: true }),
        false => {
            let id = before.get(&enqueued.job_id).copied();
            let id = id.ok_or(Error::NoTaskOfJob(enqueued.job_id))?;
            Ok(Placed { id, created: false })
        }
    });
    placed.collect()
}

/// What can be said without the database, of all of them at once.
fn drafts<'a>(
    config: &Config,
    news: &'a [New<'a>],
    now: DateTime<Utc>,
) -> Result<Vec<Draft<'a>>, BulkError> {
    let (mut drafts, mut wrong) = (Vec::with_capacity(news.len()), Vec::new());
    let mut asked_under: HashMap<&str, String> = HashMap::new();
    for (place, new) in news.iter().enumerate() {
        if let Err(error) = check(config, new) {
            wrong.push((place, error));
            continue;
        }
        let id = ids::at(now);
        let (job, options) = job(new, id);
        if let Some(key) = new.idempotency_key {
            let asked = asked_under.entry(key).or_insert_with(|| job.asked.clone());
            if *asked != job.asked {
                wrong.push((place, Error::KeyTaken(key.to_owned())));
            }
        }
        drafts.push(Draft { id, new, job, options });
    }
    if wrong.is_empty() { Ok(drafts) } else { Err(BulkError::Items(wrong)) }
}

/// Names every task whose key stands for another question. The queue would name the first.
async fn refuse_taken_keys(conn: &mut PgConnection, drafts: &[Draft<'_>]) -> Result<(), BulkError> {
    let keyed: Vec<(usize, &Draft<'_>)> = drafts
        .iter()
        .enumerate()
        .filter(|(_, draft)| draft.new.idempotency_key.is_some())
        .collect();
    let jobs = keyed.iter().map(|(_, draft)| (&draft.job, &draft.options));
    let taken = queue::taken_keys(conn, jobs).await.map_err(Error::from)?;
    let wrong: Vec<(usize, Error)> = taken
        .into_iter()
        .filter_map(|taken| keyed.get(taken))
        .map(|(place, draft)| {
            let key = draft.new.idempotency_key.unwrap_or_default();
            (*place, Error::KeyTaken(key.to_owned()))
        })
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(BulkError::Items(wrong)) }
}

async fn insert(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    created: &[(&Draft<'_>, i64)],
    now: DateTime<Utc>,
) -> Result<(), Failed> {
    let of = |value: fn(&New<'_>) -> Option<i64>| -> Vec<Option<i64>> {
        created.iter().map(|(draft, _)| value(draft.new)).collect()
    };
    let ids: Vec<Uuid> = created.iter().map(|(draft, _)| draft.id).collect();
    let job_ids: Vec<i64> = created.iter().map(|(_, job_id)| *job_id).collect();
    let modes: Vec<&str> = created.iter().map(|(draft, _)| mode_of(draft.new).as_str()).collect();
    let agents: Vec<&str> =
        created.iter().map(|(draft, _)| draft.new.agent.name.as_str()).collect();
    let instances: Vec<&str> = created.iter().map(|(draft, _)| draft.new.instance).collect();
    let prompts: Vec<&str> = created.iter().map(|(draft, _)| draft.new.prompt).collect();
    let added_by: Vec<Option<&str>> = created.iter().map(|(draft, _)| draft.new.added_by).collect();
    sqlx::query!(
        "insert into dalsegno.tasks
                (id, campaign_id, job_id, created_at, budget_micros, budget_tokens, session_mode, agent, instance, prompt,
                 added_by)
         select t.id, $1, t.job_id, $2, t.micros, t.tokens, t.mode, t.agent, t.instance, t.prompt,
                t.added_by
           from unnest($3::uuid[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[])
                as t (id, job_id, micros, tokens, mode, agent, instance, prompt, added_by)",
        campaign_id,
        now,
        &ids,
        &job_ids,
        &of(|new| new.budget.micros.or(new.agent.budget.micros)) as &[Option<i64>],
        &of(|new| new.budget.tokens.or(new.agent.budget.tokens)) as &[Option<i64>],
        &modes as &[&str],
        &agents as &[&str],
        &instances as &[&str],
        &prompts as &[&str],
        &added_by as &[Option<&str>],
    )
    .execute(conn)
    .await
    .map(|_| ())
    .map_err(Failed::to("store tasks"))
}

/// The tasks that were added with the jobs that are not new. A retry may have given them other jobs since.
async fn added_before(
    conn: &mut PgConnection,
    enqueued: &[queue::Enqueued],
) -> Result<HashMap<i64, Uuid>, Failed> {
    let known: Vec<i64> =
        enqueued.iter().filter(|job| !job.created).map(|job| job.job_id).collect();
    if known.is_empty() {
        return Ok(HashMap::new());
    }
    let found = sqlx::query!(
        r#"select coalesce(first_job_id, job_id) as "job_id!", id from dalsegno.tasks
            where (job_id = any ($1) and first_job_id is null) or first_job_id = any ($1)"#,
        &known,
    )
    .fetch_all(conn)
    .await
    .map_err(Failed::to("find the tasks of idempotency keys"))?;
    Ok(found.into_iter().map(|row| (row.job_id, row.id)).collect())
}
