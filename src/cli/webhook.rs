//! `dalsegno webhook`: who is told when tasks end.

use chrono::{DateTime, TimeDelta, Utc};
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use sqlx::{PgConnection, PgPool, Postgres, Transaction};

use super::{
    Context, Exit, Failure,
    args::{Id, Paging},
    database::with_database,
    output::{Output, table},
    words::{time, time_or_dash},
};
use crate::{
    clock::{Clock as _, SystemClock},
    db::{Database, Use},
    domain::{
        Page,
        audit::{self, Action, Actor},
        campaigns,
        ids::{Given, GivenCampaign, short},
        timestamp,
        transaction::{begin, commit},
        webhooks::{self, Delivery, Filter, Kind, New, State, Webhook, WithSecret},
    },
};

#[derive(Debug, Subcommand)]
pub(super) enum WebhookCommand {
    /// Has an address told when tasks end, and prints the secret that it is signed with: now and never again.
    Add(Add),
    /// Lists the webhooks.
    Ls,
    /// Forgets a webhook with all that it was told.
    Rm(Id),
    /// Gives it another secret, and prints it. The one before signs, too, for as long as the overlap.
    Rotate(Rotate),
    /// Has a worker send it something that is about no task.
    Test(Id),
    /// Lists what was sent and what came of it, the newest first.
    Deliveries(Deliveries),
    /// Sends a delivery again under its own id, or all since a time that were not delivered.
    Replay(Replay),
    /// Has it told again. What was held meanwhile can be replayed.
    Enable(Id),
    /// Sends it nothing until it is enabled. What ends meanwhile is held.
    Disable(Disable),
}

#[derive(Debug, Args)]
pub(super) struct Add {
    /// Where to: an address of https.
    url: String,
    /// Which ends it is told of; all, if none is given. Can be given several times.
    #[arg(long, value_enum)]
    kind: Vec<KindName>,
    /// Only tasks of this campaign.
    #[arg(long, value_name = "ID")]
    campaign: Option<GivenCampaign>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum KindName {
    #[value(name = "task.done")]
    Done,
    #[value(name = "task.failed")]
    Failed,
    #[value(name = "task.cancelled")]
    Cancelled,
}

#[derive(Debug, Args)]
pub(super) struct Rotate {
    #[command(flatten)]
    webhook: Id,
    #[arg(long, value_name = "HOURS", default_value_t = 24, value_parser = clap::value_parser!(u16).range(0..=720))]
    overlap_hours: u16,
}

#[derive(Debug, Args)]
pub(super) struct Deliveries {
    #[arg(long, value_name = "ID")]
    webhook: Option<Given>,
    /// Only those that were given up.
    #[arg(long)]
    failed: bool,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["delivery", "since"])))]
pub(super) struct Replay {
    /// Its id, or the beginning or end of that: `dalsegno webhook deliveries` lists them.
    delivery: Option<Given>,
    /// Everything of this time on that was not delivered: 2026-11-20T12:00:00Z.
    #[arg(long, value_name = "TIME", requires = "webhook", value_parser = timestamp::parse)]
    since: Option<DateTime<Utc>>,
    /// To which webhook.
    #[arg(long, value_name = "ID", conflicts_with = "delivery")]
    webhook: Option<Given>,
}

#[derive(Debug, Args)]
pub(super) struct Disable {
    #[command(flatten)]
    webhook: Id,
    /// Why, for whoever finds it disabled.
    #[arg(long, default_value = "by an operator")]
    reason: String,
}

pub(super) async fn run(command: &WebhookCommand, context: &Context) -> Result<Exit, Failure> {
    with_database(context, Use::Look, async |database| on(command, context, database).await).await
}

