//! Steps of the erasure job, each made of short transactions.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::Error;
use crate::{
    db,
    domain::{
        StatementError, agent_pauses, audit, blackboard, budgets, bulk_actions, campaigns,
        cleanups,
        compactions::{self, CompactSession},
        context_texts,
        facts::{self, ExtractFacts},
        failovers, feed, flows, memory, operation_keys, posts,
        reruns::{self, RerunTurn},
        session_summaries, sessions, task_files,
        tasks::{self, AddTask},
        webhooks,
    },
    queue::{self, Job as _},
};

/// The steps in their order: a reader never finds an answer without its question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Sessions,
    Posts,
    Feed,
    Tasks,
    Blackboard,
    Memory,
    Jobs,
}

/// Sessions that one transaction looks at. It removes fewer of them if they have many messages.
const SESSIONS: i64 = 50;
const ROWS: i64 = 2_000;
/// Versions of a blackboard, each of which may be long.
const VERSIONS: i64 = 200;
/// Items of the memory, each with its versions.
const ITEMS: i64 = 200;
/// Kinds of queued jobs, besides tasks, that hold texts of a campaign. A running compaction would store its summary after the conversation
/// is removed. The job of a scheduled task holds its prompt.
const KINDS: [&str; 4] = [CompactSession::KIND, AddTask::KIND, ExtractFacts::KIND, RerunTurn::KIND];
/// Files of tasks, each with its content.
const FILES: i64 = 100;
const WHY: &str = "the campaign is erased";

impl Step {
    pub const FIRST: Self = Self::Sessions;

    pub fn next(self) -> Option<Self> {
        match self {
            Self::Sessions => Some(Self::Posts),
            Self::Posts => Some(Self::Feed),
            Self::Feed => Some(Self::Tasks),
            Self::Tasks => Some(Self::Blackboard),
            Self::Blackboard => Some(Self::Memory),
            Self::Memory => Some(Self::Jobs),
            Self::Jobs => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Posts => "posts",
            Self::Feed => "feed",
            Self::Tasks => "tasks",
            Self::Blackboard => "blackboard",
            Self::Memory => "memory",
            Self::Jobs => "jobs",
        }
    }
}

/// Open tasks of a campaign that is erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTasks {
    /// The last of them, in the order of cancellation. The next batch begins behind it.
    pub last: Uuid,
    /// Those that could not be cancelled together: they run, another transaction has locked them, or a worker was lost in them.
    pub left: Vec<Uuid>,
}

/// Cancels a batch of open tasks, the newest first, in one short transaction; `None` at the end. Writes the progress to the receipt and the
/// feed. Tasks in `left` are cancelled [one by one](cancel_one).
pub async fn cancel_open(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    before: Option<Uuid>,
    now: DateTime<Utc>,
) -> Result<Option<OpenTasks>, Error> {
    let mut left = tasks::open_of(&mut *conn, campaign_id, before, tasks::CANCEL_MANY_MAX).await?;
    let Some(last) = left.last().copied() else { return Ok(None) };
    let scope = tasks::CancelScope::Erasure;
    let cancelled = tasks::cancel_many(&mut *conn, &left, scope, WHY, now).await?;
    let cancelled: HashSet<Uuid> = cancelled.into_iter().collect();
    left.retain(|id| !cancelled.contains(id));
    let n_cancelled = i64::try_from(cancelled.len()).unwrap_or(i64::MAX);
    if n_cancelled > 0 {
        count(&mut *conn, campaign_id, &[("cancelled_tasks", n_cancelled)]).await?;
        append_event(conn, campaign_id, n_cancelled, now).await?;
    }
    Ok(Some(OpenTasks { last, left }))
}

async fn append_event(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    n_cancelled: i64,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    let n_open = tasks::count_open(&mut *conn, campaign_id).await?;
    let event = feed::New {
        campaign_id: Some(campaign_id),
        task_id: None,
        session_id: None,
        kind: feed::Kind::CampaignErasing,
        data: json!({ "cancelled_tasks": n_cancelled, "open_tasks": n_open }),
    };
    feed::append(conn, &[event], now).await
}

