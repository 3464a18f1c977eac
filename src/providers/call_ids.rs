//! Ids of tool calls: each call of a conversation has one of its own.

use std::collections::HashSet;

use sha2::{Digest as _, Sha256};

use super::Request;

/// Ids that the calls of a conversation have. Some servers repeat theirs, and some give none.
#[derive(Debug)]
pub(super) struct CallIds<'a> {
    request: &'a Request,
    taken: HashSet<String>,
}

/// Length of the ids that we give. Some templates accept letters and digits of this length only.
const ID_CHARS: usize = 9;

impl<'a> CallIds<'a> {
    pub(super) fn of(request: &'a Request) -> Self {
        let earlier = request.messages.iter().flat_map(|message| &message.tool_calls);
        Self { request, taken: earlier.map(|call| call.id.clone()).collect() }
    }

    /// Returns the server's id of a call, or one of our own if it is empty or taken. `at` is the position of the call in its answer.
    pub(super) fn unique(&mut self, given: String, at: usize) -> String {
        let id = match given.is_empty() || self.taken.contains(&given) {
            true => self.own_id(at),
            false => given,
        };
        self.taken.insert(id.clone());
        id
    }

    /// Returns an id from the turn and the place of the call in it.
    fn own_id(&self, at: usize) -> String {
        let place = format!("{}/{}/{at}", self.request.turn, self.request.messages.len());
        let mut id = hex::encode(Sha256::digest(place));
        id.truncate(ID_CHARS);
        id
    }
}
