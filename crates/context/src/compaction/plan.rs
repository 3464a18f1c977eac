//! Decides which messages are folded and which stay. Pure and linear in the number of messages.

use std::{borrow::Cow, ops::Range};

use crate::{
    budget::Budget,
    calibration::Calibration,
    compaction::{
        batches::{self, Batch},
        cut,
        division::{self, Division, SummaryRoom},
        extract,
        flow::Flow,
        generations::{Compaction, View},
        groups,
        policy::{Keep, Policy},
        prompt,
        prompts::Selection,
        reference,
    },
    entry::Entry,
    weight::Weight,
};

#[derive(Debug, Clone, Copy)]
pub struct CompactionInput<'a> {
    pub view: View<'a>,
    pub budget: Budget,
    pub calibration: &'a Calibration,
    /// Tokens that the coming turn adds: its task, posts and notices.
    pub upcoming_tokens: u64,
    /// Narrowest window of the summarisers that may be asked.
    pub summariser_window_tokens: u64,
    pub policy: Policy,
    /// Node of the session, if it is at one: only the messages there are summarised.
    pub node: Option<Node<'a>>,
}

#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    /// First entry of the node's exchanges.
    pub first_seq: i64,
    /// True if the shown summary is of this node, too, so that the next one continues it.
    pub is_continued: bool,
    pub flow: &'a Flow,
    /// Entry that the flow quotes; `None` if it is already folded.
    pub entry_seq: Option<i64>,
}

impl<'a> Node<'a> {
    /// Returns the flow in front of a summary up to `to_seq`. It omits the node's entry if that stays word for word after the summary.
    pub(super) fn flow_to(self, to_seq: i64) -> Cow<'a, Flow> {
        match self.entry_seq {
            Some(seq) if seq > to_seq => Cow::Owned(Flow { entry: None, ..self.flow.clone() }),
            _ => Cow::Borrowed(self.flow),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Length of the folded part: `view.tail[..fold]` is folded, the rest stays.
    pub fold: usize,
    /// Part of it that is summarised; messages before it are archived.
    pub read: Range<usize>,
    pub from_seq: i64,
    pub to_seq: i64,
    /// Empty if there is nothing to read, or the summariser's window is too small. Then only the extract is left.
    pub batches: Vec<Batch>,
    /// Tokens of the present conversation, without system part and coming turn.
    pub tokens_before: u64,
    /// Tokens of the part that stays word for word.
    pub tail_tokens: u64,
    pub summary_max_tokens: u64,
    /// True if there is no room for a summary: a note refers to the archive.
    pub is_reference: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(
        "there is nothing to compact: the latest turns are kept as they are while they fit into the window"
    )]
    NothingToFold,
    #[error(
        "a compaction would save nothing: the conversation takes {tokens_before} tokens, and a summary of its older turns would take as many"
    )]
    NothingToGain { tokens_before: u64 },
    #[error(
        "a summary does not fit: of {room_tokens} tokens, the latest turns take {tail_tokens} and the next one {upcoming_tokens}: raise the window or shorten the task"
    )]
    Floor { tail_tokens: u64, upcoming_tokens: u64, room_tokens: u64 },
}

/// Plans as if the summary had all of the room.
pub fn plan(scene: &CompactionInput<'_>) -> Result<Plan, Error> {
    let found = search(scene, |plan, room| {
        let summary_max_tokens = room.tokens.min(room.summary_max_tokens);
        (Plan { summary_max_tokens, ..plan.clone() }, 0)
    });
    let mut plan = found.or_else(|error| match can_refer(scene) {
        true => Ok(reference(scene)),
        false => Err(error),
    })?;
    plan.batches = divide_into_batches(scene, &plan, 0);
    Ok(plan)
}

/// Plans after the texts have been read: what stays word for word beside the tail takes room from the summary.
pub(super) fn plan_with_texts(scene: &CompactionInput<'_>) -> Result<(Plan, Division), Error> {
    let found = search(scene, |plan, room| {
        let division = division::divide(scene, plan.fold, room);
        let lost = division.pins.dropped_of_people;
        ((plan.clone(), division), lost)
    });
    let (mut plan, division) = match found {
        Ok(found) => found,
        Err(_) if can_refer(scene) => {
            let plan = reference(scene);
            let division = division::divide(scene, plan.fold, SummaryRoom::recorded(scene));
            return Ok((plan, division));
        }
        Err(error) => return Err(error),
    };
    plan.summary_max_tokens = division.summary_max_tokens;
    let quotes = quotes_room(scene, &plan, &division.prompts);
    plan.batches = divide_into_batches(scene, &plan, quotes.leaving_tokens + quotes.answer_tokens);
    Ok((plan, division))
}

