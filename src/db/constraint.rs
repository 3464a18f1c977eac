//! Constraint names become words for the person who ran into them: here, and nowhere else.
//!
//! `tests/it/migrations.rs` holds this list against the constraints of the schema: one that is neither in
//! `WORDS` nor in `INTERNAL` fails the build.

/// A mistake in somebody's input, found by the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserMistake {
    pub constraint: &'static str,
    pub message: &'static str,
}

/// Constraints that input can violate, with what to tell whoever sent it. Most bad input never gets here: the
/// functions of the schema refuse it with a hint of their own.
pub const WORDS: &[UserMistake] = &[
    UserMistake {
        constraint: "name_length",
        message: "names of queues, kinds, lanes, groups and keys have 1 to 200 characters",
    },
    UserMistake {
        constraint: "lane_policy_known",
        message: "the policy of a lane is `continue` or `hold`",
    },
    UserMistake { constraint: "pauses_scope_known", message: "a `queue` or a `group` is paused" },
    UserMistake {
        constraint: "count16_not_negative",
        message: "priorities and numbers of attempts are not negative",
    },
];

/// Constraints that only our own code can violate; a violation is a bug, not a mistake of the user.
pub const INTERNAL: &[&str] = &[
    "cancel_requests_pkey",
    "dead_jobs_pkey",
    "dead_jobs_reason_known",
    "hold_by_known",
    "idempotency_keys_pkey",
    "installation_is_one_row",
    "installation_singleton_is_true",
    "job_payloads_pkey",
    "job_state_known",
    "jobs_pkey",
    "jobs_state_machine",
    "lanes_hold_complete",
    "lanes_key_unique",
    "lanes_pkey",
    "pauses_pkey",
    "run_outcome_known",
    "runs_pkey",
    "transition_totals_pkey",
    "wait_reason_known",
    "workers_gone_complete",
    "workers_gone_do_not_wait",
    "workers_gone_reason_known",
    "workers_pkey",
    "workers_slots_positive",
];

/// What the user did wrong, if the error is about that.
pub fn user_mistake(error: &sqlx::Error) -> Option<&'static UserMistake> {
    let constraint = error.as_database_error()?.constraint()?;
    WORDS.iter().find(|mistake| mistake.constraint == constraint)
}
