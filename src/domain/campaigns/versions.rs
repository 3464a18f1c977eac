//! The versions of a campaign: its brief, its client context and its parameters over time.
//!
//! Invariants:
//! - The campaign's row has the current texts and their version, so that a turn reads both at once. `campaign_versions` has all versions.
//! - An edit that changes a text makes the next version. One that changes nothing makes none.
//!
//! Race: two people edit at once. Both lock the campaign's row, so the second sees the version of the first, and is refused if it names
//! an older one.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::{PgConnection, PgExecutor, types::Json};
use uuid::Uuid;

use super::{Error, Status, TEXT_MAX_BYTES, get, lock_against_erasure};
use crate::domain::{
    StatementError,
    feed::{self, Kind as FeedKind},
    parameters::{self, Parameters},
    text,
};

/// A version of the texts and parameters that all calls of a campaign contain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CampaignVersion {
    pub campaign_id: Uuid,
    pub version: i32,
    pub changed_at: DateTime<Utc>,
    /// The author, as the audit log names them. Null: the first version of a campaign that was created in SQL or by an older service.
    pub changed_by: Option<String>,
    pub brief: String,
    pub client_context: Option<String>,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub parameters: Json<Parameters>,
}

/// A version in a list, without its texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = CampaignVersionSummary)]
pub struct VersionSummary {
    pub version: i32,
    pub changed_at: DateTime<Utc>,
    pub changed_by: Option<String>,
    pub brief_bytes: i32,
    /// Null: it has no client context.
    pub client_context_bytes: Option<i32>,
}

/// A change of texts and parameters. `None` leaves a text as it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Edit<'a> {
    pub brief: Option<&'a str>,
    /// `Some(None)` removes the client context.
    pub client_context: Option<Option<&'a str>>,
    /// Parameters by name; null removes one. `None` leaves all as they are.
    pub parameters: Option<&'a Parameters>,
    /// The edit is refused unless this is the current version.
    pub expected_version: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = EditedCampaign)]
pub struct EditOutcome {
    /// The current version.
    #[serde(flatten)]
    pub current: CampaignVersion,
    /// False: the texts were the same already, and keep their version.
    pub changed: bool,
}

/// Changes the texts of a campaign. The next call of each agent contains them; calls that run keep theirs.
///
/// The texts of a closed campaign cannot be changed, because an erasure may already have removed them.
pub async fn edit(
    conn: &mut PgConnection,
    id: Uuid,
    change: &Edit<'_>,
    author: &str,
    now: DateTime<Utc>,
) -> Result<EditOutcome, Error> {
    change.check()?;
    if lock_against_erasure(&mut *conn, id).await? == Status::Closed {
        return Err(Error::Closed(id));
    }
    let before = lock_current(&mut *conn, id).await?;
    if let Some(expected) = change.expected_version.filter(|it| *it != before.version) {
        return Err(Error::Version { id, expected, current: before.version });
    }
    let brief = change.brief.unwrap_or(&before.brief);
    let client_context = change.client_context.unwrap_or(before.client_context.as_deref());
    let mut new_parameters = before.parameters.0.clone();
    change.parameters.into_iter().for_each(|it| parameters::change(&mut new_parameters, it));
    parameters::check(&new_parameters)?;
    let is_same = (brief, client_context)
        == (before.brief.as_str(), before.client_context.as_deref())
        && new_parameters == before.parameters.0;
    if is_same {
        return Ok(EditOutcome { current: before, changed: false });
    }
    let current = CampaignVersion {
        version: before.version + 1,
        changed_at: now,
        changed_by: Some(author.to_owned()),
        brief: brief.to_owned(),
        client_context: client_context.map(str::to_owned),
        parameters: Json(new_parameters),
        ..before
    };
    store(&mut *conn, &current).await?;
    feed::append(conn, &[event(&current)], now).await?;
    Ok(EditOutcome { current, changed: true })
}

/// Stores the first version of a new campaign with its author, and its parameters.
pub async fn add_first_version(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    new: &Parameters,
    author: &str,
) -> Result<(), Error> {
    parameters::check(new)?;
    sqlx::query!(
        "with new as (
           update dalsegno.campaigns set parameters = $3 where id = $1 and version = 1
           returning id, version, created_at, brief, client_context, parameters)
         insert into dalsegno.campaign_versions (campaign_id, version, changed_at, changed_by, brief, client_context, parameters)
         select id, version, created_at, $2, brief, client_context, parameters from new on conflict do nothing",
        id,
        author,
        Json(new) as _,
    )
    .execute(executor)
    .await
    .map_err(StatementError::to("store the first version of a campaign"))?;
    Ok(())
}

