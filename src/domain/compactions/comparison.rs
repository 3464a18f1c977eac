//! Comparison of a session before and after one compaction: where each replaced message and each exact value is now.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Compaction, Error, Outcome, RejectedAttempt, get, read};
use crate::{
    context::{
        self,
        compaction::{
            folding::RefusedAttempt,
            pins::{self, Haystack, PINS_MAX, Pin, PinKind},
            prompts::Prompts,
        },
        entry::Entry,
        posts::Posts,
    },
    domain::{
        messages::{Span, StoredMessage},
        sessions,
    },
    transcript::{Message, Role},
};

/// Length of the beginnings of messages.
const BEGINNING_MAX_CHARS: usize = 200;

/// A compaction, with the places of all that it replaced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CompactionComparison {
    pub session_id: Uuid,
    pub compaction: Compaction,
    /// True if the session uses it now.
    pub is_current: bool,
    /// The summary that was replaced together with the messages.
    pub earlier_summary: Option<String>,
    /// Prompts that the earlier compaction had kept, and the replaced messages, in order. Empty without an accepted summary.
    pub messages: Vec<ReplacedMessage>,
    /// Exact values of what was replaced, such as names and amounts, the most important first. Empty without an accepted summary.
    pub values: Vec<ExactValue>,
    /// Number of values that are not in the list.
    pub more_values: usize,
    /// Summaries that were rejected before.
    pub attempts: Vec<RejectedAttempt>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ReplacedMessage {
    pub seq: i64,
    #[schema(value_type = String)]
    pub role: Role,
    /// The first 200 characters.
    pub beginning: String,
    pub place: MessagePlace,
    /// Number of its exact values, such as names and amounts.
    #[serde(default)]
    pub values: usize,
    /// Number of those that the new context has word for word, in the summary or in kept texts.
    #[serde(default)]
    pub values_shown: usize,
}

/// The place of a replaced message in the new context. All of them are in the archive, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessagePlace {
    /// Kept word for word.
    Kept,
    /// Its beginning and its end are kept word for word.
    Shortened,
    /// Sentences of it are kept word for word, and the summary covers the rest.
    Sentences,
    /// The summary covers it. It may repeat nothing of it: `values_shown` counts what can be shown.
    Summary,
    /// Only in the archive.
    Archive,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExactValue {
    #[schema(value_type = String)]
    pub kind: PinKind,
    pub text: String,
    /// True if the summary had to contain it.
    pub is_pinned: bool,
    pub place: ValuePlace,
}

/// The place of an exact value in the new context, word for word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ValuePlace {
    Summary,
    /// In a kept text of a person, or in the state of the work.
    KeptText,
    /// Only in the archive.
    Archive,
}

/// The messages and texts that a compaction has replaced.
#[derive(Debug)]
pub struct ReplacedTexts {
    session_id: Uuid,
    row: Compaction,
    attempts: Vec<RejectedAttempt>,
    is_current: bool,
    /// `None` if no summary was accepted.
    replacement: Option<Replacement>,
}

#[derive(Debug)]
struct Replacement {
    compaction: context::compaction::Compaction,
    earlier: Option<context::compaction::Compaction>,
    messages: Vec<StoredMessage>,
}

/// Reads the messages and texts that a compaction has replaced.
pub async fn replaced_texts(
    conn: &mut PgConnection,
    session_id: Uuid,
    generation: i32,
) -> Result<ReplacedTexts, Error> {
    let session = sessions::get(&mut *conn, session_id).await?;
    let unknown = Error::Unknown { session_id, generation };
    let row = get(&mut *conn, session_id, generation).await?.ok_or(unknown)?;
    let replacement = match row.summary {
        Some(_) => Some(read_replacement(conn, session_id, &row).await?),
        None => None,
    };
    let attempts = serde_json::from_value::<Vec<RefusedAttempt>>(row.refusals.clone());
    let invalid = |source| Error::Invalid { session_id, generation, what: "attempts", source };
    let attempts = attempts.map_err(invalid)?.iter().map(RejectedAttempt::of).collect();
    let is_current = session.generation == generation;
    Ok(ReplacedTexts { session_id, row, attempts, is_current, replacement })
}

