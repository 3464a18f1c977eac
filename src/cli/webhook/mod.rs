//! `dalsegno webhook`: webhooks, which report ended tasks to other systems.

mod deliveries;
mod kind;
mod listen;
mod sent_messages;
mod warning;

use anyhow::anyhow;
use chrono::{DateTime, TimeDelta, Utc};
use clap::{ArgGroup, Args, Subcommand};
use serde_json::json;
use uuid::Uuid;

use self::{
    deliveries::{DeliveryNames, WebhookFailure, format_replay, newest_failure, print_deliveries},
    kind::KindName,
};
use super::{
    Context, Exit, Failure,
    args::{Id, InCampaign, Paging},
    output::{Output, Table, format_wrapped_fields, short_id, time_cell, time_cell_or_dash},
    server::{Server, with_server},
    words::{Moment, parse_moment, parse_period, secs, time, time_or_dash},
};
use crate::{
    domain::{
        ids::PartialId,
        text::count,
        webhooks::{Delivery, Kind, State, Webhook},
    },
    operations::{
        AddWebhook, DisableWebhook, EnableWebhook, ListDeliveries, ListWebhooks, Noun,
        RemoveWebhook, ReplayDelivery, ReplayWebhook, RotateWebhook, ShowWebhook, TestWebhook,
        WebhookWithSecret,
    },
};

/// Printed below an empty list.
const NO_WEBHOOKS: &str = "no webhooks: `dalsegno webhook add` adds one";

const NONE_FAILED: &str = "no delivery has failed for good; `dalsegno webhook deliveries` lists those that wait for another attempt";

#[derive(Debug, Subcommand)]
pub(super) enum WebhookCommand {
    /// Adds a webhook for the ends of tasks of a campaign, or of all, and prints its signing secret once.
    Add(Add),
    /// Lists the webhooks.
    Ls,
    /// Shows a webhook.
    Show(Id),
    /// Removes a webhook with its deliveries.
    Rm(Id),
    /// Creates a new signing secret and prints it; the old one also signs during the overlap.
    Rotate(Rotate),
    /// Sends a test delivery through a worker.
    Test(Id),
    /// Lists deliveries and their results, the newest first.
    ///
    /// `dalsegno job cancel JOB`, with the job of its line, gives a waiting delivery up.
    Deliveries(Deliveries),
    /// Sends a delivery again, or, with --webhook and --since, all that were not delivered, also those that were given up.
    Replay(Replay),
    /// Enables a webhook again. Deliveries held meanwhile can be replayed.
    Enable(Id),
    /// Disables a webhook. Deliveries are held until it is enabled.
    Disable(Disable),
    /// Sends messages from now on to a local address, signed like deliveries, until Ctrl-C.
    ///
    /// For the development of a receiver: it needs no public address, and no webhook. Nothing is stored or sent again.
    Listen(listen::Listen),
}

#[derive(Debug, Args)]
pub(super) struct Add {
    /// URL of the receiver (https).
    url: String,
    /// Message to send; may be repeated. Default: all ends of tasks.
    #[arg(long, value_enum)]
    kind: Vec<KindName>,
    #[command(flatten)]
    campaign: InCampaign,
}

#[derive(Debug, Args)]
pub(super) struct Rotate {
    #[command(flatten)]
    webhook: Id,
    /// Time for which the old secret also signs, at most 30d.
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = parse_period)]
    overlap: TimeDelta,
}

#[derive(Debug, Args)]
pub(super) struct Deliveries {
    /// Only deliveries of this webhook.
    #[arg(long, value_name = "ID")]
    webhook: Option<PartialId>,
    /// Only deliveries that have failed for good.
    #[arg(long)]
    failed: bool,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["delivery", "since"])))]
pub(super) struct Replay {
    /// Delivery: its id, or a unique beginning or end of it; `dalsegno webhook deliveries` lists them.
    delivery: Option<PartialId>,
    /// All deliveries of --webhook since then that were not delivered: 2026-11-23T08:00:00Z, or 24h for a day ago.
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    since: Option<Moment>,
    /// Webhook whose deliveries are sent again: its id, or a unique beginning or end of it; `dalsegno webhook ls` lists them.
    #[arg(long, value_name = "ID", conflicts_with = "delivery")]
    webhook: Option<PartialId>,
}

