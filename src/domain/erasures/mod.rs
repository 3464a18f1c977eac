//! Erasure: removal of everything that was said in a campaign. Its cost stays, and a signed receipt says how much was removed.
//!
//! 1. The request closes the campaign, in the transaction that enqueues the job.
//! 2. The job cancels open tasks and all other queued jobs of the campaign, and waits until nothing of it runs.
//! 3. It removes sessions with their messages, summaries, manifests and stored transcripts. Then follow the events, the texts of tasks, and
//!    last the texts of the campaign.
//! 4. Hosts check their own folders afterwards.
//!
//! Each step consists of short transactions that look for remaining rows, so that a job that was cut off continues on any worker.
//!
//! Tasks stay as rows without their texts, because the ledger refers to them.
//!
//! Race: an older worker runs beside a newer one, and takes the job. It leaves rows that it does not know. An erasure is therefore complete
//! only when a worker that knows the whole schema has ended it. A newer worker [repeats it](fn@repeat::enqueue_incomplete).

mod config;
mod error;
mod hosts;
mod key;
mod receipt;
mod repeat;
mod steps;
mod tool_lines;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgExecutor, types::Json};
use uuid::Uuid;

pub use self::{
    config::Config,
    error::Error,
    hosts::{ErasurePosition, PendingErasure, list_pending_on_host, record_swept},
    key::{Key, KeyError},
    receipt::{Invalid, ReceiptSignature, sign, verify},
    repeat::enqueue_incomplete,
    steps::{
        OpenTasks, Step, cancel_jobs, cancel_one, cancel_open, finish, is_idle,
        list_remaining_kinds, measure_contents, next_batch, record_vacuum, set_step,
    },
    tool_lines::{erase_tool_lines, line_before_first},
};
use super::{
    Page, StatementError, audit, campaign_control, campaigns, ids, schedules, tasks, text,
};
use crate::queue::{self, Job, Options, Policy};

/// The receipt of an erasure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Erasure {
    pub id: Uuid,
    pub campaign_id: Uuid,
    pub reason: String,
    pub asked_at: DateTime<Utc>,
    /// Time when the database held no more rows of the campaign that the worker knew of. Null also if that worker was too old to tell its
    /// schema: a newer worker then repeats the erasure.
    pub ended_at: Option<DateTime<Utc>>,
    /// The current step: `cancel` for tasks, then the rows that are removed. Null before a worker has begun, and after the end.
    pub step: Option<String>,
    /// Tasks that still have to be cancelled or to end.
    pub open_tasks: i64,
    /// Counts of removed rows so far, by kind. The worker counts them, and they are not signed.
    pub removed: BTreeMap<String, i64>,
    /// Contents at the beginning of the removal by kind, counted by the database. All are removed when the erasure has ended. Null before
    /// the removal, and if a worker of an earlier version has ended it.
    pub contents: Option<BTreeMap<String, Contents>>,
    /// Time when all tables had been vacuumed after the removal. Null: not yet, or the role of the service may not do it.
    pub vacuumed_at: Option<DateTime<Utc>>,
    /// Time when all tables had been rewritten after the removal: `dalsegno erasure vacuum --full`.
    pub rewritten_at: Option<DateTime<Utc>>,
    /// The signature, once the erasure has ended.
    pub signed: Option<ReceiptSignature>,
    /// Hosts that have checked their folders since.
    pub hosts: Vec<String>,
}

impl Erasure {
    /// Counts the removed rows and all rows, of the kinds that were counted before the removal. The worker removes others, too, such as
    /// jobs, and does not count every kind that the database has counted: the first number may stay lower.
    pub fn removed_of_all(&self) -> (i64, i64) {
        let kinds = || self.contents.iter().flatten();
        let removed =
            |kind: &str, rows: i64| self.removed.get(kind).copied().unwrap_or(0).min(rows);
        let done = kinds().map(|(kind, contents)| removed(kind, contents.rows)).sum();
        (done, kinds().map(|(_, contents)| contents.rows).sum())
    }
}

/// Rows of one kind before the removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = ErasedContents)]
pub struct Contents {
    pub rows: i64,
    /// Hash over the texts of the rows: `dalsegno.contents_of_campaign` in SQL.
    pub sha256: String,
}

/// The job that erases a campaign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EraseCampaign {
    pub campaign_id: Uuid,
}

