//! Contexts of calls, as they were sent.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Call, Listing, Operation, Refusal, Spec, page_limit};
pub use crate::domain::contexts::ProviderRequest;
use crate::{
    context::{Digest, manifest::RequestHashes, prompt_manifest, replay, replay::ReplayedCall},
    domain::{
        contexts::{self, Error, StoredContext, StoredSideCall},
        manifests::Part,
        sessions, turns,
        usage::Purpose,
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
    /// The session. Another one of the same conversation is searched for the turn, too: the numbers continue from session to session.
    pub id: Uuid,
    /// Number of the turn. Without it, the newest turn with a stored context.
    pub turn: Option<i32>,
    /// Number of the call in its turn, from 1. Without it, the first.
    #[schema(minimum = 1)]
    pub call: Option<i32>,
}

/// Shows what a call for a summary or for facts was sent, by the number of its row in the ledger.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowLedgerContext {
    /// Number of the row in the ledger: each turn lists those that are charged to it.
    pub ledger_id: i64,
}

/// Assembles the stored calls of a session again, and compares them with what was sent.
///
/// Pages have up to 20 turns, with all of their calls, and the calls for summaries and facts that are charged to them.
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
    pub purpose: Purpose,
    /// The turn. Calls for summaries and facts are charged to the turn before them.
    pub turn: i32,
    /// Number of the call in its turn, from 1. Null for calls for summaries and facts.
    pub call: Option<i32>,
    /// Number of calls of the turn with a stored context. Null for calls for summaries and facts.
    pub calls: Option<i32>,
    /// Number of the row in the ledger of a call for a summary or for facts.
    pub ledger_id: Option<i64>,
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
    /// Each part with its source, and the reason why it was sent or left out. Calls for summaries and facts have no parts.
    pub parts: Vec<Part>,
}

/// The result of assembling a stored call again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct VerifiedCall {
    pub purpose: Purpose,
    /// The turn. Calls for summaries and facts are charged to the turn before them.
    pub turn: i32,
    /// Number of the call in its turn, from 1. Null for calls for summaries and facts.
    pub call: Option<i32>,
    /// Number of the row in the ledger of a call for a summary or for facts.
    pub ledger_id: Option<i64>,
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
        let id = match self.turn {
            Some(turn) => turns::find_session(&mut transaction, self.id, turn).await?,
            None => self.id,
        };
        let stored = contexts::find(&mut transaction, id, self.turn, number).await?;
        Ok(SentContext::of(stored)?)
    }
}

impl Operation for ShowLedgerContext {
    const SPEC: Spec =
        Spec::read("show_ledger_context", "/v1/ledger/{ledger_id}/context", "context show")
            .tag(TAG)
            .refuses(&[Error::UNKNOWN_CALL, Error::NOT_STORED]);
    type Output = SentContext;

    async fn run(self, call: &Call) -> Result<SentContext, Refusal> {
        let mut transaction = call.begin_read().await?;
        let stored = contexts::find_side_call(&mut transaction, self.ledger_id).await?;
        Ok(SentContext::of_side_call(stored)?)
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
        let mut visit = |stored: StoredSideCall| {
            verified.push(VerifiedCall::of_side_call(&stored)?);
            Ok(())
        };
        let turns = (after, next);
        contexts::visit_side_calls(&mut transaction, self.id, turns, &mut visit).await?;
        // Stable: the calls of a turn stay before those that are charged to it.
        verified.sort_by_key(|call| call.turn);
        Ok(Listing { items: verified, next: next.map(|turn| turn.to_string()) })
    }
}

impl VerifiedCall {
    pub fn of(stored: &StoredContext) -> Result<Self, Error> {
        let Comparison { state, problem, .. } = Comparison::of(stored)?;
        let (turn, call) = (stored.turn, Some(stored.call));
        Ok(Self { purpose: Purpose::Turn, turn, call, ledger_id: None, state, problem })
    }

    pub fn of_side_call(stored: &StoredSideCall) -> Result<Self, Error> {
        let Comparison { state, problem, .. } = Comparison::of_side_call(stored)?;
        let (purpose, ledger_id) = (stored.call.purpose, Some(stored.call.ledger_id));
        Ok(Self { purpose, turn: stored.turn, call: None, ledger_id, state, problem })
    }
}

impl SentContext {
    pub fn of(stored: StoredContext) -> Result<Self, Error> {
        let compared = Comparison::of(&stored)?;
        let without_texts = Self {
            session_id: stored.session_id,
            purpose: Purpose::Turn,
            turn: stored.turn,
            call: Some(stored.call),
            calls: Some(stored.calls),
            ledger_id: None,
            provider: stored.provider,
            model: stored.model,
            created_at: stored.created_at,
            estimated_tokens: stored.estimated_tokens,
            counted_tokens: stored.counted_tokens,
            state: compared.state,
            problem: compared.problem,
            request: compared.request,
            system: None,
            messages: Vec::new(),
            tools: Vec::new(),
            parts: stored.parts,
        };
        Ok(without_texts.with_texts(stored.replayed.ok()))
    }