async fn read_replacement(
    conn: &mut PgConnection,
    session_id: Uuid,
    row: &Compaction,
) -> Result<Replacement, Error> {
    let compaction = read(&mut *conn, session_id, row.generation).await?;
    let earlier = match row.parent {
        0 => None,
        parent => Some(read(&mut *conn, session_id, parent).await?),
    };
    let span = Span { after_seq: row.from_seq - 1, limit: row.to_seq - row.from_seq + 1 };
    let mut messages = sessions::transcript(conn, session_id, span).await?;
    // A compaction that only shortens a summary names its last message again. Rejected messages were not sent.
    let done_to_seq = earlier.as_ref().map_or(0, |earlier| earlier.to_seq);
    let is_replaced = done_to_seq + 1..=row.to_seq;
    messages.retain(|stored| is_replaced.contains(&stored.seq) && !stored.rejected);
    Ok(Replacement { compaction, earlier, messages })
}

impl ReplacedTexts {
    /// Lists the tasks of the replaced prompts.
    pub fn prompt_tasks(&self) -> Vec<Uuid> {
        let messages = self.replacement.iter().flat_map(|replacement| &replacement.messages);
        let prompts = messages.filter(|stored| stored.message.role == Role::User);
        prompts.map(|stored| stored.id).collect()
    }

    /// Finds the place of each message and value. Prompts of `agent_tasks` were not written by people.
    pub fn compare(self, agent_tasks: &HashSet<Uuid>) -> CompactionComparison {
        let Self { session_id, row, attempts, is_current, replacement } = self;
        let earlier_summary = replacement
            .as_ref()
            .and_then(|replacement| Some(replacement.earlier.as_ref()?.summary.clone()));
        let (messages, mut values) = match replacement {
            Some(replacement) => {
                let messages = replacement.places();
                (messages, replacement.into_values(agent_tasks))
            }
            None => (Vec::new(), Vec::new()),
        };
        let more_values = values.len().saturating_sub(PINS_MAX);
        values.truncate(PINS_MAX);
        CompactionComparison {
            session_id,
            compaction: row,
            is_current,
            earlier_summary,
            messages,
            values,
            more_values,
            attempts,
        }
    }
}

impl Replacement {
    fn places(&self) -> Vec<ReplacedMessage> {
        let kept_texts = KeptTexts::of(&self.compaction);
        let shown = ShownValues::of(&self.compaction);
        let earlier = self.earlier.iter().filter_map(|earlier| earlier.shown_prompts());
        let message = |seq, role, text: &str| {
            let (values, values_shown) = shown.count(&[text.to_owned()]);
            let place = kept_texts.place(seq).unwrap_or(MessagePlace::Summary);
            ReplacedMessage { seq, role, beginning: beginning(text), place, values, values_shown }
        };
        let earlier = earlier.flat_map(|prompts| &prompts.kept);
        let earlier = earlier.map(|prompt| message(prompt.seq, Role::User, &prompt.text));
        let replaced = self.messages.iter().map(|stored| {
            let Message { role, text, .. } = &stored.message;
            let (values, values_shown) = shown.count(&texts_of(&stored.message));
            ReplacedMessage { values, values_shown, ..message(stored.seq, *role, text) }
        });
        earlier.chain(replaced).collect()
    }

    fn into_values(self, agent_tasks: &HashSet<Uuid>) -> Vec<ExactValue> {
        let Self { compaction, earlier, messages } = self;
        let posts = messages.iter().filter(|stored| stored.message.role == Role::Posts);
        let posts: Vec<String> = posts.flat_map(|stored| texts_of(&stored.message)).collect();
        let mut entries: Vec<Entry> = messages.into_iter().map(StoredMessage::into_entry).collect();
        let by_agents = entries.iter_mut().filter(|entry| agent_tasks.contains(&entry.id));
        by_agents.for_each(Entry::mark_as_by_agent);
        let carried = earlier.as_ref().map_or(&[][..], |earlier| &earlier.pins);
        let mut candidates = pins::collect(carried, &entries);
        posts.iter().for_each(|text| candidates.read_agent(text));
        let earlier_prompts = earlier.as_ref().and_then(|earlier| earlier.shown_prompts());
        for prompt in earlier_prompts.into_iter().flat_map(|prompts| &prompts.kept) {
            candidates.read_person(&prompt.text);
        }
        let pinned: HashSet<&str> = compaction.pins.iter().map(|pin| pin.text.as_str()).collect();
        let shown = ShownValues::of(&compaction);
        let value = |pin: Pin| ExactValue {
            kind: pin.kind,
            is_pinned: pinned.contains(pin.text.as_str()),
            place: shown.place(&pin),
            text: pin.text,
        };
        candidates.by_importance().into_iter().map(value).collect()
    }
}

