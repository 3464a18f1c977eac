//! Abilities of a provider, so that callers need not know which one it is.

/// Abilities of a provider with its configuration, independent of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// True if the provider keeps the conversation itself and continues it, with tools of its own or over MCP. False if it is sent the
    /// whole conversation with each call, and the service runs its tools.
    pub holds_session: bool,
    /// True if it makes its answers up and calls no model.
    pub is_simulation: bool,
    /// True if a call may set temperature, top_p and seed.
    pub takes_sampling: bool,
    /// True if a call may require an answer of a JSON schema.
    pub takes_schema: bool,
    /// True if a call may set the amount of thinking.
    pub takes_thinking: bool,
    /// True if the agent can work in a folder, with permissions for its commands.
    pub works_in_folder: bool,
    pub prestart: Prestart,
}

/// Start of a provider's program before its next turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prestart {
    Unsupported,
    /// This setting is 0.
    Disabled {
        setting: &'static str,
    },
    Enabled,
}

/// Lookup of a provider's abilities by its name. `None`: there is no such provider.
pub type CapabilityLookup<'a> = dyn Fn(&str) -> Option<Capabilities> + 'a;

impl Capabilities {
    /// The abilities of a provider that is sent the whole conversation over HTTP.
    pub(super) const OF_HTTP: Self = Self {
        holds_session: false,
        is_simulation: false,
        takes_sampling: true,
        takes_schema: true,
        takes_thinking: true,
        works_in_folder: false,
        prestart: Prestart::Unsupported,
    };
}
