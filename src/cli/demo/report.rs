//! The report of the demo as data, derived from the tables alone.

use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::{
    checks::{self, Check},
    evidence::{Conversation, Evidence},
    script::{self, PLANNER, REVIEWER, WRITERS},
};
use crate::domain::{
    compactions::{Cause, Compaction, Outcome},
    tasks, turns,
    usage::Purpose,
};

pub(super) const AGENTS: [&str; 5] = [PLANNER, WRITERS[0], WRITERS[1], WRITERS[2], REVIEWER];

#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Always true: no model is called.
    pub(super) simulated: bool,
    pub(super) ok: bool,
    pub(super) took_secs: f64,
    pub(super) campaign: &'static str,
    pub(super) agents: Vec<Agent>,
    pub(super) parts: Vec<Part>,
    pub(super) board: Vec<PostView>,
    pub(super) kill: Rescue,
    pub(super) compactions: Vec<Fold>,
    pub(super) expiry: Option<Expiry>,
    pub(super) checks: Vec<Check>,
}

#[derive(Debug, Serialize)]
pub(super) struct Agent {
    pub(super) name: &'static str,
    pub(super) tasks: usize,
    pub(super) turns: usize,
    pub(super) interrupted_turns: usize,
    pub(super) sessions: usize,
    /// Generation of the compaction that its open session uses; 0 is the whole transcript.
    pub(super) generation: i32,
    pub(super) input_tokens: i64,
    pub(super) output_tokens: i64,
    /// Input and output tokens of the calls that wrote summaries.
    pub(super) summary_tokens: i64,
}

#[derive(Debug, Serialize)]
pub(super) struct Part {
    pub(super) number: usize,
    pub(super) writer: String,
    pub(super) task_id: Uuid,
    pub(super) state: tasks::State,
    pub(super) session_id: Option<Uuid>,
    pub(super) turn: Option<i32>,
    pub(super) attempts: usize,
    pub(super) result: Option<String>,
}

/// A post of the board.
#[derive(Debug, Serialize)]
pub(super) struct PostView {
    pub(super) seq: i64,
    pub(super) sender: String,
    pub(super) audience: Vec<String>,
    /// Place of the post that it answers.
    pub(super) answers: Option<i64>,
    pub(super) text: String,
}

/// Effects of the kill.
#[derive(Debug, Serialize)]
pub(super) struct Rescue {
    pub(super) part: usize,
    pub(super) killed_pid: i32,
    pub(super) arrived_bytes: u64,
    pub(super) interrupted_turn: Option<i32>,
    pub(super) interrupted_because: Option<String>,
    pub(super) continued_by_pid: Option<i32>,
    pub(super) continued_in_turn: Option<i32>,
    pub(super) continued_after_secs: Option<f64>,
    pub(super) lease_secs: u32,
    /// Lease time of the default configuration.
    pub(super) usual_lease_secs: u32,
}

