//! `dalsegno session`: conversations, and what a person may do to them.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::{
    Context, Exit, Failure,
    database::with_database,
    output::{fields, table},
    words::time,
};
use crate::{
    clock::{Clock as _, SystemClock},
    db::{Database, Use},
    domain::{
        Page, campaigns,
        ids::Given,
        messages::{self, Span, Stored},
        sessions::{self, Detail, Filter, Session},
        tasks::{self, Cancelled, Interrupted},
        transaction::{begin, commit},
    },
};

#[derive(Debug, Subcommand)]
pub(super) enum SessionCommand {
    /// Lists sessions, the newest first.
    Ls(List),
    /// Shows a session with its counters, its compactions and its last turns.
    Show(Id),
    /// Prints what was said, in order.
    Transcript(Transcript),
    /// Has the next task open a successor, which takes over what it should remember.
    Reset(Reset),
    /// Goes back to the view before the compaction that is shown.
    Uncompact(Id),
    /// Stops the turn that runs, by cancelling its task. What had arrived is kept.
    Interrupt(Interrupt),
}

#[derive(Debug, Args)]
pub(super) struct List {
    #[arg(long, value_name = "ID")]
    campaign: Option<Given>,
    #[arg(long)]
    agent: Option<String>,
    /// Only those that are not closed.
    #[arg(long)]
    open: bool,
    /// Only those before this one: the last id of the page before.
    #[arg(long, value_name = "ID")]
    after: Option<Given>,
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
}

#[derive(Debug, Args)]
pub(super) struct Id {
    /// The id, or as much of its beginning as no other has.
    id: Given,
}

#[derive(Debug, Args)]
pub(super) struct Transcript {
    #[command(flatten)]
    id: Id,
    /// What the model is shown instead: the summary, if there is one, and what was said since.
    #[arg(long, conflicts_with_all = ["after", "limit"])]
    view: bool,
    /// Only what comes after this place.
    #[arg(long, value_name = "PLACE", default_value_t = 0)]
    after: i64,
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(i64).range(1..=100_000))]
    limit: i64,
}

#[derive(Debug, Args)]
pub(super) struct Reset {
    #[command(flatten)]
    id: Id,
    /// The successor remembers nothing.
    #[arg(long)]
    fresh: bool,
}

#[derive(Debug, Args)]
pub(super) struct Interrupt {
    #[command(flatten)]
    id: Id,
    /// Why, for whoever finds it interrupted.
    #[arg(long, default_value = "by an operator")]
    reason: String,
}

pub(super) async fn run(command: &SessionCommand, context: &Context) -> Result<Exit, Failure> {
    with_database(context, Use::Look, async |database| on(command, context, database).await).await
}

async fn on(
    command: &SessionCommand,
    context: &Context,
    database: &Database,
) -> Result<Exit, Failure> {
    let (pool, output) = (&database.pool, context.output);
    let mut tx = begin(pool).await?;
    match command {
        SessionCommand::Ls(list) => {
            let campaign_id = match &list.campaign {
                Some(given) => Some(campaigns::find(&mut *tx, given).await?),
                None => None,
            };
            let after = match &list.after {
                Some(given) => Some(sessions::find(&mut *tx, given).await?),
                None => None,
            };
            let filter = Filter { campaign_id, agent: list.agent.as_deref(), open_only: list.open };
            let page = Page { after, limit: list.limit };
            let sessions = sessions::list(&mut *tx, filter, page).await?;
            output.data(&sessions, || lines(&sessions));
        }
        SessionCommand::Show(Id { id }) => {
            let id = sessions::find(&mut *tx, id).await?;
            let detail = sessions::detail(&mut tx, id).await?;
            output.data(&detail, || words(&detail));
        }
        SessionCommand::Transcript(Transcript { id, view, after, limit }) => {
            let id = sessions::find(&mut *tx, &id.id).await?;
            if *view {
                let history = sessions::history(&mut *tx, id).await?;
                output.data(&history, || history_words(&history));
            } else {
                sessions::get(&mut *tx, id).await?;
                let span = Span { after_seq: *after, limit: *limit };
                let stored = messages::list(&mut *tx, id, span).await?;
                output.data(&stored, || stored.iter().map(message_words).collect());
            }
        }
        SessionCommand::Reset(Reset { id, fresh }) => {
            let id = sessions::find(&mut *tx, &id.id).await?;
            let session = sessions::reset(&mut tx, id, *fresh).await?;
            commit(tx).await?;
            output.data(&session, || format!("the next task of session {id} opens its successor"));
        }
        SessionCommand::Uncompact(Id { id }) => {
            let id = sessions::find(&mut *tx, id).await?;
            let session = sessions::uncompact(&mut tx, id, SystemClock.now()).await?;
            commit(tx).await?;
            output.data(&session, || match session.generation {
                0 => format!("session {id} shows its whole transcript"),
                generation => format!("session {id} shows compaction {generation}"),
            });
        }
        SessionCommand::Interrupt(Interrupt { id, reason }) => {
            let id = sessions::find(&mut *tx, &id.id).await?;
            let interrupted = tasks::interrupt(&mut tx, id, reason, SystemClock.now()).await?;
            commit(tx).await?;
            output.data(&interrupted, || interrupted_words(&interrupted));
        }
    }
    Ok(Exit::Ok)
}

