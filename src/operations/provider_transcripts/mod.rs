//! Transcripts that providers keep themselves, compared with the stored messages.

mod compare;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use self::compare::{TurnMessages, find_difference};
use super::{Call, Operation, Refusal, Spec};
use crate::{
    domain::{
        contexts::{self, Error, StoredContext},
        messages,
        sessions::{self, SessionRow},
        transcripts, turns, usage,
    },
    providers::{CallTexts, Envelope, TranscriptChain, TranscriptEntry},
    transcript::Role,
};

const TAG: &str = "sessions";
/// Turns whose contexts are read at once.
const PAGE_TURNS: i64 = 20;

/// Shows the provider's own transcript up to the answer of a turn, and compares it with the stored messages.
///
/// Only for providers that keep the conversation themselves, such as Claude.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowProviderTranscript {
    pub id: Uuid,
    /// Number of the turn. Without it, the newest turn with an answer.
    pub turn: Option<i32>,
}

/// The part of a provider's own transcript that leads to the answer of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ProviderTranscript {
    pub session_id: Uuid,
    pub turn: i32,
    pub provider: String,
    pub model: String,
    /// Name of the provider's file.
    pub file: String,
    pub state: ProviderTranscriptState,
    /// The first difference, or the reason why there is no comparison.
    pub problem: Option<String>,
    /// Entries in order, ending with the answer.
    pub entries: Vec<TranscriptEntry>,
}

/// The result of comparing a provider's transcript with the stored messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProviderTranscriptState {
    /// It has the stored messages, word for word, and no others.
    Equal,
    /// It lacks a stored message, has another one, or a line is missing.
    Differs,
    /// The context of a turn is not stored as it was sent, in most cases because a text was erased.
    NotCompared,
}

impl Operation for ShowProviderTranscript {
    const SPEC: Spec = Spec::read(
        "show_provider_transcript",
        "/v1/sessions/{id}/provider-transcript",
        "context show",
    )
    .tag(TAG)
    .refuses(&[sessions::Error::UNKNOWN, turns::Error::UNKNOWN, Error::NOT_STORED]);
    type Output = ProviderTranscript;

    async fn run(self, call: &Call) -> Result<ProviderTranscript, Refusal> {
        let mut transaction = call.begin_read().await?;
        let conn = &mut *transaction;
        let session = sessions::read_live(&mut *conn, self.id).await?;
        let turn = find_answered_turn(conn, &session, self.turn).await?;
        let mut contexts = read_contexts(conn, session.id, turn).await?;
        let (file, chain) = read_chain(conn, &session, turn, contexts.get(&turn)).await?;
        add_answers(conn, session.id, turn, &mut contexts).await?;
        let (state, problem) = compare(&chain, contexts.values());
        Ok(ProviderTranscript {
            session_id: session.id,
            turn,
            provider: session.provider,
            model: session.model,
            file,
            state,
            problem,
            entries: chain.entries,
        })
    }
}

/// The context of the last call of a turn that is done, and the messages that it has added to the conversation.
struct DoneTurn {
    envelope: Option<Envelope>,
    messages: TurnMessages,
    /// The reason why its messages are not known.
    problem: Option<String>,
}

async fn find_answered_turn(
    conn: &mut PgConnection,
    session: &SessionRow,
    turn: Option<i32>,
) -> Result<i32, Refusal> {
    if let Some(done) = turns::last_done(&mut *conn, session.id, turn).await? {
        return Ok(done.number);
    }
    let Some(number) = turn else { return Err(Error::NoAnswers(session.id).into()) };
    let session_id = session.id;
    let known = turns::find(conn, session_id, number).await?;
    known.ok_or(turns::Error::Unknown { session_id, number })?;
    Err(Error::NoAnswer { session_id, turn: number }.into())
}

/// Reads the contexts of turns that are done, up to a turn. Other turns leave no lines in the provider's transcript.
async fn read_contexts(
    conn: &mut PgConnection,
    session_id: Uuid,
    to_turn: i32,
) -> Result<BTreeMap<i32, DoneTurn>, Refusal> {
    let mut read = BTreeMap::new();
    let mut after = Some(0);
    while let Some(turn) = after.filter(|turn| *turn < to_turn) {
        let mut visit = |stored: StoredContext| {
            if stored.turn <= to_turn {
                read.insert(stored.turn, DoneTurn::of(&stored)?);
            }
            Ok(())
        };
        after = contexts::visit(&mut *conn, session_id, turn, PAGE_TURNS, &mut visit).await?;
    }
    for turn in turns::of_session(conn, session_id, Some(to_turn), i64::MAX).await? {
        if turn.state != turns::State::Done {
            read.remove(&turn.number);
        }
    }
    Ok(read)
}

