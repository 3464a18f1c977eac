//! Text output of webhook deliveries: 80 columns have the event, its task or campaign, the state with the next attempt, and the last error.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{
    cli::{
        campaign_names::CampaignNames,
        output::{Output, Table, format_fields, short_id, text_cell, time_cell},
        server::Server,
    },
    domain::{
        ids,
        webhooks::{Delivery, State, Webhook},
    },
    operations::{ListDeliveries, ListWebhooks},
};

const HTTPS: &str = "https://";
const RECEIVER: &str = "RECEIVER";
/// Widest cell of the column ABOUT that is not cut.
const MAX_ABOUT: usize = 16;
/// Newest deliveries among which the failing ones of a webhook are looked for.
const MAX_READ: i64 = 200;

/// The newest failure of a webhook.
#[derive(Debug)]
pub(super) struct WebhookFailure {
    pub(super) error: Option<String>,
    /// The commands that send again what was not delivered, in their order.
    pub(super) commands: Vec<String>,
}

/// The names of the receivers and campaigns of deliveries.
#[derive(Debug, Default)]
pub(super) struct DeliveryNames {
    receivers: HashMap<Uuid, String>,
    /// Webhooks that send nothing until they are enabled.
    disabled: HashSet<Uuid>,
    campaigns: CampaignNames,
}

impl DeliveryNames {
    /// Reads the names for people. Without the right to list webhooks, ids stand for them.
    pub(super) async fn of(deliveries: &[Delivery], output: Output, server: &Server) -> Self {
        if output.is_structured() || deliveries.is_empty() {
            return Self::default();
        }
        let webhooks = server.call(ListWebhooks {}).await.map(|listing| listing.items);
        let receiver = |url: &str| url.strip_prefix(HTTPS).unwrap_or(url).to_owned();
        let webhooks = webhooks.unwrap_or_default();
        let receivers = webhooks.iter().map(|it| (it.id, receiver(&it.url))).collect();
        let disabled = webhooks.iter().filter(|it| !it.enabled).map(|it| it.id).collect();
        let is_of_campaign = |it: &Delivery| it.task_id.is_none() && it.campaign_id.is_some();
        let campaigns = match deliveries.iter().any(is_of_campaign) {
            true => CampaignNames::of_list(None, deliveries, output, server).await,
            false => None,
        };
        Self { receivers, disabled, campaigns: campaigns.unwrap_or_default() }
    }

    fn receiver(&self, webhook_id: Uuid) -> String {
        self.receivers.get(&webhook_id).cloned().unwrap_or_else(|| short_id(webhook_id))
    }

    /// Names the task of a message, or else its campaign.
    fn subject(&self, delivery: &Delivery) -> String {
        match (delivery.task_id, delivery.campaign_id) {
            (Some(task), _) => short_id(task),
            (None, Some(campaign)) => format!("campaign {}", self.campaigns.cell(campaign)),
            (None, None) => "-".to_owned(),
        }
    }
}

/// Prints deliveries. The receiver is above the table if it is the same for all of them.
pub(super) fn print_deliveries(
    deliveries: &[Delivery],
    is_of_one: bool,
    names: &DeliveryNames,
    output: Output,
) {
    output.print_data(&deliveries, || format_deliveries(deliveries, is_of_one, names));
    if let Some(advice) = describe_replay(deliveries, names).filter(|_| !output.is_structured()) {
        output.print_note(&advice);
    }
}

fn format_deliveries(deliveries: &[Delivery], is_of_one: bool, names: &DeliveryNames) -> String {
    let rows: Vec<_> = deliveries.iter().map(|delivery| row(delivery, names)).collect();
    let head =
        ["ID", "KIND", "ABOUT", "RECEIVER", "STATE", "LAST ERROR", "ATTEMPTS", "OF (UTC)", "JOB"];
    // Long names of campaigns may be cut, ids of tasks may not.
    let are_short = rows.iter().all(|[_, _, about, ..]| about.chars().count() <= MAX_ABOUT);
    let kept: &[&str] = if are_short { &["ABOUT", "STATE"] } else { &["STATE"] };
    let table = Table::new(&head).leaves_out(&["JOB", "OF (UTC)", "ATTEMPTS"]).keeps(kept);
    let first = deliveries.first().map(|first| first.webhook_id);
    let is_same = deliveries.iter().all(|delivery| Some(delivery.webhook_id) == first);
    match first {
        Some(webhook) if is_same => {
            let receiver = format_fields(&[("receiver", names.receiver(webhook))]);
            format!("{receiver}\n{}", table.hides(RECEIVER).format(rows.into_iter()))
        }
        None if is_of_one => table.hides(RECEIVER).format(rows.into_iter()),
        _ => table.format(rows.into_iter()),
    }
}

fn row(delivery: &Delivery, names: &DeliveryNames) -> [String; 9] {
    [
        short_id(delivery.id),
        delivery.kind.clone(),
        names.subject(delivery),
        names.receiver(delivery.webhook_id),
        format_state(delivery),
        last_error(delivery).map_or_else(|| "-".to_owned(), text_cell),
        delivery.attempts.to_string(),
        time_cell(delivery.created_at),
        delivery.job_id.map_or_else(|| "-".to_owned(), |id| id.to_string()),
    ]
}

/// Returns the state, with the time of the next attempt.
fn format_state(delivery: &Delivery) -> String {
    match (delivery.state, delivery.next_at) {
        (State::Waiting, Some(next)) => format!("{}, {}", State::Waiting.as_str(), time_cell(next)),
        (state, _) => state.as_str().to_owned(),
    }
}

