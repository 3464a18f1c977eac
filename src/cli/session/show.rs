//! Text output of sessions and their messages.

use serde_json::Value;
use uuid::Uuid;

use crate::{
    cli::{
        campaign_names::{CAMPAIGN, CampaignNames},
        output::{Table, format_fields, format_table, short_id, time_cell},
        task::format_turns,
        words::time,
    },
    domain::{
        agents::Catalogue,
        amount::format_money,
        compactions::{self, Compaction, KeptPrompts},
        conversations::Detail,
        explanations::SessionExplanation,
        messages::{EndOfTask, StoredMessage},
        nodes::NodeVisit,
        sessions::Session,
        tasks::{CancelOutcome, InterruptResult},
        text::count,
    },
};

/// Formats sessions, with their campaigns if `campaigns` has the names.
pub(in crate::cli) fn format_sessions(
    sessions: &[Session],
    campaigns: Option<&CampaignNames>,
    catalogue: &Catalogue,
) -> String {
    let row = |session: &Session| {
        [
            short_id(session.id),
            serialised_name(session.state),
            catalogue.format_name(&session.agent, &session.instance),
            campaigns.map(|names| names.cell(session.campaign_id)).unwrap_or_default(),
            session.provider.clone(),
            session.model.clone(),
            session.turns.to_string(),
            session.context_tokens.to_string(),
            format_money(session.cost_micros),
            time_cell(session.used_at),
        ]
    };
    let head = [
        "ID",
        "STATE",
        "AGENT",
        CAMPAIGN,
        "PROVIDER",
        "MODEL",
        "TURNS",
        "CONTEXT",
        "COST",
        "USED (UTC)",
    ];
    let table = Table::new(&head).leaves_out(&["PROVIDER", "COST", "CONTEXT", "TURNS"]);
    let table = if campaigns.is_some() { table } else { table.hides(CAMPAIGN) };
    table.format(sessions.iter().map(row))
}

pub(super) fn format_explanation(explanation: &SessionExplanation) -> String {
    let SessionExplanation { session_id, state, because, next } = explanation;
    format!("Session {session_id} is {}.\n{because}\n{next}", serialised_name(*state))
}

pub(super) fn format_session(detail: &Detail, catalogue: &Catalogue) -> String {
    let Detail { session, nodes, compactions, last_turns, .. } = detail;
    let mut list = vec![
        ("session", session.id.to_string()),
        ("campaign", session.campaign_id.to_string()),
        ("agent", catalogue.format_name(&session.agent, &session.instance)),
        ("model", format!("{} on {}", session.model, session.provider)),
        ("state", serialised_name(session.state)),
        ("turns", session.turns.to_string()),
        ("context", format!("{} tokens", session.context_tokens)),
        (
            "used",
            format!("{} tokens in all, last at {}", session.token_count, time(session.used_at)),
        ),
        ("cost", format_money(session.cost_micros)),
        ("expires", time(session.expires_at)),
        (
            "opened",
            format!(
                "{}, because {}",
                time(session.created_at),
                serialised_name(session.opened_because)
            ),
        ),
    ];
    if let Some(reason) = session.rebuild_because {
        list.push((
            "next",
            format!("the next task opens a successor ({})", serialised_name(reason)),
        ));
    }
    if let (Some(at), Some(reason)) = (session.closed_at, session.closed_because) {
        list.push(("closed", format!("{}, because {}", time(at), serialised_name(reason))));
    }
    if let Some((parent, turn)) = fork_point(session) {
        list.push(("fork of", format!("{parent} at turn {turn}")));
    }
    for (word, id) in [("before", session.predecessor_id), ("after", session.successor_id)] {
        list.extend(id.map(|id| (word, id.to_string())));
    }
    list.extend(nodes.iter().map(|stay| ("node", format_stay(stay))));
    let mut text = format_fields(&list);
    if !compactions.is_empty() {
        let rows = compactions.iter().map(|compaction| {
            let shown = if compaction.generation == session.generation { "*" } else { "" };
            [
                format!("{}{shown}", compaction.generation),
                serialised_name(compaction.outcome),
                serialised_name(compaction.cause),
                format!("{} to {}", compaction.from_seq, compaction.to_seq),
                compaction.tokens_before.to_string(),
                compaction.tokens_after.map_or_else(|| "-".to_owned(), |n| n.to_string()),
                time_cell(compaction.created_at),
            ]
        });
        let head = ["COMPACTION", "OUTCOME", "CAUSE", "PLACES", "TOKENS", "AFTER", "MADE (UTC)"];
        text.push_str(&format!("\n{}", format_table(&head, rows)));
        let shown = compactions.iter().find(|it| it.generation == session.generation);
        if let Some(kept) = shown.and_then(Compaction::kept_prompts) {
            text.push_str(&format!("{}\n", format_kept_prompts(kept, session.generation)));
        }
    }
    if !last_turns.is_empty() {
        text.push_str(&format!("\n{}", format_turns(last_turns)));
    }
    text
}

/// Returns the session of which this one is a fork, and the turn.
fn fork_point(session: &Session) -> Option<(Uuid, i32)> {
    session.forked_from_session.zip(session.forked_at_turn)
}

