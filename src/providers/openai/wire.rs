//! The body of `/chat/completions`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    dialect::{Dialect, LimitField, ThinkingField},
    messages::{self, WireMessage},
};
use crate::{
    providers::{CallTexts, Options, Request, Think},
    transcript::ToolSpec,
};

#[derive(Debug, Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
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
    #[serde(flatten)]
    fields: FixedFields,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct FixedFields {
    stream: bool,
    stream_options: StreamOptions,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    top_p: Option<f32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stop: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(flatten)]
    thinking: ThinkingFields,
}

/// Fields for the amount of thinking: at most one is set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct ThinkingFields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chat_template_kwargs: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reasoning: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct StreamOptions {
    /// Without it most servers do not count the tokens of a stream.
    include_usage: bool,
}

#[derive(Debug, Serialize)]
struct WireTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: WireFunction<'a>,
}

#[derive(Debug, Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

/// Name of the schema of an answer, which the API requires and shows to the model.
const SCHEMA_NAME: &str = "answer";

impl Envelope {
    pub(super) fn new(request: &Request, dialect: Dialect, url: String, has_key: bool) -> Self {
        let options = &request.options;
        let limit = Some(request.reserve_tokens.max(1));
        let fields = FixedFields {
            stream: true,
            stream_options: StreamOptions { include_usage: true },
            max_tokens: limit.filter(|_| dialect.limit == LimitField::MaxTokens),
            max_completion_tokens: limit.filter(|_| dialect.limit != LimitField::MaxTokens),
            temperature: options.temperature,
            top_p: options.top_p,
            seed: options.seed,
            stop: options.stop.clone(),
            response_format: options.format.as_ref().map(response_format),
            thinking: options
                .think
                .map(|think| ThinkingFields::new(think, dialect.thinking))
                .unwrap_or_default(),
        };
        Self { url, has_key, model: request.model.clone(), fields }
    }

    /// Returns the options that a request with this envelope has, and its limit for the answer.
    pub(in crate::providers) fn options(&self) -> (Options, u32) {
        let FixedFields { temperature, top_p, seed, ref stop, .. } = self.fields;
        let schema = self.fields.response_format.as_ref();
        let options = Options {
            temperature,
            top_p,
            seed,
            stop: stop.clone(),
            think: self.fields.thinking.think(),
            format: schema.and_then(|format| format.pointer("/json_schema/schema").cloned()),
        };
        let limit = self.fields.max_tokens.or(self.fields.max_completion_tokens);
        (options, limit.unwrap_or_default())
    }

    pub(in crate::providers) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the header with the key, in which `$KEY` stands for the key.
    pub(in crate::providers) fn key_header(&self) -> Option<&'static str> {
        self.has_key.then_some("authorization: Bearer $KEY")
    }

    /// Builds the body of the request.
    pub(in crate::providers) fn body(&self, call: &CallTexts<'_>) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&Body {
            model: &self.model,
            messages: messages::messages(call.system, call.messages),
            tools: call.tools.iter().map(|tool| wire_tool(tool)).collect(),
            fields: &self.fields,
        })
    }
}

impl ThinkingFields {
    fn new(think: Think, field: ThinkingField) -> Self {
        let level = match think {
            Think::Low => Some("low"),
            Think::Medium => Some("medium"),
            Think::High => Some("high"),
            Think::Off | Think::On => None,
        };
        let is_on = think != Think::Off;
        let effort =
            |effort: &str| Self { reasoning_effort: Some(effort.to_owned()), ..Self::default() };
        match (field, level) {
            (ThinkingField::Reasoning, Some(level)) => {
                Self { reasoning: Some(json!({ "effort": level })), ..Self::default() }
            }
            (ThinkingField::Reasoning, None) => {
                Self { reasoning: Some(json!({ "enabled": is_on })), ..Self::default() }
            }
            (_, Some(level)) => effort(level),
            (ThinkingField::Effort, None) => effort(if is_on { "medium" } else { "none" }),
            (ThinkingField::TemplateArguments, None) => Self {
                chat_template_kwargs: Some(json!({ "enable_thinking": is_on })),
                ..Self::default()
            },
        }
    }

    /// Returns the option that gives the same fields again.
    fn think(&self) -> Option<Think> {
        let switch = |is_on: bool| if is_on { Think::On } else { Think::Off };
        let reasoning = self.reasoning.as_ref();
        let effort = reasoning.and_then(|reasoning| reasoning.get("effort")?.as_str());
        if let Some(level) = effort.or(self.reasoning_effort.as_deref()) {
            return Some(match level {
                "low" => Think::Low,
                "medium" => Think::Medium,
                "high" => Think::High,
                _ => Think::Off,
            });
        }
        let arguments = self.chat_template_kwargs.as_ref();
        let enabled = reasoning.and_then(|reasoning| reasoning.get("enabled"));
        let enabled = enabled.or_else(|| arguments?.get("enable_thinking"));
        enabled.and_then(Value::as_bool).map(switch)
    }
}

fn response_format(schema: &Value) -> Value {
    json!({ "type": "json_schema", "json_schema": { "name": SCHEMA_NAME, "schema": schema } })
}

fn wire_tool(tool: &ToolSpec) -> WireTool<'_> {
    let ToolSpec { name, description, input_schema } = tool;
    WireTool {
        kind: "function",
        function: WireFunction { name, description, parameters: input_schema },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_is_read_back_from_its_fields() {
        for field in
            [ThinkingField::Effort, ThinkingField::TemplateArguments, ThinkingField::Reasoning]
        {
            for think in [Think::Off, Think::On, Think::Low, Think::Medium, Think::High] {
                let fields = ThinkingFields::new(think, field);
                let again = ThinkingFields::new(fields.think().unwrap(), field);
                assert_eq!(again, fields, "{think:?} as {field:?}");
            }
        }
        assert_eq!(ThinkingFields::default().think(), None);
    }
}
