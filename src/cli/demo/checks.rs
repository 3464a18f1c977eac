//! What has to hold whatever was done to the service. Each is looked up in the tables; none is taken for granted.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    evidence::{Evidence, Work},
    report::{AGENTS, Report},
    script::N_PARTS,
};
use crate::{
    domain::{
        tasks,
        turns::{self, Turn},
    },
    transcript::Role,
};

#[derive(Debug, Serialize)]
pub(super) struct Check {
    pub(super) holds: bool,
    pub(super) what: &'static str,
    /// The figures it was decided by.
    pub(super) figures: String,
}

pub(super) fn all(evidence: &Evidence, report: &Report) -> Vec<Check> {
    vec![
        all_answered(evidence),
        in_order(evidence),
        never_two_at_once(evidence),
        nothing_lost_or_doubled(evidence),
        continued_by_another(evidence, report),
        says_that_it_was_interrupted(evidence),
        identifiers_kept(report),
        originals_stay(evidence, report),
        successor_inherits(report),
        one_open_session(evidence),
        ledger_adds_up(evidence, report),
        nothing_left(evidence),
    ]
}

fn check(what: &'static str, holds: bool, figures: String) -> Check {
    Check { holds, what, figures }
}

fn all_answered(evidence: &Evidence) -> Check {
    let done = |work: &&Work| {
        let turns = work.turns.iter().filter(|turn| turn.state == turns::State::Done);
        work.task.state == tasks::State::Done && turns.count() == 1
    };
    let (n_done, n_tasks) = (evidence.tasks.iter().filter(done).count(), evidence.tasks.len());
    let n_parts = evidence.of_agent("copywriter").filter(done).count();
    check(
        "each task was answered by exactly one turn",
        n_done == n_tasks && n_parts == N_PARTS,
        format!("{n_done} of {n_tasks} tasks, {n_parts} of {N_PARTS} parts"),
    )
}

fn in_order(evidence: &Evidence) -> Check {
    let done = evidence.of_agent("copywriter").filter_map(|work| {
        work.turns.iter().find(|turn| turn.state == turns::State::Done).map(|turn| turn.number)
    });
    let numbers: Vec<i32> = done.collect();
    check(
        "the parts were written in the order they were asked",
        numbers.len() == N_PARTS && numbers.is_sorted_by(|a, b| a < b),
        format!("turns {}", numbers.iter().map(i32::to_string).collect::<Vec<_>>().join(" ")),
    )
}

fn never_two_at_once(evidence: &Evidence) -> Check {
    let overlaps = AGENTS.iter().map(|agent| {
        let mut turns: Vec<&Turn> = evidence.of_agent(agent).flat_map(|work| &work.turns).collect();
        turns.sort_by_key(|turn| turn.started_at);
        let follows = |pair: &[&Turn]| {
            pair[0].ended_at.is_some_and(|ended_at| ended_at <= pair[1].started_at)
        };
        turns.windows(2).filter(|pair| !follows(pair)).count()
    });
    let n_overlaps: usize = overlaps.sum();
    check(
        "no conversation ever had two turns at once",
        n_overlaps == 0,
        format!("{n_overlaps} overlaps"),
    )
}

/// The transcript is the ten prompts and the ten answers, each once and in order, whatever was done in between.
fn nothing_lost_or_doubled(evidence: &Evidence) -> Check {
    let transcript = evidence.transcript("copywriter");
    let works: Vec<&Work> = evidence.of_agent("copywriter").collect();
    let asked: Vec<_> =
        transcript.iter().filter(|m| m.message.role == Role::User).map(|m| m.id).collect();
    let answers: Vec<_> = transcript
        .iter()
        .filter(|m| m.message.role == Role::Assistant && !m.partial)
        .map(|m| Some(m.message.text.as_str()))
        .collect();
    let all_asked = asked.iter().eq(works.iter().map(|work| &work.task.id));
    let all_answered =
        answers.iter().copied().eq(works.iter().map(|work| work.task.result.as_deref()));
    check(
        "no part was lost, and none was written twice",
        all_asked && all_answered && works.len() == N_PARTS,
        format!("{} prompts and {} answers in the transcript", asked.len(), answers.len()),
    )
}

