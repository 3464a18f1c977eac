//! What the fake server's model reads and writes.

use serde_json::{Value, json};

/// Its real tokenizer: each word costs one token per five bytes it begins, each message four more.
pub fn count_prompt(body: &Value) -> u64 {
    let messages = body["messages"].as_array().unwrap();
    messages.iter().map(|message| 4 + count(message["content"].as_str().unwrap())).sum()
}

/// One line of a stream.
pub fn line(value: &Value) -> Vec<u8> {
    format!("{value}\n").into_bytes()
}

/// The lines of an answer, or the refusal of a prompt that is too long.
pub fn lines(body: &Value, pieces: &[&str], ignores_truncate: bool) -> Result<Vec<Vec<u8>>, Value> {
    let num_ctx = body["options"]["num_ctx"].as_u64().unwrap();
    let n_prompt = count_prompt(body);
    let too_long = n_prompt >= num_ctx;
    if too_long && body["truncate"] == false && !ignores_truncate {
        return Err(json!({
            "error": "the prompt is longer than the context length currently available to the model",
        }));
    }
    // What is left of a prompt that is cut by tokens: about half of the window.
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
    lines.push(line(&json!({
        "model": body["model"],
        "message": { "role": "assistant", "content": "" },
        "done": true,
        "done_reason": "stop",
        "total_duration": 5_000_000,
        "load_duration": 1_000_000,
        "prompt_eval_count": n_read,
        "prompt_eval_duration": 2_000_000,
        "eval_count": pieces.iter().map(|piece| count(piece)).sum::<u64>(),
        "eval_duration": 2_000_000,
    })));
    Ok(lines)
}

fn count(text: &str) -> u64 {
    text.split_whitespace().map(|word| word.len().div_ceil(5) as u64).sum()
}
