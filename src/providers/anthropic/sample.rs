//! A request for tests.

use std::sync::Arc;

use serde_json::json;

use crate::{
    providers::{Options, Purpose, Request, Timeouts},
    transcript::{Message, ToolSpec},
};

/// Builds a request with these messages, which offers one tool.
pub(super) fn request(messages: Vec<Message>) -> Request {
    let look = ToolSpec {
        name: "look".to_owned(),
        description: "Looks.".to_owned(),
        input_schema: json!({ "type": "object" }),
    };
    Request {
        turn: "t".to_owned(),
        purpose: Purpose::Turn,
        model: "m".to_owned(),
        system: "You write.".to_owned(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: vec![Arc::new(look)],
        window_tokens: 4096,
        reserve_tokens: 512,
        estimated_prompt_tokens: None,
        options: Options::default(),
        timeouts: Timeouts::default(),
        conversation: None,
        credential: None,
    }
}
