//! The last messages that were sent, to send none twice.

use std::collections::{HashMap, VecDeque};

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// Tasks whose last message is remembered: a megabyte. The events of one task are much closer to each other in the feed.
const MAX_TASKS: usize = 10_000;

/// Digests of the last message about each task. The oldest task is forgotten first.
#[derive(Debug, Default)]
pub(super) struct SentMessages {
    digests: HashMap<Uuid, [u8; 32]>,
    order: VecDeque<Uuid>,
}

impl SentMessages {
    /// Remembers a message. Returns false if it is the last one about this task.
    pub(super) fn is_new(&mut self, task_id: Uuid, body: &str) -> bool {
        let digest: [u8; 32] = Sha256::digest(body).into();
        let before = self.digests.insert(task_id, digest);
        if before.is_none() {
            self.order.push_back(task_id);
        }
        if self.order.len() > MAX_TASKS
            && let Some(oldest) = self.order.pop_front()
        {
            self.digests.remove(&oldest);
        }
        before != Some(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_new_once_and_old_tasks_are_forgotten() {
        let mut sent = SentMessages::default();
        let id = |n: usize| Uuid::from_u128(n as u128);
        assert!(sent.is_new(id(0), "done"));
        assert!(!sent.is_new(id(0), "done"));
        assert!(sent.is_new(id(0), "failed"), "a retried task ends again");
        for n in 1..=MAX_TASKS {
            assert!(sent.is_new(id(n), "done"));
        }
        assert_eq!((sent.digests.len(), sent.order.len()), (MAX_TASKS, MAX_TASKS));
        assert!(!sent.is_new(id(1), "done"));
        assert!(sent.is_new(id(0), "failed"), "the oldest task is forgotten");
    }
}