/// Returns the first cut and room that lose nothing, or else those that lose least. A heavy tail must not push out what
/// people said: then less of the tail stays, or the next compaction comes sooner.
fn search<T>(
    scene: &CompactionInput<'_>,
    attempt: impl Fn(&Plan, SummaryRoom) -> (T, usize),
) -> Result<T, Error> {
    let mut best: Option<(T, usize)> = None;
    let mut refused = Error::NothingToFold;
    let grouping = groups::group(scene.view.tail, &[]);
    for may_keep_fewer in [false, true] {
        for cut in cut::candidates(scene, &grouping, may_keep_fewer) {
            let (plan, rooms) = match outline(scene, cut) {
                Ok(outlined) => outlined,
                // The error of the last cut is reported, because that cut keeps least.
                Err(error) => {
                    refused = error;
                    continue;
                }
            };
            for room in rooms {
                let (made, lost) = attempt(&plan, room);
                if lost == 0 {
                    return Ok(made);
                }
                if best.as_ref().is_none_or(|(_, least)| lost < *least) {
                    best = Some((made, lost));
                }
            }
        }
        if best.is_none() {
            break;
        }
    }
    best.map(|(made, _)| made).ok_or(refused)
}

fn can_refer(scene: &CompactionInput<'_>) -> bool {
    scene.is_overflowing() && (!scene.view.tail.is_empty() || scene.view.compaction.is_some())
}

/// Plans to fold everything without a summary, for a coming turn that leaves no room for one.
pub(super) fn reference(scene: &CompactionInput<'_>) -> Plan {
    let fold = scene.view.tail.len();
    let (from_seq, to_seq) = places(scene, fold);
    Plan {
        fold,
        read: fold..fold,
        from_seq,
        to_seq,
        batches: Vec::new(),
        tokens_before: tokens_before(scene),
        tail_tokens: 0,
        summary_max_tokens: scene.calibration.tokens(reference::weight()),
        is_reference: true,
    }
}

/// Returns a plan without the summary's size and batches, and the possible rooms for the summary.
fn outline(scene: &CompactionInput<'_>, cut: usize) -> Result<(Plan, Vec<SummaryRoom>), Error> {
    let tail_tokens = scene.calibration.tokens(weight_of(&scene.view.tail[cut..]));
    let tokens_before = tokens_before(scene);
    let (from_seq, to_seq) = places(scene, cut);
    let flow = scene.node.map_or(Weight::ZERO, |node| node.flow_to(to_seq).weight());
    let flow_tokens = scene.calibration.tokens(flow);
    let rooms = rooms(scene, tokens_before, tail_tokens, flow_tokens)?;
    let plan = Plan {
        fold: cut,
        from_seq,
        to_seq,
        batches: Vec::new(),
        read: scene.node_start().min(cut)..cut,
        tokens_before,
        tail_tokens,
        summary_max_tokens: 0,
        is_reference: false,
    };
    Ok((plan, rooms))
}

/// Returns the first and last newly folded entry. If there are none, the last entry of the summary that is shortened.
fn places(scene: &CompactionInput<'_>, cut: usize) -> (i64, i64) {
    let shown_to_seq = scene.view.compaction.map_or(0, |compaction| compaction.to_seq);
    match scene.view.tail[..cut] {
        [] => (shown_to_seq, shown_to_seq),
        [ref first, ..] => (first.seq, scene.view.tail[cut - 1].seq),
    }
}

fn tokens_before(scene: &CompactionInput<'_>) -> u64 {
    let stands_in = scene.view.compaction.map_or(Weight::ZERO, Compaction::weight);
    scene.calibration.tokens(weight_of(scene.view.tail) + stands_in)
}

impl CompactionInput<'_> {
    /// Returns true if the present conversation would leave too little room for the coming turn.
    pub(super) fn needs_room(&self) -> bool {
        self.takes_more_than(self.policy.tight_fit_percent)
    }

    /// Returns true if the coming turn does not fit behind the present conversation.
    pub(super) fn is_overflowing(&self) -> bool {
        self.policy.keep == Keep::Reference || self.takes_more_than(100)
    }

    fn takes_more_than(&self, percent: u64) -> bool {
        let all = tokens_before(self) + self.upcoming_tokens;
        all * 100 > self.budget.room_tokens() * percent
    }

    /// Returns the first position of the session's node; 0 if it is at none.
    pub(super) fn node_start(&self) -> usize {
        let entries = self.view.tail;
        self.node.map_or(0, |node| entries.partition_point(|entry| entry.seq < node.first_seq))
    }
}

