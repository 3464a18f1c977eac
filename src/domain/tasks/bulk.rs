//! Adding many tasks at once: all or none, in a fixed number of statements.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    AddResult, Config, Error, New, RunJoinedTurn, RunTurn, TaskLink,
    add::{check_new, event, job},
    attachments::store_attachments,
    flow_templates::store_flow_templates,
    get,
    insert::{InsertRow, insert},
    keys::KeySpace,
    node::store_nodes,
    parameters::store_parameters,
    search::{LabelRow, insert_labels},
    store::check_campaign,
    waits::{self, NewWait},
};
use crate::domain::{
    StatementError,
    class::{Class, Kind},
    feed, ids,
    task_files::attachments,
    text::count,
};
use crate::queue::{self, EnqueueResult};

/// Maximum number of tasks of one call.
pub const MAX_TASKS: usize = 10_000;

/// Class of the error for wrong items among many tasks; the refusal points at them.
pub const BAD_ITEMS: Class = Class::of(Kind::Invalid, "bad_items");

/// One of the added tasks, in the order of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = BulkAdded)]
pub struct BulkTask {
    pub id: Uuid,
    /// False if an earlier call, or an earlier item of this one, created the task under the same idempotency key.
    pub created: bool,
}

/// The reason why none of the tasks was added.
#[derive(Debug, thiserror::Error)]
pub enum BulkError {
    /// Errors of single tasks, each with its index from 0.
    #[error("{} invalid, so none was added: correct them, then try again", count(.0.len(), "of the tasks is", "of the tasks are"))]
    Items(Vec<(usize, Error)>),
    #[error(transparent)]
    All(#[from] Error),
}

/// A task that is written if its job is new.
struct Draft<'a> {
    id: Uuid,
    new: &'a New<'a>,
    job: RunTurn,
    options: queue::Options,
    /// The tasks that it waits for.
    after: Vec<Other>,
}

/// A task that another one waits for.
#[derive(Debug, Clone, Copy)]
enum Other {
    There(Uuid),
    /// A task of the same call, by its index.
    Here(usize),
}

