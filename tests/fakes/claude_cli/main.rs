//! A fake of the Claude Code CLI, with the behaviour that the tests check, and with faults on demand.
//!
//! It keeps a transcript, truncates it as requested, and answers `You said: <prompt> [<n> messages]`, like the tests'
//! API for the real CLI. `FAKE_CLAUDE` names a fault; see `faults.rs`.
#![expect(
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "ends, complains and leaves processes behind as the program that it stands in for"
)]

mod faults;
mod transcript;

use std::{
    collections::BTreeMap,
    io::{BufRead as _, Write as _},
    path::PathBuf,
    process::ExitCode,
    thread::sleep,
    time::Duration,
};

use serde_json::{Value, json};

use faults::Fault;
use transcript::Transcript;

/// Time that the real CLI takes from the result to the disk, unless its input ends.
const FLUSH: Duration = Duration::from_millis(90);

/// Duration of a tool call.
const TOOL: Duration = Duration::from_millis(700);

fn main() -> ExitCode {
    let flags = Flags::read();
    let fault = Fault::from_environment();
    fault.at_start();
    let session = match flags.get("resume") {
        Some(session) => session.to_owned(),
        None => flags.get("session-id").unwrap_or_default().to_owned(),
    };
    let mut transcript = Transcript::open(&session);
    let is_new = flags.get("session-id").is_some();
    if is_new && transcript.exists() {
        eprintln!("Error: Session ID {session} is already in use.");
        return ExitCode::from(1);
    }
    if !is_new && let Err(message) = transcript.resume(flags.get("resume-session-at")) {
        eprintln!("{message}");
        say(&json!({"type": "result", "subtype": "error_during_execution", "is_error": true,
            "session_id": session, "errors": [message], "num_turns": 0}));
        return ExitCode::from(1);
    }
    let mut lines = std::io::stdin().lock().lines().map_while(Result::ok);
    let message = loop {
        let Some(line) = lines.next() else { return ExitCode::SUCCESS };
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            eprintln!("Error parsing streaming input line: {line}");
            return ExitCode::from(1);
        };
        if message["request"]["subtype"] != "mcp_status" {
            break message;
        }
        let servers = json!({ "mcpServers": fault.servers_when_asked() });
        say(&json!({"type": "control_response", "response": {
            "subtype": "success", "request_id": message["request_id"], "response": servers}}));
        fault.when_asked();
    };
    let prompt = message["message"]["content"].as_str().unwrap_or_default().to_owned();
    let turn = Turn {
        session: fault.session(&session),
        model: fault.name_of(flags.get("model").unwrap_or("none")),
    };
    turn.init(&fault);
    let uuid = message["uuid"].as_str().unwrap_or_default();
    transcript.add("user", uuid, &json!({"role": "user", "content": prompt}));
    if !fault.keeps_turn_in_memory() {
        transcript.flush();
    }
    // An interrupted task continues with an answer.
    if fault.calls_tools() && !prompt.contains("was interrupted") {
        drop(lines);
        turn.call_tools_until_interrupted();
        return ExitCode::from(1);
    }
    fault.in_turn();
    let text = answer(&prompt, transcript.n_messages());
    let reply = uuid_like(&prompt, transcript.n_messages());
    turn.reply(&fault, &text, &reply, &mut transcript);
    fault.before_result();
    turn.result(&fault, &text);
    fault.after_result();
    if !fault.keeps_turn_in_memory() {
        // The end of the input flushes at once; without it, the buffer is written after a while.
        let ended = lines.next().is_none();
        sleep(if ended { Duration::ZERO } else { FLUSH });
        transcript.flush();
    }
    fault.at_end()
}

/// Returns the answer, which equals that of the tests' API.
fn answer(prompt: &str, n_messages: usize) -> String {
    format!("You said: {} [{n_messages} messages]", prompt.trim())
}

struct Turn {
    session: String,
    model: String,
}

impl Turn {
    fn init(&self, fault: &Fault) {
        say(&json!({"type": "system", "subtype": "init", "session_id": self.session, "tools": [],
            "model": self.model, "mcp_servers": fault.servers(), "claude_code_version": "2.1.197"}));
    }

    /// Writes the text in two blocks, each in a line of its own.
    fn reply(&self, fault: &Fault, text: &str, uuid: &str, transcript: &mut Transcript) {
        let id = fault.name_of(&format!("msg_{uuid}"));
        let (first, second) = text.split_at(text.find(' ').unwrap_or(0));
        let usage = json!({"input_tokens": 25, "cache_read_input_tokens": 7, "output_tokens": 1});
        for (at, text) in [first, second].into_iter().enumerate() {
            // The last line has the given id.
            let uuid = if at == 1 { uuid.to_owned() } else { uuid_like(uuid, at) };
            let message = json!({"id": id, "type": "message", "role": "assistant", "model": self.model,
                "content": [{"type": "text", "text": text}], "stop_reason": null, "usage": usage});
            say(&json!({"type": "assistant", "message": message, "parent_tool_use_id": null,
                "session_id": self.session, "uuid": uuid}));
            transcript.add("assistant", &uuid, &message);
        }
    }

