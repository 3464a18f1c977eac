//! The same task as a command, a request and a statement.

use maud::{Markup, html};

use crate::{console::parts::shell_word as shell, domain::tasks::Task};

/// Longer prompts are named by a file.
const PROMPT_MAX_BYTES: usize = 4_000;
/// The function that other systems call in their transaction.
const ADD_TASK: &str = "dalsegno.add_task";

pub(super) fn show(task: &Task) -> Markup {
    html! {
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
    if task.instance == "main" {
        task.agent.clone()
    } else {
        format!("{}/{}", task.agent, task.instance)
    }
}

fn command(task: &Task) -> String {
    let prompt =
        if is_short(task) { shell(&task.prompt) } else { "--prompt-file prompt.md".to_owned() };
    format!(
        "dalsegno task add --campaign {} --agent {} {prompt}",
        task.campaign_id,
        shell(&agent(task))
    )
}

fn request(task: &Task) -> String {
    let body = if is_short(task) {
        shell(&serde_json::json!({ "agent": task.agent, "instance": task.instance, "prompt": task.prompt }).to_string())
    } else {
        "@task.json".to_owned()
    };
    format!(
        "curl -sS \"$DALSEGNO_URL/v1/campaigns/{}/tasks\" -H \"Authorization: Bearer $DALSEGNO_KEY\" -H 'Content-Type: application/json' -d {body}",
        task.campaign_id
    )
}

fn statement(task: &Task) -> String {
    let prompt = if is_short(task) { sql(&task.prompt) } else { ":'prompt'".to_owned() };
    let instance = match task.instance.as_str() {
        "main" => String::new(),
        other => format!(", instance => {}", sql(other)),
    };
    format!(
        "select task_id from {ADD_TASK}('{}', {}, {prompt}{instance});",
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
