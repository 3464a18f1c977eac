//! Finds the places where a compaction may cut: in front of whole turns, never inside a group, never in front of the node.

use crate::{
    compaction::{
        groups::Groups,
        plan::CompactionInput,
        policy::{Keep, Policy},
    },
    entry::Entry,
    transcript::Role,
    weight::Weight,
};

/// Returns positions from which on entries stay, in order of preference: those that keep more come first.
///
/// Empty if there is nothing to fold. `may_keep_fewer`: the turns that stay push out something else.
pub(super) fn candidates(
    scene: &CompactionInput<'_>,
    grouping: &Groups,
    may_keep_fewer: bool,
) -> Vec<usize> {
    let count = scene.view.tail.len();
    let whole = whole_cuts(count, grouping);
    let node_start = scene.node_start();
    let starts = turn_starts(scene.view.tail, node_start);
    let mut cuts = Vec::new();
    let Policy { keep, keep_turns, .. } = scene.policy;
    if keep == Keep::Turns {
        cuts.extend(usual(scene, &starts, &whole));
    }
    let turns = match keep {
        Keep::Turns if may_keep_fewer || scene.needs_room() => (0..=keep_turns).rev(),
        Keep::Turns if cuts.is_empty() => return cuts,
        Keep::Turns if are_heavy(scene, &starts) => (0..=keep_turns).rev(),
        Keep::Turns => (keep_turns..=keep_turns).rev(),
        Keep::Summary => (0..=0).rev(),
        Keep::Reference => return cuts,
    };
    for turns in turns {
        let at = starts.len().checked_sub(turns).map(|at| starts.get(at).copied().unwrap_or(count));
        // A summary that has become too long is shortened if there is nothing else to fold.
        let shortens = |at: usize| at == 0 && count == 0 && scene.view.compaction.is_some();
        let fits = |at: &usize| whole[*at] && (*at > 0 || shortens(*at)) && !cuts.contains(at);
        if let Some(at) = at.filter(fits) {
            cuts.push(at);
        }
    }
    cuts
}

/// Returns true if the last turns take more than their share of the room.
fn are_heavy(scene: &CompactionInput<'_>, starts: &[usize]) -> bool {
    let first = starts.len().checked_sub(scene.policy.keep_turns).and_then(|at| starts.get(at));
    let weight = first.map_or(Weight::ZERO, |first| weight_of(&scene.view.tail[*first..]));
    let most = scene.budget.room_tokens() * scene.policy.keep_percent / 100;
    scene.calibration.tokens(weight) > most
}

/// Keeps the policy's number of turns, and older ones while they are light.
fn usual(scene: &CompactionInput<'_>, starts: &[usize], whole: &[bool]) -> Option<usize> {
    let entries = scene.view.tail;
    let node_start = scene.node_start();
    let keep_turns = scene.policy.keep_turns.max(1);
    if starts.len() <= keep_turns {
        // There are few exchanges at the node: they stay as they are, and earlier ones are folded.
        let is_begun = node_start > 0 && starts.first() == Some(&node_start) && whole[node_start];
        return is_begun.then_some(node_start);
    }
    let room_tokens = scene.budget.room_tokens();
    let tail_limit = scene.calibration.weight_within(
        (room_tokens * scene.policy.tail_percent / 100).min(scene.policy.tail_max_tokens),
    );
    let mut cut = None;
    let mut weight = Weight::ZERO;
    let mut counted_from = entries.len();
    for (turns, &start) in starts.iter().rev().enumerate() {
        weight = weight + weight_of(&entries[start..counted_from]);
        counted_from = start;
        let enough_turns = turns + 1 >= keep_turns;
        if cut.is_some() && weight > tail_limit {
            break;
        }
        if enough_turns && start > 0 && whole[start] {
            cut = Some(start);
        }
    }
    cut
}

/// Returns the starts of the turns from `from` on. A turn begins with the user's message, or with the notices and posts
/// directly in front of it.
fn turn_starts(entries: &[Entry], from: usize) -> Vec<usize> {
    (from..entries.len())
        .filter(|index| entries[*index].message.role == Role::User)
        .map(|mut start| {
            while start > from
                && matches!(entries[start - 1].message.role, Role::Notice | Role::Posts)
            {
                start -= 1;
            }
            start
        })
        .collect()
}

/// Tells for each position if a cut in front of it leaves every group whole.
fn whole_cuts(count: usize, grouping: &Groups) -> Vec<bool> {
    let mut whole = vec![true; count + 1];
    let mut reach = 0;
    for group in &grouping.groups {
        // Positions between a head and its last result are inside the group.
        let from = (group.head + 1).max(reach);
        let to = group.last() + 1;
        if from < to {
            whole[from..to].fill(false);
        }
        reach = reach.max(to);
    }
    whole
}

fn weight_of(entries: &[Entry]) -> Weight {
    entries.iter().map(|entry| entry.weight).sum()
}
