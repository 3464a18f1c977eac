//! The kinds of events, with the data of each. The filter of the feed, the reference and the schemas of the API document are made from
//! this list, and the integration tests compare the events that they cause with it.

mod agents;
mod campaigns;
mod field;
mod flows;
mod sessions;
mod tasks;
mod turns;

use serde_json::Value;

pub use self::{
    campaigns::WARNING_FIELDS,
    field::{Field, FieldType, object_schema},
};

/// The description of a kind of event.
#[derive(Debug, Clone, Copy)]
pub struct EventKind {
    /// The moment at which it is written, as a sentence.
    pub when: &'static str,
    /// The ids that are never null, besides that of the event.
    pub ids: &'static [&'static str],
    /// The fields of `data`.
    pub fields: &'static [Field],
}

const CAMPAIGN: &[&str] = &["campaign_id"];
const TASK: &[&str] = &["campaign_id", "task_id"];
const SESSION: &[&str] = &["campaign_id", "session_id"];
const TURN: &[&str] = &["campaign_id", "task_id", "session_id"];

macro_rules! kinds {
    ($($kind:ident $name:literal $about:path;)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Kind {
            $($kind,)+
        }

        impl Kind {
            pub const ALL: &[Self] = &[$(Self::$kind,)+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }

            pub const fn about(self) -> &'static EventKind {
                match self {
                    $(Self::$kind => &$about,)+
                }
            }
        }

        /// The names of all kinds.
        pub const KINDS: &[&str] = &[$($name,)+];
    };
}

kinds! {
    AgentPaused "agent.paused" agents::PAUSED;
    AgentResumed "agent.resumed" agents::RESUMED;
    BlackboardChanged "blackboard.changed" campaigns::BLACKBOARD_CHANGED;
    BudgetRefused "budget.refused" campaigns::BUDGET_REFUSED;
    BudgetWarning "budget.warning" campaigns::BUDGET_WARNING;
    CampaignEdited "campaign.edited" campaigns::EDITED;
    CampaignErasing "campaign.erasing" campaigns::ERASING;
    ConversationMoved "conversation.moved" sessions::CONVERSATION_MOVED;
    FactsRead "facts.read" agents::FACTS_READ;
    FactsRefused "facts.refused" agents::FACTS_REFUSED;
    FlowEnded "flow.ended" flows::ENDED;
    FlowPaused "flow.paused" flows::PAUSED;
    FlowResumed "flow.resumed" flows::RESUMED;
    FlowRetried "flow.retried" flows::RETRIED;
    FlowStarted "flow.started" flows::STARTED;
    MemoryPublished "memory.published" agents::MEMORY_PUBLISHED;
    MemoryRevoked "memory.revoked" agents::MEMORY_REVOKED;
    NodeEntered "node.entered" sessions::NODE_ENTERED;
    PostAdded "post.added" campaigns::POST_ADDED;
    SessionCompacted "session.compacted" sessions::COMPACTED;
    CompactionNotNeeded "session.compaction_not_needed" sessions::COMPACTION_NOT_NEEDED;
    CompactionRefused "session.compaction_refused" sessions::COMPACTION_REFUSED;
    SessionForked "session.forked" sessions::FORKED;
    SessionOpened "session.opened" sessions::OPENED;
    SessionRebuilt "session.rebuilt" sessions::REBUILT;
    SessionReset "session.reset" sessions::RESET;
    SessionUncompacted "session.uncompacted" sessions::UNCOMPACTED;
    TaskCancelled "task.cancelled" tasks::CANCELLED;
    TaskFailed "task.failed" tasks::FAILED;
    TaskInterrupted "task.interrupted" tasks::INTERRUPTED;
    TaskQueued "task.queued" tasks::QUEUED;
    TaskWaiting "task.waiting" tasks::WAITING;
    TurnDone "turn.done" turns::DONE;
    TurnFailed "turn.failed" turns::FAILED;
    TurnInterrupted "turn.interrupted" turns::INTERRUPTED;
    TurnProgress "turn.progress" turns::PROGRESS;
    TurnSnoozed "turn.snoozed" turns::SNOOZED;
    TurnStarted "turn.started" turns::STARTED;
}

impl Kind {
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == name)
    }

    /// Returns the name of the schema of the data in the API document: `TurnDoneData`.
    pub fn schema_name(self) -> String {
        let words = self.as_str().split(['.', '_']).map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_uppercase() + rest
        });
        words.chain(["Data".to_owned()]).collect()
    }

    /// Returns the JSON Schema of the data.
    pub fn schema(self) -> Value {
        let EventKind { when, fields, .. } = self.about();
        let mut schema = object_schema(fields);
        schema["description"] = format!("Data of `{}`. {when}", self.as_str()).into();
        schema
    }
}
