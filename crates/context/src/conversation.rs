//! Renders the messages after the system part, in the only shape that every chat template accepts. User and assistant
//! alternate, tool results directly follow their calls, and the task is last.

use std::sync::Arc;

use uuid::Uuid;

use crate::{
    attachments::{self, Treatments},
    compaction::{
        generations::{Compaction, View},
        groups::{self, GroupEntry, RepairedMessages},
    },
    entry::Entry,
    manifest::{Kind, Ledger, PartReason, Span, id_of},
    parts::{Board, Parts, Status},
    posts::Posts,
    results::Results,
    transcript::{Attachment, Message, Role},
    weight::Weight,
    xml::{self, Element, Fence, FenceSeed, Scope},
};

/// Frames the summary, because a model that takes it for a request repeats the oldest task.
const SUMMARY_PREFACE: &str = "\
Earlier conversation, summarised. It is for reference only: nothing in it is to be done again.";
/// Introduces the records of the service, which take precedence over the summary.
const FLOW_PREFACE: &str = "\
Where you stood in the work when earlier messages were archived, as the service recorded it. What stands in <entry> holds \
until a later notice names another node; the rest is for reference.";
/// The name of the element around an interrupted answer.
const INTERRUPTED_ANSWER: &str = "interrupted_answer";
/// Tells every model what to do with a schema, also those whose provider enforces it: a call with tools is not constrained.
const SCHEMA_RULE: &str =
    "JSON only, valid against this JSON Schema; no other text and no Markdown fence";
const SUMMARY_END: &str = "End of the summary. The conversation goes on below.";

pub(super) struct RenderedConversation {
    pub(super) messages: Vec<Arc<Message>>,
    pub(super) unheard: Option<String>,
    /// Weight of the files of the task.
    pub(super) task_files: Weight,
    /// Weight of all files.
    pub(super) all_files: Weight,
}

/// Marks and files of the entries that are rendered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rendering<'a> {
    pub(super) seed: &'a FenceSeed,
    pub(super) treatments: &'a Treatments,
}

pub(super) fn render(
    parts: &Parts<'_>,
    seed: &FenceSeed,
    ledger: &mut Ledger<'_>,
) -> RenderedConversation {
    let mut messages = Vec::with_capacity(parts.view.tail.len() + 2);
    if let Some(compaction) = parts.view.compaction {
        push_user(&mut messages, Arc::new(user(summary(compaction, seed, ledger))));
    }
    let results = parts.results.map(|told| told.entry_id);
    let own: Vec<_> = results.into_iter().chain([parts.task.entry_id]).collect();
    let repaired = groups::repair(parts.view.tail, &own);
    let of_task = (parts.task.entry_id, parts.attachments.of_task);
    let placed = || repaired.placed.iter().filter_map(GroupEntry::entry);
    let treatments = Treatments::decide(parts.attachments.rules, of_task, placed());
    let rendering = Rendering { seed, treatments: &treatments };
    for placed in &repaired.placed {
        push_placed(&mut messages, placed, rendering);
    }
    record_entries(&parts.view, &repaired, ledger);
    let files = placed().map(|entry| {
        let files = (entry.id, entry.attachments());
        attachments::record(files, PartReason::RecentHistory, &treatments, ledger)
    });
    let files_before: Weight = files.sum();
    let mut turn = user(render_turn(parts, seed, ledger));
    let task_files = attachments::record(of_task, PartReason::ThisTurn, &treatments, ledger);
    attachments::append_to(&mut turn, of_task, rendering);
    let unheard =
        parts.heard_to_seq.map(|heard| render_unsent(&repaired, heard, &turn.text, rendering));
    push_user(&mut messages, Arc::new(turn));
    RenderedConversation { messages, unheard, task_files, all_files: files_before + task_files }
}

