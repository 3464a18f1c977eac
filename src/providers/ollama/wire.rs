//! The body of `/api/chat`.

use serde::{
    Deserialize, Serialize,
    de::{
        IntoDeserializer as _,
        value::{Error as ValueError, StrDeserializer},
    },
};
use serde_json::Value;

use super::{
    messages::{self, WireMessage},
    model::ThinkingMode,
    verdict::Plan,
};
use crate::{
    providers::{CallTexts, Options, Think},
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
    model: String,
    #[serde(flatten)]
    fields: FixedFields,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct FixedFields {
    stream: bool,
    /// Off, so that a prompt that is too long is refused instead of cut.
    truncate: bool,
    /// Off, so that a full window ends the answer instead of dropping the beginning of the prompt.
    shift: bool,
    keep_alive: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    think: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    format: Option<Value>,
    options: WireOptions,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct WireOptions {
    num_ctx: u32,
    num_predict: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    top_p: Option<f32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stop: Vec<String>,
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

impl Envelope {
    pub(super) fn new(
        plan: &Plan<'_>,
        thinking: ThinkingMode,
        keep_alive: i64,
        url: String,
    ) -> Self {
        let request = plan.request;
        let options = &request.options;
        let fields = FixedFields {
            stream: true,
            truncate: false,
            shift: false,
            keep_alive,
            think: options.think.and_then(|think| wire_think(think, thinking)),
            // An answer that has to match a schema cannot call tools.
            format: options.format.clone().filter(|_| request.tools.is_empty()),
            options: WireOptions {
                num_ctx: plan.num_ctx,
                num_predict: request.reserve_tokens.max(1),
                temperature: options.temperature,
                top_p: options.top_p,
                seed: options.seed,
                stop: options.stop.clone(),
            },
        };
        Self { url, model: request.model.clone(), fields }
    }

    /// Returns the options that a request with this envelope has, and its limit for the answer.
    pub(in crate::providers) fn options(&self) -> (Options, u32) {
        let WireOptions { num_predict, temperature, top_p, seed, ref stop, .. } =
            self.fields.options;
        let options = Options {
            temperature,
            top_p,
            seed,
            stop: stop.clone(),
            think: self.fields.think.as_ref().and_then(think_of),
            format: self.fields.format.clone(),
        };
        (options, num_predict)
    }

    pub(in crate::providers) fn url(&self) -> &str {
        &self.url
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

fn wire_tool(tool: &ToolSpec) -> WireTool<'_> {
    let ToolSpec { name, description, input_schema } = tool;
    WireTool {
        kind: "function",
        function: WireFunction { name, description, parameters: input_schema },
    }
}

/// Returns the option that gives the same value of `think` again.
fn think_of(value: &Value) -> Option<Think> {
    match value {
        Value::Bool(is_on) => Some(if *is_on { Think::On } else { Think::Off }),
        Value::String(level) => {
            let level: StrDeserializer<'_, ValueError> = level.as_str().into_deserializer();
            Think::deserialize(level).ok()
        }
        _ => None,
    }
}

/// Returns the value of `think`. A model that cannot think gets none: the server refuses the key as such.
fn wire_think(think: Think, thinking: ThinkingMode) -> Option<Value> {
    let level = |name: &str| Value::String(name.to_owned());
    match (thinking, think) {
        (ThinkingMode::Never, _) => None,
        (ThinkingMode::Switch, Think::Off) => Some(Value::Bool(false)),
        (ThinkingMode::Switch, Think::On) => Some(Value::Bool(true)),
        (_, Think::Off | Think::Low) => Some(level("low")),
        (_, Think::On | Think::Medium) => Some(level("medium")),
        (_, Think::High) => Some(level("high")),
    }
}
