//! The body of `/messages`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

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
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
    #[serde(flatten)]
    prompt: PromptBody,
    #[serde(flatten)]
    fields: &'a FixedFields,
}

/// The body of `/messages/batches`.
#[derive(Debug, Serialize)]
struct BatchBody<'a> {
    requests: [BatchRequest<'a>; 1],
}

#[derive(Debug, Serialize)]
struct BatchRequest<'a> {
    custom_id: Uuid,
    params: Body<'a>,
}

/// The body of `/messages/count_tokens`: everything of a request that is part of its prompt.
#[derive(Debug, Serialize)]
struct CountBody<'a> {
    model: &'a str,
    #[serde(flatten)]
    prompt: PromptBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<&'a Value>,
}

#[derive(Debug, Serialize)]
struct PromptBody {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Value>,
    messages: Vec<WireMessage>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
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
    /// Our id of the call, if the request is a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batch_call: Option<Uuid>,
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
        let mut fields = FixedFields::new(&request.options, modes, max_tokens);
        if fields.has_thinking_budget()
            && Prompt::of(&request.model, &CallTexts::of(request)).lacks_thinking()
        {
            let options = Options { think: None, ..request.options.clone() };
            fields = FixedFields::new(&options, modes, max_tokens);
        }
        Self {
            url,
            has_key,
            model: request.model.clone(),
            max_tokens,
            is_cached: request.purpose == Purpose::Turn,
            batch_call: None,
            options: request.options.clone(),
            fields,
        }
    }

    /// Returns the envelope of the same call as a batch.
    pub(super) fn into_batch(self, call_id: Uuid, url: String) -> Self {
        Self { url, batch_call: Some(call_id), ..self }
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
        let mut prompt = Prompt::of(&self.model, call);
        if self.is_cached {
            prompt.mark_for_cache();
        }
        let params = Body {
            model: &self.model,
            max_tokens: self.max_tokens,
            stream: self.batch_call.is_none(),
            prompt: prompt.into(),
            fields: &self.fields,
        };
        match self.batch_call {
            Some(custom_id) => {
                serde_json::to_vec(&BatchBody { requests: [BatchRequest { custom_id, params }] })
            }
            None => serde_json::to_vec(&params),
        }
    }

    /// Builds the body of the question for the size of the request.
    pub(super) fn count_body(&self, call: &CallTexts<'_>) -> serde_json::Result<Vec<u8>> {
        let FixedFields { thinking, output_config, .. } = &self.fields;
        serde_json::to_vec(&CountBody {
            model: &self.model,
            prompt: Prompt::of(&self.model, call).into(),
            thinking: thinking.as_ref(),
            output_config: output_config.as_ref(),
        })
    }
}

impl From<Prompt> for PromptBody {
    fn from(prompt: Prompt) -> Self {
        let Prompt { system, tools, messages, offers_tools } = prompt;
        let is_choice_limited = !offers_tools && !tools.is_empty();
        let tool_choice = is_choice_limited.then(|| json!({ "type": "none" }));
        Self { system, messages, tools, tool_choice }
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

    fn has_thinking_budget(&self) -> bool {
        self.thinking.as_ref().is_some_and(|thinking| thinking.get("budget_tokens").is_some())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        providers::{Think, anthropic::sample},
        transcript::{Message, Role, ToolCall},
    };

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

    /// Builds a call of this model after a call of a tool, with or without the thinking before it.
    fn after_a_call(model: &str, is_changed: bool) -> Value {
        let mut request = sample::request(vec![Message::new(Role::User, "Go.")]);
        model.clone_into(&mut request.model);
        request.reserve_tokens = 8192;
        request.options.think = Some(Think::On);
        let prefix = Prompt::of(model, &CallTexts::of(&request)).digest(model);
        let block = json!({ "type": "thinking", "thinking": "Hm.", "signature": "s1" });
        let call = ToolCall {
            id: "c1".to_owned(),
            name: "look".to_owned(),
            arguments: json!({}),
            thinking: Some(json!({ "prefix": prefix, "text_bytes": 0, "blocks": [[block, 0]] })),
        };
        let asked = Message { tool_calls: vec![call], ..Message::new(Role::Assistant, "") };
        let result =
            Message { tool_call_id: Some("c1".to_owned()), ..Message::new(Role::Tool, "found") };
        request.messages.extend([asked, result].map(Arc::new));
        if is_changed {
            request.system.push_str(" More.");
        }
        let modes = ThinkingModes::of_name(model);
        let envelope = Envelope::new(&request, modes, "http://h/v1/messages".to_owned(), false);
        let body = envelope.body(&CallTexts::of(&request)).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    #[test]
    fn a_model_with_a_budget_does_not_think_about_results_whose_thinking_is_lost() {
        let budget = json!({ "type": "enabled", "budget_tokens": 4096 });
        let sent = after_a_call("claude-sonnet-4-5", false);
        assert_eq!(
            (&sent["thinking"], &sent["messages"][1]["content"][0]["type"]),
            (&budget, &json!("thinking"))
        );
        let sent = after_a_call("claude-sonnet-4-5", true);
        assert_eq!(sent.get("thinking"), None);
        assert_eq!(sent["messages"][1]["content"][0]["type"], "tool_use");
        // Models that decide themselves accept such a prompt.
        let sent = after_a_call("claude-opus-4-8", true);
        assert_eq!(sent["thinking"], json!({ "type": "adaptive" }));
    }

    #[test]
    fn the_size_of_a_call_is_asked_with_its_whole_prompt_and_nothing_else() {
        let mut request = sample::request(vec![Message::new(Role::User, "Go.")]);
        request.options =
            Options { format: Some(json!({ "type": "string" })), ..options(Some(Think::High)) };
        let modes = ThinkingModes::of_name("claude-opus-4-8");
        let envelope = Envelope::new(&request, modes, "http://h/v1/messages".to_owned(), false);
        let texts = CallTexts::of(&request);
        let mut sent: Value = serde_json::from_slice(&envelope.body(&texts).unwrap()).unwrap();
        let counted: Value = serde_json::from_slice(&envelope.count_body(&texts).unwrap()).unwrap();
        for key in ["max_tokens", "stream"] {
            sent.as_object_mut().unwrap().remove(key);
        }
        let sent = sent.to_string().replace(r#","cache_control":{"type":"ephemeral"}"#, "");
        let sent = sent.replace(r#""cache_control":{"type":"ephemeral"},"#, "");
        assert_eq!(serde_json::from_str::<Value>(&sent).unwrap(), counted);
    }

    #[test]
    fn models_are_sent_only_the_sampling_that_they_take() {
        assert_eq!(fields("claude-haiku-4-5", None), json!({ "temperature": 0.5 }));
        assert_eq!(fields("claude-opus-4-8", None), json!({}));
        let thinking = json!({ "thinking": { "type": "enabled", "budget_tokens": 4096 } });
        assert_eq!(fields("claude-haiku-4-5", Some(Think::On)), thinking);
    }
}
