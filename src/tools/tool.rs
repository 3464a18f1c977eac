//! A tool, and a call of one.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sqlx::{Postgres, Transaction};

use super::{Caller, Refusal, Role, Tools, arguments, leave::Leave, pages::Said};
use crate::{
    domain::{agents::Agent, transaction},
    transcript::ToolSpec,
};

/// One tool. There is one of each, in the module of its noun.
pub(super) struct Tool {
    pub name: &'static str,
    /// For a model, in one or two sentences.
    pub description: &'static str,
    pub who: Who,
    /// Whether its answer can be longer than one page, so that it takes a cursor. Never that of a change: its next page would be the
    /// change once more.
    pub in_pages: bool,
    pub timeout: Duration,
    pub schema: fn(Role) -> Value,
    pub run: for<'a> fn(Call<'a>) -> BoxFuture<'a, Result<Said, Refusal>>,
}

/// Who may use a tool. An agent's file has to grant it besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    Everybody,
    /// Whoever has a conversation: no operator.
    Agents,
    /// The lead and operators, and no file can give it to others.
    Lead,
    /// The lead and operators, and agents whose file names it.
    LeadAndNamed,
    /// Agents whose file names it, and nobody else.
    #[cfg(feature = "test-fakes")]
    Named,
    /// Operators, and agents whose file lets them read something of the blackboard.
    BlackboardReaders,
    BlackboardWriters,
}

/// One call, whose caller may make it.
pub(super) struct Call<'a> {
    pub tools: &'a Tools,
    pub caller: &'a Caller,
    pub tool: &'static Tool,
    pub arguments: Value,
    /// Where the list goes on, in the tool's own words.
    pub place: Option<String>,
    /// Whether an earlier answer is read on, whichever way.
    pub goes_on: bool,
}

/// Most answers come from a handful of statements.
pub(super) const QUICKLY: Duration = Duration::from_secs(10);

impl Tool {
    pub(super) fn is_offered_to(&self, caller: &Caller) -> bool {
        match caller {
            #[cfg(feature = "test-fakes")]
            Caller::Operator(_) if self.who == Who::Named => false,
            Caller::Operator(_) => self.who != Who::Agents,
            Caller::Turn(turn) => self.is_offered_to_agent(&turn.agent, caller.role()),
        }
    }

    pub(super) fn is_offered_to_agent(&self, agent: &Agent, role: Role) -> bool {
        let leave = Leave::of(&agent.grants, self.name);
        let blackboard = &agent.grants.blackboard;
        leave != Leave::Nothing
            && match self.who {
                Who::Everybody | Who::Agents => true,
                Who::Lead => role == Role::Lead,
                Who::LeadAndNamed => role == Role::Lead || leave == Leave::ByName,
                #[cfg(feature = "test-fakes")]
                Who::Named => leave == Leave::ByName,
                Who::BlackboardReaders => !blackboard.read.is_empty(),
                Who::BlackboardWriters => !blackboard.write.is_empty(),
            }
    }

    pub(super) fn made_spec(&self, role: Role) -> ToolSpec {
        let mut input_schema = (self.schema)(role);
        if self.in_pages {
            arguments::add_cursor(&mut input_schema);
        }
        ToolSpec {
            name: self.name.to_owned(),
            description: self.description.to_owned(),
            input_schema,
        }
    }
}

impl Call<'_> {
    /// Where its statements run. Each of them ends by itself when nobody waits for the call any more.
    pub(super) async fn begin(&self) -> Result<Transaction<'static, Postgres>, Refusal> {
        Ok(transaction::begin_within(&self.tools.pool, self.tool.timeout).await?)
    }

    /// The arguments, which have to be these and no others.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        arguments::read(&self.arguments)
    }

    pub(super) fn now(&self) -> chrono::DateTime<chrono::Utc> {
        self.tools.settings.clock.now()
    }
}
