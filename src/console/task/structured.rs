//! The result schema of a task, the structured result, and the fault that the next turn is to correct.

use maud::{Markup, html};
use serde_json::Value;

use crate::{
    console::{
        page::Page,
        parts::{section, url_text},
    },
    domain::tasks::Detail,
    operations::ShowFile,
};

/// Shows nothing for a task whose answer may be any text.
pub(super) fn show(page: &Page, detail: &Detail) -> Markup {
    let task = &detail.task;
    let fault = detail.result_fault.as_ref().filter(|_| task.ended_at.is_none());
    if detail.result_schema.is_none() && task.result_json.is_none() && fault.is_none() {
        return html! {};
    }
    let file = format!("/catalogue/agent/{}", url_text(&task.agent));
    let body = html! {
        @if let Some(fault) = fault { p.small { "The last answer does not match. The next turn asks for a corrected one: " bdi { (fault) } } }
        @if let Some(value) = &task.result_json { (json(value)) }
        details.after {
            summary { "Result schema" }
            @match &detail.result_schema {
                Some(schema) => (json(schema)),
                None => p.small { "The one in the file of the agent " (page.link::<ShowFile>(&file, &html! { bdi { (task.agent) } })) "." },
            }
        }
    };
    html! { div #structured { (section("Structured result", &html! {}, &body)) } }
}

fn json(value: &Value) -> Markup {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    html! { pre."code wrap" tabindex="0" dir="auto" { (text) } }
}
