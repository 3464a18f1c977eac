//! Messages that the service itself adds to a conversation.

use uuid::Uuid;

use crate::{
    context::{compaction::View, manifest::Span},
    domain::{
        messages::{self, LeftByTurn, LeftOut},
        sessions::{Reason, SessionRow},
    },
    jobs::{measure::measure_message, run_turn::load::prompt::TurnPrompt},
    transcript::{Message, Role},
};

/// Notice for an interrupted turn whose request, or an earlier one, was rejected and is left out.
const INTERRUPTED_AND_REJECTED: &str = "\
A turn before this one was interrupted. What belongs to a request that the provider has rejected is not shown.";
const VERIFY: &str = "\
Its last action may or may not have been applied: verify before you repeat it.";

/// Notice for a conversation that begins with nothing but posts.
const NEW_CONVERSATION: &str = "\
This conversation begins here. What you may have said and done in this campaign before is not part of it; the posts below are \
from the campaign's board, your own of earlier conversations among them. Where a request depends on what you do not have, say \
so and ask, and do not invent it.";

/// Characters of an earlier prompt that a notice repeats.
const PROMPT_MAX_CHARS: usize = 2000;

pub(super) fn message(id: Uuid, role: Role, text: String) -> messages::New {
    let (tool_calls, tool_call_id, tool_name) = (Vec::new(), None, None);
    measure_message(
        id,
        Message { role, text, tool_calls, tool_call_id, tool_name, media: Vec::new() },
    )
}

/// Builds the entry of a turn's prompt, with the agent that asked for it on the board.
pub(super) fn prompt(prompt: &TurnPrompt, asked_by: Option<&str>) -> messages::New {
    let asked_by = asked_by.filter(|_| !prompt.is_correction);
    let message = Message {
        role: prompt.role(),
        text: prompt.text.clone(),
        tool_calls: Vec::new(),
        tool_call_id: None,
        tool_name: asked_by.map(str::to_owned),
        media: Vec::new(),
    };
    measure_message(prompt.entry_id, message)
}

/// Builds the notice of an interrupted turn. It is stored before the prompt, because later turns should know it, too.
/// `left` is what the transcript has of that turn; `None` if it is left out.
pub(super) fn interruption_notice(id: Uuid, left: Option<LeftByTurn>) -> messages::New {
    let text = match left {
        None => format!("{INTERRUPTED_AND_REJECTED} {VERIFY}"),
        Some(left) => {
            format!(
                "The turn before this one was interrupted. {} {VERIFY}",
                describe_partial_output(left)
            )
        }
    };
    message(id, Role::Notice, text)
}

fn describe_partial_output(LeftByTurn { answer, tool_calls }: LeftByTurn) -> &'static str {
    match (answer, tool_calls) {
        (false, false) => "Nothing of its answer is left.",
        (true, false) => {
            "What had arrived of its answer stands above as `interrupted_answer`; it is not complete."
        }
        (false, true) => "Its calls of tools stand above; nothing of an answer is left.",
        (true, true) => {
            "Its calls of tools stand above, and what had arrived of its answer as `interrupted_answer`, which is not \
             complete."
        }
    }
}

/// Builds the notice before an answer whose prompt is further up, with others in between.
pub(super) fn repeated_prompt_notice(
    id: Uuid,
    prompt: &str,
    asked_by: Option<&str>,
) -> messages::New {
    let start: String = prompt.chars().take(PROMPT_MAX_CHARS).collect();
    let which = if start.len() < prompt.len() { "the task that begins with" } else { "the task" };
    let by = asked_by
        .map(|agent| format!(", which the agent `{agent}` has asked for,"))
        .unwrap_or_default();
    let text = format!(
        "An earlier task{by} is tried again here, after others. What follows is for {which}:\n{start}"
    );
    message(id, Role::Notice, text)
}

/// Derives the id of the notice about messages that a session could not take over.
fn left_out_id(session_id: Uuid) -> Uuid {
    const LEFT_OUT: u128 = 0x6c65_6674_206f_7574_6c65_6674_206f_7574;
    Uuid::from_u128(session_id.as_u128() ^ LEFT_OUT)
}