#[derive(Debug, Args)]
pub(super) struct Disable {
    #[command(flatten)]
    webhook: Id,
    /// Reason, shown with the webhook while it is disabled.
    #[arg(long, default_value = "by an operator")]
    reason: String,
}

pub(super) async fn run(command: &WebhookCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| run_on_server(command, context, server).await).await
}

async fn run_on_server(
    command: &WebhookCommand,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let output = context.output;
    match command {
        WebhookCommand::Ls => {
            let webhooks = server.call(ListWebhooks {}).await?.items;
            output.print_rows(&webhooks, false, NO_WEBHOOKS, || format_webhooks(&webhooks));
        }
        WebhookCommand::Show(webhook) => {
            let webhook = server.call(ShowWebhook { id: id(webhook, server).await? }).await?;
            let failure = newest_failure(&webhook, output, server).await;
            output.print_data(&webhook, || format_webhook(&webhook, failure.as_ref()));
        }
        WebhookCommand::Deliveries(filter) => {
            let deliveries = deliveries(filter, server).await?;
            let names = DeliveryNames::of(&deliveries, output, server).await;
            match filter.failed && deliveries.is_empty() {
                true => output.print_data(&deliveries, || NONE_FAILED.to_owned()),
                false => {
                    print_deliveries(&deliveries, filter.webhook.is_some(), &names, output);
                }
            }
        }
        WebhookCommand::Add(Add { url, kind, campaign }) => {
            let campaign_id = campaign.id_if_given(context, server).await?;
            let kinds = kind.iter().copied().map(Kind::from).collect();
            let add = AddWebhook { url: url.clone(), kinds, campaign_id };
            show_secret(output, &server.call(add).await?);
        }
        WebhookCommand::Rotate(Rotate { webhook, overlap }) => {
            let id = id(webhook, server).await?;
            let rotate = RotateWebhook { id, overlap_secs: secs(*overlap) };
            show_secret(output, &server.call(rotate).await?);
        }
        WebhookCommand::Rm(webhook) => {
            let id = id(webhook, server).await?;
            server.call(RemoveWebhook { id }).await?;
            output.print_data(&json!({ "removed": id }), || format!("webhook {id} is removed"));
        }
        WebhookCommand::Test(webhook) => {
            let test = TestWebhook { id: id(webhook, server).await? };
            show_sent(output, &server.call(test).await?);
        }
        WebhookCommand::Replay(replay) => self::replay(replay, context, server).await?,
        WebhookCommand::Enable(webhook) => {
            let id = id(webhook, server).await?;
            let webhook = server.call(EnableWebhook { id }).await?;
            output.print_data(&webhook, || {
                format!("webhook {id} is enabled; `dalsegno webhook replay --webhook {id} --since TIME` sends the deliveries that were held")
            });
        }
        WebhookCommand::Disable(Disable { webhook, reason }) => {
            let id = id(webhook, server).await?;
            let webhook = server.call(DisableWebhook { id, reason: reason.clone() }).await?;
            output.print_data(&webhook, || format!("webhook {id} is disabled"));
        }
        WebhookCommand::Listen(listen) => return listen::run(listen, context, server).await,
    }
    Ok(Exit::Ok)
}

async fn id(given: &Id, server: &Server) -> Result<Uuid, Failure> {
    server.id(Noun::Webhook, &given.id).await
}

async fn deliveries(filter: &Deliveries, server: &Server) -> Result<Vec<Delivery>, Failure> {
    let webhook_id = match &filter.webhook {
        Some(given) => Some(server.id(Noun::Webhook, given).await?),
        None => None,
    };
    let state = filter.failed.then_some(State::Failed);
    let page = |cursor, limit| ListDeliveries { webhook_id, task_id: None, state, cursor, limit };
    server.list(Noun::WebhookDelivery, &filter.paging, page).await
}

async fn replay(replay: &Replay, context: &Context, server: &Server) -> Result<(), Failure> {
    let output = context.output;
    match (&replay.delivery, &replay.webhook, replay.since) {
        (Some(given), _, _) => {
            let id = server.id(Noun::WebhookDelivery, given).await?;
            show_sent(output, &server.call(ReplayDelivery { id }).await?);
        }
        (None, Some(given), Some(Moment { at: since, is_relative })) => {
            if is_relative {
                context.refuse_relative("--since", "--since", since)?;
            }
            let id = server.id(Noun::Webhook, given).await?;
            let done = server.call(ReplayWebhook { id, since }).await?;
            output.print_data(&done, || {
                count(done.replayed, "delivery is sent again", "deliveries are sent again")
            });
        }
        (None, None, Some(_)) => {
            let error = anyhow!(
                "--since needs the webhook: write `--webhook ID`; `dalsegno webhook ls` lists the ids"
            );
            return Err(Failure::new(Exit::Usage, error));
        }
        // The arguments exclude these cases.
        (None, _, None) => {}
    }
    Ok(())
}

