//! The same task as a command, a request and a statement.

use maud::{Markup, html};
use serde_json::{Value, json};

use crate::{
    console::parts::shell_word as shell,
    domain::{
        agents::{MAIN, SessionMode},
        amount::format_money,
        tasks::Task,
    },
};

/// Longer prompts are named by a file.
const PROMPT_MAX_BYTES: usize = 4_000;
/// The function that other systems call in their transaction.
const ADD_TASK: &str = "dalsegno.add_task";

pub(super) fn show(task: &Task) -> Markup {
    html! {
        p."small soft" { "Added again with the same agent, prompt, session mode and budget; without labels, parameters, dependencies and a start time." }
        (copy("Show it", &format!("dalsegno task show {}", task.id)))
        (copy("Add it again: command", &command(task)))
        (copy("Add it again: curl", &request(task)))
        (copy("Add it again: SQL", &statement(task)))
    }
}

fn copy(heading: &str, text: &str) -> Markup {
    html! { div.copy { h3 { (heading) } pre."code wrap" tabindex="0" data-copy { (text) } } }
}

fn is_short(task: &Task) -> bool {
    task.prompt.len() <= PROMPT_MAX_BYTES
}

fn agent(task: &Task) -> String {
    if task.instance == MAIN {
        task.agent.clone()
    } else {
        format!("{}/{}", task.agent, task.instance)
    }
}

fn command(task: &Task) -> String {
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
    format!(
        "dalsegno task add --campaign {} --agent {}{flags} {prompt}",
        task.campaign_id,
        shell(&agent(task))
    )
}

fn request(task: &Task) -> String {
    let body =
        if is_short(task) { shell(&body(task).to_string()) } else { "@task.json".to_owned() };
    format!(
        "curl -sS \"$DALSEGNO_URL/v1/campaigns/{}/tasks\" -H \"Authorization: Bearer $DALSEGNO_KEY\" -H 'Content-Type: application/json' -d {body}",
        task.campaign_id
    )
}

fn body(task: &Task) -> Value {
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