/// Returns the largest rooms with which the summary and people's texts both save enough and fit: the usual one, and one
/// after which the next compaction may come sooner.
fn rooms(
    scene: &CompactionInput<'_>,
    tokens_before: u64,
    tail_tokens: u64,
    flow_tokens: u64,
) -> Result<Vec<SummaryRoom>, Error> {
    let policy = &scene.policy;
    let room_tokens = scene.budget.room_tokens();
    let upcoming_tokens = scene.upcoming_tokens;
    let no_room = Error::Floor { tail_tokens, upcoming_tokens, room_tokens };
    let to_start = start_room(scene).saturating_sub(tail_tokens + flow_tokens);
    if tail_tokens * 100 > room_tokens * policy.keep_percent {
        return Err(no_room);
    }
    let stays = tail_tokens + flow_tokens + scene.upcoming_tokens;
    let to_save = (tokens_before * (100 - policy.save_percent) / 100)
        .saturating_sub(tail_tokens + flow_tokens);
    // Room for the empty headings and for the share that pins may fill: then the extract always fits.
    let min_tokens = scene.calibration.tokens(extract::skeleton()) * 5 / 2 + 1;
    let window = scene.budget.window_tokens().min(scene.summariser_window_tokens);
    let to_fit = |percent: u64| (room_tokens * percent / 100).saturating_sub(stays);
    let [usual, tight] = [policy.fit_percent, policy.tight_fit_percent]
        .map(|percent| to_fit(percent).min(to_save).min(to_start));
    if tight < min_tokens {
        let has_room = to_fit(policy.tight_fit_percent).min(to_start) >= min_tokens;
        return Err(if has_room { Error::NothingToGain { tokens_before } } else { no_room });
    }
    let mut rooms = vec![usual, tight];
    rooms.dedup();
    rooms.retain(|tokens| *tokens >= min_tokens);
    let room = |tokens| SummaryRoom {
        tokens,
        summary_min_tokens: min_tokens,
        summary_max_tokens: Policy::summary_max_tokens(window),
    };
    Ok(rooms.into_iter().map(room).collect())
}

/// Returns the room of a compacted conversation, at least a quarter of the room beside a large system part.
fn start_room(scene: &CompactionInput<'_>) -> u64 {
    let (budget, room_tokens) = (&scene.budget, scene.budget.room_tokens());
    let all_tokens = room_tokens + budget.system_tokens();
    let start_tokens = all_tokens * scene.policy.start_percent / 100;
    start_tokens.saturating_sub(budget.system_tokens()).max(room_tokens / 4)
}

fn divide_into_batches(scene: &CompactionInput<'_>, plan: &Plan, quotes_tokens: u64) -> Vec<Batch> {
    let read = plan.read.clone();
    if read.is_empty() {
        return Vec::new();
    }
    let Some(batch_tokens) = batch_tokens(scene, plan.summary_max_tokens) else {
        return Vec::new();
    };
    let batch_tokens = batch_tokens.saturating_sub(quotes_tokens);
    let limit = scene.calibration.weight_within(batch_tokens);
    batches::divide(scene.view.tail, read, limit)
}

/// Returns the room for a batch in the summariser's window, beside its instructions, the pins, the summary so far and
/// its answer. Returns `None` if that is too little to make progress.
fn batch_tokens(scene: &CompactionInput<'_>, summary_max_tokens: u64) -> Option<u64> {
    let window_tokens = scene.summariser_window_tokens;
    let taken = scene.calibration.tokens(prompt::overhead())
        + Policy::pins_max_tokens(summary_max_tokens)
        + summary_max_tokens * 2;
    let left = (window_tokens * 9 / 10).saturating_sub(taken);
    let enough = left * 10 >= window_tokens;
    enough.then(|| left.min(window_tokens * scene.policy.batch_percent / 100))
}

/// The tokens of leaving prompts in a question, and of quotes from them in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct QuotesRoom {
    pub(super) leaving_tokens: u64,
    pub(super) answer_tokens: u64,
}

/// Divides the room for quotes, half of a batch at most. A small summary leaves little for quotes, because the model
/// treats both as one answer.
pub(super) fn quotes_room(
    scene: &CompactionInput<'_>,
    plan: &Plan,
    prompts: &Selection,
) -> QuotesRoom {
    if !prompts.wants_quotes() {
        return QuotesRoom::default();
    }
    let batch_tokens = batch_tokens(scene, plan.summary_max_tokens).unwrap_or(0);
    let leaving_tokens = prompts.removed_prompts_tokens(scene.calibration).min(batch_tokens / 3);
    let answer_tokens = (leaving_tokens / 2).max(batch_tokens / 12);
    let answer_max = (batch_tokens / 6).min(plan.summary_max_tokens / 2);
    QuotesRoom { leaving_tokens, answer_tokens: answer_tokens.min(answer_max) }
}

fn weight_of(entries: &[Entry]) -> Weight {
    entries.iter().map(|entry| entry.weight).sum()
}
