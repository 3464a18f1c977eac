//! Notices of what needs a person, for the icon and the notifications of a browser.

use axum::{Json, response::IntoResponse as _};
use serde::Serialize;

use super::attention::{look, target};
use crate::{
    console::{
        page::{Page, PageResult},
        parts::{counted, title},
    },
    domain::attention::{Attention, Kind, describe_group, group_failures},
    operations::ShowOverview,
};

#[derive(Debug, Serialize)]
struct Notices {
    items: Vec<Notice>,
}

/// A thing that needs a person: the same as one on the overview.
#[derive(Debug, Serialize)]
struct Notice {
    /// Stays the same until the thing is resolved: for failed tasks while one with the same error is left.
    key: String,
    title: String,
    text: String,
    target: String,
}

/// Lists what needs a person. A caller who may not see the overview gets an empty list.
pub(in crate::console) async fn list(page: Page) -> PageResult {
    let overview = page.caller.run_if_allowed(ShowOverview { hours: None }).await?;
    let attention = overview.map(|overview| overview.attention).unwrap_or_default();
    let items = group_failures(&attention).iter().filter_map(|group| Notice::of(group)).collect();
    Ok(Json(Notices { items }).into_response())
}

impl Notice {
    /// Describes a group by its newest item.
    fn of(group: &[&Attention]) -> Option<Self> {
        let newest = group.iter().max_by_key(|item| item.since)?;
        let since = newest.since.map(|at| at.timestamp_micros()).unwrap_or_default();
        let key = match newest.kind {
            Kind::FailedTask => {
                let budget = newest.refusing_budget().unwrap_or_default();
                format!("FailedTask {budget} {}", newest.because)
            }
            kind => format!("{kind:?} {} {since}", newest.subject),
        };
        let (_, word) = look(newest.kind);
        let (what, target) = match group {
            [item] => (title(&item.name), target(item)),
            all => (
                format!("{} {}", counted(all.len(), "task", "tasks"), describe_group(all)),
                Some("/tasks?state=failed".to_owned()),
            ),
        };
        Some(Self {
            key,
            title: format!("{word}: {what}"),
            text: title(&newest.because),
            target: target.unwrap_or_else(|| "/".to_owned()),
        })
    }
}
