//! Kinds of thinking of a model, from the server's list of models.

use serde_json::Value;

/// Kinds of thinking that calls of a model may set, as Anthropic's list has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThinkingModes {
    /// The model decides how much it thinks.
    pub adaptive: bool,
    /// The call sets a budget in tokens.
    pub budget: bool,
    /// The call may turn thinking off.
    pub off: bool,
    /// The call may set an effort.
    pub effort: bool,
}

impl ThinkingModes {
    /// Reads the capabilities of a model. `None`: the list does not have these.
    pub(super) fn of(capabilities: &Value) -> Option<Self> {
        let is_supported = |place: &str| {
            capabilities.pointer(place).and_then(|it| it.get("supported")).and_then(Value::as_bool)
        };
        Some(Self {
            adaptive: is_supported("/thinking/types/adaptive")?,
            budget: is_supported("/thinking/types/enabled")?,
            // Older lists do not have it.
            off: is_supported("/thinking/types/disabled").unwrap_or(true),
            effort: is_supported("/effort").unwrap_or(false),
        })
    }
}