#[derive(Debug, Serialize)]
pub(super) struct Fold {
    pub(super) agent: String,
    pub(super) session_id: Uuid,
    pub(super) generation: i32,
    pub(super) cause: Cause,
    pub(super) rung: Option<String>,
    pub(super) tokens_before: i64,
    pub(super) tokens_after: i64,
    /// Messages that the summary replaces. They are still stored.
    pub(super) folded_messages: usize,
    /// Count of the planted identifiers in the folded messages.
    pub(super) identifiers: usize,
    pub(super) identifiers_kept: usize,
    /// Count of the texts that the summary had to keep.
    pub(super) pins: usize,
    pub(super) pins_kept: usize,
    pub(super) refused: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct Expiry {
    pub(super) closed_session_id: Uuid,
    pub(super) closed_because: Option<String>,
    pub(super) successor_id: Uuid,
    pub(super) opened_because: String,
    pub(super) inherited_summary: bool,
    pub(super) inherited_messages: usize,
    /// True if the next call was told that the conversation is restored.
    pub(super) notice_sent: bool,
}

impl Report {
    pub(super) fn of(evidence: &Evidence, leases: (u32, u32), took_secs: f64) -> Self {
        let mut report = Self {
            simulated: true,
            ok: false,
            took_secs,
            campaign: script::CAMPAIGN,
            agents: AGENTS.into_iter().map(|name| agent(evidence, name)).collect(),
            parts: parts(evidence),
            board: board(evidence),
            kill: rescue(evidence, leases),
            compactions: folds(evidence),
            expiry: expiry(evidence),
            checks: Vec::new(),
        };
        report.checks = checks::all(evidence, &report);
        report.ok = report.checks.iter().all(|check| check.holds);
        report
    }
}

fn agent(evidence: &Evidence, name: &'static str) -> Agent {
    let turns = || evidence.of_agent(name).flat_map(|work| &work.turns);
    let calls = || evidence.ledger.iter().filter(|total| total.agent == name);
    let of_turns = || calls().filter(|total| total.purpose == Purpose::Turn);
    let of_summaries = calls().filter(|total| total.purpose == Purpose::Summary);
    Agent {
        name,
        tasks: evidence.of_agent(name).count(),
        turns: turns().count(),
        interrupted_turns: turns().filter(|t| t.state == turns::State::Interrupted).count(),
        sessions: evidence.sessions_of(name).count(),
        generation: evidence.sessions_of(name).last().map_or(0, |last| last.session.generation),
        input_tokens: of_turns().map(|total| total.input_tokens).sum(),
        output_tokens: of_turns().map(|total| total.output_tokens).sum(),
        summary_tokens: of_summaries.map(|total| total.input_tokens + total.output_tokens).sum(),
    }
}

fn parts(evidence: &Evidence) -> Vec<Part> {
    let parts = evidence.parts().into_iter().map(|(number, work)| Part {
        number,
        writer: work.task.agent.clone(),
        task_id: work.task.id,
        state: work.task.state,
        session_id: work.task.session_id,
        turn: work.task.turn,
        attempts: work.turns.len(),
        result: work.task.result.clone(),
    });
    parts.collect()
}

fn board(evidence: &Evidence) -> Vec<PostView> {
    let seq_of = |id: Uuid| Some(evidence.board.iter().find(|post| post.id == id)?.seq);
    let said = evidence.board.iter().map(|post| PostView {
        seq: post.seq,
        sender: post.sender.clone(),
        audience: post.audience.clone(),
        answers: post.reply_to.and_then(seq_of),
        text: post.text.clone(),
    });
    said.collect()
}

fn rescue(evidence: &Evidence, (lease_secs, usual_lease_secs): (u32, u32)) -> Rescue {
    let kill = &evidence.kill;
    let parts = evidence.parts();
    let part = parts.iter().find(|(_, work)| work.task.id == kill.task_id);
    let work = evidence.tasks.iter().find(|work| work.task.id == kill.task_id);
    let turns = work.map(|work| work.turns.as_slice()).unwrap_or_default();
    let interrupted = turns.iter().find(|turn| turn.state == turns::State::Interrupted);
    let done = turns.iter().find(|turn| turn.state == turns::State::Done);
    let run = evidence.runs.iter().find(|run| done.is_some_and(|done| done.lease == run.lease));
    let after = done.map(|done| (done.started_at - kill.killed_at).as_seconds_f64());
    Rescue {
        part: part.map_or(0, |(number, _)| *number),
        killed_pid: kill.pid,
        arrived_bytes: kill.arrived_bytes,
        interrupted_turn: interrupted.map(|turn| turn.number),
        interrupted_because: interrupted.and_then(|turn| turn.error.clone()),
        continued_by_pid: evidence.pid_of(run.and_then(|run| run.worker_id)),
        continued_in_turn: done.map(|turn| turn.number),
        continued_after_secs: after,
        lease_secs,
        usual_lease_secs,
    }
}

fn folds(evidence: &Evidence) -> Vec<Fold> {
    let folds = evidence.sessions.iter().flat_map(|conversation| {
        // The predecessor made an inherited compaction, and counts it.
        let own = conversation.compactions.iter().filter(|c| c.cause != Cause::Inherited);
        let applied = own.filter(|c| c.outcome == Outcome::Applied);
        applied.map(|compaction| fold(conversation, compaction))
    });
    folds.collect()
}

fn fold(conversation: &Conversation, compaction: &Compaction) -> Fold {
    let summary = compaction.summary.as_deref().unwrap_or_default();
    let prompts = compaction.prompts.as_ref().map(Value::to_string).unwrap_or_default();
    let shown = format!("{summary}\n{prompts}");
    let folded = conversation.messages.iter().filter(|m| m.seq <= compaction.to_seq);
    let folded: Vec<_> = folded.collect();
    let planted: Vec<String> = (1..=script::N_PARTS)
        .flat_map(script::identifiers)
        .filter(|planted| folded.iter().any(|message| message.message.text.contains(planted)))
        .collect();
    let pins: Vec<&str> =
        compaction.pins.as_array().map_or(&[][..], Vec::as_slice).iter().filter_map(text).collect();
    let agent = &conversation.session.agent;
    Fold {
        agent: agent.clone(),
        session_id: conversation.session.id,
        generation: compaction.generation,
        cause: compaction.cause,
        rung: compaction.rung.clone(),
        tokens_before: compaction.tokens_before,
        tokens_after: compaction.tokens_after.unwrap_or(compaction.tokens_before),
        folded_messages: folded.len(),
        identifiers: planted.len(),
        identifiers_kept: planted.iter().filter(|planted| shown.contains(planted.as_str())).count(),
        pins: pins.len(),
        pins_kept: pins.iter().filter(|pin| one_blank(summary).contains(&one_blank(pin))).count(),
        refused: compaction.refusals.as_array().map_or(0, Vec::len),
    }
}

fn expiry(evidence: &Evidence) -> Option<Expiry> {
    let closed = &evidence.session(evidence.expired)?.session;
    let successor = evidence.session(closed.successor_id?)?;
    let known = evidence.session(closed.id)?;
    let inherited = successor
        .messages
        .iter()
        .filter(|message| known.messages.iter().any(|older| older.id == message.id));
    let inherits = |c: &Compaction| c.cause == Cause::Inherited && c.outcome == Outcome::Applied;
    let first_call = successor.manifests.first().map(|manifest| &manifest.manifest);
    Some(Expiry {
        closed_session_id: closed.id,
        closed_because: closed.closed_because.and_then(word),
        successor_id: successor.session.id,
        opened_because: word(successor.session.opened_because)?,
        inherited_summary: successor.compactions.iter().any(inherits),
        inherited_messages: inherited.count(),
        notice_sent: first_call.is_some_and(says_restored),
    })
}

fn says_restored(manifest: &Value) -> bool {
    let parts = manifest["parts"].as_array().map_or(&[][..], Vec::as_slice);
    parts.iter().any(|part| {
        part["kind"] == "notice" && part["why"] == "session_restored" && part["sent"] == true
    })
}

fn text(pin: &Value) -> Option<&str> {
    pin["text"].as_str()
}

fn word(value: impl Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

/// Replaces each run of whitespace with one blank, because a summary may wrap lines elsewhere.
fn one_blank(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
