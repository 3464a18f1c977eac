//! The request of a turn: the prompt of its task, or the correction of an answer that does not match the result schema.
//!
//! A correction is a turn of its own in the same task. So its budget is reserved, its tokens are charged, and it can be
//! cancelled like any other, and a lost worker loses nothing of it: the fault is on the task's row.

use uuid::Uuid;

use crate::{
    domain::{tasks::Task, turn_phases::Correction},
    transcript::Role,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnPrompt {
    /// Id of the transcript's entry.
    pub entry_id: Uuid,
    pub text: String,
    /// True for a correction: the service asks, not the one who asked for the task.
    pub is_correction: bool,
}

impl TurnPrompt {
    /// `text` is the prompt of the task, with the fields of earlier steps filled in.
    pub fn of(task: &Task, text: String, correction: Option<&Correction>) -> Self {
        match correction {
            None => Self { entry_id: task.id, text, is_correction: false },
            Some(correction) => Self {
                entry_id: correction_id(task, correction.number),
                text: correction_text(&correction.fault),
                is_correction: true,
            },
        }
    }

    pub fn role(&self) -> Role {
        if self.is_correction { Role::Notice } else { Role::User }
    }
}

fn correction_text(fault: &str) -> String {
    format!(
        "Your last answer cannot be used: {fault}. Answer the task again, completely, with JSON that matches the schema and nothing else."
    )
}

/// Derives the id of the entry, so that a second attempt finds that of the first. A task that was put on the queue again has
/// another job, and new corrections.
fn correction_id(task: &Task, number: i16) -> Uuid {
    const CORRECTION: u128 = 0x636f_7272_6563_7469_636f_7272_6563_7469;
    let job = u128::from(task.job_id.unsigned_abs());
    let number = u128::from(number.unsigned_abs());
    Uuid::from_u128(task.id.as_u128() ^ CORRECTION ^ (job << 16) ^ number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_correction_has_an_entry_of_its_own() {
        let task = Task::example();
        let correction = |number| Correction { number, fault: "at `/n`: want integer".to_owned() };
        let first = TurnPrompt::of(&task, task.prompt.clone(), Some(&correction(1)));
        let again = TurnPrompt::of(&task, task.prompt.clone(), Some(&correction(1)));
        let second = TurnPrompt::of(&task, task.prompt.clone(), Some(&correction(2)));
        assert_eq!(first, again);
        assert_ne!(first.entry_id, second.entry_id);
        assert!(first.text.contains("at `/n`: want integer"), "{}", first.text);
        let plain = TurnPrompt::of(&task, task.prompt.clone(), None);
        assert_eq!((plain.entry_id, plain.role()), (task.id, Role::User));
    }
}
