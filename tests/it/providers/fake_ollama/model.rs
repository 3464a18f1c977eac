//! The tokens and answers of the fake server's model.

use serde_json::{Value, json};

/// Counts tokens with the model's real tokeniser: one token per started five bytes of a word, four more per message.
/// Tools and calls are words, too.
pub fn count_prompt(body: &Value) -> u64 {
    let messages = body["messages"].as_array().unwrap();
    let said = messages.iter().map(|message| {
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        let calls = calls.map(|call| count(&call.to_string()));
        4 + count(message["content"].as_str().unwrap_or_default()) + calls.sum::<u64>()
    });
    let tools = body["tools"].as_array().into_iter().flatten();
    said.sum::<u64>() + tools.map(|tool| count(&tool.to_string())).sum::<u64>()
}

/// Returns one line of a stream.
pub fn line(value: &Value) -> Vec<u8> {
    format!("{value}\n").into_bytes()
}

/// Returns the lines of an answer, or the refusal of a prompt that is too long.
pub fn lines(body: &Value, pieces: &[&str], ignores_truncate: bool) -> Result<Vec<Vec<u8>>, Value> {
    let num_ctx = body["options"]["num_ctx"].as_u64().unwrap();
    let n_prompt = count_prompt(body);
    let too_long = n_prompt >= num_ctx;
    if too_long && body["truncate"] == false && !ignores_truncate {
        return Err(json!({
            "error": "the prompt is longer than the context length currently available to the model",
        }));
    }
    // The remainder of a cut prompt: about half of the window.
    let n_read = if too_long { num_ctx - (num_ctx - 4) / 2 } else { n_prompt };
    let mut lines: Vec<Vec<u8>> = pieces
        .iter()
        .map(|piece| {
            line(&json!({
                "model": body["model"],
                "created_at": "2026-01-01T00:00:00Z",
                "message": { "role": "assistant", "content": piece },
                "done": false,
            }))
        })
        .collect();
    let n_answer = pieces.iter().map(|piece| count(piece)).sum();
    lines.push(last_line(body, n_read, n_answer));
    Ok(lines)
}

/// Returns the lines of an answer with tool calls. The server assigns unique ids.
pub fn calls(body: &Value, calls: &[(&'static str, Value)]) -> Result<Vec<Vec<u8>>, Value> {
    let mut lines = lines(body, &[], false)?;
    let n_before = body["messages"].as_array().unwrap().len();
    let calls: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(at, (name, arguments))| {
            let function = json!({ "index": at, "name": name, "arguments": arguments });
            json!({ "id": format!("call_{n_before}_{at}"), "function": function })
        })
        .collect();
    let message = json!({ "role": "assistant", "content": "", "tool_calls": calls });
    lines.insert(0, line(&json!({ "model": body["model"], "message": message, "done": false })));
    Ok(lines)
}

fn last_line(body: &Value, n_prompt: u64, n_answer: u64) -> Vec<u8> {
    line(&json!({
        "model": body["model"],
        "message": { "role": "assistant", "content": "" },
        "done": true,
        "done_reason": "stop",
        "total_duration": 5_000_000,
        "load_duration": 1_000_000,
        "prompt_eval_count": n_prompt,
        "prompt_eval_duration": 2_000_000,
        "eval_count": n_answer,
        "eval_duration": 2_000_000,
    }))
}

fn count(text: &str) -> u64 {
    text.split_whitespace().map(|word| word.len().div_ceil(5) as u64).sum()
}
