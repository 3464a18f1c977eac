//! What kind of "no" an error is. Decided here, once for every noun, so that the exit code of a command and the status
//! of a request agree.

use sqlx::error::DatabaseError;

use super::{
    Failed, agent_pauses, agents,
    amount::{MoneyError, Refusal},
    blackboard, bulk_actions, campaigns, compactions, erasures, facts, flows, ids, keys, logins,
    memory, mentions, posts, schedules, sessions, tasks, text, webhooks,
};
use crate::queue::{self, Fault};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Something in the question is wrong.
    Invalid,
    TooLarge,
    NotFound,
    /// The question is fine, but not in the state that things are in.
    Conflict,
    /// The database does not answer now.
    Unavailable,
    /// A fault of the service or of its installation.
    Internal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    pub kind: Kind,
    /// Stable: programs decide by it.
    pub code: &'static str,
    /// Whether the same question can succeed later without anybody doing anything.
    pub retryable: bool,
    /// What to say in place of the error's own words.
    pub words: Option<&'static str>,
    /// What to do next, where the error's own words do not say it.
    pub advice: Option<&'static str>,
}

const DATABASE_AWAY: &str = "ask again when the database answers; `dalsegno doctor` looks closer";
const DATABASE_BUSY: &str =
    "try again in a moment; if it stays so, `dalsegno doctor` looks for what holds the database up";
const DATABASE_CONFLICT: &str =
    "another transaction changed the same rows at the same moment: try again at once";
const DATABASE_FULL: &str = "the database server has no disk space, memory or connections left: its log says which; then try again";
const DATABASE_READ_ONLY: &str = "the database server takes no writes: a standby that has not taken over, or default_transaction_read_only is on";
const NO_TEXT: &str =
    "a text in the question holds the character U+0000, which the database cannot store: remove it";
const INTERNAL: &str = "`dalsegno doctor` and the log of the service say more";

/// An error that may end a command or a request.
pub trait Classify: std::error::Error + Send + Sync + 'static {
    fn class(&self) -> Class;
}

impl Class {
    const fn of(kind: Kind, code: &'static str) -> Self {
        let advice = match kind {
            Kind::Unavailable => Some(DATABASE_AWAY),
            Kind::Internal => Some(INTERNAL),
            _ => None,
        };
        Self { kind, code, retryable: matches!(kind, Kind::Unavailable), words: None, advice }
    }
}