/// Adds many tasks of one caller to one campaign, as [`add()`](super::add()) does. After an error the caller must roll back.
pub async fn add_many(
    conn: &mut PgConnection,
    config: &Config,
    campaign_id: Uuid,
    news: &[New<'_>],
    now: DateTime<Utc>,
) -> Result<Vec<BulkTask>, BulkError> {
    let mut drafts = drafts(config, news, now)?;
    let key_space = KeySpace::of(campaign_id, news);
    find_others(&mut *conn, campaign_id, key_space, &mut drafts).await?;
    let keys: Vec<&str> = news.iter().filter_map(|new| new.idempotency_key).collect();
    let stored = key_space.stored(&mut *conn, &keys).await.map_err(Error::from)?;
    for draft in &mut drafts {
        draft.options.idempotency_key =
            draft.new.idempotency_key.and_then(|key| stored.get(key)).cloned();
    }
    refuse_taken_keys(conn, &drafts).await?;
    let uploads = news.iter().flat_map(|new| new.attachments);
    attachments::store_uploads(&mut *conn, uploads, now).await.map_err(Error::from)?;
    let enqueued = enqueue(&mut *conn, &drafts).await.map_err(Error::from)?;
    let created: Vec<(&Draft<'_>, i64)> = drafts
        .iter()
        .zip(&enqueued)
        .filter(|(_, enqueued)| enqueued.created)
        .map(|(draft, enqueued)| (draft, enqueued.job_id))
        .collect();
    if !created.is_empty() {
        // Only for new tasks: a repeated request returns the existing tasks even if the campaign is closed by now.
        check_campaign(&mut *conn, campaign_id).await?;
        let rows = created.iter();
        let rows = rows.map(|(draft, job_id)| InsertRow::of(draft.new, draft.id, *job_id));
        let rows: Vec<_> = rows.collect();
        insert(&mut *conn, campaign_id, &rows, now).await.map_err(Error::from)?;
        let rows = created.iter();
        let rows = rows.filter_map(|(draft, _)| LabelRow::of(draft.id, draft.new.labels));
        insert_labels(&mut *conn, &rows.collect::<Vec<_>>()).await.map_err(Error::from)?;
        let added: Vec<_> = created.iter().map(|(draft, _)| (draft.new, draft.id)).collect();
        store_nodes(&mut *conn, &added).await.map_err(Error::from)?;
        store_flow_templates(&mut *conn, &added).await.map_err(Error::from)?;
        store_parameters(&mut *conn, &added).await.map_err(Error::from)?;
        let placed = drafts.iter().zip(&enqueued).enumerate();
        let placed = placed.filter(|(_, (_, enqueued))| enqueued.created);
        let placed: Vec<_> =
            placed.map(|(place, (draft, _))| (place, draft.new, draft.id)).collect();
        store_attachments(&mut *conn, config, campaign_id, &placed, now).await?;
        let events: Vec<feed::New> =
            created.iter().map(|(draft, _)| event(draft.new, draft.id)).collect();
        feed::append(&mut *conn, &events, now).await.map_err(Error::from)?;
    }
    let before = added_before(conn, &enqueued).await.map_err(Error::from)?;
    let placed = drafts.iter().zip(&enqueued).map(|(draft, enqueued)| match enqueued.created {
        true => Ok(BulkTask { id: draft.id, created: true }),
        false => {
            let id = before.get(&enqueued.job_id).copied();
            let id = id.ok_or(Error::NoTaskOfJob(enqueued.job_id))?;
            Ok(BulkTask { id, created: false })
        }
    });
    let placed = placed.collect::<Result<Vec<BulkTask>, Error>>()?;
    waits::begin(conn, &new_waits(&drafts, &placed)).await.map_err(Error::from)?;
    Ok(placed)
}

/// Adds one task that is linked to others.
pub(super) async fn add_linked(
    conn: &mut PgConnection,
    config: &Config,
    new: &New<'_>,
    now: DateTime<Utc>,
) -> Result<AddResult, Error> {
    let placed =
        add_many(&mut *conn, config, new.campaign_id, std::slice::from_ref(new), now).await;
    let placed = placed.map_err(|error| match error {
        BulkError::All(error) => error,
        // There is one task, with one error.
        BulkError::Items(mut wrong) => {
            wrong.pop().map_or(Error::NoPredecessor("(none)".to_owned()), |(_, error)| error)
        }
    })?;
    let one = placed.first().copied().ok_or_else(|| Error::NoPredecessor("(none)".to_owned()))?;
    Ok(AddResult { task: get(conn, one.id).await?, created: one.created })
}

/// Enqueues the jobs. Waiting tasks have jobs of another kind and no place in a lane yet, so they need no order with the rest.
async fn enqueue(
    conn: &mut PgConnection,
    drafts: &[Draft<'_>],
) -> Result<Vec<EnqueueResult>, queue::Error> {
    let (waiting, ready): (Vec<_>, Vec<_>) =
        drafts.iter().partition(|draft| draft.new.links.waits());
    let jobs: Vec<_> =
        ready.into_iter().map(|draft| (draft.job.clone(), draft.options.clone())).collect();
    let mut ready = queue::enqueue_many(&mut *conn, jobs).await?.into_iter();
    if waiting.is_empty() {
        return Ok(ready.collect());
    }
    let jobs: Vec<_> =
        waiting.into_iter().map(|draft| (draft.joined_job(), draft.options.clone())).collect();
    let mut waiting = queue::enqueue_waiting(conn, jobs).await?.into_iter();
    let next = |draft: &Draft<'_>| match draft.new.links.waits() {
        true => waiting.next(),
        false => ready.next(),
    };
    Ok(drafts.iter().filter_map(next).collect())
}

fn new_waits(drafts: &[Draft<'_>], placed: &[BulkTask]) -> Vec<NewWait> {
    let is_new =
        |(draft, placed): &(&Draft<'_>, &BulkTask)| placed.created && draft.new.links.waits();
    let wait = |(draft, one): (&Draft<'_>, &BulkTask)| NewWait {
        task_id: one.id,
        depends_on: draft
            .after
            .iter()
            .filter_map(|other| match other {
                Other::There(id) => Some(*id),
                Other::Here(place) => placed.get(*place).map(|placed| placed.id),
            })
            .collect(),
        on_failure: draft.new.links.on_failure,
        not_before: draft.new.run_at,
    };
    drafts.iter().zip(placed).filter(is_new).map(wait).collect()
}

/// Checks all tasks without the database, and reports all errors at once.
fn drafts<'a>(
    config: &Config,
    news: &'a [New<'a>],
    now: DateTime<Utc>,
) -> Result<Vec<Draft<'a>>, BulkError> {
    let (mut drafts, mut wrong) = (Vec::with_capacity(news.len()), Vec::new());
    let mut asked_under: HashMap<&str, String> = HashMap::new();
    for (place, new) in news.iter().enumerate() {
        if let Err(error) = check_new(config, new) {
            wrong.push((place, error));
            continue;
        }
        let id = ids::new_at(now);
        let (job, options) = job(new, id);
        if let Some(key) = new.idempotency_key {
            let asked = asked_under.entry(key).or_insert_with(|| job.asked.clone());
            if *asked != job.asked {
                wrong.push((place, Error::KeyTaken(key.to_owned())));
            }
        }
        drafts.push(Draft { id, new, job, options, after: Vec::new() });
    }
    if wrong.is_empty() { Ok(drafts) } else { Err(BulkError::Items(wrong)) }
}

/// Resolves the tasks that each one waits for. Reports all tasks that name unknown ones.
async fn find_others(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    key_space: KeySpace<'_>,
    drafts: &mut [Draft<'_>],
) -> Result<(), BulkError> {
    let named = || drafts.iter().flat_map(|draft| draft.new.links.depends_on);
    let ids: Vec<Uuid> = named().filter_map(TaskLink::id).collect();
    let keys: Vec<&str> = named().filter_map(TaskLink::key).collect();
    if named().next().is_none() {
        return Ok(());
    }
    let there = tasks_there(&mut *conn, campaign_id, &ids).await.map_err(Error::from)?;
    let by_key = key_space.tasks(conn, &keys).await?;
    let mut here: HashMap<&str, usize> = HashMap::new();
    let mut wrong = Vec::new();
    for (place, draft) in drafts.iter_mut().enumerate() {
        let only_of = draft.new.links.only_of;
        let find = |after: &TaskLink| {
            let other = match after {
                TaskLink::Task(id) => {
                    let caller = there.get(id);
                    let is_in_reach = |caller: &&String| only_of.is_none_or(|own| own == *caller);
                    caller.filter(is_in_reach).map(|_| Other::There(*id))
                }
                TaskLink::Item { item } => (*item < place).then_some(Other::Here(*item)),
                TaskLink::Key { key } => {
                    let before = here.get(key.as_str()).map(|place| Other::Here(*place));
                    before.or_else(|| by_key.get(key).map(|id| Other::There(*id)))
                }
            };
            other.ok_or_else(|| Error::NoPredecessor(after.to_text()))
        };
        let found = draft.new.links.depends_on.iter().map(find).collect();
        match found {
            Ok(after) => draft.after = after,
            Err(error) => wrong.push((place, error)),
        }
        if let Some(key) = draft.new.idempotency_key {
            here.entry(key).or_insert(place);
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(BulkError::Items(wrong)) }
}

/// Returns the existing ones among these tasks, each with the caller that added it.
pub(super) async fn tasks_there(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    ids: &[Uuid],
) -> Result<HashMap<Uuid, String>, StatementError> {
    sqlx::query!(
        r#"select id, dalsegno.caller_of(added_by) as "caller!" from dalsegno.tasks where id = any ($1) and campaign_id = $2"#,
        ids,
        campaign_id,
    )
    .map(|row| (row.id, row.caller))
    .fetch_all(conn)
    .await
    .map(|tasks| tasks.into_iter().collect())
    .map_err(StatementError::to("find dependencies"))
}

/// Reports every task whose key stands for another request. The queue would report the first only.
async fn refuse_taken_keys(conn: &mut PgConnection, drafts: &[Draft<'_>]) -> Result<(), BulkError> {
    let keyed: Vec<(usize, &Draft<'_>)> = drafts
        .iter()
        .enumerate()
        .filter(|(_, draft)| draft.new.idempotency_key.is_some())
        .collect();
    let (waiting, ready): (Vec<_>, Vec<_>) =
        keyed.into_iter().partition(|(_, draft)| draft.new.links.waits());
    let jobs = ready.iter().map(|(_, draft)| (&draft.job, &draft.options));
    let taken = queue::taken_keys(&mut *conn, jobs).await.map_err(Error::from)?;
    let joined: Vec<_> = waiting.iter().map(|(_, draft)| draft.joined_job()).collect();
    let jobs = joined.iter().zip(waiting.iter().map(|(_, draft)| &draft.options));
    let taken_waiting = queue::taken_keys(conn, jobs).await.map_err(Error::from)?;
    let taken = taken.into_iter().filter_map(|taken| ready.get(taken));
    let wrong: Vec<(usize, Error)> = taken
        .chain(taken_waiting.into_iter().filter_map(|taken| waiting.get(taken)))
        .map(|(place, draft)| {
            let key = draft.new.idempotency_key.unwrap_or_default();
            (*place, Error::KeyTaken(key.to_owned()))
        })
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(BulkError::Items(wrong)) }
}

/// Returns the tasks of jobs that existed before. A retry may have given them other jobs since.
async fn added_before(
    conn: &mut PgConnection,
    enqueued: &[EnqueueResult],
) -> Result<HashMap<i64, Uuid>, StatementError> {
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
    .map_err(StatementError::to("find the tasks of idempotency keys"))?;
    Ok(found.into_iter().map(|row| (row.job_id, row.id)).collect())
}

impl Draft<'_> {
    fn joined_job(&self) -> RunJoinedTurn {
        RunJoinedTurn { asked: self.job.asked.clone() }
    }
}

impl TaskLink {
    fn id(&self) -> Option<Uuid> {
        match self {
            Self::Task(id) => Some(*id),
            Self::Item { .. } | Self::Key { .. } => None,
        }
    }

    fn key(&self) -> Option<&str> {
        match self {
            Self::Key { key } => Some(key),
            Self::Task(_) | Self::Item { .. } => None,
        }
    }
}
