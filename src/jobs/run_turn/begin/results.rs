//! Results of the tasks that a task has waited for: one entry before its prompt, stored in the transcript.
//!
//! A second attempt reuses the entry of the first. In a new conversation without that entry, it is built again from the
//! tasks as they are then. A task that was put on the queue again has waited again, and gets new results.

use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    context::results::{EndOfTask, Limits, Results},
    domain::{
        messages,
        tasks::{Predecessor, State},
    },
    jobs::{
        measure::measure_message,
        run_turn::{
            error::Error,
            load::assignment::{Assignment, PREDECESSOR_MAX_CHARS},
        },
    },
};

/// Limit of all results together, in any window.
const MOST_BYTES: usize = 128_000;

/// The entry, and if the transcript has it already.
pub struct PredecessorResults {
    pub entry: messages::New,
    pub is_stored: bool,
}

/// Reads the results. `None` for a task that has not waited.
pub async fn read(
    conn: &mut PgConnection,
    assignment: &Assignment<'_>,
    session_id: Uuid,
) -> Result<Option<PredecessorResults>, Error> {
    let Assignment { task, predecessors, route, results_entry: id, .. } = assignment;
    if predecessors.is_empty() {
        return Ok(None);
    }
    let id = *id;
    // Only an attempt that began has stored it.
    let stored = match task.turn {
        Some(_) => messages::find(conn, session_id, id).await?,
        None => None,
    };
    Ok(Some(match stored {
        Some(message) => {
            PredecessorResults { entry: measure_message(id, message), is_stored: true }
        }
        None => {
            let window = usize::try_from(route.window_tokens).unwrap_or(usize::MAX);
            PredecessorResults {
                entry: measure_message(id, limit_results(predecessors, window).message()),
                is_stored: false,
            }
        }
    }))
}

/// Limits all results together to about a quarter of the window: a token has some four bytes.
fn limit_results(predecessors: &[Predecessor], window_tokens: usize) -> Results {
    let limits =
        Limits { each_bytes: PREDECESSOR_MAX_CHARS * 4, all_bytes: window_tokens.min(MOST_BYTES) };
    Results::fit_limits(predecessors.iter().map(end).collect(), limits)
}

fn end(one: &Predecessor) -> EndOfTask {
    let missing = match one.state {
        State::Cancelled => "it was cancelled",
        State::Done | State::Failed => "(nothing)",
        // A person had this task run without waiting.
        State::Queued | State::Running => "it has not ended yet",
    };
    EndOfTask {
        task: one.id,
        agent: one.agent.clone(),
        instance: one.instance.clone(),
        state: one.state.as_str().to_owned(),
        text: one.text.clone().unwrap_or_else(|| missing.to_owned()),
        left_out_chars: u64::try_from(one.left_out_chars).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end_of(state: State, text: Option<&str>) -> Predecessor {
        Predecessor {
            id: Uuid::from_u128(1),
            agent: "writer".to_owned(),
            instance: "main".to_owned(),
            state,
            text: text.map(str::to_owned),
            left_out_chars: 0,
        }
    }

    #[test]
    fn every_state_of_a_predecessor_is_shown() {
        let all = [
            end_of(State::Done, Some("One.")),
            end_of(State::Failed, Some("the host is away")),
            end_of(State::Cancelled, None),
            end_of(State::Running, None),
        ];
        let told = limit_results(&all, 100_000);
        let said: Vec<_> =
            told.ends.iter().map(|end| (end.state.as_str(), end.text.as_str())).collect();
        let expected = [
            ("done", "One."),
            ("failed", "the host is away"),
            ("cancelled", "it was cancelled"),
            ("running", "it has not ended yet"),
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn a_small_window_gets_shorter_results() {
        let all = vec![end_of(State::Done, Some(&"x".repeat(3_000))); 3];
        let told = limit_results(&all, 3_000);
        assert!(told.ends.iter().all(|end| end.text.len() == 1_000 && end.left_out_chars == 2_000));
    }
}