    /// Calls tools until it is interrupted. As with partial messages: the call begins, its block is complete, its usage
    /// is reported, its tool answers.
    fn call_tools_until_interrupted(&self) {
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in std::io::stdin().lines().map_while(Result::ok) {
                if line.contains("\"interrupt\"") {
                    let _ = tell.send(());
                }
            }
        });
        let stream = |event: &Value| {
            say(&json!({"type": "stream_event", "event": event, "parent_tool_use_id": null}))
        };
        for n in 0.. {
            let (id, call) = (format!("msg_{n}"), format!("toolu_{n}"));
            let usage = json!({"input_tokens": 10_000, "output_tokens": 1});
            let begun = json!({"id": id, "model": self.model, "usage": usage});
            stream(&json!({"type": "message_start", "message": begun}));
            let block = json!({"type": "tool_use", "id": call, "name": "Bash", "input": {}});
            let message =
                json!({"id": id, "model": self.model, "content": [block], "usage": usage});
            say(&json!({"type": "assistant", "message": message, "parent_tool_use_id": null,
                "session_id": self.session, "uuid": uuid_like(&id, n)}));
            stream(
                &json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 100}}),
            );
            let is_interrupted = told.recv_timeout(TOOL).is_ok();
            let text = if is_interrupted {
                "The user does not want it.".to_owned()
            } else {
                format!("wave {n}")
            };
            let result = json!({"type": "tool_result", "tool_use_id": call, "content": text});
            say(
                &json!({"type": "user", "message": {"role": "user", "content": [result]}, "parent_tool_use_id": null}),
            );
            if is_interrupted {
                return;
            }
        }
    }

    fn result(&self, fault: &Fault, text: &str) {
        let last = text.split_at(text.find(' ').unwrap_or(0)).1;
        let cost = fault.cost();
        let result = json!({"is_error": false, "subtype": "success", "result": last,
            "session_id": self.session, "num_turns": 1, "terminal_reason": "completed", "stop_reason": "end_turn",
            "usage": {"input_tokens": 25, "cache_read_input_tokens": 7, "output_tokens": 11}});
        // Built by hand, because one fault is a `NaN`, which JSON cannot represent.
        let rest = result.to_string();
        let usage = format!(
            r#"{{"inputTokens":25,"outputTokens":11,"cacheReadInputTokens":7,"costUSD":{cost}}}"#
        );
        let line = format!(
            r#"{{"type":"result","total_cost_usd":{cost},"modelUsage":{{{}:{usage}{}}},{}"#,
            json!(self.model),
            fault.other_models(&usage),
            &rest[1..]
        );
        for _ in 0..fault.n_results() {
            say_line(line.as_bytes());
        }
    }
}

struct Flags(BTreeMap<String, String>);

impl Flags {
    /// Parses `--flag=value` and `--flag`, the only forms that tests use.
    fn read() -> Self {
        let flags = std::env::args().skip(1).filter_map(|flag| {
            let flag = flag.strip_prefix("--")?.to_owned();
            let (name, value) = flag.split_once('=').unwrap_or((&flag, ""));
            Some((name.to_owned(), value.to_owned()))
        });
        Self(flags.collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

fn say(line: &Value) {
    let mut rest = line.clone();
    let kind = rest.as_object_mut().and_then(|line| line.remove("type")).unwrap_or_default();
    say_line(format!("{{\"type\":{kind},{}", &rest.to_string()[1..]).as_bytes());
}

fn say_line(line: &[u8]) {
    let mut out = std::io::stdout().lock();
    // The real CLI ignores a closed reader, too.
    let _ = out.write_all(line).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
}

/// Returns an id like a UUID: deterministic, and different for each text and place.
fn uuid_like(text: &str, at: usize) -> String {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let part = |salt: usize| {
        let mut hasher = DefaultHasher::new();
        (text, at, salt, std::process::id()).hash(&mut hasher);
        hasher.finish()
    };
    let (high, low) = (part(1), part(2));
    let hex = format!("{high:016x}{low:016x}");
    format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}

fn config_dir() -> PathBuf {
    std::env::var_os("CLAUDE_CONFIG_DIR").unwrap_or_default().into()
}