/// Renders the messages since the last one that the provider received. All of them are sent as the user's.
pub(super) fn render_unsent(
    repaired: &RepairedMessages<'_>,
    heard_to_seq: i64,
    turn: &str,
    rendering: Rendering<'_>,
) -> String {
    let seed = rendering.seed;
    let mut blocks = Vec::new();
    for placed in &repaired.placed {
        let GroupEntry::Entry(entry) = placed else { continue };
        let name = match entry.message.role {
            _ if entry.seq <= heard_to_seq || entry.message.text.is_empty() => continue,
            Role::User => "task",
            Role::Tool => "tool_output",
            Role::Assistant => INTERRUPTED_ANSWER,
            Role::Notice | Role::System => "notice",
            Role::Posts => {
                blocks.push(posts_of(entry, seed));
                continue;
            }
        };
        let text = render_entry(name, entry.id, &entry.message, seed);
        blocks.push(with_files(text, (entry.id, entry.attachments()), rendering).text);
    }
    blocks.push(turn.to_owned());
    blocks.join("\n\n")
}

fn summary(compaction: &Compaction, seed: &FenceSeed, ledger: &mut Ledger<'_>) -> String {
    let generation = compaction.generation;
    let text = render_compaction(compaction, &seed.fence(Scope::Summary { generation }));
    ledger.sent(
        Kind::Summary,
        Some(format!("generation {generation}")),
        PartReason::StandsIn,
        &text,
    );
    ledger.folded(compaction.to_seq, generation);
    text
}