fn continued_by_another(evidence: &Evidence, report: &Report) -> Check {
    let lost = evidence.runs.iter().filter(|run| run.outcome == "lost");
    let n_lost = lost.filter(|run| run.worker_id == Some(evidence.kill.worker_id)).count();
    let kill = &report.kill;
    let by_another = kill.continued_by_pid.is_some_and(|pid| pid != kill.killed_pid);
    check(
        "another worker took the killed one's turn over",
        n_lost == 1 && kill.interrupted_turn.is_some() && by_another,
        format!("{n_lost} attempt was lost with its worker, {} in all", evidence.runs.len()),
    )
}

fn says_that_it_was_interrupted(evidence: &Evidence) -> Check {
    let turns = || evidence.of_agent("copywriter").flat_map(|work| &work.turns);
    let cut_off = turns().filter(|turn| turn.state == turns::State::Interrupted);
    // The turn that comes next is the one that has to know.
    let to_be_told: Vec<i32> = cut_off.map(|turn| turn.number + 1).collect();
    let transcript = evidence.transcript("copywriter");
    let notices = transcript.iter().filter(|m| m.message.role == Role::Notice);
    let told: Vec<i32> = notices.map(|notice| notice.turn).collect();
    check(
        "the turn after an interrupted one was told so",
        !told.is_empty() && told == to_be_told,
        format!("{} of {}", told.len(), to_be_told.len()),
    )
}

fn identifiers_kept(report: &Report) -> Check {
    let sum = |count: fn(&super::report::Fold) -> usize| {
        report.compactions.iter().map(count).sum::<usize>()
    };
    let (planted, kept) = (sum(|fold| fold.identifiers), sum(|fold| fold.identifiers_kept));
    let (pins, pins_kept) = (sum(|fold| fold.pins), sum(|fold| fold.pins_kept));
    check(
        "summaries kept every identifier of what they stand for",
        planted > 0 && planted == kept && pins == pins_kept,
        format!("{kept} of {planted} planted, {pins_kept} of {pins} pinned"),
    )
}

fn originals_stay(evidence: &Evidence, report: &Report) -> Check {
    let n_folded = report.compactions.iter().map(|fold| fold.folded_messages).max().unwrap_or(0);
    let turns = evidence.of_agent("copywriter").flat_map(|work| &work.turns);
    let n_notices = turns.filter(|turn| turn.state == turns::State::Interrupted).count();
    let n_stored = evidence.transcript("copywriter").len();
    check(
        "folded messages are still in the transcript",
        n_folded > 0 && n_stored == 2 * N_PARTS + n_notices,
        format!("{n_folded} of {n_stored} messages are folded"),
    )
}

fn successor_inherits(report: &Report) -> Check {
    let expiry = report.expiry.as_ref();
    let holds = expiry.is_some_and(|expiry| {
        expiry.closed_because.as_deref() == Some("expired")
            && expiry.opened_because == "expired"
            && (expiry.inherited_summary || expiry.inherited_messages > 0)
            && expiry.notice_sent
    });
    check(
        "the expired session was closed, and its successor was told what it is",
        holds,
        format!("{} messages inherited", expiry.map_or(0, |expiry| expiry.inherited_messages)),
    )
}

fn one_open_session(evidence: &Evidence) -> Check {
    let mut open: BTreeMap<&str, usize> = BTreeMap::new();
    for conversation in &evidence.sessions {
        let session = &conversation.session;
        *open.entry(&session.agent).or_default() += usize::from(session.closed_at.is_none());
    }
    check(
        "each conversation has one open session",
        open.len() == AGENTS.len() && open.values().all(|n_open| *n_open == 1),
        format!("{} of {} sessions", open.values().sum::<usize>(), evidence.sessions.len()),
    )
}

fn ledger_adds_up(evidence: &Evidence, report: &Report) -> Check {
    let in_ledger: i64 = report
        .agents
        .iter()
        .map(|agent| agent.input_tokens + agent.output_tokens + agent.summary_tokens)
        .sum();
    let in_sessions: i64 =
        evidence.sessions.iter().map(|conversation| conversation.session.token_count).sum();
    check(
        "the ledger and the sessions count the same tokens",
        in_ledger > 0 && in_ledger == in_sessions,
        format!("{in_ledger} and {in_sessions}"),
    )
}

fn nothing_left(evidence: &Evidence) -> Check {
    let n_left = evidence.n_jobs_left;
    check("no turn waits, and no job has died", n_left == 0, format!("{n_left} jobs"))
}
