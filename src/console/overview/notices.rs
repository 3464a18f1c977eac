//! Notices of what needs a person, for the icon and the notifications of a browser.

use axum::{Json, response::IntoResponse as _};
use serde::Serialize;

use super::attention::{group_target, look, target};
use crate::{
    console::{
        page::{Page, PageResult},
        parts::title,
    },
    domain::attention::{Attention, Kind, count_members, describe_group, group_failures},
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
    let found = overview.map(|overview| (overview.attention, overview.failures.is_cut));
    let (attention, is_cut) = found.unwrap_or_default();
    let groups = group_failures(&attention);
    let items = groups.iter().filter_map(|group| Notice::of(group, is_cut)).collect();
    Ok(Json(Notices { items }).into_response())
}

impl Notice {
    /// Describes a group by its newest item. There may be more than were read, if their reading was cut.
    fn of(group: &[&Attention], is_cut: bool) -> Option<Self> {
        let newest = group.iter().max_by_key(|item| item.since)?;
        let since = newest.since.map(|at| at.timestamp_micros()).unwrap_or_default();
        let key = match newest.kind {
            Kind::FailedTask => {
                let budget = newest.refusing_budget().unwrap_or_default();
                let flow = newest.flow_id.map(|flow| format!("{flow} ")).unwrap_or_default();
                format!("FailedTask {flow}{budget} {}", newest.because)
            }
            kind => format!("{kind:?} {} {since}", newest.subject),
        };
        let (_, word) = look(newest.kind);
        let (what, target) = match group {
            [item] if item.unlisted.is_none() => (title(&item.name), target(item)),
            all => {
                let what = format!("{} {}", count_members(all, is_cut), describe_group(all));
                (what, Some(group_target(newest)))
            }
        };
        Some(Self {
            key,
            title: format!("{word}: {what}"),
            text: title(&newest.because),
            target: target.unwrap_or_else(|| "/".to_owned()),
        })
    }
}