/// Renders the text that replaces the messages folded by a compaction.
pub(super) fn render_compaction(compaction: &Compaction, fence: &Fence) -> String {
    let element = Element::with_text("summary", &compaction.summary).render(fence);
    let flow = compaction.flow.as_ref();
    let flow = flow.map(|flow| format!("{FLOW_PREFACE}\n{}", flow.render(fence)));
    let summary = format!("{SUMMARY_PREFACE}\n{element}\n{SUMMARY_END}");
    let parts =
        [flow, compaction.shown_prompts().and_then(|prompts| prompts.render(fence)), Some(summary)];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

pub(super) fn push_placed(
    messages: &mut Vec<Arc<Message>>,
    placed: &GroupEntry<'_>,
    rendering: Rendering<'_>,
) {
    let seed = rendering.seed;
    let entry = match placed {
        GroupEntry::Entry(entry) => entry,
        GroupEntry::Synthetic(call) => {
            messages.push(Arc::new(groups::interrupted_result(call)));
            return;
        }
    };
    let fenced = |name| render_entry(name, entry.id, &entry.message, seed);
    match entry.message.role {
        Role::User if !entry.attachments().is_empty() => {
            // Not cached: the way in which files are sent may change from call to call.
            let files = (entry.id, entry.attachments());
            push_user(messages, Arc::new(with_files(fenced("task"), files, rendering)));
        }
        Role::User => push_user(messages, entry.render_once(seed, || user(fenced("task")))),
        Role::Notice => push_user(messages, entry.render_once(seed, || user(fenced("notice")))),
        Role::Posts => push_user(messages, entry.render_once(seed, || user(posts_of(entry, seed)))),
        Role::Tool => messages.push(entry.render_once(seed, || Message {
            text: fenced("tool_output"),
            ..Message::clone(&entry.message)
        })),
        // Not sent as an answer: a model would take it for a complete one, or continue in the middle of it.
        Role::Assistant if entry.partial && entry.message.tool_calls.is_empty() => {
            let fenced = || user(fenced(INTERRUPTED_ANSWER));
            push_user(messages, entry.render_once(seed, fenced));
        }
        // The repair has removed system entries.
        Role::Assistant | Role::System => push_answer(messages, &entry.message),
    }
}

/// Renders one entry as an element. Results are stored as a notice and have an element of their own.
pub(super) fn render_entry(
    name: &'static str,
    id: Uuid,
    message: &Message,
    seed: &FenceSeed,
) -> String {
    let fence = seed.fence(Scope::Entry(id));
    match Results::of(message) {
        Some(results) => results.element().render(&fence),
        None => {
            from(Element::with_text(name, &message.text), message.asking_agent()).render(&fence)
        }
    }
}

/// Names the agent that asked; otherwise the model would take the request for one of the people it works for.
fn from<'a>(element: Element<'a>, asked_by: Option<&'a str>) -> Element<'a> {
    match asked_by {
        Some(agent) => element.attribute("from", agent),
        None => element,
    }
}

fn record_entries(view: &View<'_>, repaired: &RepairedMessages<'_>, ledger: &mut Ledger<'_>) {
    let sent = repaired.placed.iter().filter_map(GroupEntry::entry);
    ledger.entries(sent, true, PartReason::RecentHistory);
    let synthetic = repaired.placed.len() + repaired.left_out.len() - view.tail.len();
    if synthetic > 0 {
        let text = groups::INTERRUPTED_RESULT.repeat(synthetic);
        ledger.sent(
            Kind::SyntheticResults,
            Some(format!("{synthetic} results")),
            PartReason::CompletesInterruptedCall,
            &text,
        );
    }
    for why in [
        PartReason::OrphanedResult,
        PartReason::SystemInHistory,
        PartReason::Empty,
        PartReason::IsTheTask,
    ] {
        let left_out = repaired
            .left_out
            .iter()
            .filter(move |(_, reason)| *reason == why)
            .map(|(entry, _)| *entry);
        ledger.entries(left_out, false, why);
    }
}

fn render_turn(parts: &Parts<'_>, seed: &FenceSeed, ledger: &mut Ledger<'_>) -> String {
    let fence = seed.fence(Scope::Turn(parts.task.entry_id));
    let mut blocks = Vec::new();
    if let Some(notice) = parts.notice {
        let element = Element::with_text("notice", notice);
        let line = (Kind::Notice, None, PartReason::SessionRestored);
        blocks.push(render_stored(&element, &fence, line, ledger));
    }
    if let Some(board) = parts.board {
        blocks.extend(posts(board, seed, ledger));
    }
    if !parts.statuses.is_empty() {
        let line = (Kind::Statuses, None, PartReason::ThisTurn);
        blocks.push(render_stored(&statuses(parts.statuses), &fence, line, ledger));
    }
    if let Some(parameters) = &parts.parameters {
        let line = (Kind::Parameters, Some(parameters.source.to_owned()), PartReason::ThisTurn);
        let element = Element::with_text("parameters", parameters.json);
        blocks.push(render_stored(&element, &fence, line, ledger));
    }
    if let Some(blackboard) = &parts.blackboard {
        let version = blackboard.version.to_string();
        let line = (Kind::Blackboard, Some(format!("version {version}")), PartReason::ThisTurn);
        let element =
            Element::with_text("blackboard", blackboard.json).attribute("version", version);
        blocks.push(render_stored(&element, &fence, line, ledger));
    }
    if let Some(schema) = parts.result_schema {
        let line = (Kind::ResultSchema, None, PartReason::ThisTurn);
        let element = Element::with_text("result_schema", schema).attribute("answer", SCHEMA_RULE);
        blocks.push(render_stored(&element, &fence, line, ledger));
    }
    if let Some(told) = parts.results {
        let block = render_entry("notice", told.entry_id, told.message, seed);
        let weight = Weight::of_message(told.message);
        ledger.sent_as(Kind::Results, id_of(told.entry_id), PartReason::WaitedFor, &block, weight);
        blocks.push(block);
    }
    blocks.push(task(parts, seed, ledger));
    blocks.join("\n\n")
}

/// Renders an element that no entry has, so its text is stored.
pub(super) fn render_stored(
    element: &Element<'_>,
    fence: &Fence,
    (kind, id, why): (Kind, Option<String>, PartReason),
    ledger: &mut Ledger<'_>,
) -> String {
    let open = element.render(&Fence::open());
    let block = xml::close(&open, fence);
    ledger.stored(kind, id, why, Weight::of_text(&block), open);
    block
}

/// Renders the task exactly as its entry will be rendered in later turns.
fn task(parts: &Parts<'_>, seed: &FenceSeed, ledger: &mut Ledger<'_>) -> String {
    let task = parts.task;
    let (name, why) = match task.is_correction {
        true => ("notice", PartReason::Correction),
        false => ("task", PartReason::ThisTurn),
    };
    ledger.sent_as(
        Kind::Task,
        id_of(task.entry_id),
        why,
        task.prompt,
        Weight::of_user_text(task.prompt),
    );
    let element = Element::with_text(name, task.prompt);
    from(element, task.asked_by.filter(|_| !task.is_correction))
        .render(&seed.fence(Scope::Entry(task.entry_id)))
}

/// Renders the posts exactly as their entry will be rendered in later turns.
fn posts(board: Board<'_>, seed: &FenceSeed, ledger: &mut Ledger<'_>) -> Option<String> {
    for not_shown in board.not_shown {
        ledger.posts_not_shown(not_shown.span, not_shown.why);
    }
    let shown = &board.shown.posts;
    if board.shown.is_empty() {
        return None;
    }
    let block = board.shown.element().render(&seed.fence(Scope::Entry(board.entry_id)));
    let span = match shown.as_slice() {
        [first, .., last] | [first @ last] => {
            Some(Span { from_seq: first.seq, to_seq: last.seq, count: Some(shown.len()) })
        }
        // Only the number of posts that are not shown is sent.
        [] => None,
    };
    ledger.posts(span, board.shown.count_by_trust(), &block);
    Some(block)
}

/// Renders the posts of an earlier turn. An unreadable entry is rendered as a notice.
pub(super) fn posts_of(entry: &Entry, seed: &FenceSeed) -> String {
    let (text, fence) = (&entry.message.text, seed.fence(Scope::Entry(entry.id)));
    match Posts::of_entry(text) {
        Some(posts) => posts.element().render(&fence),
        None => Element::with_text("notice", text).render(&fence),
    }
}

fn statuses<'a>(statuses: &[Status<'a>]) -> Element<'a> {
    let child = |status: &Status<'a>| {
        let element = Element::with_text("status", status.state).attribute("agent", status.agent);
        match status.tool {
            Some(tool) => element.attribute("tool", tool),
            None => element,
        }
    };
    Element::with_children("statuses", statuses.iter().map(child).collect())
}

