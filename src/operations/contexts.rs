//! Contexts of calls, as they were sent.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Call, Listing, Operation, Refusal, Spec, page_limit};
pub use crate::domain::contexts::ProviderRequest;
use crate::{
    context::{Digest, replay},
    domain::{
        contexts::{self, Error, StoredContext},
        manifests::Part,
        sessions, turns,
    },
    providers::{CallTexts, Envelope},
    transcript::{Message, ToolSpec},
};

const TAG: &str = "sessions";
/// Turns of one page: each of its calls is assembled as a whole.
const MAX_TURNS: i64 = 20;

/// Shows what a call of a turn was sent: its texts, and the request byte for byte.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowContext {
    pub id: Uuid,
    /// Number of the turn. Without it, the newest turn with a stored context.
    pub turn: Option<i32>,
    /// Number of the call in its turn, from 1. Without it, the first.
    #[schema(minimum = 1)]
    pub call: Option<i32>,
}

/// Assembles the stored calls of a session again, and compares them with what was sent.
///
/// Pages have up to 20 turns, with all of their calls.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifyContexts {
    pub id: Uuid,
    /// The number of a turn: the page begins after it.
    pub cursor: Option<i32>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// The result of comparing a stored context with the one that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextState {
    /// The request is what was sent, byte for byte.
    Exact,
    /// Every text is what the call had. No request was sent: the model is simulated, or the call failed before.
    NoRequest,
    /// A text is not stored, in most cases because it was erased.
    Erased,
    /// The context cannot be assembled as it was sent.
    Differs,
    /// It was stored by a version that this one cannot read.
    UnknownVersion,
}

/// The context of a call, as it was sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SentContext {
    pub session_id: Uuid,
    pub turn: i32,
    /// Number of the call in its turn, from 1.
    pub call: i32,
    /// Number of calls of the turn with a stored context.
    pub calls: i32,
    pub provider: String,
    pub model: String,
    pub created_at: DateTime<Utc>,
    pub estimated_tokens: i64,
    /// The provider's own count of the prompt. Null if it reports none.
    pub counted_tokens: Option<i64>,
    pub state: ContextState,
    /// The reason why the context cannot be shown exactly.
    pub problem: Option<String>,
    /// The request. Null if none was sent, or it cannot be assembled.
    pub request: Option<ProviderRequest>,
    pub system: Option<String>,
    pub messages: Vec<Message>,
    pub tools: Vec<ToolSpec>,
    /// Each part with its source, and the reason why it was sent or left out.
    pub parts: Vec<Part>,
}

/// The result of assembling a stored call again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct VerifiedCall {
    pub turn: i32,
    pub call: i32,
    pub state: ContextState,
    /// The reason why the context cannot be shown exactly.
    pub problem: Option<String>,
}

impl Operation for ShowContext {
    const SPEC: Spec = Spec::read("show_context", "/v1/sessions/{id}/context", "context show")
        .tag(TAG)
        .refuses(&[
            sessions::Error::UNKNOWN,
            turns::Error::UNKNOWN,
            Error::NOT_STORED,
            Error::UNKNOWN_CALL,
        ]);
    type Output = SentContext;

    async fn run(self, call: &Call) -> Result<SentContext, Refusal> {
        let mut transaction = call.begin_read().await?;
        let number = self.call.unwrap_or(1);
        let stored = contexts::find(&mut transaction, self.id, self.turn, number).await?;
        Ok(SentContext::of(stored)?)
    }
}

impl Operation for VerifyContexts {
    const SPEC: Spec =
        Spec::read("verify_contexts", "/v1/sessions/{id}/context-checks", "context verify")
            .tag(TAG)
            .refuses(&[sessions::Error::UNKNOWN]);
    type Output = Listing<VerifiedCall>;

    async fn run(self, call: &Call) -> Result<Listing<VerifiedCall>, Refusal> {
        let limit = page_limit(self.limit)?.min(MAX_TURNS);
        let mut transaction = call.begin_read().await?;
        let mut verified = Vec::new();
        let mut visit = |stored: StoredContext| {
            verified.push(VerifiedCall::of(&stored)?);
            Ok(())
        };
        let after = self.cursor.unwrap_or(0);
        let next = contexts::visit(&mut transaction, self.id, after, limit, &mut visit).await?;
        Ok(Listing { items: verified, next: next.map(|turn| turn.to_string()) })
    }
}

impl VerifiedCall {
    pub fn of(stored: &StoredContext) -> Result<Self, Error> {
        let Comparison { state, problem, .. } = Comparison::of(stored)?;
        Ok(Self { turn: stored.turn, call: stored.call, state, problem })
    }
}

impl SentContext {
    pub fn of(stored: StoredContext) -> Result<Self, Error> {
        let Comparison { state, problem, request } = Comparison::of(&stored)?;
        let (system, messages, tools) = match stored.replayed {
            Ok(call) => (
                Some(call.system),
                call.messages.into_iter().map(Arc::unwrap_or_clone).collect(),
                call.tools.into_iter().map(Arc::unwrap_or_clone).collect(),
            ),
            Err(_) => (None, Vec::new(), Vec::new()),
        };
        Ok(Self {
            session_id: stored.session_id,
            turn: stored.turn,
            call: stored.call,
            calls: stored.calls,
            provider: stored.provider,
            model: stored.model,
            created_at: stored.created_at,
            estimated_tokens: stored.estimated_tokens,
            counted_tokens: stored.counted_tokens,
            state,
            problem,
            request,
            system,
            messages,
            tools,
            parts: stored.parts,
        })
    }
}

/// A request that was assembled again, and how it compares with the one that was sent.
struct Comparison {
    state: ContextState,
    problem: Option<String>,
    request: Option<ProviderRequest>,
}

impl Comparison {
    fn of(stored: &StoredContext) -> Result<Self, Error> {
        let replayed = match &stored.replayed {
            Ok(replayed) => replayed,
            Err(error) => return Ok(Self::failed(error)),
        };
        let Some(sent) = stored.manifest.request else {
            return Ok(Self { state: ContextState::NoRequest, problem: None, request: None });
        };
        let Some(envelope) = &stored.envelope else {
            let problem = Some("the envelope of the request is not stored".to_owned());
            return Ok(Self { state: ContextState::Erased, problem, request: None });
        };
        let unreadable =
            |source| Error::Envelope { session_id: stored.session_id, turn: stored.turn, source };
        let envelope: Envelope = serde_json::from_str(envelope).map_err(unreadable)?;
        let texts = CallTexts {
            system: &replayed.system,
            messages: &replayed.messages,
            tools: &replayed.tools,
            unheard: replayed.unheard.as_deref(),
        };
        let body = envelope.body(&texts).map_err(unreadable)?;
        let body = String::from_utf8_lossy(&body).into_owned();
        let sha256 = Digest::of(&body);
        let (state, problem) = match sha256 == sent.sha256 {
            true => (ContextState::Exact, None),
            false => {
                let why = format!("the request that was sent has the SHA-256 {}", sent.sha256);
                (ContextState::Differs, Some(why))
            }
        };
        let url = envelope.url().map(str::to_owned);
        let request = Some(ProviderRequest { url, sha256: sha256.to_string(), body });
        Ok(Self { state, problem, request })
    }

    fn failed(error: &replay::Error) -> Self {
        let state = match error {
            replay::Error::Removed { .. } => ContextState::Erased,
            replay::Error::Changed { .. } => ContextState::Differs,
            replay::Error::Rendering(_) => ContextState::UnknownVersion,
        };
        Self { state, problem: Some(error.to_string()), request: None }
    }
}