/// Describes a new fork, with the next step.
pub(super) fn format_fork(fork: &Session) -> String {
    let Session { id, campaign_id, agent, instance, turns, .. } = fork;
    format!(
        "session {id} begins after turn {turns}; `dalsegno task add --campaign {campaign_id} --agent {agent} --instance {instance} PROMPT` \
         continues it"
    )
}

/// Describes how many prompts of the folded turns the compaction keeps.
fn format_kept_prompts(prompts: KeptPrompts, generation: i32) -> String {
    let KeptPrompts { kept, shortened, archived, sentences } = prompts;
    let kept = count(kept, "prompt", "prompts");
    let sentences = count(sentences, "sentence stays", "sentences stay");
    format!(
        "compaction {generation} keeps {kept} word for word ({shortened} of them shortened); {archived} moved to the archive, of \
         which {sentences}"
    )
}

fn format_stay(stay: &NodeVisit) -> String {
    let since = format!("{} from place {}, {}", stay.node, stay.first_seq, time(stay.entered_at));
    match stay.left_at {
        Some(left_at) => format!("{since} to {}", time(left_at)),
        None => format!("{since}, current"),
    }
}

pub(super) fn format_message(stored: &StoredMessage) -> String {
    let StoredMessage { seq, turn, partial, rejected, created_at, message, .. } = stored;
    let broken = if *partial { ", broke off" } else { "" };
    let rejected = if *rejected { ", rejected: not sent again" } else { "" };
    let tool = message.tool_name.as_ref().map(|tool| format!(" {tool}")).unwrap_or_default();
    let head = format!(
        "#{seq}  turn {turn}  {}  {}{tool}{broken}{rejected}",
        time(*created_at),
        serialised_name(message.role)
    );
    let calls =
        message.tool_calls.iter().map(|call| format!("calls {} {}\n", call.name, call.arguments));
    let text = match stored.results() {
        Some(results) => results.ends.iter().map(format_end).collect::<Vec<_>>().join("\n\n"),
        None => message.text.clone(),
    };
    format!("{head}\n{}\n{}\n", text.trim_end(), calls.collect::<String>())
}

/// Formats the result of a task that the task has waited for.
fn format_end(end: &EndOfTask) -> String {
    let EndOfTask { task, agent, instance, state, text, left_out_chars } = end;
    let cut = match left_out_chars {
        0 => String::new(),
        n => format!("\n[{n} further characters were left out for their length]"),
    };
    format!("{agent}/{instance}, task {task}, {state}:\n{}{cut}", text.trim_end())
}

/// Formats messages like [`format_message`], for a view that has no times and places.
pub(super) fn format_history(history: &Value) -> String {
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

pub(in crate::cli) fn format_interruption(interrupted: &InterruptResult) -> String {
    let InterruptResult { session_id, task_id, cancel } = interrupted;
    match cancel {
        CancelOutcome::Requested => {
            format!("task {task_id} is running in session {session_id}; its worker will stop it")
        }
        CancelOutcome::AtSafePoint => format!(
            "task {task_id} is running in session {session_id}; it ends at the next safe point, or with its answer if that comes first"
        ),
        CancelOutcome::AtOnce => {
            format!("task {task_id} of session {session_id} is cancelled; its worker was lost")
        }
        CancelOutcome::HadEnded => {
            format!(
                "task {task_id} of session {session_id} had already ended; its dependent tasks are cancelled"
            )
        }
    }
}

/// Describes the worker's answer. `None`: the worker has not answered yet.
pub(super) fn format_compaction(
    session_id: Uuid,
    job_id: i64,
    answer: Option<&compactions::Answer>,
) -> String {
    match answer {
        Some(compactions::Answer::Compacted { generation }) => {
            format!("session {session_id} now uses compaction {generation}")
        }
        Some(compactions::Answer::Nothing { because }) => {
            let rest = because.strip_prefix("there is nothing to compact: ").unwrap_or(because);
            format!("nothing to compact: {rest}")
        }
        Some(compactions::Answer::Failed { because }) => format!(
            "session {session_id} was not compacted: {because}; `dalsegno job explain {job_id}` shows the next step"
        ),
        None => format!(
            "job {job_id} compacts session {session_id}; `dalsegno session show {session_id}` lists the result"
        ),
    }
}

/// Returns the serialised name of a value, with blanks for underscores.
pub(in crate::cli) fn serialised_name(word: impl serde::Serialize) -> String {
    let value = serde_json::to_value(word).unwrap_or_default();
    value.as_str().unwrap_or_default().replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_of_another_task_is_a_text_with_its_author() {
        let end = EndOfTask {
            task: Uuid::nil(),
            agent: "reviewer".to_owned(),
            instance: "main".to_owned(),
            state: "done".to_owned(),
            text: "It fits.\n".to_owned(),
            left_out_chars: 3,
        };
        let expected = format!(
            "reviewer/main, task {}, done:\nIt fits.\n[3 further characters were left out for their length]",
            Uuid::nil()
        );
        assert_eq!(format_end(&end), expected);
    }
}
