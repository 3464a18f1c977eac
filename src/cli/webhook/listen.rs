//! `dalsegno webhook listen`: the messages about ends of tasks, sent to an address that only this host reaches.
//!
//! The command follows the feed and asks for the message of each ended task. Its body is that of a delivery, byte for byte.

use std::{collections::HashMap, time::Duration};

use anyhow::anyhow;
use chrono::TimeDelta;
use clap::{Args, ValueEnum};
use reqwest::{Client, Url, header::CONTENT_TYPE};
use serde::Serialize;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

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
        feed::Event,
        ids,
        webhooks::{Message, Secret},
    },
    operations::{BEGIN, FollowFeed, ShowWebhookMessage, WebhookMessage},
    outbound,
};

/// Time limit of a request, as deliveries have it by default.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Events that may be the end of a task. A task ends with its last turn, or outside of turns.
const EVENTS: &str =
    "turn.done,turn.failed,turn.interrupted,task.failed,task.cancelled,budget.refused";

#[derive(Debug, Args)]
pub(in crate::cli) struct Listen {
    // Not a doc comment: rustdoc would turn the address into a link.
    #[arg(help = "Local address of the receiver, for example http://localhost:3000/hook")]
    url: Url,
    /// Message to send; may be repeated. Default: all ends of tasks.
    #[arg(long, value_enum)]
    kind: Vec<EndKind>,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EndKind {
    #[value(name = "task.done")]
    Done,
    #[value(name = "task.failed")]
    Failed,
    #[value(name = "task.cancelled")]
    Cancelled,
}

/// The result of one message.
#[derive(Debug, Serialize)]
struct ForwardResult {
    id: Uuid,
    kind: String,
    task_id: Uuid,
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

impl EndKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Done => "task.done",
            Self::Failed => "task.failed",
            Self::Cancelled => "task.cancelled",
        }
    }
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
    let kinds = Some(EVENTS.to_owned());
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
    // The last message about each task: an event of an earlier turn may be read after the end.
    let mut sent_bodies = HashMap::new();
    while n_left > 0 {
        let Some(event) = follower.next().await? else { break };
        if event.name == BEGIN {
            continue;
        }
        let event: Event = data_of(&event)?;
        let Some(message) = ended_task(&event, server).await? else { continue };
        let is_wanted = |kind: &EndKind| kind.as_str() == message.kind;
        if !listen.kind.is_empty() && !listen.kind.iter().any(is_wanted) {
            continue;
        }
        if sent_bodies.insert(message.task_id, message.body.clone()).as_ref() == Some(&message.body)
        {
            continue;
        }
        let sent = receiver.send(message).await?;
        context.output.print_item(&sent, || format_sent(&sent));
        n_left -= 1;
    }
    Ok(Exit::Ok)
}

/// Returns the message about the task of an event. `None`: the task goes on, for example with a correction, or is gone.
async fn ended_task(event: &Event, server: &Server) -> Result<Option<WebhookMessage>, Failure> {
    let Some(id) = event.task_id else { return Ok(None) };
    match server.call(ShowWebhookMessage { id }).await {
        Ok(message) => Ok(Some(message)),
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

    async fn send(&self, message: WebhookMessage) -> Result<ForwardResult, Failure> {
        let WebhookMessage { task_id, kind, body } = message;
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
    format!("{now}  {kind}  task {}  {result}, after {duration_ms} ms", short_id(*task_id))
}
