//! Constraint names become words for the person who ran into them: here, and nowhere else.
//!
//! `tests/it/migrations.rs` holds this list against the constraints of the schema: one that is neither in
//! `WORDS` nor in `INTERNAL` fails the build. Some are triggers, which report the name that a check would have.

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
    UserMistake {
        constraint: "campaigns_name_length",
        message: "the name of a campaign has 1 to 200 characters",
    },
    UserMistake {
        constraint: "campaigns_brief_length",
        message: "the brief is longer than 262144 bytes: shorten it, or put long material where the agents can look it up",
    },
    UserMistake {
        constraint: "campaigns_client_context_length",
        message: "the client context is longer than 262144 bytes: keep what every call needs, and no more",
    },
    UserMistake {
        constraint: "campaigns_status_known",
        message: "the status of a campaign is active, paused or closed",
    },
    UserMistake {
        constraint: "campaign_budgets_limit_micros_positive",
        message: "a limit in money is more than 0; leave it out for no limit",
    },
    UserMistake {
        constraint: "campaign_budgets_limit_tokens_positive",
        message: "a limit in tokens is more than 0; leave it out for no limit",
    },
    UserMistake {
        constraint: "tasks_campaign",
        message: "there is no such campaign: `dalsegno campaign ls` lists them",
    },
    UserMistake {
        constraint: "tasks_traceparent_form",
        message: "who asked for a task is named as in the header traceparent: 00-<32 digits>-<16 digits>-01, in lower case",
    },
    UserMistake {
        constraint: "tasks_agent_form",
        message: "the name of an agent has lower-case letters, digits, - and _, at most 64",
    },
    UserMistake {
        constraint: "tasks_instance_form",
        message: "the name of an instance has lower-case letters, digits, - and _, at most 64",
    },
    UserMistake {
        constraint: "tasks_prompt_not_empty",
        message: "the prompt is empty: write what the agent should do",
    },
    UserMistake {
        constraint: "tasks_session_mode_known",
        message: "the session of a task is continue, fresh or none",
    },
    UserMistake {
        constraint: "tasks_budget_micros_positive",
        message: "a budget in money is more than 0; leave it out for no limit",
    },
    UserMistake {
        constraint: "tasks_budget_tokens_positive",
        message: "a budget in tokens is more than 0; leave it out for no limit",
    },
    UserMistake {
        constraint: "schedules_name_form",
        message: "the name of a schedule has lower-case letters, digits, - and _, at most 64",
    },
    UserMistake {
        constraint: "schedules_catch_up_secs_positive",
        message: "the time in which a moment is caught up is at least a second",
    },
    UserMistake {
        constraint: "api_keys_name_form",
        message: "the name of a key has letters, digits, `.`, `-` and `_`, at most 64, and begins with a letter or a digit",
    },
    UserMistake {
        constraint: "api_keys_scopes_known",
        message: "a key has at least one of the scopes read, enqueue, operate, admin, mcp",
    },
];

/// Constraints that only our own code can violate; a violation is a bug, not a mistake of the user.
pub const INTERNAL: &[&str] = &[
    "api_keys_created_by_length",
    "api_keys_handle_form",
    "api_keys_handle_unique",
    "api_keys_pkey",
    "api_keys_sha256_length",
    "api_keys_successor",
    "audit_action_form",
    "audit_actor_kind_known",
    "audit_actor_length",
    "audit_data_length",
    "audit_pkey",
    "audit_subject_length",
    "campaign_budgets_campaign",
    "campaign_budgets_not_negative",
    "campaign_budgets_pkey",
    "campaign_spending_campaign",
    "campaign_spending_pkey",
    "campaigns_closed_complete",
    "campaigns_pkey",
    "cancel_requests_pkey",
    "cleanup_runs_end_complete",
    "cleanup_runs_job_complete",
    "cleanup_runs_kind_known",
    "cleanup_runs_events_not_negative",
    "cleanup_runs_not_negative",
    "cleanup_runs_outcome_known",
    "cleanup_runs_pkey",
    "compactions_cause_known",
    "compactions_generation_positive",
    "compactions_lineage",
    "compactions_outcome_complete",
    "compactions_outcome_known",
    "compactions_pkey",
    "compactions_session",
    "dead_jobs_pkey",
    "dead_jobs_reason_known",
    "failovers_campaign",
    "failovers_failures_not_negative",
    "failovers_pkey",
    "feed_kind_length",
    "feed_pkey",
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
    "manifests_pkey",
    "manifests_sha256_length",
    "messages_pkey",
    "messages_tools_fit_role",
    "pauses_pkey",
    "resting_logins_pkey",
    "run_outcome_known",
    "runs_pkey",
    "schedule_slots_pkey",
    "schedule_slots_schedule",
    "schedules_pause_complete",
    "schedules_pkey",
    "schedules_source_known",
    "sessions_agent_form",
    "sessions_campaign",
    "sessions_fence_seed_length",
    "sessions_instance_form",
    "sessions_model_not_empty",
    "sessions_opened_because_known",
    "sessions_pkey",
    "sessions_prompt_hash_form",
    "sessions_provider_length",
    "sessions_state_machine",
    "erased_sessions_erasure",
    "erased_sessions_pkey",
    "erasure_hosts_erasure",
    "erasure_hosts_not_negative",
    "erasure_hosts_pkey",
    "erasures_campaign",
    "erasures_one_per_campaign",
    "erasures_pkey",
    "erasures_reason_length",
    "tasks_pkey",
    "tasks_state_machine",
    "transcript_chunks_file",
    "transcript_chunks_pkey",
    "transcript_chunks_place_not_negative",
    "transcript_files_pkey",
    "transcript_files_session",
    "transcript_files_sha256_length",
    "transcript_files_size_not_negative",
    "transition_totals_pkey",
    "turns_pkey",
    "turns_state_machine",
    "usage_pkey",
    "usage_tokens_not_negative",
    "wait_reason_known",
    "webhook_deliveries_end_complete",
    "webhook_deliveries_kind_known",
    "webhook_deliveries_pkey",
    "webhook_deliveries_state_known",
    "webhook_deliveries_task",
    "webhook_deliveries_webhook",
    "webhook_secrets_pkey",
    "webhook_secrets_webhook",
    "webhooks_campaign",
    "webhooks_disabled_complete",
    "webhooks_kinds_known",
    "webhooks_pkey",
    "webhooks_url_length",
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
