//! Kinds of parts, and the origin of their texts.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ContextPartKind)]
pub enum Kind {
    AgentPrompt,
    FenceRules,
    Skill,
    CampaignBrief,
    ClientContext,
    Edict,
    /// A fact about the user for whom the campaign works.
    Fact,
    Roster,
    Summary,
    Transcript,
    SyntheticResults,
    Notice,
    Posts,
    Statuses,
    /// Named values of the campaign and the task.
    Parameters,
    Blackboard,
    /// The JSON Schema that the answer has to match.
    ResultSchema,
    Results,
    Task,
    /// A file of a task, with the prompt that it belongs to.
    Attachment,
    /// The tools that the model may call.
    Tools,
    /// The model's calls in this turn, with their results.
    Rounds,
}

/// Origin of the text of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ContextPartTrust)]
pub enum Trust {
    /// The service itself, or a file of the operator.
    Trusted,
    /// People, models and tools. The text is escaped and delimited.
    Untrusted,
}

impl Kind {
    /// Returns true for a part of the system text.
    pub const fn is_of_system(self) -> bool {
        matches!(
            self,
            Self::AgentPrompt
                | Self::FenceRules
                | Self::Skill
                | Self::CampaignBrief
                | Self::ClientContext
                | Self::Edict
                | Self::Fact
                | Self::Roster
        )
    }

    /// Returns true for a system text that is stored as it is: it has no elements, and nothing of it is escaped.
    pub const fn is_plain(self) -> bool {
        matches!(self, Self::AgentPrompt | Self::FenceRules)
    }

    /// Returns the name, as JSON has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AgentPrompt => "agent_prompt",
            Self::FenceRules => "fence_rules",
            Self::Skill => "skill",
            Self::CampaignBrief => "campaign_brief",
            Self::ClientContext => "client_context",
            Self::Edict => "edict",
            Self::Fact => "fact",
            Self::Roster => "roster",
            Self::Summary => "summary",
            Self::Transcript => "transcript",
            Self::SyntheticResults => "synthetic_results",
            Self::Notice => "notice",
            Self::Posts => "posts",
            Self::Statuses => "statuses",
            Self::Parameters => "parameters",
            Self::Blackboard => "blackboard",
            Self::ResultSchema => "result_schema",
            Self::Results => "results",
            Self::Task => "task",
            Self::Attachment => "attachment",
            Self::Tools => "tools",
            Self::Rounds => "rounds",
        }
    }

    pub const fn trust(self) -> Trust {
        match self {
            Self::AgentPrompt
            | Self::FenceRules
            | Self::Skill
            | Self::Roster
            | Self::SyntheticResults
            | Self::Notice
            | Self::Statuses
            | Self::Tools => Trust::Trusted,
            Self::CampaignBrief
            | Self::ClientContext
            | Self::Edict
            | Self::Fact
            | Self::Summary
            | Self::Transcript
            | Self::Posts
            | Self::Parameters
            | Self::Blackboard
            | Self::ResultSchema
            | Self::Results
            | Self::Task
            | Self::Attachment
            | Self::Rounds => Trust::Untrusted,
        }
    }
}
