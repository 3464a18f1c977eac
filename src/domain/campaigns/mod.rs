//! Campaigns: their texts and the versions of these, their status and budget.

mod budget;
mod error;
mod experiments;
mod pause;
mod search;
mod texts;
mod versions;

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::{PgConnection, PgExecutor, types::Json};
use uuid::Uuid;

pub use self::{
    budget::{
        Budget, LimitChange, SpentBudget, budget, change_limit, hold_budget, limited_in_money,
        paused, spent_budgets,
    },
    error::Error,
    experiments::{
        ExperimentBudget, charge_experiments, experiment_budget, lock_experiment_budget,
    },
    pause::{CampaignPause, find_pause},
    search::{NameQuery, search_names},
    texts::find_texts,
    versions::{
        CampaignVersion, Edit, EditOutcome, VersionSummary, add_first_version, edit, list_versions,
        remove_old_versions, remove_versions, version,
    },
};
use super::{
    Page, StatementError,
    amount::Limit,
    ids::{self, GivenCampaign},
    labels::Labels,
    limits::{LimitEffect::Refused, LimitEntry},
    parameters::Parameters,
    text,
};

/// The longest brief or client context, in bytes. Both go into every call.
pub const TEXT_MAX_BYTES: usize = 256 * 1024;

pub const LIMITS: &[LimitEntry] = &[LimitEntry::fixed(
    "bytes of a brief, and of a client context",
    TEXT_MAX_BYTES as u64,
    Refused(text::Error::TOO_LONG.code),
)];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Campaign {
    pub id: Uuid,
    pub name: String,
    pub status: Status,
    /// Number of the current version of brief and client context, from 1.
    #[serde(default)]
    pub version: i32,
    pub brief: String,
    pub client_context: Option<String>,
    /// Named values that each call contains.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub parameters: Json<Parameters>,
    pub created_at: DateTime<Utc>,
    pub closed_at: Option<DateTime<Utc>>,
    pub tags: Vec<String>,
    #[schema(value_type = Object)]
    pub metadata: Json<Map<String, Value>>,
    /// Its texts are erased, or an erasure was requested.
    #[serde(default)]
    pub is_erased: bool,
}

/// Tag of campaigns that `eval run` creates for its answers.
pub const EVAL_TAG: &str = "eval";

impl Campaign {
    /// Returns true for a campaign of an eval, which people do not add work to.
    pub fn is_of_eval(&self) -> bool {
        self.tags.iter().any(|tag| tag == EVAL_TAG)
    }
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = CampaignStatus)]
pub enum Status {
    Active,
    /// Accepts tasks, and starts none.
    Paused,
    Closed,
}

#[derive(Debug, Clone, Copy)]
pub struct New<'a> {
    pub name: &'a str,
    pub brief: &'a str,
    pub client_context: Option<&'a str>,
    pub limit: Limit,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Closed => "closed",
        }
    }
}

pub async fn create(
    conn: &mut PgConnection,
    new: &New<'_>,
    now: DateTime<Utc>,
) -> Result<Campaign, Error> {
    text::check("name", new.name, 200)?;
    text::check_optional("brief", new.brief, TEXT_MAX_BYTES)?;
    text::check_optional("client context", new.client_context.unwrap_or_default(), TEXT_MAX_BYTES)?;
    let campaign = sqlx::query_as!(
        Campaign,
        r#"insert into dalsegno.campaigns (id, name, brief, client_context, created_at)
           values ($1, $2, $3, $4, $5)
           returning id, name, status as "status: Status", version, brief, client_context,
                  parameters as "parameters: Json<Parameters>", created_at, closed_at, tags,
                  metadata as "metadata: Json<Map<String, Value>>",
                  status = 'closed' and dalsegno.is_erased(id) as "is_erased!""#,
        ids::new_at(now),
        new.name,
        new.brief,
        new.client_context,
        now,
    )
    .fetch_one(&mut *conn)
    .await
    .map_err(StatementError::to("create a campaign"))?;
    budget::open(conn, campaign.id, new.limit).await?;
    Ok(campaign)
}

