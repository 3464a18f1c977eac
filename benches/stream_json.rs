//! The decoder of Claude's stream, in MB per second of processor time, which does not depend on the load of the
//! machine. One JSON line per kind of stream.
//!
//! `cargo bench --bench stream_json`
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "prints figures, stops where it cannot"
)]

#[path = "common/size.rs"]
mod size;

use std::{hint::black_box, time::Duration};

use dalsegno::providers::stream_json::{Decoder, Event, Limits};
use rustix::time::{ClockId, clock_gettime};

fn total_bytes() -> usize {
    size::of(256 << 20, 4 << 20)
}

/// Size of one read of a pipe.
const PIECE_BYTES: usize = 64 << 10;
fn n_rounds() -> usize {
    size::of(5, 1)
}

fn main() {
    let streams =
        [("deltas", deltas()), ("answers", answers(2 << 10)), ("one_megabyte", answers(1 << 20))];
    for (name, turn) in streams {
        let mut rates: Vec<f64> = (0..n_rounds()).map(|_| megabytes_per_second(&turn)).collect();
        rates.sort_by(f64::total_cmp);
        let figures = serde_json::json!({
            "bench": "stream_json",
            "stream": name,
            "line_bytes": turn.len() / turn.iter().filter(|byte| **byte == b'\n').count(),
            "mb_per_cpu_s_median": rates[n_rounds() / 2].round(),
            "mb_per_cpu_s_least": rates[0].round(),
        });
        println!("{figures}");
    }
}

fn megabytes_per_second(turn: &[u8]) -> f64 {
    let limits = Limits { line_bytes: 8 << 20, total_bytes: usize::MAX };
    let (mut decoder, mut n_bytes, mut n_text) = (Decoder::within(limits), 0, 0);
    let began = processor_time();
    while n_bytes < total_bytes() {
        for piece in turn.chunks(PIECE_BYTES) {
            decoder.push(piece).unwrap();
            while let Some(event) = decoder.next_event().unwrap() {
                n_text += text_bytes(&event);
            }
        }
        n_bytes += turn.len();
    }
    black_box(n_text);
    assert!(n_text > n_bytes / 100, "nothing was decoded");
    f64::from(u32::try_from(n_bytes).unwrap()) / 1e6 / (processor_time() - began).as_secs_f64()
}

fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap()
}

fn text_bytes(event: &Event<'_>) -> usize {
    match event {
        Event::Stream(shown) => {
            let delta = shown.event.delta.as_ref();
            delta.and_then(|delta| delta.text.as_ref()).map_or(0, |text| text.len())
        }
        Event::Assistant(said) => {
            said.message.content.iter().filter_map(|b| b.text.as_deref()).map(str::len).sum()
        }
        Event::Result(result) => result.result.as_ref().map_or(0, String::len),
        Event::Garbage(line) => panic!("garbage: {}", String::from_utf8_lossy(line)),
        _ => 0,
    }
}

/// Returns the stream of an answer while it is written.
fn deltas() -> Vec<u8> {
    let line = serde_json::json!({
        "type": "stream_event",
        "event": {"type": "content_block_delta", "index": 0,
                  "delta": {"type": "text_delta", "text": " the sign, from which the players go on"}},
        "session_id": "8c6eab3d-958e-4427-a191-b56942443c1a",
        "parent_tool_use_id": null,
        "uuid": "75c3912e-ef02-457f-aff0-08a23128d126",
    });
    lines(&[line]).repeat(4_000)
}

/// Returns whole answers with a text of that many bytes, each with its result.
fn answers(text_bytes: usize) -> Vec<u8> {
    let text = "From the sign, \"dal segno\":\nGrüße, 語 and so on. ".repeat(text_bytes / 50);
    let session_id = "8c6eab3d-958e-4427-a191-b56942443c1a";
    let usage =
        serde_json::json!({"input_tokens": 25, "output_tokens": 1, "service_tier": "standard"});
    let said = serde_json::json!({
        "type": "assistant",
        "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5",
                    "content": [{"type": "text", "text": text}], "stop_reason": null, "usage": usage},
        "parent_tool_use_id": null, "session_id": session_id,
        "uuid": "75c3912e-ef02-457f-aff0-08a23128d126",
    });
    let result = serde_json::json!({
        "type": "result", "subtype": "success", "is_error": false, "result": text,
        "session_id": session_id, "total_cost_usd": 0.000_253, "usage": usage,
        "modelUsage": {"claude-sonnet-5": {"inputTokens": 25, "outputTokens": 11, "costUSD": 0.000_253}},
    });
    let turn = lines(&[said, result]);
    turn.repeat((4_usize << 20).div_ceil(turn.len()))
}

fn lines(values: &[serde_json::Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        // serde_json sorts its keys; the CLI begins with the type.
        let mut rest = value.clone();
        let kind = rest.as_object_mut().unwrap().remove("type").unwrap();
        let rest = rest.to_string();
        bytes.extend_from_slice(format!("{{\"type\":{kind},{}\n", &rest[1..]).as_bytes());
    }
    bytes
}