    pub fn of_side_call(stored: StoredSideCall) -> Result<Self, Error> {
        let compared = Comparison::of_side_call(&stored)?;
        let call = stored.call;
        let without_texts = Self {
            session_id: stored.session_id,
            purpose: call.purpose,
            turn: stored.turn,
            call: None,
            calls: None,
            ledger_id: Some(call.ledger_id),
            provider: call.provider,
            model: call.model,
            created_at: call.called_at,
            estimated_tokens: i64::try_from(stored.manifest.estimated_tokens).unwrap_or(i64::MAX),
            counted_tokens: call.counted_tokens,
            state: compared.state,
            problem: compared.problem,
            request: compared.request,
            system: None,
            messages: Vec::new(),
            tools: Vec::new(),
            parts: Vec::new(),
        };
        Ok(without_texts.with_texts(stored.replayed.ok()))
    }

    fn with_texts(self, replayed: Option<ReplayedCall>) -> Self {
        let Some(call) = replayed else { return self };
        Self {
            system: Some(call.system),
            messages: call.messages.into_iter().map(Arc::unwrap_or_clone).collect(),
            tools: call.tools.into_iter().map(Arc::unwrap_or_clone).collect(),
            ..self
        }
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
        match &stored.replayed {
            Ok(replayed) => {
                let envelope = stored.envelope.as_deref();
                Self::of_replayed(replayed, stored.manifest.request, envelope)
                    .map_err(unreadable(stored.session_id, stored.turn))
            }
            Err(error) => Ok(Self::failed(state_of(error), error.to_string())),
        }
    }

    fn of_side_call(stored: &StoredSideCall) -> Result<Self, Error> {
        match &stored.replayed {
            Ok(replayed) => {
                let envelope = stored.envelope.as_deref();
                Self::of_replayed(replayed, stored.manifest.request, envelope)
                    .map_err(unreadable(stored.session_id, stored.turn))
            }
            Err(error) => Ok(Self::failed(state_of_prompt(error), error.to_string())),
        }
    }

    fn of_replayed(
        replayed: &ReplayedCall,
        sent: Option<RequestHashes>,
        envelope: Option<&str>,
    ) -> serde_json::Result<Self> {
        let Some(sent) = sent else {
            return Ok(Self { state: ContextState::NoRequest, problem: None, request: None });
        };
        let Some(envelope) = envelope else {
            let problem = "the envelope of the request is not stored".to_owned();
            return Ok(Self::failed(ContextState::Erased, problem));
        };
        let envelope: Envelope = serde_json::from_str(envelope)?;
        let texts = CallTexts {
            system: &replayed.system,
            messages: &replayed.messages,
            tools: &replayed.tools,
            unheard: replayed.unheard.as_deref(),
        };
        let body = String::from_utf8_lossy(&envelope.body(&texts)?).into_owned();
        let sha256 = Digest::of(&body);
        let (state, problem) = match sha256 == sent.sha256 {
            true => (ContextState::Exact, None),
            false => {
                let why = format!("the request that was sent has the SHA-256 {}", sent.sha256);
                (ContextState::Differs, Some(why))
            }
        };
        let url = envelope.url().map(str::to_owned);
        let key_header = envelope.key_header().map(str::to_owned);
        let headers = envelope.headers().iter().map(|header| (*header).to_owned()).collect();
        let sha256 = sha256.to_string();
        let request = Some(ProviderRequest { url, key_header, headers, sha256, body });
        Ok(Self { state, problem, request })
    }

    fn failed(state: ContextState, problem: String) -> Self {
        Self { state, problem: Some(problem), request: None }
    }
}

fn unreadable(session_id: Uuid, turn: i32) -> impl Fn(serde_json::Error) -> Error {
    move |source| Error::Envelope { session_id, turn, source }
}

fn state_of(error: &replay::Error) -> ContextState {
    match error {
        replay::Error::Removed { .. } => ContextState::Erased,
        replay::Error::Changed { .. } => ContextState::Differs,
        replay::Error::Rendering(_) => ContextState::UnknownVersion,
    }
}

fn state_of_prompt(error: &prompt_manifest::Error) -> ContextState {
    match error {
        prompt_manifest::Error::Removed { .. } => ContextState::Erased,
        prompt_manifest::Error::Changed => ContextState::Differs,
        prompt_manifest::Error::Rendering(_) => ContextState::UnknownVersion,
    }
}
