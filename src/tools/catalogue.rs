//! The list of all tools.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use super::{Role, tool::Tool};
use crate::transcript::ToolSpec;

/// All tools by noun, in the order in which they are shown.
static ALL: &[&[Tool]] = &[
    super::edicts::TOOLS,
    super::records::TOOLS,
    super::journals::TOOLS,
    super::facts::TOOLS,
    super::recall::TOOLS,
    super::board::TOOLS,
    super::tasks::TOOLS,
    super::wait::TOOLS,
    super::flows::TOOLS,
    super::blackboard::TOOLS,
    super::archive::TOOLS,
    super::status::TOOLS,
    super::contexts::TOOLS,
    #[cfg(feature = "test-fakes")]
    super::trial::TOOLS,
];

pub(super) fn all() -> impl Iterator<Item = &'static Tool> {
    ALL.iter().flat_map(|of_noun| of_noun.iter())
}

pub(super) fn find(name: &str) -> Option<&'static Tool> {
    all().find(|tool| tool.name == name)
}

/// Specs by tool and role. Made once: each turn asks for them, and schemas are derived.
static SPECS: LazyLock<BTreeMap<(&'static str, Role), Arc<ToolSpec>>> = LazyLock::new(|| {
    let of_role = |role| all().map(move |tool| ((tool.name, role), Arc::new(tool.made_spec(role))));
    Role::ALL.into_iter().flat_map(of_role).collect()
});

/// Returns the description of a tool that a model gets.
pub(super) fn spec(tool: &Tool, role: Role) -> Arc<ToolSpec> {
    let made = SPECS.get(&(tool.name, role)).map(Arc::clone);
    made.unwrap_or_else(|| Arc::new(tool.made_spec(role)))
}
