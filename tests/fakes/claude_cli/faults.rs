//! Faults that the real CLI does not produce on demand.

use std::{
    io::Write as _,
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode, Stdio},
    thread::sleep,
    time::Duration,
};

use serde_json::{Value, json};

use crate::say_line;

const TWO_MODELS: &str = "two models, and a NUL in their names";
const UNSERVED: &str = "does not reach its server, and hangs";
const LOST: &str = "loses its server, and hangs";
/// Longer than any test.
const ENDLESS: Duration = Duration::from_secs(600);

/// Name of a fault, from the variable that the test has set.
pub(crate) struct Fault(String);

impl Fault {
    pub(crate) fn from_environment() -> Self {
        Self(std::env::var("FAKE_CLAUDE").unwrap_or_default())
    }

    pub(crate) fn at_start(&self) {
        match self.0.as_str() {
            "hangs at start" => hang(),
            "hangs at start, deaf" => hang_deaf(),
            "says nothing and ends" => std::process::exit(0),
            "refuses its flags" => {
                eprintln!("error: unknown option '--nonsense'");
                std::process::exit(1);
            }
            "dies at start" => std::process::abort(),
            _ => {}
        }
    }

    pub(crate) fn in_turn(&self) {
        match self.0.as_str() {
            "hangs in the turn" | LOST => hang(),
            "hangs in the turn, deaf" => hang_deaf(),
            "leaves children" => leave_children(),
            "leaves children and hangs" => {
                leave_children();
                hang_deaf();
            }
            "kills its guard" => {
                kill_guard();
                hang_deaf();
            }
            "one long line" => write(&[b'x'; 1 << 16], 64 << 20),
            "floods" => write(
                format!("{{\"type\":\"noise\",\"x\":\"{}\"}}\n", "x".repeat(4000)).as_bytes(),
                1 << 30,
            ),
            "floods errors" => flood_errors(64 << 20),
            "garbage" => {
                say_line(b"warning: something");
                say_line(b"{\"type\":\"assistant\",\"message\":");
                say_line(&[0xff, 0xfe, 0]);
                say_line(b"{\"type\":\"a_new_type\",\"message\":[]}");
            }
            "ends in the turn" => std::process::exit(0),
            "is killed in the turn" => std::process::abort(),
            "is killed for its memory" => {
                tell_the_groups();
                std::process::abort();
            }
            _ => {}
        }
    }

    pub(crate) fn calls_tools(&self) -> bool {
        self.0 == "calls tools until it is interrupted"
    }

    pub(crate) fn before_result(&self) {
        if self.0 == "no result" {
            std::process::exit(0);
        }
    }

    pub(crate) fn after_result(&self) {
        if self.0 == "one more result of another turn" {
            say_line(
                br#"{"type":"result","subtype":"success","is_error":true,"result":"another"}"#,
            );
        }
    }

    pub(crate) fn at_end(&self) -> ExitCode {
        match self.0.as_str() {
            "hangs after its result" => hang_deaf(),
            "code 3 after its result" => return ExitCode::from(3),
            "dies after its result" => std::process::abort(),
            _ => {}
        }
        ExitCode::SUCCESS
    }

    /// Returns true for the fault of a full disk: the turn succeeds, and nothing is stored.
    pub(crate) fn keeps_turn_in_memory(&self) -> bool {
        self.0 == "stores nothing"
    }

    /// Returns the tool servers with their status at the beginning of the turn.
    pub(crate) fn servers(&self) -> Value {
        match self.0.as_str() {
            LOST => json!([{"name": "board", "status": "failed"}]),
            _ => json!([]),
        }
    }

    /// Returns the tool servers with their status before the turn.
    pub(crate) fn servers_when_asked(&self) -> Value {
        match self.0.as_str() {
            UNSERVED => json!([{"name": "board", "status": "failed"}]),
            _ => json!([{"name": "board", "status": "connected"}]),
        }
    }

    /// Applies faults before the prompt has arrived.
    pub(crate) fn when_asked(&self) {
        if self.0 == UNSERVED {
            hang();
        }
    }

    pub(crate) fn session(&self, session: &str) -> String {
        match self.0.as_str() {
            "answers for another session" => "00000000-0000-4000-8000-000000000000".to_owned(),
            _ => session.to_owned(),
        }
    }

    /// Returns the name of a model or a reply, with a NUL for one fault.
    pub(crate) fn name_of(&self, name: &str) -> String {
        match self.0.as_str() {
            TWO_MODELS => format!("{name}\0"),
            _ => name.to_owned(),
        }
    }

    /// Returns the usage of further models, to append to that of the first.
    pub(crate) fn other_models(&self, usage: &str) -> String {
        match self.0.as_str() {
            TWO_MODELS => format!(r#","claude-haiku-4-5":{usage}"#),
            _ => String::new(),
        }
    }

    pub(crate) fn n_results(&self) -> usize {
        if self.0 == "two results" { 2 } else { 1 }
    }

    pub(crate) fn cost(&self) -> &'static str {
        match self.0.as_str() {
            "a cost of NaN" => "NaN",
            "a cost of null" => "null",
            _ => "0.00025",
        }
    }
}

/// Hangs until a signal such as SIGTERM; the end of the input has no effect.
fn hang() {
    sleep(ENDLESS);
}

/// Hangs until SIGKILL.
fn hang_deaf() {
    // Replaces this process with a shell that ignores the signals, so that the fake needs no signal handlers.
    let failed = Command::new("/bin/sh")
        .args(["-c", "trap '' TERM INT HUP; while :; do sleep 600; done"])
        .exec();
    eprintln!("{failed}");
}

/// Leaves a child in the group, one in a session of its own, and one whose parent has ended.
fn leave_children() {
    let start = |program: &str, arguments: &[&str]| {
        let _ = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
    };
    start("sleep", &["601"]);
    start("setsid", &["sh", "-c", "trap '' TERM HUP; sleep 602 & sleep 603"]);
    start("sh", &["-c", "setsid sleep 604 & exit"]);
    // Waits until they have started.
    sleep(Duration::from_millis(200));
}

/// Leaves a process in a session of its own, with an empty environment and without a parent; then kills the guard.
fn kill_guard() {
    let script = format!(
        "env -i setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 0.2; done' escaped-{0} & sleep 0.2; kill -9 {0}",
        std::os::unix::process::parent_id()
    );
    let _ = Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
}

/// Writes the counters that the kernel writes when a group exceeds its memory.
fn tell_the_groups() {
    let groups = std::env::var_os("FAKE_CGROUP").unwrap_or_default();
    for group in std::fs::read_dir(groups).into_iter().flatten().flatten() {
        let _ = std::fs::write(group.path().join("memory.events"), "oom 1\noom_kill 1\n");
    }
}

fn write(piece: &[u8], n_bytes: usize) {
    let mut out = std::io::stdout().lock();
    let mut n_left = n_bytes;
    while n_left > 0 && out.write_all(piece).is_ok() {
        n_left = n_left.saturating_sub(piece.len());
    }
}

fn flood_errors(n_bytes: usize) {
    let mut errors = std::io::stderr().lock();
    let mut n_left = n_bytes;
    while n_left > 0 && errors.write_all(&[b'e'; 1 << 16]).is_ok() {
        n_left = n_left.saturating_sub(1 << 16);
    }
}
