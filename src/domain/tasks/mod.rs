//! Tasks: requests to agents, and their results.
//!
//! A task and its job are written in one transaction, and ended in one. The job's payload has the digest of the request. An idempotency
//! key therefore finds the same task for the same request, and refuses another request.

mod add;
mod attachments;
mod budget;
mod budget_retry;
mod bulk;
mod cancel;
mod cancel_many;
mod cancellation;
mod cascade;
mod dead_letter;
mod detail;
mod digest;
mod end;
mod end_message;
mod erase;
mod error;
mod failures;
mod fan_out;
mod filter;
mod flow;
mod flow_templates;
mod follow;
mod insert;
mod interrupt;
mod job;
mod keys;
mod limits;
mod line;
mod links;
mod list;
mod lost;
mod node;
mod open_tasks;
mod parameters;
mod posted;
mod priority;
mod provider_waits;
mod recent;
mod recurring;
mod requests;
mod results;
mod retry;
mod search;
mod state;
mod step_fields;
mod store;
mod subject;
mod task;
mod texts;
mod waits;

use self::end::end_without_turn;
pub use self::{
    add::{AddResult, Config, New, check_new, check_within, lane, lanes_of, within_secs},
    budget::{BudgetChange, change_budget, charge, check_budget, hold_budget},
    budget_retry::{
        PresentBudgets, RefusedRetry, RetryOutlook, describe_refused, refused_retries,
        retry_outlook,
    },
    bulk::{BAD_ITEMS, BulkError, BulkTask, MAX_TASKS, add_many},
    cancel::{cancel, cancel_job, cancel_silently},
    cancel_many::{CANCEL_MANY_MAX, CancelScope, cancel_many},
    cancellation::{CancelOutcome, Cancellation, CancelledJob, CancelledTask, DescendantCounts},
    dead_letter::{RetriedJob, TaskRetry, find_retry, forget_dead_letters, retry_job},
    detail::{Detail, detail, is_flow_step},
    end::{End, end},
    end_message::end_message,
    erase::{ErasedTasks, count_open, erase_some, open_of},
    error::Error,
    failures::{FailedTask, FailureQuery, FailureTotals, list_failures, refusals_since},
    fan_out::{
        FanOut, FannedOut, check_and_lock_parent, child_key, count_of_family, depth, fan_out,
        filter_children_of,
    },
    filter::{TaskFilter, count_matching, list_matching},
    flow::{FlowTask, hold_of_flow, of_flow, retry_command},
    flow_templates::flow_templates,
    follow::{EndedTask, Follow, TaskUpdate, wait},
    interrupt::{InterruptMode, InterruptResult, interrupt, interrupt_agent, is_asked_to_stop},
    job::{RunJoinedTurn, RunTurn},
    limits::{ATTACHMENT_LIMITS, LIMITS},
    line::{BadLine, Line},
    links::{FlowStep, Links, MAX_CHILDREN, MAX_PREDECESSORS, OnFailure, TaskLink},
    list::{
        Addressee, Owner, addressee, by_job, filter_in_campaign, find, get, has_ended,
        of_conversation, owner,
    },
    lost::{end_lost, list_ended_jobs, live_jobs},
    open_tasks::{
        OpenTask, filter_awaited, list_awaiting_posts, open_of_conversation, open_of_conversations,
        queued_jobs,
    },
    posted::{Tree, count_of_tree, set_post},
    priority::{TaskPriority, change_priority},
    provider_waits::{
        BusyTasks, ProviderWait, busy_since, count_busy, end_provider_wait, provider_waits,
        wait_for_provider,
    },
    recent::{
        MAX_WAITS_READ, TaskLine, WaitMinute, of_jobs, of_runs, retried_between, waits_by_minute,
    },
    recurring::AddTask,
    requests::{Request, added_by_agents, asked_by_people},
    results::{Outcome, outcomes, wait_for_all},
    retry::retry,
    search::{ListedTask, MAX_READ, TaskPage, list, listed, search},
    state::{count_wait, go_on},
    step_fields::{StepField, StepResult, fill_fields, step_results},
    store::{add, add_together},
    task::{State, Task},
    texts::{await_index, find_ended_texts, find_fresh_texts, has_search_backlog, index_words},
    waits::{
        Predecessor, TaskWaits, WaitRange, WaitedFor, end_wait, find_lost_signals, predecessors,
        wait_for_flow, waits_of,
    },
};
pub(super) use self::{
    detail::{ExplainedColumns, explained_columns},
    end::ended_error,
};
