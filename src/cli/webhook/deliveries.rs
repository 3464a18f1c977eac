//! Text output of webhook deliveries: 80 columns have the event, its task or campaign, the receiver and the state.

use std::collections::HashMap;

use uuid::Uuid;

use crate::{
    cli::{
        campaign_names::CampaignNames,
        output::{Output, Table, short_id, text_cell, time_cell, time_cell_or_dash},
        server::Server,
    },
    domain::webhooks::Delivery,
    operations::ListWebhooks,
};

const HTTPS: &str = "https://";

/// The names of the receivers and campaigns of deliveries.
#[derive(Debug, Default)]
pub(super) struct DeliveryNames {
    receivers: HashMap<Uuid, String>,
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
        let is_of_campaign = |it: &Delivery| it.task_id.is_none() && it.campaign_id.is_some();
        let campaigns = match deliveries.iter().any(is_of_campaign) {
            true => CampaignNames::of_list(None, deliveries, output, server).await,
            false => None,
        };
        Self { receivers, campaigns: campaigns.unwrap_or_default() }
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

pub(super) fn format_deliveries(deliveries: &[Delivery], names: &DeliveryNames) -> String {
    let row = |delivery: &Delivery| {
        [
            short_id(delivery.id),
            delivery.kind.clone(),
            names.subject(delivery),
            names.receiver(delivery.webhook_id),
            delivery.state.as_str().to_owned(),
            delivery.job_id.map_or_else(|| "-".to_owned(), |id| id.to_string()),
            delivery.last_error.as_deref().map_or_else(|| "-".to_owned(), text_cell),
            time_cell(delivery.created_at),
            time_cell_or_dash(delivery.next_at),
            delivery.attempts.to_string(),
        ]
    };
    let head = [
        "ID",
        "KIND",
        "ABOUT",
        "RECEIVER",
        "STATE",
        "JOB",
        "LAST ERROR",
        "OF (UTC)",
        "NEXT (UTC)",
        "ATTEMPTS",
    ];
    let least = ["ATTEMPTS", "NEXT (UTC)", "OF (UTC)", "LAST ERROR", "JOB"];
    Table::new(&head).leaves_out(&least).format(deliveries.iter().map(row))
}
