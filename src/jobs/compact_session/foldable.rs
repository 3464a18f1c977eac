//! The part of a view that a compaction may fold: messages before the running and the waiting turn.

use uuid::Uuid;

use crate::{
    context::{Entry, Weight, compaction::View},
    transcript::Role,
};

/// Divisor of the room: if the waiting task's own messages weigh more than this part, they are folded, too. For messages of the running
/// turn, at most this part is reserved: if they are heavier, the next compaction folds them.
const OWN_ROOM_DIVISOR: u64 = 4;

/// Leaves out the messages of the running turn, which follow `ended_to_seq`, and returns the weight to reserve for them. The prompt of the
/// waiting task is not counted, because it is sent as the task.
///
/// The turn writes its posts among these messages when it ends. If they were folded, no context would have the posts.
pub(super) fn exclude_running_turn(
    view: View<'_>,
    ended_to_seq: Option<i64>,
    waiting: Option<Uuid>,
    room: Weight,
) -> (View<'_>, Weight) {
    let Some(ended_to_seq) = ended_to_seq else { return (view, Weight::ZERO) };
    let n_ended = view.tail.partition_point(|entry| entry.seq <= ended_to_seq);
    let (ended, own) = view.tail.split_at(n_ended);
    let stays = own.iter().filter(|entry| Some(entry.id) != waiting);
    let weight: Weight = stays.map(|entry| entry.weight).sum();
    (View { tail: ended, ..view }, weight.min(own_max_weight(room)))
}

/// Leaves out the messages that an earlier attempt of the waiting task has stored. Returns their weight, too, without the
/// prompt, which is sent as the task.
///
/// If other tasks have asked since, or if these messages are heavy, the whole view can be folded.
pub(super) fn exclude_own_turn(
    view: View<'_>,
    waiting: Option<Uuid>,
    room: Weight,
) -> (View<'_>, Weight) {
    let whole = (view, Weight::ZERO);
    let is_prompt = |entry: &Entry| entry.message.role == Role::User;
    let Some(last) = view.tail.iter().rposition(is_prompt) else { return whole };
    if Some(view.tail[last].id) != waiting {
        return whole;
    }
    let is_notice = |entry: &Entry| matches!(entry.message.role, Role::Notice | Role::Posts);
    let n_in_front = view.tail[..last].iter().rev().take_while(|entry| is_notice(entry)).count();
    let (before, own) = view.tail.split_at(last - n_in_front);
    let beside = own.iter().filter(|entry| !is_prompt(entry)).map(|entry| entry.weight).sum();
    match beside > own_max_weight(room) {
        true => whole,
        false => (View { tail: before, ..view }, beside),
    }
}

fn own_max_weight(room: Weight) -> Weight {
    Weight::from_millitokens(room.millitokens() / OWN_ROOM_DIVISOR)
}
