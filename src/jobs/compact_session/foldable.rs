//! The part of a view that a compaction may fold: what came before the turn that waits for it.

use uuid::Uuid;

use crate::{
    context::{Entry, Weight, compaction::View},
    transcript::Role,
};

/// The rest of the own turn may weigh this part of the room before it is folded, too.
const OWN_ROOM_DIVISOR: u64 = 4;

/// Leaves out what an earlier attempt of the waiting task has stored, and weighs it without its prompt, which is sent as the task.
///
/// Where others have spoken since, or where it is heavy, all of it can be folded.
pub(super) fn before_own_turn(
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