fn show_secret(output: Output, shown: &WebhookWithSecret) {
    let WebhookWithSecret { webhook, secret } = shown;
    output.print_data(shown, || {
        let kinds = webhook.kinds.join(", ");
        let overlap = webhook.rotates_until.map(|until| {
            format!("\n         the old secret also signs until {} UTC", time(until))
        });
        format!(
            "webhook {} receives {kinds}\nsecret   {secret}\n         store it at the receiver: it is not shown again{}",
            webhook.id,
            overlap.unwrap_or_default()
        )
    });
}

fn show_sent(output: Output, delivery: &Delivery) {
    output.print_data(delivery, || {
        format!(
            "a worker sends delivery {}; `dalsegno webhook deliveries` shows the result",
            delivery.id
        )
    });
}

fn format_webhooks(webhooks: &[Webhook]) -> String {
    let row = |webhook: &Webhook| {
        [
            short_id(webhook.id),
            webhook.url.clone(),
            webhook.kinds.join(","),
            webhook.campaign_id.map_or_else(|| "all".to_owned(), short_id),
            time_cell_or_dash(webhook.rotates_until),
            format_state(webhook, time_cell),
        ]
    };
    let head = ["ID", "URL", "KINDS", "CAMPAIGN", "TWO SECRETS UNTIL (UTC)", "STATE"];
    let least = ["TWO SECRETS UNTIL (UTC)", "CAMPAIGN", "KINDS"];
    Table::new(&head).leaves_out(&least).keeps(&["STATE"]).format(webhooks.iter().map(row))
}

fn format_webhook(webhook: &Webhook, failure: Option<&WebhookFailure>) -> String {
    let mut fields = vec![
        ("webhook", webhook.id.to_string()),
        ("url", webhook.url.clone()),
        ("kinds", webhook.kinds.join(", ")),
        ("campaign", webhook.campaign_id.map_or_else(|| "all".to_owned(), |id| id.to_string())),
        ("two secrets until (UTC)", time_or_dash(webhook.rotates_until)),
        ("state", format_state(webhook, time)),
    ];
    let Some(failure) = failure else { return format_wrapped_fields(&fields) };
    let error = failure.error.clone().unwrap_or_else(|| "-".to_owned());
    fields.push(("last error", error));
    format!("{}{}", format_wrapped_fields(&fields), format_replay(&failure.commands))
}

fn format_state(webhook: &Webhook, format_time: fn(DateTime<Utc>) -> String) -> String {
    match (&webhook.disabled_because, webhook.failing_since) {
        (Some(reason), _) => format!("disabled: {reason}"),
        (None, Some(since)) => format!("failing since {}", format_time(since)),
        (None, None) => "enabled".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_webhook_is_shown_with_its_error_and_commands_on_80_columns() {
        let webhook: Webhook = serde_json::from_value(json!({
            "id": Uuid::from_u128(1), "url": "https://example.com/hooks", "kinds": ["task.done", "task.failed", "task.cancelled", "budget.warning"],
            "campaign_id": null, "enabled": false, "disabled_because": "no delivery succeeded since 2026-11-28 12:20:00 UTC; last error: answered 500",
            "failing_since": null, "rotates_until": null, "created_at": "2026-11-20T12:00:00Z",
        }))
        .unwrap();
        let error = "answered 500 Internal Server Error: the receiver cannot reach its database at this time";
        let enable = "dalsegno webhook enable 000000000001";
        let replay = "dalsegno webhook replay --webhook 000000000001 --since 2026-11-28T12:20:00Z";
        let commands = [enable, replay].map(str::to_owned).to_vec();
        let failure = WebhookFailure { error: Some(error.to_owned()), commands };
        let text = format_webhook(&webhook, Some(&failure));
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert!(text.contains("last error               answered 500 "), "{text}");
        assert!(text.ends_with(&format!(":\n  {enable}\n  {replay}")), "{text}");
        assert!(!format_webhook(&webhook, None).contains("last error "));
    }
}