/// Finds the messages of the session before that a successor could not take over: a notice stands at their last place.
pub(super) fn find_left_out(session_id: Uuid, view: &View<'_>) -> Option<Span> {
    let notice = view.tail.iter().find(|entry| entry.id == left_out_id(session_id))?;
    let from_seq = view.compaction.map_or(0, |compaction| compaction.to_seq) + 1;
    Some(Span { from_seq, to_seq: notice.seq, count: None })
}

/// Builds the notice for a successor that could not take over all messages of its predecessor.
pub(super) fn left_out_notice(session_id: Uuid, what: LeftOut) -> messages::New {
    let LeftOut { messages, first_turn, last_turn, .. } = what;
    let turns = match first_turn == last_turn {
        true => format!("turn {last_turn}"),
        false => format!("turns {first_turn} to {last_turn}"),
    };
    let text = format!(
        "Here {turns} of the conversation are missing, {messages} messages that were too long to keep. You do not have \
         them: do not guess what they said."
    );
    message(left_out_id(session_id), Role::Notice, text)
}

/// Builds the notice of a restored conversation. It is sent with each call until one has succeeded, and never stored: a
/// retry needs it, later turns do not.
pub(super) fn restored_notice(
    session: &SessionRow,
    view: &View<'_>,
    own: &[Uuid],
    shows_posts: bool,
) -> Option<String> {
    let has_history = has_history(view, own);
    if session.context_tokens > 0 || !(has_history || shows_posts) {
        return None;
    }
    let why = match session.opened_because {
        Reason::New | Reason::Fresh if shows_posts => return Some(NEW_CONVERSATION.to_owned()),
        // Nothing of the session is kept, as after a cleanup.
        Reason::Expired if !has_history => return Some(NEW_CONVERSATION.to_owned()),
        Reason::New | Reason::Fresh | Reason::Ended | Reason::CampaignClosed => return None,
        Reason::PromptChanged => "your instructions have changed",
        Reason::ModelChanged | Reason::ProviderChanged => "another model has taken over",
        Reason::ContextFull => "it had grown too long",
        Reason::Expired => "it had been idle for a long time",
        Reason::Reset => "it was requested",
        Reason::Lost => "the provider had lost it",
        Reason::Poisoned => "the provider refused it as it was",
    };
    let mine = |role: Role| !matches!(role, Role::Notice | Role::Posts);
    let has_messages = view.tail.iter().any(|it| !own.contains(&it.id) && mine(it.message.role));
    let is_cut = view.tail.iter().any(|entry| entry.id == left_out_id(session.id));
    let what = describe_inheritance(view.compaction.is_some(), has_messages, is_cut);
    let is_without_tools = session.opened_because == Reason::Poisoned;
    let tools = if is_without_tools { WITHOUT_TOOLS } else { "" };
    let posts = if shows_posts { " The posts below are from the campaign's board." } else { "" };
    let is_whole = what == ALL_INHERITED && !is_without_tools;
    let advice = if is_whole { "" } else { DO_NOT_INVENT };
    Some(format!("This conversation was restored, because {why}. {what}{tools}{posts}{advice}"))
}

/// Messages that a rejected request has left out do not count: they were not shown before either.
const ALL_INHERITED: &str = "Everything that you were shown of it came along.";
const WITHOUT_TOOLS: &str =
    " Calls of tools and their results, where there were any, were left out.";
const DO_NOT_INVENT: &str = " Do not invent what you cannot see: say that you do not have it.";

/// Describes what a successor has taken over. `is_cut`: a notice stands for missing messages.
fn describe_inheritance(has_summary: bool, has_messages: bool, is_cut: bool) -> &'static str {
    match (has_summary, has_messages, is_cut) {
        (false, false, _) => "None of its messages came along.",
        (false, true, false) => ALL_INHERITED,
        (false, true, true) => {
            "Its most recent messages came along; a notice in front of them says which are missing."
        }
        (true, false, false) => "A summary of it came along; its messages did not.",
        (true, false, true) => {
            "A summary of its older part came along; a notice says which messages are missing."
        }
        (true, true, false) => {
            "A summary of its older part came along, and all messages after that."
        }
        (true, true, true) => {
            "A summary of its older part came along, and its most recent messages; a notice says which are missing in \
             between."
        }
    }
}

/// Returns true if there are messages besides `own`, the prompt and results that an earlier attempt of this task has
/// stored.
pub(super) fn has_history(view: &View<'_>, own: &[Uuid]) -> bool {
    view.compaction.is_some() || view.tail.iter().any(|entry| !own.contains(&entry.id))
}
