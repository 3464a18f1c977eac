//! The tasks of the demo, as derived from the events of the feed so far.

use serde_json::Value;
use uuid::Uuid;

use super::{
    display::bar,
    script::{N_PARTS, N_ROUNDS, PLANNER, REVIEWER, WRITERS, parts_of},
};
use crate::domain::{feed::Event, tasks::Task};

#[derive(Debug, Default)]
pub(super) struct DemoTasks {
    scenes: Vec<DemoTask>,
}

/// One task of the demo.
#[derive(Debug)]
pub(super) struct DemoTask {
    pub(super) task_id: Uuid,
    pub(super) job_id: i64,
    agent: String,
    label: String,
    /// Number of the part that it writes.
    part: Option<usize>,
    n_begun: u32,
    /// Bytes of the answer that is arriving.
    pub(super) arrived_bytes: u64,
    pub(super) is_done: bool,
    pub(super) failed: Option<String>,
}

impl DemoTasks {
    /// Adds a new task. Its label follows from how often its agent was called before.
    pub(super) fn add_task(&mut self, task: &Task) {
        let n_before = self.scenes.iter().filter(|scene| scene.agent == task.agent).count();
        let part = part_of_writer(&task.agent, n_before + 1);
        self.scenes.push(DemoTask {
            task_id: task.id,
            job_id: task.job_id,
            agent: task.agent.clone(),
            label: label(&task.agent, n_before + 1, part),
            part,
            n_begun: 0,
            arrived_bytes: 0,
            is_done: false,
            failed: None,
        });
    }

    pub(super) fn knows(&self, task_id: Uuid) -> bool {
        self.scenes.iter().any(|scene| scene.task_id == task_id)
    }

    pub(super) fn part(&self, number: usize) -> Option<&DemoTask> {
        self.scenes.iter().find(|scene| scene.part == Some(number))
    }

    pub(super) fn has_reviewed(&self) -> bool {
        self.scenes.iter().any(|scene| scene.agent == REVIEWER && scene.is_done)
    }

    pub(super) fn parts_done(&self) -> usize {
        self.scenes.iter().filter(|scene| scene.part.is_some() && scene.is_done).count()
    }

    /// Returns the first task that ended without an answer.
    pub(super) fn failed(&self) -> Option<(&str, &str)> {
        let mut failed = self.scenes.iter();
        failed.find_map(|scene| Some((scene.label.as_str(), scene.failed.as_deref()?)))
    }

    /// Applies an event, and returns a line about it if it is worth showing.
    pub(super) fn apply_event(&mut self, event: &Event) -> Option<String> {
        let data = &event.data;
        if event.kind == "post.added" {
            return Some(posted(data));
        }
        let scene = self.scenes.iter_mut().find(|scene| Some(scene.task_id) == event.task_id);
        let Some(scene) = scene else {
            return without_task(&event.kind, data);
        };
        let (agent, label) = (format!("{:<10}", scene.agent), &scene.label);
        match event.kind.as_str() {
            "session.opened" => Some(format!("{agent}  begins a conversation")),
            "session.rebuilt" => Some(format!("{agent}  {}", rebuilt(data))),
            "turn.started" => {
                scene.n_begun += 1;
                scene.arrived_bytes = 0;
                (scene.n_begun > 1).then(|| {
                    format!(
                        "{agent} {label} is retried, as turn {} of the conversation",
                        data["turn"]
                    )
                })
            }
            "turn.progress" => {
                scene.arrived_bytes = data["bytes"].as_u64().unwrap_or_default();
                None
            }
            "turn.done" => {
                scene.is_done = true;
                let tokens = (&data["input_tokens"], &data["output_tokens"]);
                Some(format!("{agent}  {label} is done ({} tokens in, {} out)", tokens.0, tokens.1))
            }
            // The failure of the turn is printed already.
            "budget.refused" if scene.failed.is_some() => None,
            "turn.failed" | "task.failed" | "budget.refused" | "task.cancelled" => {
                let why = data["error"].as_str().unwrap_or("it was cancelled");
                if data["again"] != true {
                    scene.failed = Some(why.to_owned());
                }
                Some(format!("{agent}  {label} failed: {why}"))
            }
            "turn.snoozed" | "turn.interrupted" | "task.waiting" => {
                Some(format!("{agent}  {label} waits: {}", data["because"]))
            }
            _ => without_task(&event.kind, data),
        }
    }

    /// Describes what is running now.
    pub(super) fn status(&self) -> String {
        let parts =
            format!("{} {} of {N_PARTS} parts", bar(self.parts_done(), N_PARTS), self.parts_done());
        let running = self.scenes.iter().filter(|scene| scene.n_begun > 0 && !scene.is_done);
        let running = running.map(|scene| match scene.arrived_bytes {
            0 => format!("{} begins", scene.label),
            bytes => format!("{}: {bytes} bytes", scene.label),
        });
        let running: Vec<String> = running.collect();
        format!("{parts}  {}", running.join(", "))
    }
}

/// Returns the number of the part that a writer writes in its nth task.
pub(super) fn part_of_writer(agent: &str, nth: usize) -> Option<usize> {
    let place = WRITERS.iter().position(|writer| *writer == agent)?;
    Some((nth - 1) * WRITERS.len() + place + 1)
}

fn label(agent: &str, nth: usize, part: Option<usize>) -> String {
    match part {
        Some(number) => format!("part {number}"),
        None if agent == PLANNER && nth <= N_ROUNDS => {
            let parts = parts_of(nth);
            format!("rules for parts {} to {}", parts.start(), parts.end())
        }
        None if agent == PLANNER => "the whole".to_owned(),
        None => "the review".to_owned(),
    }
}

/// Describes a post from its feed event.
fn posted(data: &Value) -> String {
    let names = data["audience"].as_array().map_or(&[][..], Vec::as_slice);
    let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
    format!("{:<10}  posts #{} to {}", word(data, "sender"), data["seq"], names.join(", "))
}

fn without_task(kind: &str, data: &Value) -> Option<String> {
    match kind {
        "session.compacted" => Some(format!(
            "{:<10}  a summary replaces older messages in the context: {} tokens become {}",
            "service", data["tokens_before"], data["tokens_after"],
        )),
        "session.compaction_refused" => {
            Some(format!("{:<10}  a summary was refused: {}", "service", data["refused"]))
        }
        _ => None,
    }
}

fn rebuilt(data: &Value) -> String {
    let because = word(data, "because");
    let taken = match (data["inherited_summary"] == true, &data["inherited_messages"]) {
        (true, n) if n == 0 => "a summary".to_owned(),
        (true, n) => format!("the summary and {n} messages"),
        (false, n) => format!("{n} messages"),
    };
    format!("continues in a new session, because the old one is {because}; it starts with {taken}")
}

fn word<'a>(data: &'a Value, key: &str) -> &'a str {
    data[key].as_str().unwrap_or("unknown")
}
