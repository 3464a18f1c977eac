//! The context of a call beside turns, as it is stored.

use std::time::Duration;

use serde_json::Value;
use sqlx::PgPool;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    causes::causes,
    context::{
        Digest,
        manifest::{ContextText, RequestHashes, TextKind},
        prompt_manifest::{Cut, PromptManifest},
    },
    domain::context_texts::{self, StoringCall},
    providers::{self, Event, EventSink, Outcome, Provider, Request, SentRequest},
};

/// Capacity of the event channel. Only the request is read, which is the first event.
const N_EVENTS: usize = 16;
/// Longest wait for the texts of a context.
const TEXTS_WAIT: Duration = Duration::from_secs(2);

/// The context of a call that has a row in the ledger.
pub(super) struct SideContext {
    manifest: PromptManifest,
    texts: Vec<ContextText>,
}

/// Calls the provider. Returns its answer, and the request as it was sent.
pub(super) async fn run(
    provider: &dyn Provider,
    request: Request,
    cancel: CancellationToken,
) -> (Result<Outcome, providers::Error>, Option<Box<SentRequest>>) {
    let (sink, mut events) = EventSink::channel(N_EVENTS);
    let mut answer = provider.run(request, sink, cancel);
    let mut sent = None;
    let answered = loop {
        tokio::select! {
            biased;
            answered = &mut answer => break answered,
            Some(event) = events.recv() => sent = request_of(event).or(sent),
        }
    };
    while let Ok(event) = events.try_recv() {
        sent = request_of(event).or(sent);
    }
    (answered, sent)
}

fn request_of(event: Event) -> Option<Box<SentRequest>> {
    match event {
        Event::Sent(request) => Some(request),
        _ => None,
    }
}

impl SideContext {
    /// Builds the record of a request before it is sent. `cuts` are those of its only message.
    pub(super) fn new(request: &Request, cuts: &[Cut]) -> Self {
        let prompt = request.messages.first().map_or("", |message| message.text.as_str());
        let estimated_tokens = request.estimated_prompt_tokens.unwrap_or(0).into();
        let (manifest, texts) =
            PromptManifest::new(&request.system, prompt, cuts, estimated_tokens);
        Self { manifest, texts }
    }

    /// Adds the request as it was sent.
    pub(super) fn add_request(&mut self, sent: &SentRequest) {
        // Texts and numbers only, so there is nothing that JSON could not say.
        let envelope = serde_json::to_string(&sent.envelope).unwrap_or_default();
        let envelope = ContextText::new(TextKind::Envelope, envelope);
        let sha256 = Digest::from_bytes(sent.sha256);
        self.manifest.request = Some(RequestHashes { envelope: envelope.sha256, sha256 });
        self.texts.push(envelope);
    }

    pub(super) fn manifest(&self) -> Value {
        serde_json::to_value(&self.manifest).unwrap_or_default()
    }

    /// Stores the texts. An answer that was paid for counts more than its record: a failure is only logged, and the answer waits for a
    /// moment only.
    pub(super) async fn store_texts(&self, pool: &PgPool, session_id: Uuid) {
        let storing = StoringCall { session_id, turn: None };
        let texts: Vec<&ContextText> = self.texts.iter().collect();
        let store = async || match context_texts::store(pool, &storing, &texts).await {
            // Another session may have removed a text with its last use at the same moment.
            Err(_) => context_texts::store(pool, &storing, &texts).await,
            stored => stored,
        };
        let error = match timeout(TEXTS_WAIT, store()).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => causes(&error),
            Err(_) => format!("the database did not answer within {} s", TEXTS_WAIT.as_secs()),
        };
        tracing::warn!(
            session.id = %session_id,
            error,
            "cannot store the context of a call beside turns, so it cannot be shown later"
        );
    }
}