/// Cancels one open task, unless it has ended meanwhile. A running task is asked to stop once, and stays open until its worker has written
/// its end.
pub async fn cancel_one(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    task_id: Uuid,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    match tasks::cancel_silently(&mut *conn, task_id, WHY, now).await {
        Ok(tasks::CancelOutcome::AtOnce) => {
            Ok(count(conn, campaign_id, &[("cancelled_tasks", 1)]).await?)
        }
        Ok(_) | Err(tasks::Error::Ended { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Writes the present step into the receipt; `None`: open tasks are being cancelled.
pub async fn set_step(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    step: Option<Step>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "update dalsegno.erasures set step = $2 where campaign_id = $1 and step is distinct from $2",
        campaign_id,
        step.map_or("cancel", Step::as_str),
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("record the progress of an erasure"))
}

/// Cancels the campaign's queued jobs besides tasks.
pub async fn cancel_jobs(conn: &mut PgConnection, campaign_id: Uuid) -> Result<(), Error> {
    let group_key = campaign_id.to_string();
    // Audit lines first: the database finds the campaign of a job only while the job exists.
    let ids = queue::ids_of_group(&mut *conn, &KINDS, &group_key).await?;
    let subjects: Vec<String> = ids.iter().map(i64::to_string).collect();
    erase_audit_data(&mut *conn, campaign_id, &subjects).await?;
    Ok(queue::cancel_all(conn, &ids, WHY).await?)
}

/// Counts the contents of the campaign before anything is removed. A job that continues a removal keeps the first counts.
pub async fn measure_contents(
    conn: &mut PgConnection,
    campaign_id: Uuid,
) -> Result<(), StatementError> {
    sqlx::query!("select dalsegno.measure_erasure($1)", campaign_id)
        .execute(conn)
        .await
        .map(drop)
        .map_err(StatementError::to("count the rows that an erasure removes"))
}

/// Records that the data files were cleaned after every erasure that had ended at `since`, and returns the campaigns.
pub async fn record_vacuum(
    conn: &mut PgConnection,
    since: DateTime<Utc>,
    is_rewritten: bool,
    now: DateTime<Utc>,
) -> Result<Vec<Uuid>, StatementError> {
    sqlx::query_scalar!(
        "update dalsegno.erasures
            set vacuumed_at = coalesce(vacuumed_at, $2), rewritten_at = case when $3 then coalesce(rewritten_at, $2) else rewritten_at end
          where ended_at <= $1 and covers is not null and (vacuumed_at is null or ($3 and rewritten_at is null)) returning campaign_id",
        since,
        now,
        is_rewritten,
    )
    .fetch_all(conn)
    .await
    .map_err(StatementError::to("record that the tables were vacuumed"))
}

/// Lists the kinds of rows that remain: rows that another transaction had locked were skipped.
pub async fn list_remaining_kinds(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<Vec<String>, StatementError> {
    sqlx::query_scalar!(r#"select dalsegno.left_of_campaign($1) as "kinds!""#, campaign_id)
        .fetch_one(executor)
        .await
        .map_err(StatementError::to("check for remaining rows of a campaign"))
}

/// Returns true if nothing of the campaign runs or waits any more. A task that was cancelled in its turn ends a moment later. A transaction
/// that adds a task, because it read the campaign before the closing, is waited for at the campaign's lock.
pub async fn is_idle(conn: &mut PgConnection, campaign_id: Uuid) -> Result<bool, Error> {
    campaigns::lock(&mut *conn, campaign_id).await?;
    let open = tasks::open_of(&mut *conn, campaign_id, None, 1).await?;
    if !open.is_empty() || sessions::is_any_running(&mut *conn, campaign_id).await? {
        return Ok(false);
    }
    Ok(!queue::has_group_jobs(conn, &KINDS, &campaign_id.to_string()).await?)
}

/// Erases some remaining rows of a step. Returns true if there may be more. The caller commits.
pub async fn next_batch(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    step: Step,
) -> Result<bool, Error> {
    match step {
        Step::Sessions => erase_session_batch(conn, campaign_id).await,
        Step::Posts => {
            let n_posts = posts::remove_some(&mut *conn, campaign_id, ROWS).await?;
            posts::remove_archive(&mut *conn, campaign_id).await?;
            count(conn, campaign_id, &[("posts", n_posts)]).await?;
            Ok(n_posts == ROWS)
        }
        Step::Feed => {
            let n_rows = feed::remove_of_campaign(&mut *conn, campaign_id, ROWS).await?;
            count(conn, campaign_id, &[("feed", n_rows)]).await?;
            Ok(n_rows == ROWS)
        }
        Step::Tasks => {
            let n_files = task_files::remove_some(&mut *conn, campaign_id, FILES).await?;
            let n_attachments =
                task_files::remove_some_attachments(&mut *conn, campaign_id, FILES).await?;
            if n_files + n_attachments > 0 {
                let counts = [("task_files", n_files), ("task_attachments", n_attachments)];
                count(conn, campaign_id, &counts).await?;
                return Ok(true);
            }
            let erased = tasks::erase_some(&mut *conn, campaign_id, ROWS).await?;
            let n_tasks = i64::try_from(erased.ids.len()).unwrap_or(i64::MAX);
            let ids = erased.ids.iter().map(Uuid::to_string);
            let jobs = erased.job_ids.iter().map(i64::to_string);
            erase_audit_data(&mut *conn, campaign_id, &ids.chain(jobs).collect::<Vec<_>>()).await?;
            let n_keys = queue::forget_keys(&mut *conn, &erased.job_ids).await?;
            let n_deliveries = webhooks::remove_of_tasks(&mut *conn, &erased.ids).await?;
            let counts = [
                ("tasks", n_tasks),
                ("idempotency_keys", n_keys),
                ("webhook_deliveries", n_deliveries),
            ];
            count(conn, campaign_id, &counts).await?;
            Ok(n_tasks == ROWS)
        }
        Step::Blackboard => {
            let n_rows = blackboard::remove_some(&mut *conn, campaign_id, VERSIONS).await?;
            count(conn, campaign_id, &[("blackboard_changes", n_rows)]).await?;
            Ok(n_rows == VERSIONS)
        }
        Step::Memory => {
            // Facts and records in separate transactions: `facts::forget` locks facts first and then their records, so the other order
            // could deadlock.
            budgets::remove_of_campaign(&mut *conn, campaign_id).await?;
            if facts::remove_some_records(&mut *conn, campaign_id, ROWS).await? > 0 {
                return Ok(true);
            }
            let n_items = memory::remove_some(&mut *conn, campaign_id, ITEMS).await?;
            let n_facts = facts::remove_some(&mut *conn, campaign_id, ITEMS).await?;
            let counts = [("memory_items", n_items), ("facts", n_facts)];
            count(conn, campaign_id, &counts).await?;
            Ok(n_items.max(n_facts) == ITEMS)
        }
        Step::Jobs => {
            // Holds first: releasing them makes a failed head of a lane a dead letter.
            queue::release_held_lanes(&mut *conn, Some(&tasks::lanes_of(campaign_id)), &[]).await?;
            let forgotten =
                queue::delete_group_traces(&mut *conn, &campaign_id.to_string()).await?;
            let counts = [("dead_jobs", forgotten.dead_jobs), ("errors_of_runs", forgotten.errors)];
            count(conn, campaign_id, &counts).await?;
            Ok(false)
        }
    }
}

/// Ends an erasure: erases the campaign's own texts, and the audit lines of tools behind `line`. Fails if the database finds other rows.
pub async fn finish(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    line: i64,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    // A cleanup may have stored a summary since, of a session that it had locked when the others were removed.
    while session_summaries::remove_some(&mut *conn, campaign_id, ROWS).await? == ROWS {}
    // Two removals at once may have left a text that both of them used.
    while context_texts::remove_unused(&mut *conn, ROWS).await? == ROWS {}
    while task_files::remove_unused(&mut *conn, FILES).await? == FILES {}
    let actions = bulk_actions::erase_texts(&mut *conn, campaign_id).await?;
    let mut subjects: Vec<_> = actions.iter().chain([&campaign_id]).map(Uuid::to_string).collect();
    subjects.extend(audit::subjects_below(&mut *conn, &tasks::lanes_of(campaign_id)).await?);
    erase_audit_data(&mut *conn, campaign_id, &subjects).await?;
    audit::erase_tool_data(&mut *conn, campaign_id, line, i64::MAX).await?;
    operation_keys::remove_of_campaign(&mut *conn, campaign_id).await?;
    failovers::remove_of_campaign(&mut *conn, campaign_id).await?;
    flows::erase_inputs(&mut *conn, campaign_id).await?;
    agent_pauses::remove_of_campaign(&mut *conn, campaign_id).await?;
    let n_versions = campaigns::remove_versions(&mut *conn, campaign_id).await?;
    let n_warnings = webhooks::remove_warnings_without_task(&mut *conn, campaign_id).await?;
    let counts = [("campaign_versions", n_versions), ("webhook_deliveries", n_warnings)];
    count(&mut *conn, campaign_id, &counts).await?;
    campaigns::erase_texts(&mut *conn, campaign_id).await?;
    sqlx::query!("select dalsegno.end_erasure($1, $2, $3)", campaign_id, now, db::newest_known())
        .execute(conn)
        .await
        .map_err(StatementError::to("end an erasure"))?;
    Ok(())
}

/// Empties the lines of the audit log about these ids and lanes, and removes the outputs of changes of them, which are stored under idempotency keys.
async fn erase_audit_data(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    subjects: &[String],
) -> Result<(), StatementError> {
    audit::erase_data(&mut *conn, campaign_id, subjects).await?;
    operation_keys::remove_of_subjects(conn, subjects).await
}

async fn erase_session_batch(conn: &mut PgConnection, campaign_id: Uuid) -> Result<bool, Error> {
    let mut named = sessions::lock_of_campaign(&mut *conn, campaign_id, SESSIONS).await?;
    if named.is_empty() {
        let n_summaries = session_summaries::remove_some(&mut *conn, campaign_id, ROWS).await?;
        count(conn, campaign_id, &[("summaries", n_summaries)]).await?;
        return Ok(n_summaries == ROWS);
    }
    let ids = named.iter().map(|(id, _)| *id).collect();
    let ids = cleanups::limit_ids(&mut *conn, ids).await?;
    named.truncate(ids.len());
    let mut names: Vec<Option<String>> = named.into_iter().map(|(_, name)| name).collect();
    // A call of a rerun has a folder of its own, which is left if its worker was killed.
    let reruns = reruns::external_ids_of(&mut *conn, &ids).await?;
    names.extend(reruns.iter().map(|id| Some(id.to_string())));
    let keys = [&*ids, &*reruns].concat();
    sqlx::query!(
        "insert into dalsegno.erased_sessions (erasure_id, session_id, external_session_id)
         select e.id, s.id, s.name
           from unnest($2::uuid[], $3::text[]) as s (id, name), dalsegno.erasures as e where e.campaign_id = $1
             on conflict do nothing",
        campaign_id,
        &keys,
        &names as &[Option<String>],
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("keep the names of erased sessions"))?;
    let mut subjects: Vec<String> = ids.iter().map(|id| compactions::lane(*id)).collect();
    queue::release_held_lanes(&mut *conn, None, &subjects).await?;
    subjects.extend(ids.iter().map(Uuid::to_string));
    erase_audit_data(&mut *conn, campaign_id, &subjects).await?;
    let size = cleanups::remove_sessions(&mut *conn, &ids).await?;
    let n_sessions = i64::try_from(ids.len()).unwrap_or(i64::MAX);
    let counts = [("sessions", n_sessions), ("messages", size.messages), ("bytes", size.bytes)];
    count(conn, campaign_id, &counts).await?;
    Ok(true)
}

/// Adds to the counts of removed rows in the receipt. After a removal, the data files have to be cleaned again.
async fn count(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    counts: &[(&str, i64)],
) -> Result<(), StatementError> {
    let has_removed = counts.iter().any(|(_, n)| *n > 0);
    let counts: serde_json::Map<_, _> =
        counts.iter().map(|(name, n)| ((*name).to_owned(), json!(n))).collect();
    sqlx::query!(
        "update dalsegno.erasures
            set removed = removed || (select coalesce(jsonb_object_agg(c.key, c.value::bigint + coalesce((removed ->> c.key)::bigint, 0)), '{}')
                                        from jsonb_each_text($2) as c),
                vacuumed_at = case when not $3 then vacuumed_at end, rewritten_at = case when not $3 then rewritten_at end
          where campaign_id = $1",
        campaign_id,
        serde_json::Value::Object(counts),
        has_removed,
    )
    .execute(conn)
    .await
    .map(drop)
    .map_err(StatementError::to("write the receipt of an erasure"))
}