/// The texts of the new context in which exact values are looked up.
struct ShownValues {
    summary: Haystack,
    kept: Haystack,
}

impl ShownValues {
    fn of(compaction: &context::compaction::Compaction) -> Self {
        let (summary, kept) = (&compaction.summary, kept_text(compaction));
        Self { summary: Haystack::of(summary), kept: Haystack::of(&kept) }
    }

    fn place(&self, pin: &Pin) -> ValuePlace {
        match (self.summary.contains_pin(pin), self.kept.contains_pin(pin)) {
            (true, _) => ValuePlace::Summary,
            (false, true) => ValuePlace::KeptText,
            (false, false) => ValuePlace::Archive,
        }
    }

    /// Counts the exact values of texts, and those of them that the new context has.
    fn count(&self, texts: &[String]) -> (usize, usize) {
        let mut candidates = pins::Candidates::default();
        texts.iter().for_each(|text| candidates.read_agent(text));
        let values = candidates.by_importance();
        let shown = values.iter().filter(|pin| self.place(pin) != ValuePlace::Archive);
        (values.len(), shown.count())
    }
}

/// Returns the text of a message, or the texts of the posts that it holds.
fn texts_of(message: &Message) -> Vec<String> {
    match Posts::of_entry(&message.text).filter(|_| message.role == Role::Posts) {
        Some(posts) => posts.posts.into_iter().map(|post| post.text.into_owned()).collect(),
        None => vec![message.text.clone()],
    }
}

/// The places of messages of which a compaction keeps a text, or which its summary leaves out.
struct KeptTexts {
    by_seq: HashMap<i64, MessagePlace>,
    /// The first message that the summary covers.
    summarised_from_seq: i64,
    is_reference: bool,
}

impl KeptTexts {
    fn of(compaction: &context::compaction::Compaction) -> Self {
        let mut by_seq = HashMap::new();
        if let Some(Prompts { kept, sentences, .. }) = compaction.shown_prompts() {
            by_seq.extend(sentences.iter().map(|it| (it.seq, MessagePlace::Sentences)));
            by_seq.extend(kept.iter().map(|it| match it.is_shortened {
                true => (it.seq, MessagePlace::Shortened),
                false => (it.seq, MessagePlace::Kept),
            }));
        }
        let summarised_from_seq = compaction.flow.as_ref().map_or(0, |flow| flow.first_seq);
        Self { by_seq, summarised_from_seq, is_reference: compaction.is_reference() }
    }

    /// Returns the place of a message, or `None` if the summary covers it.
    fn place(&self, seq: i64) -> Option<MessagePlace> {
        let left_out = self.is_reference || seq < self.summarised_from_seq;
        let kept = self.by_seq.get(&seq).copied();
        kept.or_else(|| left_out.then_some(MessagePlace::Archive))
    }
}

/// Joins the texts that stand in front of the summary.
fn kept_text(compaction: &context::compaction::Compaction) -> String {
    let mut texts = Vec::new();
    if let Some(flow) = &compaction.flow {
        texts.extend(flow.entry.as_deref());
        texts.extend(flow.unresolved.as_ref().map(|open| open.text.as_str()));
        texts.extend(flow.handoffs.iter().map(|handoff| handoff.node.as_str()));
    }
    if let Some(prompts) = compaction.shown_prompts() {
        texts.extend(prompts.kept.iter().map(|prompt| prompt.text.as_str()));
        texts.extend(prompts.sentences.iter().map(|sentence| sentence.text.as_str()));
    }
    texts.join("\n")
}

fn beginning(text: &str) -> String {
    text.trim_start().chars().take(BEGINNING_MAX_CHARS).collect()
}

impl CompactionComparison {
    /// Returns true if the session shows the replacement, or has shown it.
    pub fn was_applied(&self) -> bool {
        self.compaction.outcome == Outcome::Applied
    }

    /// Returns true if no model made the summary: it is an extract of headings, pins and sentences.
    pub fn is_extract(&self) -> bool {
        self.compaction.rung.as_deref() == Some("extract")
    }
}