/// Reads the provider's file, and the lines in it that lead to the answer of the turn.
async fn read_chain(
    conn: &mut PgConnection,
    session: &SessionRow,
    turn: i32,
    context: Option<&DoneTurn>,
) -> Result<(String, TranscriptChain), Refusal> {
    let (session_id, provider) = (session.id, &session.provider);
    let none = || Error::NoTranscript { session_id, provider: provider.clone() };
    let context = context.ok_or(Error::NotStored { session_id, turn })?;
    let envelope = context.envelope.as_ref().ok_or_else(none)?;
    let external_id = session.external_session_id.as_deref().and_then(|id| id.parse().ok());
    let file = external_id.and_then(|id| envelope.transcript_file(id)).ok_or_else(none)?;
    let calls = usage::of_turn(&mut *conn, session.campaign_id, session_id, turn).await?;
    let of_turn = calls.iter().filter(|call| call.purpose == usage::Purpose::Turn);
    let answer_id = of_turn.filter_map(|call| call.provider_message_id.as_deref()).next_back();
    let bytes = transcripts::bytes(conn, session_id, &file).await?;
    let chain = answer_id.and_then(|id| envelope.read_transcript(&bytes, id));
    Ok((file, chain.ok_or(Error::NotInTranscript { session_id, turn })?))
}

/// Adds the stored answers and results of tools to the messages of each turn.
async fn add_answers(
    conn: &mut PgConnection,
    session_id: Uuid,
    to_turn: i32,
    contexts: &mut BTreeMap<i32, DoneTurn>,
) -> Result<(), Refusal> {
    for stored in messages::list_up_to_turn(conn, session_id, 0, to_turn).await? {
        let is_answer = matches!(stored.message.role, Role::Assistant | Role::Tool);
        if let Some(context) = contexts.get_mut(&stored.turn).filter(|_| is_answer) {
            context.messages.messages.push(stored.message);
        }
    }
    Ok(())
}

impl DoneTurn {
    fn of(stored: &StoredContext) -> Result<Self, Error> {
        let (session_id, turn) = (stored.session_id, stored.turn);
        let envelope = stored.envelope.as_deref().map(serde_json::from_str::<Envelope>);
        let envelope =
            envelope.transpose().map_err(|source| Error::Envelope { session_id, turn, source })?;
        let texts = stored.replayed.as_ref().map(|replayed| CallTexts {
            system: &replayed.system,
            messages: &replayed.messages,
            tools: &replayed.tools,
            unheard: replayed.unheard.as_deref(),
        });
        let growth = match (&envelope, &texts) {
            (Some(envelope), Ok(texts)) => Some(envelope.transcript_growth(texts)),
            _ => None,
        };
        let problem = match (&texts, &growth) {
            (Err(error), _) => Some(format!("turn {turn}: {error}")),
            (Ok(_), None) => {
                Some(format!("turn {turn}: the envelope of its request is not stored"))
            }
            (Ok(_), Some(_)) => None,
        };
        let growth = growth.unwrap_or_default();
        let messages = TurnMessages { turn, is_new: growth.is_new, messages: growth.messages };
        Ok(Self { envelope, messages, problem })
    }
}

fn compare<'a>(
    chain: &TranscriptChain,
    contexts: impl DoubleEndedIterator<Item = &'a DoneTurn>,
) -> (ProviderTranscriptState, Option<String>) {
    if let Some(line) = chain.missing_line {
        let problem = format!("line {line} is missing, which the first entry follows");
        return (ProviderTranscriptState::Differs, Some(problem));
    }
    // The transcript begins with the last turn that wrote it from the messages.
    let mut turns = Vec::new();
    for context in contexts.rev() {
        if let Some(problem) = &context.problem {
            return (ProviderTranscriptState::NotCompared, Some(problem.clone()));
        }
        turns.push(&context.messages);
        if context.messages.is_new {
            break;
        }
    }
    turns.reverse();
    match find_difference(&chain.entries, &turns) {
        Some(problem) => (ProviderTranscriptState::Differs, Some(problem)),
        None => (ProviderTranscriptState::Equal, None),
    }
}
