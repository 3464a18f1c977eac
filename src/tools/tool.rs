//! A tool, and a call of one.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sqlx::{Postgres, Transaction};

use super::{Caller, Refusal, Role, Tools, arguments, pages::ToolAnswer, permissions::Permission};
use crate::{
    domain::{agents::Agent, transaction},
    transcript::ToolSpec,
};

/// Definition of one tool, in the module of its noun.
pub(super) struct Tool {
    pub name: &'static str,
    /// Description for a model, in one or two sentences.
    pub description: &'static str,
    pub who: Access,
    /// True if the answer can be longer than one page, so that the tool takes a cursor. Never true for a change: its next page would repeat
    /// the change.
    pub in_pages: bool,
    pub timeout: Duration,
    pub schema: fn(Role) -> Value,
    pub run: for<'a> fn(Call<'a>) -> BoxFuture<'a, Result<ToolAnswer, Refusal>>,
}

/// Callers that may use a tool. An agent's file has to grant it besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Everybody,
    /// Agents only: operators have no conversation.
    Agents,
    /// Operators only. An agent's file cannot give it to agents.
    Operators,
    /// The lead and operators. An agent's file cannot give it to others.
    Lead,
    /// The lead and operators, and agents whose file names it.
    LeadAndNamed,
    /// Only agents whose file names it.
    #[cfg(feature = "test-fakes")]
    Named,
    /// Operators, and agents whose file lets them read something of the blackboard.
    BlackboardReaders,
    BlackboardWriters,
    /// Agents whose file lets them write facts. People state facts with a command.
    FactWriters,
}

/// One call, by a caller that may make it.
pub(super) struct Call<'a> {
    pub tools: &'a Tools,
    pub caller: &'a Caller,
    pub tool: &'static Tool,
    pub arguments: Value,
    /// Position at which the list continues, in the tool's own notation.
    pub place: Option<String>,
    /// True if the call continues an earlier answer, by its list or by its characters.
    pub goes_on: bool,
}

/// Timeout of most tools: their answers come from a handful of statements.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

impl Tool {
    pub(super) fn is_offered_to(&self, caller: &Caller) -> bool {
        match caller {
            #[cfg(feature = "test-fakes")]
            Caller::Operator(_) if self.who == Access::Named => false,
            Caller::Operator(_) => !matches!(self.who, Access::Agents | Access::FactWriters),
            Caller::Turn(turn) => self.is_offered_to_agent(&turn.agent, caller.role()),
        }
    }

    pub(super) fn is_offered_to_agent(&self, agent: &Agent, role: Role) -> bool {
        let leave = Permission::of(&agent.grants, self.name);
        let blackboard = &agent.grants.blackboard;
        leave != Permission::Nothing
            && match self.who {
                Access::Everybody | Access::Agents => true,
                Access::Operators => false,
                Access::Lead => role == Role::Lead,
                Access::LeadAndNamed => role == Role::Lead || leave == Permission::ByName,
                #[cfg(feature = "test-fakes")]
                Access::Named => leave == Permission::ByName,
                Access::BlackboardReaders => !blackboard.read.is_empty(),
                Access::BlackboardWriters => !blackboard.write.is_empty(),
                Access::FactWriters => agent.writes_facts,
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
    /// Begins the transaction of the call. Each statement has the tool's timeout, so it ends even if the call was dropped.
    pub(super) async fn begin(&self) -> Result<Transaction<'static, Postgres>, Refusal> {
        Ok(transaction::begin_with_limit(&self.tools.pool, self.tool.timeout).await?)
    }

    /// Parses the arguments. The tool's struct decides which ones are accepted.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        arguments::read(&self.arguments)
    }

    pub(super) fn now(&self) -> chrono::DateTime<chrono::Utc> {
        self.tools.settings.clock.now()
    }
}
