//! Messages for violated constraints: the one place that turns constraint names into texts for users.
//!
//! `tests/it/migrations.rs` compares this list with the constraints of the schema: one that is neither in `USER_MISTAKES` nor
//! in `INTERNAL` fails the build. Some are triggers, which report the name of a constraint.

mod internal;

pub use self::internal::INTERNAL;

/// Invalid input that the database has refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserMistake {
    pub constraint: &'static str,
    pub message: &'static str,
}

/// Constraints that input can violate, with the message for its author. The functions of the schema refuse most invalid
/// input before, with a hint of their own.
pub const USER_MISTAKES: &[UserMistake] = &[
    UserMistake {
        constraint: "name_length",
        message: "names of queues, kinds, lanes, groups and keys must have 1 to 200 characters",
    },
    UserMistake {
        constraint: "lane_policy_known",
        message: "the policy of a lane must be `continue` or `hold`",
    },
    UserMistake {
        constraint: "pauses_scope_known",
        message: "only a `queue` or a `group` can be paused",
    },
    UserMistake {
        constraint: "count16_not_negative",
        message: "priorities and numbers of attempts must be 0 or more",
    },
    UserMistake {
        constraint: "campaigns_name_length",
        message: "the name of a campaign must have 1 to 200 characters",
    },
    UserMistake {
        constraint: "campaigns_brief_length",
        message: "the brief is longer than 262144 bytes: shorten it, or put long material where the agents can look it up",
    },
    UserMistake {
        constraint: "campaigns_client_context_length",
        message: "the client context is longer than 262144 bytes: shorten it, or put long material where the agents can look it up",
    },
    UserMistake {
        constraint: "campaigns_status_known",
        message: "the status of a campaign must be active, paused or closed",
    },
    UserMistake {
        constraint: "campaign_budgets_limit_micros_positive",
        message: "a limit in money must be more than 0; leave it out for no limit",
    },
    UserMistake {
        constraint: "campaign_budgets_limit_tokens_positive",
        message: "a limit in tokens must be more than 0; leave it out for no limit",
    },
    UserMistake {
        constraint: "campaign_budgets_on_limit_known",
        message: "the effect of a limit must be `wait` or `fail`",
    },
    UserMistake {
        constraint: "campaign_budgets_soft_micros_positive",
        message: "a soft limit in money must be more than 0; leave it out for no warning",
    },
    UserMistake {
        constraint: "campaign_budgets_soft_tokens_positive",
        message: "a soft limit in tokens must be more than 0; leave it out for no warning",
    },
    UserMistake {
        constraint: "tasks_soft_micros_positive",
        message: "a soft limit in money must be more than 0; leave it out for no warning",
    },
    UserMistake {
        constraint: "tasks_soft_tokens_positive",
        message: "a soft limit in tokens must be more than 0; leave it out for no warning",
    },
    UserMistake {
        constraint: "budgets_limit_micros_positive",
        message: "a limit in money must be more than 0; leave it out for no limit",
    },
    UserMistake {
        constraint: "budgets_limit_tokens_positive",
        message: "a limit in tokens must be more than 0; leave it out for no limit",
    },
    UserMistake {
        constraint: "budgets_soft_micros_positive",
        message: "a soft limit in money must be more than 0; leave it out for no warning",
    },
    UserMistake {
        constraint: "budgets_soft_tokens_positive",
        message: "a soft limit in tokens must be more than 0; leave it out for no warning",
    },
    UserMistake {
        constraint: "budgets_on_limit_known",
        message: "the effect of a limit must be `wait` or `fail`",
    },
    UserMistake {
        constraint: "experiment_budgets_limit_positive",
        message: "a limit for reruns must be more than 0; remove the budget to allow none",
    },
    UserMistake {
        constraint: "tasks_traceparent_form",
        message: "the origin of a task must have the form of the header traceparent: 00-<32 digits>-<16 digits>-01, in lower case",
    },
    UserMistake {
        constraint: "tasks_agent_form",
        message: "the name of an agent must have lower-case letters, digits, - and _, at most 64",
    },
    UserMistake {
        constraint: "tasks_instance_form",
        message: "the name of an instance must have lower-case letters, digits, - and _, at most 64",
    },
    UserMistake {
        constraint: "task_labels_tags_form",
        message: "a task can have at most 16 tags of lower-case letters, digits, - _ . and :, each at most 63 characters",
    },
    UserMistake {
        constraint: "task_labels_metadata_form",
        message: "the metadata of a task must be a JSON object of at most 8192 bytes, as the database formats it",
    },
    UserMistake {
        constraint: "campaigns_tags_form",
        message: "a campaign can have at most 16 tags of lower-case letters, digits, - _ . and :, each at most 63 characters",
    },
    UserMistake {
        constraint: "campaigns_metadata_form",
        message: "the metadata of a campaign must be a JSON object of at most 8192 bytes, as the database formats it",
    },
    UserMistake {
        constraint: "task_parameters_form",
        message: "the parameters of a task must be a JSON object of at most 8192 bytes, as the database formats it",
    },
    UserMistake {
        constraint: "tasks_result_schema_form",
        message: "the result schema of a task must be a JSON object of at most 65536 bytes, as the database formats it",
    },
    UserMistake {
        constraint: "tasks_within_positive",
        message: "the time that an answer may take must be more than 0 seconds; leave it out for none",
    },
    UserMistake {
        constraint: "campaigns_parameters_form",
        message: "the parameters of a campaign must be a JSON object of at most 8192 bytes, as the database formats it",
    },
    UserMistake {
        constraint: "tasks_prompt_not_empty",
        message: "the prompt is empty: write what the agent should do",
    },
    UserMistake {
        constraint: "tasks_session_mode_known",
        message: "the session mode of a task must be continue, fresh or none",
    },
    UserMistake {
        constraint: "tasks_budget_micros_positive",
        message: "a budget in money must be more than 0; leave it out for no limit",
    },
    UserMistake {
        constraint: "tasks_budget_tokens_positive",
        message: "a budget in tokens must be more than 0; leave it out for no limit",
    },
    UserMistake {
        constraint: "posts_reply_to",
        message: "this post does not exist in this campaign: `dalsegno board history` lists them",
    },
    UserMistake {
        constraint: "posts_text_length",
        message: "a post must have 1 to 1048576 bytes: put long material where the agents can look it up",
    },
    UserMistake {
        constraint: "posts_audience_size",
        message: "a post must be addressed to 1 to 200 names; `all` reaches all agents",
    },
    UserMistake {
        constraint: "memory_items_title_length",
        message: "the title of an item must have 1 to 200 characters",
    },
    UserMistake {
        constraint: "memory_items_body_length",
        message: "an item must have 1 to 131072 bytes: split it",
    },
    UserMistake {
        constraint: "memory_items_name_form",
        message: "the name of an item must have lower-case letters, digits, - and _, at most 64",
    },
    UserMistake {
        constraint: "campaign_users_name_form",
        message: "the name of a user must have letters a to z, digits, and after the first character . _ @ + -, at most 128",
    },
    UserMistake {
        constraint: "facts_user_name_form",
        message: "the name of a user must have letters a to z, digits, and after the first character . _ @ + -, at most 128",
    },
    UserMistake {
        constraint: "facts_attribute_length",
        message: "the attribute of a fact must have 1 to 100 characters",
    },
    UserMistake {
        constraint: "facts_text_length",
        message: "a fact must be one short line of 1 to 400 characters",
    },
    UserMistake {
        constraint: "schedules_name_form",
        message: "the name of a schedule must have lower-case letters, digits, - and _, at most 64",
    },
    UserMistake {
        constraint: "schedules_catch_up_secs_positive",
        message: "the catch-up time of a schedule must be at least a second",
    },
    UserMistake {
        constraint: "api_keys_name_form",
        message: "the name of a key must have letters, digits, `.`, `-` and `_`, at most 64, and begin with a letter or a digit",
    },
    UserMistake {
        constraint: "api_keys_scopes_known",
        message: "a key must have at least one of the scopes read, enqueue, operate, admin, mcp",
    },
    UserMistake {
        constraint: "api_keys_campaigns_number",
        message: "a key can be bound to 1 to 100 campaigns; leave them out for a key that reaches all",
    },
];

/// Finds the message for an error, if input has caused it.
pub fn user_mistake(error: &sqlx::Error) -> Option<&'static UserMistake> {
    let constraint = error.as_database_error()?.constraint()?;
    USER_MISTAKES.iter().find(|mistake| mistake.constraint == constraint)
}
