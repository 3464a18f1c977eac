//! The body of `/messages`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    messages::{Prompt, WireMessage},
    schema,
    thinking::ThinkingFields,
};
use crate::providers::{CallTexts, Options, Purpose, Request, endpoint::ThinkingModes};

#[derive(Debug, Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Value>,
    messages: Vec<WireMessage>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(flatten)]
    fields: &'a FixedFields,
}

/// A request without its messages and tools. It is stored with the call, so that the request can be shown later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    url: String,
    /// True if the request had a key, which is never stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_key: bool,
    model: String,
    max_tokens: u32,
    /// True if the request marks the prefixes that later calls read from the cache.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_cached: bool,
    /// Options of the request. The API has no fields for some of them, and models refuse others.
    options: Options,
    fields: FixedFields,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct FixedFields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    top_p: Option<f32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stop_sequences: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_config: Option<Value>,
}

impl Envelope {
    /// Headers of every request besides the key.
    pub(in crate::providers) const HEADERS: &'static [&'static str] =
        &["anthropic-version: 2023-06-01"];

    pub(super) fn new(request: &Request, modes: ThinkingModes, url: String, has_key: bool) -> Self {
        let max_tokens = request.reserve_tokens.max(1);
        Self {
            url,
            has_key,
            model: request.model.clone(),
            max_tokens,
            is_cached: request.purpose == Purpose::Turn,
            options: request.options.clone(),
            fields: FixedFields::new(&request.options, modes, max_tokens),
        }
    }

    /// Returns the options that a request with this envelope has, and its limit for the answer.
    pub(in crate::providers) fn options(&self) -> (Options, u32) {
        (self.options.clone(), self.max_tokens)
    }

    pub(in crate::providers) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the header with the key, in which `$KEY` stands for the key.
    pub(in crate::providers) fn key_header(&self) -> Option<&'static str> {
        self.has_key.then_some("x-api-key: $KEY")
    }

    /// Builds the body of the request.
    pub(in crate::providers) fn body(&self, call: &CallTexts<'_>) -> serde_json::Result<Vec<u8>> {
        let mut prompt = Prompt::of(call);
        if self.is_cached {
            prompt.mark_for_cache();
        }
        let Prompt { system, tools, messages, offers_tools } = prompt;
        let is_choice_limited = !offers_tools && !tools.is_empty();
        serde_json::to_vec(&Body {
            model: &self.model,
            max_tokens: self.max_tokens,
            stream: true,
            system,
            messages,
            tool_choice: is_choice_limited.then(|| json!({ "type": "none" })),
            tools,
            fields: &self.fields,
        })
    }
}

impl FixedFields {
    fn new(options: &Options, modes: ThinkingModes, max_tokens: u32) -> Self {
        let ThinkingFields { thinking, effort, is_on } =
            ThinkingFields::new(options.think, modes, max_tokens);
        let takes_sampling = modes.takes_sampling() && !is_on;
        let temperature = options.temperature.filter(|_| takes_sampling);
        // Newer models take only one of the two.
        let top_p = options.top_p.filter(|_| takes_sampling && temperature.is_none());
        if temperature != options.temperature || top_p != options.top_p || options.seed.is_some() {
            tracing::debug!("left out options of sampling that the model does not take");
        }
        let mut output_config = serde_json::Map::new();
        if let Some(effort) = effort {
            output_config.insert("effort".to_owned(), json!(effort));
        }
        if let Some(schema) = &options.format {
            let format = json!({ "type": "json_schema", "schema": schema::enforceable(schema) });
            output_config.insert("format".to_owned(), format);
        }
        Self {
            temperature,
            top_p,
            stop_sequences: options.stop.clone(),
            thinking,
            output_config: (!output_config.is_empty()).then_some(Value::Object(output_config)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::Think;

    fn options(think: Option<Think>) -> Options {
        Options {
            temperature: Some(0.5),
            top_p: Some(0.25),
            seed: Some(7),
            think,
            ..Options::default()
        }
    }

    fn fields(model: &str, think: Option<Think>) -> Value {
        let modes = ThinkingModes::of_name(model);
        serde_json::to_value(FixedFields::new(&options(think), modes, 8192)).unwrap()
    }

    #[test]
    fn models_are_sent_only_the_sampling_that_they_take() {
        assert_eq!(fields("claude-haiku-4-5", None), json!({ "temperature": 0.5 }));
        assert_eq!(fields("claude-opus-4-8", None), json!({}));
        let thinking = json!({ "thinking": { "type": "enabled", "budget_tokens": 4096 } });
        assert_eq!(fields("claude-haiku-4-5", Some(Think::On)), thinking);
    }
}