/// Reads a version; without a number the current one.
pub async fn version(
    conn: &mut PgConnection,
    id: Uuid,
    number: Option<i32>,
) -> Result<CampaignVersion, Error> {
    let current = get(&mut *conn, id).await?.version;
    let number = number.unwrap_or(current);
    sqlx::query_as!(
        CampaignVersion,
        r#"select campaign_id, version, changed_at, changed_by, brief, client_context,
                  parameters as "parameters: Json<Parameters>"
             from dalsegno.campaign_versions where campaign_id = $1 and version = $2"#,
        id,
        number,
    )
    .fetch_optional(conn)
    .await
    .map_err(StatementError::to("read a version of a campaign"))?
    .ok_or(Error::NoVersion { id, version: number, current })
}

/// Lists the versions before `before`, the newest first.
pub async fn list_versions(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    before: Option<i32>,
    limit: i64,
) -> Result<Vec<VersionSummary>, StatementError> {
    sqlx::query_as!(
        VersionSummary,
        r#"select version, changed_at, changed_by, octet_length(brief) as "brief_bytes!",
                  octet_length(client_context) as "client_context_bytes?"
             from dalsegno.campaign_versions where campaign_id = $1 and version < coalesce($2, 2147483647)
            order by version desc limit $3"#,
        id,
        before,
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the versions of a campaign"))
}

/// Removes the versions of a campaign that is erased. Returns their number.
pub async fn remove_versions(
    executor: impl PgExecutor<'_>,
    id: Uuid,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(r#"select dalsegno.remove_campaign_versions($1) as "n!""#, id)
        .fetch_one(executor)
        .await
        .map_err(StatementError::to("remove the versions of a campaign"))
}

/// Removes up to `limit` versions that were replaced before a moment. Returns their number.
pub async fn remove_old_versions(
    executor: impl PgExecutor<'_>,
    before: DateTime<Utc>,
    limit: i64,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        r#"select dalsegno.remove_old_campaign_versions($1, $2) as "n!""#,
        before,
        limit,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("remove replaced versions of campaigns"))
}

impl Edit<'_> {
    fn check(&self) -> Result<(), text::Error> {
        text::check_optional("brief", self.brief.unwrap_or_default(), TEXT_MAX_BYTES)?;
        let context = self.client_context.flatten().unwrap_or_default();
        text::check_optional("client context", context, TEXT_MAX_BYTES)
    }
}

/// Locks the campaign's row, and reads its current version.
async fn lock_current(conn: &mut PgConnection, id: Uuid) -> Result<CampaignVersion, Error> {
    sqlx::query_as!(
        CampaignVersion,
        r#"select c.id as campaign_id, c.version, coalesce(v.changed_at, c.created_at) as "changed_at!", v.changed_by as "changed_by?",
                  c.brief, c.client_context, c.parameters as "parameters: Json<Parameters>"
             from dalsegno.campaigns as c
             left join dalsegno.campaign_versions as v on v.campaign_id = c.id and v.version = c.version
            where c.id = $1 for no key update of c"#,
        id,
    )
    .fetch_optional(conn)
    .await
    .map_err(StatementError::to("lock the texts of a campaign"))?
    .ok_or(Error::Unknown(id))
}

async fn store(conn: &mut PgConnection, new: &CampaignVersion) -> Result<(), StatementError> {
    sqlx::query!(
        "with current as (
           update dalsegno.campaigns set version = $2, brief = $5, client_context = $6, parameters = $7 where id = $1)
         insert into dalsegno.campaign_versions (campaign_id, version, changed_at, changed_by, brief, client_context, parameters)
         values ($1, $2, $3, $4, $5, $6, $7)",
        new.campaign_id,
        new.version,
        new.changed_at,
        new.changed_by,
        new.brief,
        new.client_context,
        Json(&new.parameters.0) as _,
    )
    .execute(conn)
    .await
    .map(drop)
    .map_err(StatementError::to("store a version of a campaign"))
}

/// Builds the event of an edit, without the texts.
fn event(new: &CampaignVersion) -> feed::New {
    feed::New {
        campaign_id: Some(new.campaign_id),
        task_id: None,
        session_id: None,
        kind: FeedKind::CampaignEdited,
        data: json!({ "version": new.version }),
    }
}