/// Returns why the last attempt failed. A delivery that arrived has no error any more.
fn last_error(delivery: &Delivery) -> Option<&str> {
    delivery.last_error.as_deref().filter(|_| delivery.state != State::Delivered)
}

/// Names the commands that send again what has failed or is failing, for each webhook.
fn describe_replay(deliveries: &[Delivery], names: &DeliveryNames) -> Option<String> {
    let mut oldest: BTreeMap<Uuid, DateTime<Utc>> = BTreeMap::new();
    for delivery in deliveries.iter().filter(|delivery| is_failing(delivery)) {
        let at = oldest.entry(delivery.webhook_id).or_insert(delivery.created_at);
        *at = delivery.created_at.min(*at);
    }
    let commands: Vec<String> = oldest
        .iter()
        .flat_map(|(id, since)| replay_commands(*id, names.disabled.contains(id), *since))
        .collect();
    (!commands.is_empty()).then(|| format_replay(&commands))
}

/// Formats commands that send again what was not delivered, each on a line of its own.
pub(super) fn format_replay(commands: &[String]) -> String {
    let lines: String = commands.iter().map(|command| format!("\n  {command}")).collect();
    format!("send again what was not delivered, as soon as it can be:{lines}")
}

/// Returns true for a delivery that was given up, and for one whose last attempt failed.
fn is_failing(delivery: &Delivery) -> bool {
    let has_failed = delivery.state == State::Waiting && delivery.last_error.is_some();
    delivery.state == State::Failed || has_failed
}

/// Returns the commands that send again what a webhook has not delivered. A disabled one sends nothing, so it is enabled first.
fn replay_commands(webhook: Uuid, is_disabled: bool, since: DateTime<Utc>) -> Vec<String> {
    let id = ids::short(webhook);
    let enable = is_disabled.then(|| format!("dalsegno webhook enable {id}"));
    let since = since.format("%FT%TZ");
    let replay = format!("dalsegno webhook replay --webhook {id} --since {since}");
    enable.into_iter().chain([replay]).collect()
}

/// Reads the newest failure of a webhook for people. `None`: its newest deliveries have arrived, or the caller may not list them.
pub(super) async fn newest_failure(
    webhook: &Webhook,
    output: Output,
    server: &Server,
) -> Option<WebhookFailure> {
    if output.is_structured() {
        return None;
    }
    let list = ListDeliveries {
        webhook_id: Some(webhook.id),
        task_id: None,
        state: None,
        cursor: None,
        limit: Some(MAX_READ),
    };
    let newest = server.call(list).await.map(|listing| listing.items).unwrap_or_default();
    let failing: Vec<&Delivery> = newest.iter().filter(|delivery| is_failing(delivery)).collect();
    let since = failing.iter().map(|delivery| delivery.created_at).min()?;
    let error = failing.iter().find_map(|delivery| delivery.last_error.clone());
    let commands = replay_commands(webhook.id, !webhook.enabled, since);
    Some(WebhookFailure { error, commands })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(webhook: u128, state: State, error: Option<&str>, minute: u32) -> Delivery {
        Delivery {
            id: Uuid::from_u128(minute.into()),
            webhook_id: Uuid::from_u128(webhook),
            task_id: None,
            campaign_id: None,
            kind: "task.done".to_owned(),
            state,
            attempts: 1,
            last_status: None,
            last_error: error.map(str::to_owned),
            job_id: None,
            created_at: format!("2026-11-28T12:{minute:02}:00Z").parse().unwrap(),
            next_at: None,
            ended_at: None,
        }
    }

    #[test]
    fn a_replay_of_each_failing_webhook_begins_at_its_oldest_failure() {
        let deliveries = [
            delivery(1, State::Delivered, Some("timeout"), 5),
            delivery(1, State::Waiting, None, 10),
            delivery(1, State::Failed, Some("500"), 30),
            delivery(1, State::Waiting, Some("500"), 20),
            delivery(2, State::Waiting, None, 15),
            delivery(3, State::Failed, None, 40),
        ];
        let names = DeliveryNames {
            disabled: HashSet::from([Uuid::from_u128(3)]),
            ..DeliveryNames::default()
        };
        let advice = describe_replay(&deliveries, &names).unwrap();
        let commands: Vec<&str> = advice.lines().skip(1).map(str::trim).collect();
        assert_eq!(
            commands,
            [
                "dalsegno webhook replay --webhook 000000000001 --since 2026-11-28T12:20:00Z",
                "dalsegno webhook enable 000000000003",
                "dalsegno webhook replay --webhook 000000000003 --since 2026-11-28T12:40:00Z",
            ]
        );
        assert_eq!(describe_replay(&deliveries[..2], &names), None, "nothing fails");
    }

    #[test]
    fn a_receiver_of_all_lines_is_above_the_table() {
        let names = DeliveryNames::default();
        let deliveries =
            [delivery(1, State::Failed, None, 1), delivery(1, State::Delivered, Some("500"), 2)];
        let same = format_deliveries(&deliveries, false, &names);
        assert!(same.starts_with("receiver  000000000001\n\nID "), "{same}");
        assert!(!same.contains(RECEIVER) && !same.contains("500"), "{same}");
        let two = [deliveries[0].clone(), delivery(2, State::Failed, None, 3)];
        assert!(format_deliveries(&two, false, &names).contains(RECEIVER));
        assert!(!format_deliveries(&[], true, &names).contains(RECEIVER));
        assert!(format_deliveries(&[], false, &names).contains(RECEIVER));
    }
}
