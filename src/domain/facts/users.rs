//! The users for whom campaigns work.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Error, record::lock_user};
use crate::domain::{StatementError, campaigns};

pub(super) const NAME_MAX_CHARS: usize = 128;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CampaignUser {
    pub user: String,
    /// Requests before this time are not read for facts.
    pub since: DateTime<Utc>,
}

/// Checks the name of a user, such as an id or an e-mail address. Valid names are safe in paths, URLs and lists.
pub fn check_name(name: &str) -> Result<(), Error> {
    let is_fine = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.len() <= NAME_MAX_CHARS
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._@+-".contains(c));
    match is_fine {
        true => Ok(()),
        false => Err(Error::User(name.chars().take(NAME_MAX_CHARS).collect())),
    }
}

/// Sets the user of a campaign from now on. Earlier requests belong to the earlier user, or to none.
pub async fn set_user(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    name: &str,
    now: DateTime<Utc>,
) -> Result<CampaignUser, Error> {
    check_name(name)?;
    check_and_lock_campaign(&mut *conn, campaign_id).await?;
    let since = sqlx::query_scalar!(
        r#"insert into dalsegno.campaign_users as u (campaign_id, user_name, since) values ($1, $2, $3)
           on conflict (campaign_id) do update
              set user_name = $2, since = case when u.user_name = $2 then u.since else $3 end
           returning since"#,
        campaign_id,
        name,
        now,
    )
    .fetch_one(conn)
    .await
    .map_err(StatementError::to("set the user of a campaign"))?;
    Ok(CampaignUser { user: name.to_owned(), since })
}

/// Removes the user of a campaign. Returns true if there was one.
pub async fn unset_user(conn: &mut PgConnection, campaign_id: Uuid) -> Result<bool, Error> {
    check_and_lock_campaign(&mut *conn, campaign_id).await?;
    let unset =
        sqlx::query!("delete from dalsegno.campaign_users where campaign_id = $1", campaign_id)
            .execute(conn)
            .await
            .map_err(StatementError::to("remove the user of a campaign"))?;
    Ok(unset.rows_affected() == 1)
}

/// Reads the user of a campaign. `None`: it has none.
pub async fn user_of(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<Option<CampaignUser>, StatementError> {
    sqlx::query_as!(
        CampaignUser,
        r#"select user_name as user, since from dalsegno.campaign_users where campaign_id = $1"#,
        campaign_id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read the user of a campaign"))
}

/// Returns those of these users for whom a campaign works.
pub async fn with_campaigns(
    executor: impl PgExecutor<'_>,
    users: &[String],
) -> Result<Vec<String>, StatementError> {
    sqlx::query_scalar!(
        "select distinct user_name from dalsegno.campaign_users where user_name = any($1)",
        users,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("find the users of campaigns"))
}

/// Reads the user of a campaign after other writers about `user` have ended. Further ones wait until the end of the transaction.
pub async fn lock_user_of(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    user: &str,
) -> Result<Option<CampaignUser>, StatementError> {
    lock_user(&mut *conn, user).await?;
    user_of(conn, campaign_id).await
}

/// Refuses changes in a closed campaign, because an erasure may already have passed the rows.
pub(super) async fn check_and_lock_campaign(
    conn: &mut PgConnection,
    campaign_id: Uuid,
) -> Result<(), Error> {
    match campaigns::lock_against_erasure(conn, campaign_id).await? {
        campaigns::Status::Closed => Err(campaigns::Error::Closed(campaign_id).into()),
        campaigns::Status::Active | campaigns::Status::Paused => Ok(()),
    }
}