pub async fn get(executor: impl PgExecutor<'_>, id: Uuid) -> Result<Campaign, Error> {
    sqlx::query_as!(
        Campaign,
        r#"select id, name, status as "status: Status", version, brief, client_context,
                  parameters as "parameters: Json<Parameters>", created_at, closed_at, tags,
                  metadata as "metadata: Json<Map<String, Value>>",
                  status = 'closed' and dalsegno.is_erased(id) as "is_erased!"
             from dalsegno.campaigns where id = $1"#,
        id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read a campaign"))?
    .ok_or(Error::Unknown(id))
}

/// Returns the names of these campaigns. Ids of no campaign are left out.
pub async fn names(
    executor: impl PgExecutor<'_>,
    ids: &[Uuid],
) -> Result<HashMap<Uuid, String>, StatementError> {
    let rows = sqlx::query!("select id, name from dalsegno.campaigns where id = any($1)", ids)
        .fetch_all(executor)
        .await
        .map_err(StatementError::to("read the names of campaigns"))?;
    Ok(rows.into_iter().map(|row| (row.id, row.name)).collect())
}

/// Returns the ids of the campaigns with this name, in any case of letters.
pub async fn ids_of_name(
    executor: impl PgExecutor<'_>,
    name: &str,
) -> Result<Vec<Uuid>, StatementError> {
    sqlx::query_scalar!(
        "select id from dalsegno.campaigns where lower(name) = lower($1) order by id desc limit 100",
        name,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("find campaigns by their name"))
}

/// Finds the campaign that a person refers to: by its name, else by the beginning of its id, else by the end of its id. Of several
/// campaigns with the name, the only one that is not closed is meant. `within`: only these.
pub async fn find(
    executor: impl PgExecutor<'_>,
    given: &GivenCampaign,
    within: Option<&[Uuid]>,
) -> Result<Uuid, ids::NotFound> {
    if let Some(id) = given.whole() {
        return Ok(id);
    }
    let id = given.id.as_ref();
    let found = sqlx::query_as!(
        ids::Match,
        r#"with named as (select id, status <> 'closed' as is_open from dalsegno.campaigns
                            where name = $1 and ($6::uuid[] is null or id = any($6)) order by status = 'closed', id limit $5),
                begins as (select id from dalsegno.campaigns
                            where not exists (select from named) and id between $2 and $3
                              and ($6::uuid[] is null or id = any($6)) order by id limit $5),
                ends as (select id from dalsegno.campaigns
                          where $4::text is not null and not exists (select from named) and not exists (select from begins)
                            and right(replace(id::text, '-', ''), length($4)) = $4
                            and ($6::uuid[] is null or id = any($6)) limit $5),
                all_of as (select id from named where is_open or (select count(*) from named where is_open) <> 1
                           union all select id from begins union all select id from ends)
           select c.id as "id!", c.status || ', created ' || to_char(c.created_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI') || ': ' || c.name as "label!"
             from all_of join dalsegno.campaigns as c on c.id = all_of.id order by c.id"#,
        given.name,
        id.map(|id| id.least),
        id.map(|id| id.most),
        id.and_then(|id| id.end.as_deref()),
        ids::MATCHES,
        within,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("find an id"))?;
    ids::one(("campaign", "campaign ls"), &given.name, found)
}

/// Gives a new campaign its tags and metadata.
pub async fn label(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    labels: Labels<'_>,
) -> Result<(), Error> {
    labels.check()?;
    if labels.is_none() {
        return Ok(());
    }
    sqlx::query!(
        "update dalsegno.campaigns set tags = $2, metadata = coalesce($3::jsonb, '{}') where id = $1",
        id,
        labels.tags,
        labels.metadata.map(Json) as _,
    )
    .execute(executor)
    .await
    .map_err(StatementError::to("label a campaign"))?;
    Ok(())
}

/// Lists the campaigns with all of these labels, the newest first. `within`: only these.
pub async fn list(
    executor: impl PgExecutor<'_>,
    labels: Labels<'_>,
    within: Option<&[Uuid]>,
    page: Page,
) -> Result<Vec<Campaign>, StatementError> {
    sqlx::query_as!(
        Campaign,
        r#"select id, name, status as "status: Status", version, brief, client_context,
                  parameters as "parameters: Json<Parameters>", created_at, closed_at, tags,
                  metadata as "metadata: Json<Map<String, Value>>",
                  status = 'closed' and dalsegno.is_erased(id) as "is_erased!"
             from dalsegno.campaigns
            where id < coalesce($1, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid) and ($3::uuid[] is null or id = any($3))
              and tags @> $4 and ($5::jsonb is null or metadata @> $5)
            order by id desc limit $2"#,
        page.after,
        page.limit,
        within,
        labels.tags,
        labels.metadata.map(Json) as _,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the campaigns"))
}

/// Waits for transactions that add tasks, and blocks further ones until this transaction ends.
pub async fn lock(executor: impl PgExecutor<'_>, id: Uuid) -> Result<(), StatementError> {
    sqlx::query!("select pg_advisory_xact_lock(dalsegno.campaign_lock($1))", id)
        .execute(executor)
        .await
        .map(drop)
        .map_err(StatementError::to("wait for transactions that add to a campaign"))
}

/// Returns the status of a campaign, and keeps an erasure from beginning until the end of the transaction: the erasure then finds what this
/// transaction writes. Pausing and closing stay possible. Two statements, because one that waits for the lock would read the row as it was
/// before the wait.
pub async fn lock_against_erasure(conn: &mut PgConnection, id: Uuid) -> Result<Status, Error> {
    sqlx::query!("select pg_advisory_xact_lock_shared(dalsegno.campaign_lock($1))", id)
        .execute(&mut *conn)
        .await
        .map_err(StatementError::to("protect a campaign from erasure"))?;
    sqlx::query_scalar!(
        r#"select status as "status: Status" from dalsegno.campaigns where id = $1"#,
        id,
    )
    .fetch_optional(conn)
    .await
    .map_err(StatementError::to("hold a campaign"))?
    .ok_or(Error::Unknown(id))
}

/// Erases name, brief, client context, parameters, tags and metadata. Limits and spending stay.
pub async fn erase_texts(executor: impl PgExecutor<'_>, id: Uuid) -> Result<(), StatementError> {
    sqlx::query!(
        "update dalsegno.campaigns set name = $2, brief = '', client_context = null, parameters = '{}', tags = '{}', metadata = '{}'
          where id = $1",
        id,
        text::ERASED,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("erase the texts of a campaign"))
}

/// Changes the status of a campaign. Fails if it is closed.
pub(super) async fn set_status(
    conn: &mut PgConnection,
    id: Uuid,
    status: Status,
    closed_at: Option<DateTime<Utc>>,
) -> Result<Campaign, Error> {
    let changed = sqlx::query_as!(
        Campaign,
        r#"update dalsegno.campaigns set status = $2, closed_at = $3 where id = $1 and status <> 'closed'
           returning id, name, status as "status: Status", version, brief, client_context,
                  parameters as "parameters: Json<Parameters>", created_at, closed_at, tags,
                  metadata as "metadata: Json<Map<String, Value>>",
                  status = 'closed' and dalsegno.is_erased(id) as "is_erased!""#,
        id,
        status as Status,
        closed_at,
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(StatementError::to("change the status of a campaign"))?;
    match changed {
        Some(campaign) => Ok(campaign),
        None => get(conn, id).await.and_then(|_| Err(Error::Closed(id))),
    }
}

/// Returns those of the campaigns that were closed before `since`, or do not exist.
pub async fn closed_before(
    executor: impl PgExecutor<'_>,
    ids: &[Uuid],
    since: DateTime<Utc>,
) -> Result<Vec<Uuid>, StatementError> {
    sqlx::query_scalar!(
        r#"select k.id as "id!" from unnest($1::uuid[]) as k (id)
            where not exists (select from dalsegno.campaigns as c
                               where c.id = k.id and (c.closed_at is null or c.closed_at > $2))"#,
        ids,
        since,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list closed campaigns"))
}
