//! `dalsegno webhook listen`: messages about ends of tasks and budgets, sent to an address that only this host reaches.
//!
//! The command follows the feed. It asks for the message of each ended task, and makes that of a budget from its event. The bodies are those
//! of deliveries, byte for byte.

use std::time::Duration;

use anyhow::anyhow;
use chrono::TimeDelta;
use clap::Args;
use reqwest::{Client, Url, header::CONTENT_TYPE};
use serde::Serialize;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use super::{kind::KindName, sent_messages::SentMessages, warning::warning_body};
use crate::{
    causes::causes,
    cli::{
        Context, Exit, Failure,
        args::InCampaign,
        follow::data_of,
        output::short_id,
        server::Server,
        words::{parse_period, time},
    },
    clock::{Clock as _, SystemClock},
    domain::{
        feed::{self, Event},
        ids,
        webhooks::{Kind, Message, Secret},
    },
    operations::{BEGIN, FollowFeed, ShowWebhookMessage},
    outbound,
};

/// Time limit of a request, as deliveries have it by default.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Events that may be the end of a task. A task ends with its last turn, or outside of turns.
const ENDS: [feed::Kind; 6] = [
    feed::Kind::TurnDone,
    feed::Kind::TurnFailed,
    feed::Kind::TurnInterrupted,
    feed::Kind::TaskFailed,
    feed::Kind::TaskCancelled,
    feed::Kind::BudgetRefused,
];

#[derive(Debug, Args)]
pub(in crate::cli) struct Listen {
    // Not a doc comment: rustdoc would turn the address into a link.
    #[arg(help = "Local address of the receiver, for example http://localhost:3000/hook")]
    url: Url,
    /// Message to send; may be repeated. Default: all ends of tasks.
    #[arg(long, value_enum)]
    kind: Vec<KindName>,
    #[command(flatten)]
    campaign: InCampaign,
    /// Signing secret: `whsec_` and base64. Default: a new one, which is printed.
    #[arg(long, value_name = "SECRET")]
    secret: Option<String>,
    /// Starts after the event with this id, as `dalsegno feed` prints it; 0 starts with the oldest. Default: now.
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(i64).range(0..))]
    after: Option<i64>,
    /// Ends after this many messages.
    #[arg(long)]
    limit: Option<u64>,
    /// Ends after this time: 30s, 15m, 24h.
    #[arg(long, value_name = "DURATION", value_parser = parse_period)]
    timeout: Option<TimeDelta>,
}

/// A message before it is signed.
struct NewMessage {
    kind: String,
    /// `None`: a warning of a budget that belongs to no task.
    task_id: Option<Uuid>,
    body: String,
}

/// The result of one message.
#[derive(Debug, Serialize)]
struct ForwardResult {
    id: Uuid,
    kind: String,
    /// Null: the message is about no task.
    task_id: Option<Uuid>,
    /// Null: there was no answer.
    status: Option<u16>,
    error: Option<String>,
    duration_ms: u64,
}

/// The receiver on this host.
struct Receiver {
    client: Client,
    url: Url,
    secret: Secret,
}

pub(super) async fn run(
    listen: &Listen,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let receiver = Receiver::new(listen)?;
    let followed = forward(listen, &receiver, context, server);
    match listen.timeout.and_then(|limit| limit.to_std().ok()) {
        Some(limit) => timeout(limit, followed).await.unwrap_or(Ok(Exit::Ok)),
        None => followed.await,
    }
}