async fn on(
    command: &WebhookCommand,
    context: &Context,
    database: &Database,
) -> Result<Exit, Failure> {
    let (output, who, now) = (context.output, context.who(), SystemClock.now());
    let mut tx = begin(&database.pool).await?;
    match command {
        WebhookCommand::Ls => {
            let webhooks = webhooks::list(&mut *tx).await?;
            output.data(&webhooks, || lines(&webhooks));
        }
        WebhookCommand::Deliveries(asked) => {
            let deliveries = deliveries(asked, &mut tx).await?;
            output.data(&deliveries, || delivery_lines(&deliveries));
        }
        WebhookCommand::Add(asked) => {
            let added = add(asked, context, &mut tx, now).await?;
            let (id, campaign_id) = (added.webhook.id, added.webhook.campaign_id);
            let data = json!({ "url": added.webhook.url, "campaign_id": campaign_id });
            audit::write(&mut *tx, &who, Action::WebhookAdd, id, data, now).await?;
            commit(tx).await?;
            show_secret(output, &added);
        }
        WebhookCommand::Rotate(Rotate { webhook, overlap_hours }) => {
            let id = webhooks::find(&mut *tx, &webhook.id, None).await?;
            let overlap = TimeDelta::hours((*overlap_hours).into());
            let rotated = webhooks::rotate(&mut tx, id, overlap, now).await?;
            let data = json!({ "overlap_hours": overlap_hours });
            audit::write(&mut *tx, &who, Action::WebhookRotate, id, data, now).await?;
            commit(tx).await?;
            show_secret(output, &rotated);
        }
        WebhookCommand::Rm(webhook) => {
            let id = webhooks::find(&mut *tx, &webhook.id, None).await?;
            drop(tx);
            webhooks::remove(&database.pool, &who, id, now).await?;
            output.data(&json!({ "removed": id }), || format!("webhook {id} is forgotten"));
        }
        WebhookCommand::Test(webhook) => {
            let id = webhooks::find(&mut *tx, &webhook.id, None).await?;
            let delivery = webhooks::send_test(&mut tx, id, now).await?;
            let data = json!({ "delivery_id": delivery.id });
            audit::write(&mut *tx, &who, Action::WebhookTest, id, data, now).await?;
            commit(tx).await?;
            show_sent(output, &delivery);
        }
        WebhookCommand::Replay(asked) => {
            replay(asked, output, &who, (tx, &database.pool), now).await?;
        }
        WebhookCommand::Enable(webhook) => {
            let id = webhooks::find(&mut *tx, &webhook.id, None).await?;
            let webhook = webhooks::enable(&mut tx, id).await?;
            audit::write(&mut *tx, &who, Action::WebhookEnable, id, json!({}), now).await?;
            commit(tx).await?;
            output.data(&webhook, || {
                format!("webhook {id} is told again; `dalsegno webhook replay --webhook {id} --since TIME` sends what was held")
            });
        }
        WebhookCommand::Disable(Disable { webhook, reason }) => {
            let id = webhooks::find(&mut *tx, &webhook.id, None).await?;
            let webhook = webhooks::disable(&mut tx, id, reason, now).await?;
            let data = json!({ "reason": reason });
            audit::write(&mut *tx, &who, Action::WebhookDisable, id, data, now).await?;
            commit(tx).await?;
            output.data(&webhook, || format!("webhook {id} is disabled"));
        }
    }
    Ok(Exit::Ok)
}

async fn add(
    asked: &Add,
    context: &Context,
    conn: &mut PgConnection,
    now: DateTime<Utc>,
) -> Result<WithSecret, Failure> {
    let config = context.load()?;
    let kinds: Vec<Kind> = asked.kind.iter().copied().map(Kind::from).collect();
    let campaign_id = match &asked.campaign {
        Some(given) => Some(campaigns::find(&mut *conn, given, None).await?),
        None => None,
    };
    let new = New { url: &asked.url, kinds: &kinds, campaign_id };
    Ok(webhooks::add(conn, &config.webhooks, &new, now).await?)
}

