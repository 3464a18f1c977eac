//! Differences of the servers that offer chat completions, as data.

use serde::Deserialize;

/// Name of a dialect in settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DialectName {
    /// By the host of the address.
    Auto,
    #[serde(rename = "openai")]
    OpenAi,
    #[serde(rename = "openrouter")]
    OpenRouter,
    Vllm,
    LlamaCpp,
    LmStudio,
    #[serde(rename = "litellm")]
    LiteLlm,
    /// Any other server.
    Other,
}

/// Differences of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dialect {
    pub(super) limit: LimitField,
    pub(super) thinking: ThinkingField,
    /// True if models accept images and PDF, unless the settings say otherwise. Of other servers, only some models do.
    pub(super) accepts_files: bool,
}

/// Field with the limit of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitField {
    MaxTokens,
    /// OpenAI refuses the older field for models that reason.
    MaxCompletionTokens,
}

/// Field that turns the thinking on or off. All servers take levels as `reasoning_effort`, except OpenRouter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThinkingField {
    /// `reasoning_effort` has a value for "off", too.
    Effort,
    /// `chat_template_kwargs.enable_thinking`, which the templates of open models read.
    TemplateArguments,
    /// `reasoning`, an object.
    Reasoning,
}

impl DialectName {
    /// Returns the differences of a server at this address.
    pub(super) fn dialect(self, base_url: &str) -> Dialect {
        use LimitField::{MaxCompletionTokens, MaxTokens};
        use ThinkingField::{Effort, Reasoning, TemplateArguments};
        let accepts_files = matches!(self, Self::OpenAi | Self::OpenRouter);
        let (limit, thinking) = match self {
            Self::Auto => return Self::of_address(base_url).dialect(base_url),
            Self::OpenAi => (MaxCompletionTokens, Effort),
            Self::OpenRouter => (MaxTokens, Reasoning),
            Self::Vllm | Self::LlamaCpp => (MaxTokens, TemplateArguments),
            Self::LmStudio | Self::LiteLlm | Self::Other => (MaxTokens, Effort),
        };
        Dialect { limit, thinking, accepts_files }
    }

    fn of_address(base_url: &str) -> Self {
        let host = reqwest::Url::parse(base_url).ok();
        match host.as_ref().and_then(|url| url.host_str()).unwrap_or_default() {
            "api.openai.com" => Self::OpenAi,
            "openrouter.ai" => Self::OpenRouter,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dialect_follows_from_the_address() {
        let auto = |url| DialectName::Auto.dialect(url);
        let of = |name: DialectName| name.dialect("");
        assert_eq!(auto("https://api.openai.com/v1"), of(DialectName::OpenAi));
        assert_eq!(auto("https://openrouter.ai/api/v1"), of(DialectName::OpenRouter));
        assert_eq!(auto("http://127.0.0.1:8000/v1"), of(DialectName::Other));
    }
}