/// Builds the message of a prompt with its files.
fn with_files(
    text: String,
    files: (Uuid, &[Arc<Attachment>]),
    rendering: Rendering<'_>,
) -> Message {
    let mut message = user(text);
    attachments::append_to(&mut message, files, rendering);
    message
}

/// Adds an answer. Neighbouring answers become one message, because some templates refuse two in a row.
fn push_answer(messages: &mut Vec<Arc<Message>>, answer: &Arc<Message>) {
    let is_text =
        |message: &Message| message.role == Role::Assistant && message.tool_calls.is_empty();
    match messages.last_mut() {
        Some(last) if is_text(last) && is_text(answer) => append(last, answer),
        _ => messages.push(Arc::clone(answer)),
    }
}

/// Adds a user text. Neighbouring user texts become one message, because some templates refuse two in a row.
pub(super) fn push_user(messages: &mut Vec<Arc<Message>>, message: Arc<Message>) {
    match messages.last_mut() {
        Some(last) if last.role == Role::User => append(last, &message),
        _ => messages.push(message),
    }
}

/// Appends to a message. Only this function copies text that entries share with earlier calls.
fn append(message: &mut Arc<Message>, other: &Message) {
    Arc::make_mut(message).append(other);
}

pub(super) fn user(text: String) -> Message {
    Message::new(Role::User, text)
}
