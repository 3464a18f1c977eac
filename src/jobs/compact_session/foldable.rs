//! The part of a view that a compaction may fold: messages before the waiting turn.

use uuid::Uuid;

use crate::{
    context::{Entry, Weight, compaction::View},
    transcript::Role,
};

/// Divisor of the room: if the waiting task's own messages weigh more than this part, they are folded, too.
const OWN_ROOM_DIVISOR: u64 = 4;

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
    let most = Weight::from_millitokens(room.millitokens() / OWN_ROOM_DIVISOR);
    match beside > most {
        true => whole,
        false => (View { tail: before, ..view }, beside),
    }
}
