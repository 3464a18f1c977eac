//! Tasks: requests to agents, and their results.
//!
//! A task and its job are written in one transaction, and ended in one. The job's payload has the digest of the request. An idempotency
//! key therefore finds the same task for the same request, and refuses another request.

mod add;
mod asked;
mod bulk;
mod cancel_batch;
mod cancellation;
mod cascade;
mod dead_letter;
mod detail;
mod digest;
mod erase;
mod error;
mod fan_out;
mod filter;
mod flow;
mod follow;
mod insert;
mod interrupt;
mod job;
mod keys;
mod line;
mod links;
mod list;
mod lost;
mod node;
mod posted;
mod recurring;
mod results;
mod search;
mod state;
mod store;
mod task;
mod waiting;
mod waits;

use self::state::end_without_turn;
pub use self::{
    add::{Added, Config, New, check_new, lane, lanes_of},
    asked::{Request, added_by_agents, asked_by_people},
    bulk::{BAD_ITEMS, BulkError, MAX_TASKS, Placed, add_many},
    cancel_batch::{BATCH, Batch, cancel_batch},
    cancellation::{Below, Cancellation, CancelledJob, CancelledTask},
    dead_letter::{RetriedJob, forget_dead_letters, retry_job},
    detail::{Detail, detail},
    erase::{Erased, count_open, erase_some, open_of},
    error::Error,
    fan_out::{
        Children, FannedOut, child_key, count_of_family, depth, fan_out, handed_out_by, hold_parent,
    },
    filter::{TaskFilter, count_matching, matching},
    flow::{FlowTask, flow_id_of, hold_of_flow, of_flow},
    follow::{Follow, News, wait},
    interrupt::{How, Interrupted, interrupt, interrupt_agent, is_asked_to_stop},
    job::{RunJoinedTurn, RunTurn},
    line::{BadLine, Line},
    links::{After, FlowStep, Links, MAX_CHILDREN, MAX_PREDECESSORS, OnFailure},
    list::{
        Addressee, Owner, addressee, by_job, find, get, has_ended, in_campaign, of_conversation,
        owner,
    },
    lost::{end_lost, gone, live_jobs},
    posted::{Tree, count_of_tree, set_post},
    recurring::AddTask,
    results::{Outcome, outcomes, wait_for_all},
    search::{Found, ListedTask, MAX_PROMPTS, list, listed, search},
    state::{
        Cancelled, End, admit, cancel, cancel_job, cancel_silently, charge, end,
        longest_busy_since, no_longer_waits, retry, wait_for_provider, wait_longer,
    },
    store::{add, add_together},
    task::{State, Task},
    waiting::{awaited, queued_jobs},
    waits::{
        Predecessor, Stretch, WaitedFor, Waiting, due_waits, end_wait, predecessors, wait_aside,
        waits_of,
    },
};
pub(super) use self::{detail::cancelled_because, state::ended};
