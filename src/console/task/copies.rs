//! The same task as a command, a request and a statement.

use maud::{Markup, html};
use serde_json::{Value, json};

use crate::{
    console::parts::shell_word as shell,
    domain::{
        agents::{MAIN, SessionMode, agent_name},
        amount::format_money,
        task_files::FileDirection,
        tasks::{Detail, Task},
    },
};

/// Longer prompts are named by a file.
const PROMPT_MAX_BYTES: usize = 4_000;
/// Characters of a longer prompt that are shown in its place.
const PLACEHOLDER_CHARS: usize = 60;
/// The function that other systems call in their transaction.
const ADD_TASK: &str = "dalsegno.add_task";

pub(super) fn show(detail: &Detail) -> Markup {
    let names = attached(detail);
    html! {
        p."small soft" { "Added again with the same agent, prompt, session mode, budget, files and time for the answer; without labels, parameters, dependencies and a start time." }
        (copy("Show it", &format!("dalsegno task show {}", detail.task.id)))
        (copy("Add it again: command", &command(detail, &names)))
        (copy("Add it again: curl", &request(detail, &names)))
        @if !is_short(&detail.task) { (copy("The content of task.json", &long_body(detail, &names))) p."small soft" { "The prompt is too long to be shown here. In task.json it is the JSON text of the whole prompt." } }
        (copy("Add it again: SQL", &statement(&detail.task)))
        @if let Some(missing) = missing_in_sql(detail, &names) { p."small soft" { (missing) } }
        @for name in names.iter().filter(|name| is_also_written(detail, name)) {
            p."small soft" { "The task has also written a file named " bdi { (name) } ", which these attach in place of the given one." }
        }
    }
}

/// Names the files that the task was given. They can be attached to another task of the campaign from here.
fn attached(detail: &Detail) -> Vec<&str> {
    let given = detail.files.iter().filter(|file| file.direction == FileDirection::In);
    given.map(|file| file.name.as_str()).collect()
}

/// Returns true if the name means an output file of the task, which comes before the attachment.
fn is_also_written(detail: &Detail, name: &str) -> bool {
    detail.files.iter().any(|file| file.direction == FileDirection::Out && file.name == name)
}

/// Names what a statement cannot express.
fn missing_in_sql(detail: &Detail, names: &[&str]) -> Option<String> {
    let missing = match (names.is_empty(), detail.within_secs) {
        (true, None) => return None,
        (false, None) => "no files",
        (true, Some(_)) => "no time for the answer",
        (false, Some(_)) => "no files and no time for the answer",
    };
    Some(format!("The SQL function takes {missing}: use the command or curl to keep them."))
}

fn copy(heading: &str, text: &str) -> Markup {
    html! { div.copy { h3 { (heading) } pre."code wrap" tabindex="0" data-copy { (text) } } }
}

fn is_short(task: &Task) -> bool {
    task.prompt.len() <= PROMPT_MAX_BYTES
}

fn command(detail: &Detail, names: &[&str]) -> String {
    let task = &detail.task;
    let prompt =
        if is_short(task) { shell(&task.prompt) } else { "--prompt-file prompt.md".to_owned() };
    let mut flags = String::new();
    if task.session_mode != SessionMode::default() {
        flags.push_str(&format!(" --session {}", task.session_mode.as_str()));
    }
    if let Some(micros) = task.budget_micros {
        flags.push_str(&format!(" --budget-money {}", format_money(micros)));
    }
    if let Some(n) = task.budget_tokens {
        flags.push_str(&format!(" --budget-tokens {n}"));
    }
    for name in names {
        flags.push_str(&format!(" --attach-from {}", shell(&format!("{}/{name}", task.id))));
    }
    if let Some(secs) = detail.within_secs {
        let time =
            if secs % 3_600 == 0 { format!("{}h", secs / 3_600) } else { format!("{secs}s") };
        flags.push_str(&format!(" --within {time}"));
    }
    format!(
        "dalsegno task add --campaign {} --agent {}{flags} {prompt}",
        task.campaign_id,
        shell(&agent_name(&task.agent, &task.instance))
    )
}

fn request(detail: &Detail, names: &[&str]) -> String {
    let task = &detail.task;
    let body = match is_short(task) {
        true => shell(&body(detail, names).to_string()),
        false => "@task.json".to_owned(),
    };
    format!(
        "curl -sS \"$DALSEGNO_URL/v1/campaigns/{}/tasks\" -H \"Authorization: Bearer $DALSEGNO_KEY\" -H 'Content-Type: application/json' -d {body}",
        task.campaign_id
    )
}

/// Renders the body of a task with a long prompt, of which the beginning stands for it.
fn long_body(detail: &Detail, names: &[&str]) -> String {
    let beginning: String = detail.task.prompt.chars().take(PLACEHOLDER_CHARS).collect();
    let mut body = body(detail, names);
    body["prompt"] = json!(format!("{beginning}…"));
    format!("{body:#}")
}

fn body(detail: &Detail, names: &[&str]) -> Value {
    let task = &detail.task;
    let mut body = json!({ "agent": task.agent, "instance": task.instance, "prompt": task.prompt });
    if task.session_mode != SessionMode::default() {
        body["session"] = json!(task.session_mode);
    }
    if let Some(micros) = task.budget_micros {
        body["budget"]["micros"] = json!(micros);
    }
    if let Some(n) = task.budget_tokens {
        body["budget"]["tokens"] = json!(n);
    }
    if !names.is_empty() {
        let file = |name: &&str| json!({ "task": task.id, "file": name });
        body["attachments"] = names.iter().map(file).collect();
    }
    if let Some(secs) = detail.within_secs {
        body["within_secs"] = json!(secs);
    }
    body
}

fn statement(task: &Task) -> String {
    let prompt = if is_short(task) { sql(&task.prompt) } else { ":'prompt'".to_owned() };
    let mut named = String::new();
    if task.instance != MAIN {
        named.push_str(&format!(", instance => {}", sql(&task.instance)));
    }
    if task.session_mode != SessionMode::default() {
        named.push_str(&format!(", session_mode => {}", sql(task.session_mode.as_str())));
    }
    if let Some(micros) = task.budget_micros {
        named.push_str(&format!(", budget_micros => {micros}"));
    }
    if let Some(n) = task.budget_tokens {
        named.push_str(&format!(", budget_tokens => {n}"));
    }
    format!(
        "select task_id from {ADD_TASK}('{}', {}, {prompt}{named});",
        task.campaign_id,
        sql(&task.agent)
    )
}

/// Quotes a text for SQL.
fn sql(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_stay_one_argument() {
        assert_eq!(sql("it's"), "'it''s'");
    }
}