async fn deliveries(asked: &Deliveries, conn: &mut PgConnection) -> Result<Vec<Delivery>, Failure> {
    let webhook_id = match &asked.webhook {
        Some(given) => Some(webhooks::find(&mut *conn, given, None).await?),
        None => None,
    };
    let state = asked.failed.then_some(State::Failed);
    let filter = Filter { webhook_id, task_id: None, state };
    let after = match &asked.paging.after {
        Some(given) => Some(webhooks::find_delivery(&mut *conn, given, None).await?),
        None => None,
    };
    let page = Page { after, limit: asked.paging.limit };
    Ok(webhooks::deliveries(conn, filter, page).await?)
}

async fn replay(
    asked: &Replay,
    output: Output,
    who: &Actor,
    (mut tx, pool): (Transaction<'static, Postgres>, &PgPool),
    now: DateTime<Utc>,
) -> Result<(), Failure> {
    match (&asked.delivery, &asked.webhook, asked.since) {
        (Some(given), _, _) => {
            let id = webhooks::find_delivery(&mut *tx, given, None).await?;
            let delivery = webhooks::replay(&mut tx, id, now).await?;
            let (webhook_id, data) = (delivery.webhook_id, json!({ "delivery_id": id }));
            audit::write(&mut *tx, who, Action::WebhookReplay, webhook_id, data, now).await?;
            commit(tx).await?;
            show_sent(output, &delivery);
        }
        (None, Some(given), Some(since)) => {
            let id = webhooks::find(&mut *tx, given, None).await?;
            drop(tx);
            let n_replayed = webhooks::replay_since(pool, who, id, since, now).await?;
            let done = json!({ "webhook_id": id, "replayed": n_replayed });
            output.data(&done, || format!("{n_replayed} deliveries are sent again"));
        }
        // The arguments themselves exclude it.
        _ => {}
    }
    Ok(())
}

fn show_secret(output: Output, WithSecret { webhook, secret }: &WithSecret) {
    let mut shown = serde_json::to_value(webhook).unwrap_or(Value::Null);
    shown["secret"] = secret.expose().into();
    output.data(&shown, || {
        let kinds = webhook.kinds.join(", ");
        format!("webhook {} is told of {kinds}\nsecret   {}\n         keep it where the receiver finds it: it is not shown again", webhook.id, secret.expose())
    });
}

fn show_sent(output: Output, delivery: &Delivery) {
    output.data(delivery, || {
        format!(
            "a worker sends delivery {}; `dalsegno webhook deliveries` shows what comes of it",
            delivery.id
        )
    });
}

fn lines(webhooks: &[Webhook]) -> String {
    let row = |webhook: &Webhook| {
        let state = match (&webhook.disabled_because, webhook.failing_since) {
            (Some(reason), _) => format!("disabled: {reason}"),
            (None, Some(since)) => format!("failing since {}", time(since)),
            (None, None) => "enabled".to_owned(),
        };
        [
            short(webhook.id),
            webhook.url.clone(),
            webhook.kinds.join(","),
            webhook.campaign_id.map_or_else(|| "all".to_owned(), short),
            time_or_dash(webhook.rotates_until),
            state,
        ]
    };
    let head = ["ID", "URL", "KINDS", "CAMPAIGN", "TWO SECRETS UNTIL (UTC)", "STATE"];
    table(&head, webhooks.iter().map(row))
}

fn delivery_lines(deliveries: &[Delivery]) -> String {
    let row = |delivery: &Delivery| {
        [
            short(delivery.id),
            delivery.kind.clone(),
            delivery.task_id.map_or_else(|| "-".to_owned(), short),
            delivery.state.as_str().to_owned(),
            delivery.attempts.to_string(),
            time(delivery.created_at),
            time_or_dash(delivery.next_at),
            delivery.last_error.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    };
    let head = ["ID", "KIND", "TASK", "STATE", "ATTEMPTS", "OF (UTC)", "NEXT (UTC)", "LAST ERROR"];
    table(&head, deliveries.iter().map(row))
}

impl From<KindName> for Kind {
    fn from(name: KindName) -> Self {
        match name {
            KindName::Done => Self::Done,
            KindName::Failed => Self::Failed,
            KindName::Cancelled => Self::Cancelled,
        }
    }
}