impl Job for EraseCampaign {
    const KIND: &'static str = "erase_campaign";

    fn policy() -> Policy {
        Policy { queue: "upkeep", max_attempts: 20, ..Policy::default() }
    }
}

/// Closes the campaign, and enqueues the job that cancels open tasks and erases the rest. A second request returns the same receipt, and
/// enqueues the job again.
pub async fn request(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    reason: &str,
    now: DateTime<Utc>,
) -> Result<Erasure, Error> {
    text::check("reason", reason, 500)?;
    match get(conn, campaign_id).await {
        Err(Error::NotAsked(_)) => {}
        asked => {
            // Removes rows that were added beside the first erasure.
            enqueue(conn, campaign_id).await?;
            return asked;
        }
    }
    if campaigns::get(&mut *conn, campaign_id).await?.status != campaigns::Status::Closed {
        campaign_control::close(conn, campaign_id, now).await?;
    }
    sqlx::query!(
        "insert into dalsegno.erasures (id, campaign_id, reason, asked_at) values ($1, $2, $3, $4)",
        ids::new_at(now),
        campaign_id,
        reason,
        now,
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("start an erasure"))?;
    remove_schedules(conn, campaign_id).await?;
    enqueue(conn, campaign_id).await?;
    get(conn, campaign_id).await
}

/// Removes the campaign's schedules. The data of their audit lines goes first, because the database checks by schedules and lines that they
/// belong to the campaign.
async fn remove_schedules(
    conn: &mut PgConnection,
    campaign_id: Uuid,
) -> Result<(), StatementError> {
    let mut names = schedules::names_of_campaign(&mut *conn, campaign_id).await?;
    names.extend(audit::schedules_of(&mut *conn, campaign_id).await?);
    // Not their idempotency keys: a queue may have the same name, and the outputs with words in them name the campaign.
    audit::erase_data(&mut *conn, campaign_id, &names).await?;
    schedules::remove_of_campaign(conn, campaign_id).await
}

async fn enqueue(conn: &mut PgConnection, campaign_id: Uuid) -> Result<(), queue::Error> {
    let options = Options { lane: Some(format!("erasure/{campaign_id}")), ..Options::default() };
    queue::enqueue(conn, &EraseCampaign { campaign_id }, &options).await.map(drop)
}

/// Lists the campaigns of erasures, those that were requested last first.
pub async fn list_campaigns(
    executor: impl PgExecutor<'_>,
    page: Page,
) -> Result<Vec<Uuid>, StatementError> {
    sqlx::query_scalar!(
        "select campaign_id from dalsegno.erasures
          where $1::uuid is null or id < (select e.id from dalsegno.erasures as e where e.campaign_id = $1)
          order by id desc limit $2",
        page.after,
        page.limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list erasures"))
}

pub async fn get(conn: &mut PgConnection, campaign_id: Uuid) -> Result<Erasure, Error> {
    let open_tasks = tasks::count_open(&mut *conn, campaign_id).await?;
    sqlx::query!(
        r#"select e.id, e.campaign_id, e.reason, e.asked_at, e.step, case when e.covers is not null then e.ended_at end as ended_at,
                  e.removed as "removed: Json<BTreeMap<String, i64>>", e.contents as "contents: Json<BTreeMap<String, Contents>>",
                  e.vacuumed_at, e.rewritten_at, e.statement, e.signature, e.public_key,
                  array(select h.host from dalsegno.erasure_hosts as h where h.erasure_id = e.id order by h.host) as "hosts!"
             from dalsegno.erasures as e where e.campaign_id = $1"#,
        campaign_id,
    )
    .map(|row| Erasure {
        id: row.id,
        campaign_id: row.campaign_id,
        reason: row.reason,
        asked_at: row.asked_at,
        ended_at: row.ended_at,
        step: row.step,
        open_tasks,
        removed: row.removed.0,
        contents: row.contents.map(|contents| contents.0),
        vacuumed_at: row.vacuumed_at,
        rewritten_at: row.rewritten_at,
        signed: Erasure::signed(row.statement, row.signature, row.public_key),
        hosts: row.hosts,
    })
    .fetch_optional(conn)
    .await
    .map_err(StatementError::to("read the receipt of an erasure"))?
    .ok_or(Error::NotAsked(campaign_id))
}
