//! The body of `/api/chat`.

use serde::Serialize;
use serde_json::Value;

use super::{
    error::Error,
    history::{self, WireMessage},
    model::ThinkingMode,
    verdict::Plan,
};
use crate::{providers::Think, transcript::ToolSpec};

#[derive(Debug, Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    stream: bool,
    /// Off, so that a prompt that is too long is refused instead of cut.
    truncate: bool,
    /// Off, so that a full window ends the answer instead of dropping the beginning of the prompt.
    shift: bool,
    keep_alive: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'a Value>,
    options: WireOptions<'a>,
}

#[derive(Debug, Serialize)]
struct WireOptions<'a> {
    num_ctx: u32,
    num_predict: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'a [String],
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

pub(super) fn body(
    plan: &Plan<'_>,
    thinking: ThinkingMode,
    keep_alive: i64,
) -> Result<Vec<u8>, Error> {
    let request = plan.request;
    let options = &request.options;
    let body = Body {
        model: &request.model,
        messages: history::messages(&request.system, &request.messages),
        tools: request.tools.iter().map(|tool| wire_tool(tool)).collect(),
        stream: true,
        truncate: false,
        shift: false,
        keep_alive,
        think: options.think.and_then(|think| wire_think(think, thinking)),
        format: options.format.as_ref(),
        options: WireOptions {
            num_ctx: plan.num_ctx,
            num_predict: request.reserve_tokens.max(1),
            temperature: options.temperature,
            top_p: options.top_p,
            seed: options.seed,
            stop: &options.stop,
        },
    };
    serde_json::to_vec(&body).map_err(Error::Unwritable)
}

fn wire_tool(tool: &ToolSpec) -> WireTool<'_> {
    let ToolSpec { name, description, input_schema } = tool;
    WireTool {
        kind: "function",
        function: WireFunction { name, description, parameters: input_schema },
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
