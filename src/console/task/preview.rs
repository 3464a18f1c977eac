//! The context that the next turn of a task would get now.

use maud::{Markup, html};

use crate::{
    console::{catalogue::prompt, page::Page, parts::section},
    domain::tasks::{State, Task},
    operations::{Operation as _, PreviewTaskContext, Refusal},
};

/// Offers the preview of a waiting task, or shows it.
pub(super) async fn show(page: &Page, task: &Task, is_shown: bool) -> Result<Markup, Refusal> {
    if task.state != State::Queued || !page.caller.may_reach(&PreviewTaskContext::SPEC) {
        return Ok(html! {});
    }
    let offer = html! { a.btn href={ "/tasks/" (task.id) "?context=true#context" } { "Show what its turn would be sent now" } };
    if !is_shown {
        return Ok(section("Context", &html! {}, &offer));
    }
    let command = format!("dalsegno context preview {}", task.id);
    let shown = match page.caller.run(PreviewTaskContext { id: task.id }).await {
        Ok(preview) => prompt::sections(&preview, &command),
        // The agent or its flow is paused, or its turn runs: the reason is the answer.
        Err(refusal) => {
            html! { div.error { h2 { "No turn could begin now" } p { bdi { (refusal.detail) } } } }
        }
    };
    Ok(html! { div.stack #context { (shown) } })
}