async fn forward(
    listen: &Listen,
    receiver: &Receiver,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let campaign_id = listen.campaign.id_if_given(context, server).await?;
    let wanted: Vec<Kind> = match listen.kind.as_slice() {
        [] => Kind::ENDS.to_vec(),
        named => named.iter().copied().map(Kind::from).collect(),
    };
    let kinds = Some(events_of(&wanted));
    let stream =
        FollowFeed { after: listen.after, campaign_id, kinds, session_id: None, agent: None };
    let mut follower = server.follow(stream).await?;
    let url = &receiver.url;
    let secret = match &listen.secret {
        Some(_) => "the given secret".to_owned(),
        None => format!("the secret {}", receiver.secret.expose()),
    };
    context.output.print_note(&format!("sending to {url}, signed with {secret}"));
    let mut n_left = listen.limit.unwrap_or(u64::MAX);
    // An event of an earlier turn may be read after the end.
    let mut sent_messages = SentMessages::default();
    while n_left > 0 {
        let Some(event) = follower.next().await? else { break };
        if event.name == BEGIN {
            continue;
        }
        let event: Event = data_of(&event)?;
        let message = match event.kind == Kind::BudgetWarning.as_str() {
            true => NewMessage {
                kind: event.kind.clone(),
                task_id: event.task_id,
                body: warning_body(&event),
            },
            false => {
                let Some(message) = ended_task(&event, server).await? else { continue };
                let is_wanted = wanted.iter().any(|kind| kind.as_str() == message.kind);
                let id = message.task_id.unwrap_or_default();
                if !is_wanted || !sent_messages.is_new(id, &message.body) {
                    continue;
                }
                message
            }
        };
        let sent = receiver.send(message).await?;
        context.output.print_item(&sent, || format_sent(&sent));
        n_left -= 1;
    }
    Ok(Exit::Ok)
}

/// Lists the events that may lead to these messages.
fn events_of(wanted: &[Kind]) -> String {
    let ends = ENDS.iter().filter(|_| wanted.iter().any(|kind| Kind::ENDS.contains(kind)));
    let warnings = wanted.contains(&Kind::BudgetWarning).then_some(&feed::Kind::BudgetWarning);
    ends.chain(warnings).map(|kind| kind.as_str()).collect::<Vec<_>>().join(",")
}

/// Returns the message about the task of an event. `None`: the task goes on, for example with a correction, or is gone.
async fn ended_task(event: &Event, server: &Server) -> Result<Option<NewMessage>, Failure> {
    let Some(id) = event.task_id else { return Ok(None) };
    match server.call(ShowWebhookMessage { id }).await {
        Ok(message) => Ok(Some(NewMessage {
            kind: message.kind,
            task_id: Some(message.task_id),
            body: message.body,
        })),
        Err(failure) if matches!(failure.exit, Exit::Conflict | Exit::NotFound) => Ok(None),
        Err(failure) => Err(failure),
    }
}

impl Receiver {
    fn new(listen: &Listen) -> Result<Self, Failure> {
        let url = listen.url.clone();
        let client = outbound::client(Some(&url)).timeout(TIMEOUT).no_proxy().build();
        let client = client.map_err(|error| Failure::failed(error.into()))?;
        let secret = listen.secret.clone().map_or_else(Secret::generate, Secret::from_text);
        let receiver = Self { client, url, secret };
        // Refused before the first message.
        receiver.sign(ids::new_at(SystemClock.now()), String::new())?;
        Ok(receiver)
    }

    fn sign(&self, id: Uuid, body: String) -> Result<Message, Failure> {
        let secrets = std::slice::from_ref(&self.secret);
        Message::signed(id, SystemClock.now(), body, secrets).ok_or_else(|| {
            Failure::new(Exit::Usage, anyhow!("the secret is not valid: use `whsec_` and base64"))
        })
    }

    async fn send(&self, message: NewMessage) -> Result<ForwardResult, Failure> {
        let NewMessage { task_id, kind, body } = message;
        let id = ids::new_at(SystemClock.now());
        let Message { headers, body } = self.sign(id, body)?;
        let mut request =
            self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let started = Instant::now();
        let (status, error) = match request.body(body).send().await {
            Ok(response) => (Some(response.status().as_u16()), None),
            Err(error) => (None, Some(causes(&error.without_url()))),
        };
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(ForwardResult { id, kind, task_id, status, error, duration_ms })
    }
}

fn format_sent(sent: &ForwardResult) -> String {
    let ForwardResult { kind, task_id, status, error, duration_ms, .. } = sent;
    let now = time(SystemClock.now());
    let result = match (status, error) {
        (Some(status), _) => format!("answered {status}"),
        (None, error) => format!("not delivered: {}", error.as_deref().unwrap_or("no answer")),
    };
    let task = task_id.map(|id| format!("task {}  ", short_id(id))).unwrap_or_default();
    format!("{now}  {kind}  {task}{result}, after {duration_ms} ms")
}