pub(super) fn lines(sessions: &[Session]) -> String {
    let row = |session: &Session| {
        [
            session.id.to_string(),
            name(session.state),
            format!("{}/{}", session.agent, session.instance),
            session.provider.clone(),
            session.model.clone(),
            session.turns.to_string(),
            session.context_tokens.to_string(),
            time(session.used_at),
        ]
    };
    let head = ["ID", "STATE", "AGENT", "PROVIDER", "MODEL", "TURNS", "CONTEXT", "USED"];
    table(&head, sessions.iter().map(row))
}

fn words(detail: &Detail) -> String {
    let Detail { session, compactions, last_turns } = detail;
    let mut list = vec![
        ("session", session.id.to_string()),
        ("campaign", session.campaign_id.to_string()),
        ("agent", format!("{}/{}", session.agent, session.instance)),
        ("model", format!("{} on {}", session.model, session.provider)),
        ("state", name(session.state)),
        ("turns", session.turns.to_string()),
        ("context", format!("{} tokens", session.context_tokens)),
        (
            "used",
            format!("{} tokens in all, last at {}", session.token_count, time(session.used_at)),
        ),
        ("expires", time(session.expires_at)),
        (
            "opened",
            format!("{}, because {}", time(session.created_at), name(session.opened_because)),
        ),
    ];
    if let Some(reason) = session.rebuild_because {
        list.push(("next", format!("the next task opens a successor ({})", name(reason))));
    }
    if let (Some(at), Some(reason)) = (session.closed_at, session.closed_because) {
        list.push(("closed", format!("{}, because {}", time(at), name(reason))));
    }
    for (word, id) in [("before", session.predecessor_id), ("after", session.successor_id)] {
        list.extend(id.map(|id| (word, id.to_string())));
    }
    let mut text = fields(&list);
    if !compactions.is_empty() {
        let rows = compactions.iter().map(|compaction| {
            let shown = if compaction.generation == session.generation { "*" } else { "" };
            [
                format!("{}{shown}", compaction.generation),
                name(compaction.outcome),
                name(compaction.cause),
                format!("{} to {}", compaction.from_seq, compaction.to_seq),
                compaction.tokens_before.to_string(),
                compaction.tokens_after.map_or_else(|| "-".to_owned(), |n| n.to_string()),
                time(compaction.created_at),
            ]
        });
        let head = ["COMPACTION", "OUTCOME", "CAUSE", "PLACES", "TOKENS", "AFTER", "MADE"];
        text.push_str(&format!("\n{}", table(&head, rows)));
    }
    if !last_turns.is_empty() {
        text.push_str(&format!("\n{}", super::task::turn_lines(last_turns)));
    }
    text
}

fn message_words(stored: &Stored) -> String {
    let Stored { seq, turn, partial, created_at, message, .. } = stored;
    let broken = if *partial { ", broke off" } else { "" };
    let tool = message.tool_name.as_ref().map(|tool| format!(" {tool}")).unwrap_or_default();
    let head =
        format!("#{seq}  turn {turn}  {}  {}{tool}{broken}", time(*created_at), name(message.role));
    let calls =
        message.tool_calls.iter().map(|call| format!("calls {} {}\n", call.name, call.arguments));
    format!("{head}\n{}\n{}\n", message.text.trim_end(), calls.collect::<String>())
}

/// As [`message_words`], of what has no times and places any more.
fn history_words(history: &Value) -> String {
    let word = |message: &Value, key: &str| message[key].as_str().unwrap_or_default().to_owned();
    let entry = |message: &Value| {
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        let calls =
            calls.map(|call| format!("calls {} {}\n", word(call, "name"), call["arguments"]));
        let (role, text) = (word(message, "role"), word(message, "content"));
        format!("{role}\n{}\n{}\n", text.trim_end(), calls.collect::<String>())
    };
    history.as_array().into_iter().flatten().map(entry).collect()
}

fn interrupted_words(interrupted: &Interrupted) -> String {
    let Interrupted { session_id, task_id, cancel } = interrupted;
    match cancel {
        Cancelled::Requested => {
            format!("task {task_id} runs in session {session_id}; its worker was told to stop it")
        }
        Cancelled::AtOnce => {
            format!("task {task_id} of session {session_id} is cancelled; its worker was lost")
        }
    }
}

/// The word that programs get, for people.
pub(super) fn name(word: impl serde::Serialize) -> String {
    let value = serde_json::to_value(word).unwrap_or_default();
    value.as_str().unwrap_or_default().replace('_', " ")
}
