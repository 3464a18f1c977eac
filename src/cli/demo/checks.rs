//! Checks of what must hold despite the faults of the demo. Each check reads the evidence from the tables.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    evidence::{Conversation, Evidence, Work},
    report::{AGENTS, Report},
    script::{N_PARTS, N_ROUNDS, PLANNER, WRITERS, parts_of},
};
use crate::{
    domain::{
        posts::{Origin, Post},
        tasks,
        turns::{self, Turn},
    },
    transcript::Role,
};

#[derive(Debug, Serialize)]
pub(super) struct Check {
    pub(super) holds: bool,
    pub(super) what: &'static str,
    /// Figures that decided the check.
    pub(super) figures: String,
}

pub(super) fn all(evidence: &Evidence, report: &Report) -> Vec<Check> {
    vec![
        all_answered(evidence),
        in_order(evidence),
        side_by_side(evidence),
        never_two_at_once(evidence),
        each_answer_on_the_board(evidence),
        board_without_a_gap(evidence),
        planner_saw_everything_once(evidence),
        posts_stayed_within_their_audience(evidence),
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
    let n_parts = evidence.parts().values().copied().filter(done).count();
    check(
        "each task was answered by exactly one turn",
        n_done == n_tasks && n_parts == N_PARTS,
        format!("{n_done} of {n_tasks} tasks, {n_parts} of {N_PARTS} parts"),
    )
}

fn in_order(evidence: &Evidence) -> Check {
    let numbers = |agent| -> Vec<i32> {
        let done = evidence.of_agent(agent).filter_map(|work| done_turn(work));
        done.map(|turn| turn.number).collect()
    };
    let by_agent = AGENTS.map(numbers);
    let holds = by_agent.iter().all(|numbers| numbers.is_sorted_by(|a, b| a < b));
    let words =
        |numbers: &Vec<i32>| numbers.iter().map(i32::to_string).collect::<Vec<_>>().join(" ");
    let turns: Vec<String> = by_agent.iter().map(words).collect();
    check("each agent answered its tasks in order", holds, format!("turns {}", turns.join(", ")))
}

/// Counts the rounds in which the last writer began before the first one had ended.
fn side_by_side(evidence: &Evidence) -> Check {
    let parts = evidence.parts();
    let overlaps = |round: &usize| {
        let tasks: Vec<&tasks::Task> =
            parts_of(*round).filter_map(|number| Some(&parts.get(&number)?.task)).collect();
        let last_begin = tasks.iter().filter_map(|task| task.started_at).max();
        let first_end = tasks.iter().filter_map(|task| task.ended_at).min();
        tasks.len() == WRITERS.len() && last_begin < first_end
    };
    let n_rounds = (1..=N_ROUNDS).filter(overlaps).count();
    check(
        "the writers worked in parallel",
        n_rounds > 0,
        format!("all {} at once in {n_rounds} of {N_ROUNDS} rounds", WRITERS.len()),
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

/// Checks that each task has one post, which answers the post that created the task.
fn each_answer_on_the_board(evidence: &Evidence) -> Check {
    let answers = |work: &Work| -> Vec<&Post> {
        evidence.board.iter().filter(|post| post.task_id == Some(work.task.id)).collect()
    };
    let asked = |post: &Post| evidence.board.iter().find(|asked| Some(asked.id) == post.reply_to);
    let is_answered = |work: &&Work| match answers(work).as_slice() {
        [answer] => {
            answer.sender == work.task.agent
                && Some(&answer.text) == work.task.result.as_ref()
                && asked(answer).is_some_and(|asked| asked.text == work.task.prompt)
        }
        _ => false,
    };
    let n_answered = evidence.tasks.iter().filter(is_answered).count();
    let by_agents = evidence.board.iter().filter(|post| post.origin == Origin::Agent).count();
    check(
        "each task has one post that answers its post",
        n_answered == evidence.tasks.len() && n_answered == by_agents,
        format!("{n_answered} of {} tasks, {by_agents} posts of agents", evidence.tasks.len()),
    )
}

fn board_without_a_gap(evidence: &Evidence) -> Check {
    let seqs = evidence.board.iter().map(|post| post.seq);
    let n_posts = evidence.board.len();
    check(
        "the board has no gaps, in the order of commits",
        n_posts > 0 && seqs.eq(1..=i64::try_from(n_posts).unwrap_or_default()),
        format!("{n_posts} posts"),
    )
}

/// Checks that the planner was shown each post of the others once, up to the last post that was its prompt. Its own
/// prompts and posts are left out.
fn planner_saw_everything_once(evidence: &Evidence) -> Check {
    let prompts: Vec<&str> =
        evidence.of_agent(PLANNER).map(|work| work.task.prompt.as_str()).collect();
    let shown: Vec<i64> = evidence.sessions_of(PLANNER).flat_map(Conversation::shown).collect();
    let up_to = evidence.board.iter().filter(|post| prompts.contains(&post.text.as_str()));
    let up_to = up_to.map(|post| post.seq).max().unwrap_or_default();
    let is_for_it = |post: &&Post| {
        post.seq < up_to && post.sender != PLANNER && !prompts.contains(&post.text.as_str())
    };
    let due = evidence.board.iter().filter(is_for_it).map(|post| post.seq);
    let due: Vec<i64> = due.collect();
    check(
        "the planner was shown each answer of the others once",
        !due.is_empty() && shown == due,
        format!("{} of {}", shown.len(), due.len()),
    )
}

fn posts_stayed_within_their_audience(evidence: &Evidence) -> Check {
    let (mut n_shown, mut n_wrong) = (0, 0);
    for conversation in &evidence.sessions {
        let agent = &conversation.session.agent;
        let may_see = |seq: &i64| {
            let post = evidence.board.iter().find(|post| post.seq == *seq);
            let names =
                |post: &Post| post.audience.iter().any(|name| name == agent || name == "all");
            agent == PLANNER || post.is_some_and(names)
        };
        let mut shown = conversation.shown();
        n_shown += shown.len();
        n_wrong += shown.iter().filter(|seq| !may_see(seq)).count();
        shown.sort_unstable();
        n_wrong += shown.windows(2).filter(|pair| pair[0] == pair[1]).count();
    }
    check(
        "no conversation was shown a post twice, or a post for another agent",
        n_shown > 0 && n_wrong == 0,
        format!("{n_shown} shown, {n_wrong} of them wrong"),
    )
}

/// Checks that the transcripts are the prompts and the answers, each once and in order.
fn nothing_lost_or_doubled(evidence: &Evidence) -> Check {
    let (mut n_prompts, mut n_answers, mut n_whole) = (0, 0, 0);
    for agent in AGENTS {
        let transcript = evidence.transcript(agent);
        let works: Vec<&Work> = evidence.of_agent(agent).collect();
        let asked = transcript.iter().filter(|m| m.message.role == Role::User).map(|m| m.id);
        let asked: Vec<_> = asked.collect();
        let answers = transcript.iter().filter(|m| m.message.role == Role::Assistant && !m.partial);
        let answers: Vec<_> = answers.map(|m| Some(m.message.text.as_str())).collect();
        let all_asked = asked.iter().eq(works.iter().map(|work| &work.task.id));
        let results = works.iter().map(|work| work.task.result.as_deref());
        let all_answered = answers.iter().copied().eq(results);
        n_whole += usize::from(all_asked && all_answered && !works.is_empty());
        (n_prompts, n_answers) = (n_prompts + asked.len(), n_answers + answers.len());
    }
    check(
        "every prompt and every answer is stored exactly once",
        n_whole == AGENTS.len(),
        format!("{n_prompts} prompts and {n_answers} answers in {} transcripts", AGENTS.len()),
    )
}

fn continued_by_another(evidence: &Evidence, report: &Report) -> Check {
    let lost = evidence.runs.iter().filter(|run| run.outcome == "lost");
    let n_lost = lost.filter(|run| run.worker_id == Some(evidence.kill.worker_id)).count();
    let kill = &report.kill;
    let by_another = kill.continued_by_pid.is_some_and(|pid| pid != kill.killed_pid);
    check(
        "another worker continued the turn of the killed one",
        n_lost == 1 && kill.interrupted_turn.is_some() && by_another,
        format!("{n_lost} attempt was lost with its worker, {} in all", evidence.runs.len()),
    )
}

/// Checks that the turn after an interrupted one has a notice of it.
fn says_that_it_was_interrupted(evidence: &Evidence) -> Check {
    let (mut n_told, mut n_to_be_told, mut holds) = (0, 0, true);
    for agent in AGENTS {
        let turns = evidence.of_agent(agent).flat_map(|work| &work.turns);
        let cut_off = turns.filter(|turn| turn.state == turns::State::Interrupted);
        let to_be_told: Vec<i32> = cut_off.map(|turn| turn.number + 1).collect();
        let transcript = evidence.transcript(agent);
        let notices = transcript.iter().filter(|m| m.message.role == Role::Notice);
        let told: Vec<i32> = notices.map(|notice| notice.turn).collect();
        holds = holds && told == to_be_told;
        (n_told, n_to_be_told) = (n_told + told.len(), n_to_be_told + to_be_told.len());
    }
    check(
        "the turn after an interrupted one had a notice",
        holds && n_told > 0,
        format!("{n_told} of {n_to_be_told}"),
    )
}

fn identifiers_kept(report: &Report) -> Check {
    let sum = |count: fn(&super::report::Fold) -> usize| {
        report.compactions.iter().map(count).sum::<usize>()
    };
    let (planted, kept) = (sum(|fold| fold.identifiers), sum(|fold| fold.identifiers_kept));
    let (pins, pins_kept) = (sum(|fold| fold.pins), sum(|fold| fold.pins_kept));
    check(
        "summaries kept every identifier",
        planted > 0 && planted == kept && pins == pins_kept,
        format!("{kept} of {planted} planted, {pins_kept} of {pins} pinned"),
    )
}

/// Checks that folded messages are still stored.
fn originals_stay(evidence: &Evidence, report: &Report) -> Check {
    let (mut n_folded, mut n_stored) = (0, 0);
    for fold in &report.compactions {
        n_folded = n_folded.max(fold.folded_messages);
        let conversation = evidence.session(fold.session_id);
        n_stored = n_stored.max(conversation.map_or(0, |it| it.messages.len()));
    }
    let prompts = |agent: &str| evidence.of_agent(agent).count();
    let least = report.compactions.iter().map(|fold| 2 * prompts(&fold.agent)).max().unwrap_or(0);
    check(
        "summarised messages are still in the transcript",
        n_folded > 0 && n_stored >= least,
        format!("{n_folded} of {n_stored} messages are summarised"),
    )
}

fn successor_inherits(report: &Report) -> Check {
    let expiry = report.expiry.as_ref();
    let holds = expiry.is_some_and(|expiry| {
        expiry.closed_because.as_deref() == Some("expired")
            && expiry.opened_because == "expired"
            && expiry.inherited_summary
            && expiry.inherited_messages == 0
            && expiry.notice_sent
    });
    check(
        "the expired session was closed, and its successor had a notice",
        holds,
        match holds {
            true => "it began with a summary".to_owned(),
            false => "it did not begin with a summary alone".to_owned(),
        },
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

fn done_turn(work: &Work) -> Option<&Turn> {
    work.turns.iter().find(|turn| turn.state == turns::State::Done)
}

fn nothing_left(evidence: &Evidence) -> Check {
    let n_left = evidence.n_jobs_left;
    check("no turn waits, and there are no dead letters", n_left == 0, format!("{n_left} jobs"))
}
