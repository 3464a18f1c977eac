//! What a tool is, and the list of them.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
    time::Duration,
};

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

/// In the order in which they are shown.
static ALL: &[&[Tool]] = &[
    super::edicts::TOOLS,
    super::records::TOOLS,
    super::journals::TOOLS,
    super::recall::TOOLS,
    super::board::TOOLS,
    super::tasks::TOOLS,
    super::wait::TOOLS,
    super::flows::TOOLS,
    super::blackboard::TOOLS,
    super::archive::TOOLS,
    super::status::TOOLS,
    #[cfg(feature = "test-fakes")]
    super::trial::TOOLS,
];

pub(super) fn all() -> impl Iterator<Item = &'static Tool> {
    ALL.iter().flat_map(|of_noun| of_noun.iter())
}

pub(super) fn named(name: &str) -> Option<&'static Tool> {
    all().find(|tool| tool.name == name)
}

/// Made once: schemas are derived, and asked for by each turn.
static SPECS: LazyLock<BTreeMap<(&'static str, Role), Arc<ToolSpec>>> = LazyLock::new(|| {
    let of_role = |role| all().map(move |tool| ((tool.name, role), Arc::new(tool.made_spec(role))));
    Role::ALL.into_iter().flat_map(of_role).collect()
});

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

    pub(super) fn spec(&self, role: Role) -> Arc<ToolSpec> {
        let made = SPECS.get(&(self.name, role)).map(Arc::clone);
        made.unwrap_or_else(|| Arc::new(self.made_spec(role)))
    }

    fn made_spec(&self, role: Role) -> ToolSpec {
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
