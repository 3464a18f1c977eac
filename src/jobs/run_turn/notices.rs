//! What the service itself says inside of a conversation.

use uuid::Uuid;

use crate::{
    context::compaction::View,
    domain::{
        messages::{self, LeftOut},
        sessions::{Live, Reason},
        tasks::Task,
    },
    jobs::measure::measured,
    transcript::{Message, Role},
};

/// Stored in the transcript in front of the prompt: the next turns should know it too.
const INTERRUPTED: &str = "\
The turn before this one was interrupted. What had arrived of its answer stands above; there may be nothing. Whatever it \
was about to do may or may not have been applied: verify before you repeat it.";

/// Said where posts are all that a conversation begins with.
const BEGUN_ANEW: &str = "\
This conversation begins here. What you may have said and done in this campaign before is not part of it; the posts below are \
from the campaign's board, your own of earlier conversations among them. Where a request depends on what you do not have, say \
so and ask, and do not invent it.";

/// The most of an earlier prompt that is said again.
const PROMPT_MAX_CHARS: usize = 2000;

pub(super) fn message(id: Uuid, role: Role, text: String) -> messages::New {
    let (tool_calls, tool_call_id, tool_name) = (Vec::new(), None, None);
    measured(id, Message { role, text, tool_calls, tool_call_id, tool_name })
}

/// What a task asks, with the agent that asked it on the board.
pub(super) fn prompt(task: &Task, asked_by: Option<&str>) -> messages::New {
    let message = Message {
        role: Role::User,
        text: task.prompt.clone(),
        tool_calls: Vec::new(),
        tool_call_id: None,
        tool_name: asked_by.map(str::to_owned),
    };
    measured(task.id, message)
}

pub(super) fn interrupted(id: Uuid) -> messages::New {
    message(id, Role::Notice, INTERRUPTED.to_owned())
}

/// Stored in front of an answer whose question stands further up, with others in between.
pub(super) fn again(id: Uuid, prompt: &str, asked_by: Option<&str>) -> messages::New {
    let start: String = prompt.chars().take(PROMPT_MAX_CHARS).collect();
    let which = if start.len() < prompt.len() { "the task that begins with" } else { "the task" };
    let by =
        asked_by.map(|agent| format!(", which the agent `{agent}` has asked")).unwrap_or_default();
    let text = format!(
        "A task from further up{by} is tried again here, after others. What follows is for {which}:\n{start}"
    );
    message(id, Role::Notice, text)
}

/// Stored in a successor that could not take over all of its predecessor.
pub(super) fn left_out(id: Uuid, what: LeftOut) -> messages::New {
    let LeftOut { messages, first_turn, last_turn, .. } = what;
    let turns = match first_turn == last_turn {
        true => format!("turn {last_turn}"),
        false => format!("turns {first_turn} to {last_turn}"),
    };
    let text = format!(
        "Here {turns} of the conversation stood, {messages} messages that were too long to come along. You do not have \
         them: do not guess what they said."
    );
    message(id, Role::Notice, text)
}

/// Said with each call until one has succeeded, and not stored: a second attempt has to say it too, later turns do not.
pub(super) fn restored(
    session: &Live,
    view: &View<'_>,
    own: &[Uuid],
    shows_posts: bool,
) -> Option<String> {
    let has_history = has_history(view, own);
    if session.context_tokens > 0 || !(has_history || shows_posts) {
        return None;
    }
    let why = match session.opened_because {
        Reason::New | Reason::Fresh if shows_posts => return Some(BEGUN_ANEW.to_owned()),
        Reason::New | Reason::Fresh | Reason::Ended | Reason::CampaignClosed => return None,
        Reason::PromptChanged => "your instructions have changed",
        Reason::ModelChanged | Reason::ProviderChanged => "another model has taken over",
        Reason::ContextFull => "it had grown too long",
        Reason::Expired => "it had rested for long",
        Reason::Reset => "somebody asked for it",
        Reason::Lost => "the provider had lost it",
        Reason::Poisoned => "the provider refused it as it was",
    };
    let mine = |role: Role| !matches!(role, Role::Notice | Role::Posts);
    let has_messages = view.tail.iter().any(|it| !own.contains(&it.id) && mine(it.message.role));
    let what = match (view.compaction, has_messages) {
        (Some(_), false) => "A summary of it came along; its messages did not.",
        (Some(_), true) => {
            "A summary of it, and its recent messages, came along; older messages may be missing."
        }
        (None, true) => "A recent part of it came along; older messages may be missing.",
        (None, false) => "None of its messages came along.",
    };
    let posts = if shows_posts { " The posts below are from the campaign's board." } else { "" };
    Some(format!(
        "This conversation was restored, because {why}. {what}{posts} Do not invent what you cannot see: say that you do \
         not have it."
    ))
}

/// Whether there is anything beside what an earlier attempt of this task has stored: the prompt, and the results in front of it.
pub(super) fn has_history(view: &View<'_>, own: &[Uuid]) -> bool {
    view.compaction.is_some() || view.tail.iter().any(|entry| !own.contains(&entry.id))
}
