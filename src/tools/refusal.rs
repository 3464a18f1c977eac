//! Refusals and failures of calls, in words for the model that made them.

use crate::{
    causes::causes,
    domain::class::{Classify, Kind},
};

type Source = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("you have no tool `{tool}`: {}", describe_offered(.offered))]
    NotOffered { tool: String, offered: Vec<String> },
    /// Refusal because of the arguments, or of the state of the data.
    #[error("{0}")]
    Text(String),
    #[error(
        "nothing was done: this turn has ended, or another worker has taken it over. Make no more calls, and end your answer"
    )]
    Over,
    #[error(
        "no answer within {secs} s; the call may or may not have taken effect. Check before you call again, or continue without it and say so"
    )]
    TookTooLong { secs: u64 },
    #[error(
        "the service could not do this now, and nothing was changed. Try once more, or continue without it and say so"
    )]
    Failed(#[source] Source),
    #[error("the tool failed because of a bug. Continue without it, and say so")]
    Panicked,
}

impl Refusal {
    pub(super) fn of_text(words: impl Into<String>) -> Self {
        Self::Text(words.into())
    }

    /// Logs the details that the model is not told.
    pub(super) fn log(&self, tool: &str) {
        match self {
            Self::Failed(source) => {
                tracing::error!(tool, error = causes(source.as_ref()), "a tool failed");
            }
            Self::TookTooLong { .. } | Self::Panicked => {
                tracing::error!(tool, "a tool failed: {self}");
            }
            Self::NotOffered { .. } | Self::Text(_) | Self::Over => {
                tracing::debug!(tool, "refused the call of a tool");
            }
        }
    }

    pub(super) fn outcome(&self) -> &'static str {
        match self {
            Self::NotOffered { .. } => "denied",
            Self::Text(_) | Self::Over => "refused",
            Self::TookTooLong { .. } => "timed_out",
            Self::Failed(_) | Self::Panicked => "failed",
        }
    }
}

impl<E: Classify> From<E> for Refusal {
    fn from(error: E) -> Self {
        let class = error.class();
        match class.kind {
            Kind::Unavailable | Kind::Internal => Self::Failed(Box::new(error)),
            _ => {
                let words = class.words.map_or_else(|| error.to_string(), str::to_owned);
                Self::Text(without_commands(&words).to_owned())
            }
        }
    }
}

/// Cuts off commands, which people can type and a model cannot.
fn without_commands(words: &str) -> &str {
    let ends = [": `dalsegno ", ", `dalsegno ", "; `dalsegno "];
    ends.iter().filter_map(|end| words.find(end)).min().map_or(words, |end| &words[..end])
}

fn describe_offered(offered: &[String]) -> String {
    match offered {
        [] => "you have none".to_owned(),
        offered => format!("you have {}", offered.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_to_a_model_contains_no_command() {
        let told = "task 5 has already ended: `dalsegno task show 5` prints its result";
        assert_eq!(without_commands(told), "task 5 has already ended");
        assert_eq!(without_commands("the text is empty: write it"), "the text is empty: write it");
    }
}
