//! Attachments of tasks.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{BulkError, Config, Error, New, bulk::tasks_there};
use crate::domain::task_files::attachments::{self, referenced_tasks};

/// Stores the attachments of tasks that were just added, each with its place in the request. Most tasks have none.
pub(super) async fn store_attachments(
    conn: &mut PgConnection,
    config: &Config,
    campaign_id: Uuid,
    added: &[(usize, &New<'_>, Uuid)],
    now: DateTime<Utc>,
) -> Result<(), BulkError> {
    let with: Vec<_> = added.iter().filter(|(_, new, _)| !new.attachments.is_empty()).collect();
    if with.is_empty() {
        return Ok(());
    }
    let named = with.iter().flat_map(|(_, new, _)| referenced_tasks(new.attachments));
    let named: Vec<Uuid> = named.map(|(task_id, _)| task_id).collect();
    let there = match named.is_empty() {
        true => HashMap::new(),
        false => tasks_there(&mut *conn, campaign_id, &named).await.map_err(Error::from)?,
    };
    let (limits, mut wrong) = (config.attachment_limits(), Vec::new());
    for (place, new, id) in with {
        // A caller that sees only its own tasks can use only their files.
        let is_out_of_reach = |(task_id, _): &(Uuid, &str)| {
            let caller = there.get(task_id);
            caller.is_none_or(|caller| new.links.only_of.is_some_and(|own| own != caller))
        };
        let stored = match referenced_tasks(new.attachments).find(is_out_of_reach) {
            Some((task_id, file)) => {
                Err(attachments::Error::UnknownFile { task_id, file: file.to_owned() })
            }
            None => attachments::store(&mut *conn, &limits, *id, new.attachments, now).await,
        };
        match stored {
            Ok(()) => {}
            Err(error @ attachments::Error::Database(_)) => return Err(Error::from(error).into()),
            Err(error) => wrong.push((*place, error.into())),
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(BulkError::Items(wrong)) }
}