impl Classify for campaigns::Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown(_) => Class::of(Kind::NotFound, "unknown_campaign"),
            Self::Closed(_) => Class::of(Kind::Conflict, "campaign_closed"),
            Self::Text(error) => error.class(),
            Self::Queue(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

impl Classify for erasures::Error {
    fn class(&self) -> Class {
        match self {
            Self::NotAsked(_) => Class::of(Kind::NotFound, "not_erased"),
            Self::Key(_) => Class::of(Kind::Internal, "internal"),
            Self::Campaign(error) => error.class(),
            Self::Task(error) => error.class(),
            Self::Text(error) => error.class(),
            Self::Queue(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

impl Classify for tasks::Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown(_) | Self::NoTaskOfJob(_) => Class::of(Kind::NotFound, "unknown_task"),
            Self::Ended { .. } => Class::of(Kind::Conflict, "task_ended"),
            Self::Erased(_) => Class::of(Kind::Conflict, "erased"),
            Self::NotEnded { .. } => Class::of(Kind::Conflict, "task_not_ended"),
            // The same question can be answered now.
            Self::Requeued(_) => {
                Class { retryable: true, ..Class::of(Kind::Conflict, "task_requeued") }
            }
            Self::NoPredecessor(_) => Class::of(Kind::NotFound, "unknown_predecessor"),
            Self::TooManyPredecessors(_) => Class::of(Kind::Invalid, "too_many_predecessors"),
            Self::NChildren(_) => Class::of(Kind::Invalid, "bad_argument"),
            Self::NoParent { .. } | Self::BeingCancelled(_) => {
                Class::of(Kind::Conflict, "no_parent")
            }
            Self::NothingRuns(_) => Class::of(Kind::Conflict, "nothing_runs"),
            Self::KeyTaken(_) => Class::of(Kind::Conflict, "idempotency_conflict"),
            Self::Instance(_) => Class::of(Kind::Invalid, "bad_instance"),
            Self::Key { .. } => Class::of(Kind::Invalid, "bad_idempotency_key"),
            Self::Priority(_) => Class::of(Kind::Invalid, "bad_argument"),
            Self::EmptyBudget(_) => Class::of(Kind::Invalid, "empty_budget"),
            Self::Text(error) => error.class(),
            Self::Campaign(error) => error.class(),
            Self::Session(error) => error.class(),
            Self::Budget(error) => error.class(),
            Self::Post(error) => error.class(),
            Self::Queue(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

impl Classify for flows::Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown(_) => Class::of(Kind::NotFound, "unknown_flow"),
            Self::NoTemplate { .. } => Class::of(Kind::NotFound, "unknown_template"),
            Self::NoStep { .. } => Class::of(Kind::NotFound, "unknown_step"),
            Self::Inputs(_) => Class::of(Kind::Invalid, "bad_inputs"),
            Self::TooMany(_) => Class::of(Kind::Invalid, "too_many_tasks_in_flow"),
            Self::Ended(_) => Class::of(Kind::Conflict, "flow_ended"),
            Self::Paused(_) => Class::of(Kind::Conflict, "flow_paused"),
            Self::NotPaused(_) => Class::of(Kind::Conflict, "flow_not_paused"),
            Self::Problems(_) | Self::BrokenTemplate { .. } => {
                Class::of(Kind::Conflict, "bad_templates")
            }
            Self::Agent(error) => error.class(),
            Self::Task(error) | Self::Step { error, .. } => error.class(),
            Self::Campaign(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

impl Classify for mentions::Error {
    fn class(&self) -> Class {
        match self {
            Self::Key { .. } => Class::of(Kind::Invalid, "bad_idempotency_key"),
            Self::KeyTaken(_) => Class::of(Kind::Conflict, "idempotency_conflict"),
            Self::Post(error) => error.class(),
            Self::Task(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

impl Classify for sessions::Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown(_) => Class::of(Kind::NotFound, "unknown_session"),
            Self::Closed(_) => Class::of(Kind::Conflict, "session_closed"),
            // Whoever came first will have ended soon.
            Self::Overtaken(_) => {
                Class { retryable: true, ..Class::of(Kind::Conflict, "session_busy") }
            }
            Self::Database(error) => error.class(),
        }
    }
}

impl Classify for agent_pauses::Error {
    fn class(&self) -> Class {
        match self {
            Self::NotPaused { .. } => Class::of(Kind::Conflict, "agent_not_paused"),
            Self::Campaign(error) => error.class(),
            Self::Text(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

impl Classify for sessions::ResetError {
    fn class(&self) -> Class {
        match self {
            Self::Campaign(error) => error.class(),
            Self::Session(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

impl Classify for blackboard::Error {
    fn class(&self) -> Class {
        match self {
            Self::Version { .. } => Class::of(Kind::Conflict, "blackboard_changed"),
            Self::NoVersion { .. } => Class::of(Kind::NotFound, "unknown_version"),
            Self::NotGranted { .. } => Class::of(Kind::Invalid, "not_granted"),
            Self::NoObject => Class::of(Kind::Invalid, "no_object"),
            Self::TooLong { .. } | Self::TooMany { .. } | Self::TooDeep { .. } => {
                Class::of(Kind::TooLarge, "blackboard_too_large")
            }
            Self::Key { .. } => Class::of(Kind::Invalid, "bad_key"),
            Self::Campaign(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

impl Classify for bulk_actions::Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown(_) => Class::of(Kind::NotFound, "unknown_bulk_action"),
            Self::CountDiffers { .. } => Class::of(Kind::Conflict, "count_differs"),
            Self::EmptyFilter => Class::of(Kind::Invalid, "empty_filter"),
            Self::Overtaken(_) => {
                Class { retryable: true, ..Class::of(Kind::Conflict, "bulk_action_overtaken") }
            }
            Self::Text(error) => error.class(),
            Self::Task(error) => error.class(),
            Self::Queue(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

impl Classify for compactions::Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown { .. } => Class::of(Kind::NotFound, "unknown_compaction"),
            Self::NoArchive { .. } => Class::of(Kind::NotFound, "unknown_archive"),
            Self::NothingToUndo(_) => Class::of(Kind::Conflict, "nothing_to_undo"),
            Self::Enqueue { source, .. } | Self::Job { source, .. } => source.class(),
            Self::Session(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

impl Classify for schedules::Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown(_) => Class::of(Kind::NotFound, "unknown_schedule"),
            Self::Invalid { .. } => Class::of(Kind::Invalid, "bad_timetable"),
            Self::BuiltIn(_) => Class::of(Kind::Conflict, "built_in_schedule"),
            Self::Encode { .. } => Class::of(Kind::Internal, "internal"),
            Self::Task(error) => error.class(),
            Self::Enqueue { source, .. } => source.class(),
            Self::Database(error) => error.class(),
        }
    }
}

impl Classify for keys::Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown(_) => Class::of(Kind::NotFound, "unknown_key"),
            Self::Several { .. } => Class::of(Kind::Invalid, "ambiguous_id"),
            Self::NameTaken(_) => Class::of(Kind::Conflict, "key_name_taken"),
            Self::Revoked(_) => Class::of(Kind::Conflict, "key_revoked"),
            Self::Replaced { .. } => Class::of(Kind::Conflict, "key_replaced"),
            Self::Expired => Class::of(Kind::Invalid, "key_expired"),
            Self::Campaign(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

impl Classify for logins::Error {
    fn class(&self) -> Class {
        match self {
            Self::NotResting(_) => Class::of(Kind::NotFound, "login_not_resting"),
            Self::Wake(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

impl Classify for webhooks::Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown(_) => Class::of(Kind::NotFound, "unknown_webhook"),
            Self::UnknownDelivery(_) => Class::of(Kind::NotFound, "unknown_delivery"),
            Self::UnknownCampaign(_) => Class::of(Kind::NotFound, "unknown_campaign"),
            Self::Refused(_) => Class::of(Kind::Invalid, "bad_webhook_url"),
            Self::Disabled(_) => Class::of(Kind::Conflict, "webhook_disabled"),
            Self::Enqueue(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

impl Classify for posts::Error {
    fn class(&self) -> Class {
        match self {
            Self::UnknownCampaign(_) => Class::of(Kind::NotFound, "unknown_campaign"),
            Self::Closed(_) => Class::of(Kind::Conflict, "campaign_closed"),
            Self::UnknownPost(_) => Class::of(Kind::NotFound, "unknown_post"),
            Self::UnknownNames(_) => Class::of(Kind::Invalid, "unknown_names"),
            Self::NoAudience => Class::of(Kind::Invalid, "no_audience"),
            Self::TooManyNames(_) => Class::of(Kind::TooLarge, "too_many_names"),
            Self::Text(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

impl Classify for facts::Error {
    fn class(&self) -> Class {
        match self {
            Self::NoFact { .. } => Class::of(Kind::NotFound, "unknown_fact"),
            Self::User(_) => Class::of(Kind::Invalid, "bad_user"),
            Self::Words { .. } => Class::of(Kind::Invalid, "bad_fact"),
            Self::Ended(_) => Class::of(Kind::Conflict, "fact_ended"),
            Self::SaidInClosed(_) => Class::of(Kind::Conflict, "campaign_closed"),
            Self::Known(_) => Class::of(Kind::Conflict, "fact_known"),
            Self::Full { .. } => Class::of(Kind::Conflict, "facts_full"),
            Self::Expired(_) => Class::of(Kind::Invalid, "expired"),
            Self::NoWords => Class::of(Kind::Invalid, "no_words"),
            Self::Text(error) => error.class(),
            Self::Campaign(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

impl Classify for memory::Error {
    fn class(&self) -> Class {
        match self {
            Self::NoItem { .. } | Self::NoId(_) => Class::of(Kind::NotFound, "unknown_item"),
            Self::NoVersion { .. } => Class::of(Kind::NotFound, "unknown_version"),
            Self::Name { .. } => Class::of(Kind::Invalid, "bad_item_name"),
            Self::Title(_) => Class::of(Kind::Invalid, "bad_title"),
            Self::NotAllowed { .. } => Class::of(Kind::Conflict, "not_allowed"),
            Self::Changed { .. } => Class::of(Kind::Conflict, "item_changed"),
            Self::Written(_) => Class::of(Kind::Conflict, "entry_written"),
            Self::Over { .. } => Class::of(Kind::NotFound, "item_over"),
            Self::Revoked { .. } => Class::of(Kind::Conflict, "item_revoked"),
            Self::TooManyVersions { .. } => Class::of(Kind::Conflict, "too_many_versions"),
            Self::Full { .. } => Class::of(Kind::Conflict, "memory_full"),
            Self::TooManyEdicts { .. } => Class::of(Kind::Conflict, "too_many_edicts"),
            Self::Expired(_) => Class::of(Kind::Invalid, "expired"),
            Self::NoOwner | Self::Owner(_) => Class::of(Kind::Invalid, "bad_owner"),
            Self::NoWords => Class::of(Kind::Invalid, "no_words"),
            Self::Import(_) => Class::of(Kind::Invalid, "bad_items"),
            Self::Text(error) => error.class(),
            Self::Campaign(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

impl Classify for ids::NotFound {
    fn class(&self) -> Class {
        match self {
            Self::None { .. } => Class::of(Kind::NotFound, "unknown_id"),
            Self::Several { .. } => Class::of(Kind::Invalid, "ambiguous_id"),
            Self::Database(error) => error.class(),
        }
    }
}

impl Classify for agents::LookupError {
    fn class(&self) -> Class {
        use agents::Noun::{Agent, Node};
        match self {
            Self::Unknown { noun: Agent, .. } => Class::of(Kind::NotFound, "unknown_agent"),
            Self::Unknown { noun: Node, .. } => Class::of(Kind::NotFound, "unknown_node"),
            Self::Broken { noun: Agent, .. } => Class::of(Kind::Conflict, "broken_agent"),
            Self::Broken { noun: Node, .. } => Class::of(Kind::Conflict, "broken_node"),
        }
    }
}

impl Classify for agents::Problems {
    fn class(&self) -> Class {
        Class::of(Kind::Invalid, "bad_agent_files")
    }
}

impl Classify for text::Error {
    fn class(&self) -> Class {
        match self {
            Self::Empty { .. } => Class::of(Kind::Invalid, "empty_text"),
            Self::TooLong { .. } => Class::of(Kind::TooLarge, "text_too_long"),
            Self::Nul { .. } => Class::of(Kind::Invalid, "nul_in_text"),
        }
    }
}

impl Classify for MoneyError {
    fn class(&self) -> Class {
        Class::of(Kind::Invalid, "bad_amount")
    }
}

impl Classify for Refusal {
    fn class(&self) -> Class {
        let retryable = self.may_pass_later();
        Class { retryable, ..Class::of(Kind::Conflict, "budget_exceeded") }
    }
}

impl Classify for queue::Error {
    fn class(&self) -> Class {
        match self {
            Self::BadArgument { .. } => Class::of(Kind::Invalid, "bad_argument"),
            Self::TooLarge { .. } => Class::of(Kind::TooLarge, "payload_too_large"),
            Self::NotFound { .. } => Class::of(Kind::NotFound, "unknown_job"),
            Self::UnknownLane { .. } => Class::of(Kind::NotFound, "unknown_lane"),
            Self::UnknownQueue(_) => Class::of(Kind::NotFound, "unknown_queue"),
            Self::Conflict { .. } => Class::of(Kind::Conflict, "conflict"),
            Self::EncodePayload { .. } => Class::of(Kind::Internal, "internal"),
            Self::Database { source, .. } => of_database(source),
        }
    }
}

impl Classify for Failed {
    fn class(&self) -> Class {
        of_database(&self.source)
    }
}

/// Whether an error, or what is behind it, is that the database does not answer now and will again.
pub fn is_database_away(error: &(dyn std::error::Error + 'static)) -> bool {
    queue::sqlx_error(error).is_some_and(|error| of_database(error).kind == Kind::Unavailable)
}

fn of_database(error: &sqlx::Error) -> Class {
    if let Some(mistake) = crate::db::user_mistake(error) {
        return Class { words: Some(mistake.message), ..Class::of(Kind::Invalid, "bad_value") };
    }
    if is_no_text(error) {
        return Class { words: Some(NO_TEXT), ..Class::of(Kind::Invalid, "nul_in_text") };
    }
    let unavailable =
        |code, advice| Class { advice: Some(advice), ..Class::of(Kind::Unavailable, code) };
    match queue::fault_of(error) {
        Some(Fault::Away) => Class::of(Kind::Unavailable, "database_unreachable"),
        Some(Fault::Conflict) => unavailable("database_conflict", DATABASE_CONFLICT),
        Some(Fault::Full) => unavailable("database_full", DATABASE_FULL),
        Some(Fault::ReadOnly) => unavailable("database_read_only", DATABASE_READ_ONLY),
        Some(Fault::Busy) => unavailable("database_busy", DATABASE_BUSY),
        None if queue::is_lost_statement(error) => {
            Class { advice: Some(queue::LOST_STATEMENT), ..Class::of(Kind::Internal, "internal") }
        }
        None => Class::of(Kind::Internal, "internal"),
    }
}

/// A character that Postgres has in no text, or in no JSON.
fn is_no_text(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    code.is_some_and(|code| matches!(code.as_ref(), "22021" | "22P05"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_budget_is_worth_another_try_only_while_turns_run() {
        use crate::domain::amount::{Owner, Unit};
        let refusal = Refusal {
            owner: Owner::Campaign,
            unit: Unit::Tokens,
            limit: 100,
            spent: 50,
            reserved: 40,
            needed: 20,
        };
        assert!(tasks::Error::from(refusal).class().retryable);
        assert!(!Refusal { spent: 100, ..refusal }.class().retryable);
    }

    #[test]
    fn a_database_that_is_away_is_told_from_a_fault_of_ours() {
        let away = Failed { action: "x", source: sqlx::Error::PoolTimedOut };
        let fault = Failed { action: "x", source: sqlx::Error::RowNotFound };
        assert!(is_database_away(&tasks::Error::from(sessions::Error::from(away))));
        let away = Failed { action: "x", source: sqlx::Error::PoolTimedOut };
        assert!(!is_database_away(&fault));
        assert_eq!((away.class().kind, away.class().retryable), (Kind::Unavailable, true));
        assert_eq!((fault.class().kind, fault.class().retryable), (Kind::Internal, false));
    }
}
