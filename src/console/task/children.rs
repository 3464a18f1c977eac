//! The form that adds children to a task: its agent continues when they have ended.

use axum::{extract::Path, http::HeaderMap, response::Response};
use maud::{Markup, html};
use uuid::Uuid;

use crate::{
    console::{actions::go_on, page::Page, parts::section},
    domain::{
        amount::Limit,
        class::Kind,
        tasks::{Detail, Line, OnFailure, State},
    },
    http::{Problem, pages::PageForm},
    operations::{Continuation, HandOut, ListAgents, Operation as _, Refusal},
};

/// Children of the form. The command takes a file of many.
const MAX_CHILDREN: usize = 4;

pub(super) async fn form(page: &Page, detail: &Detail) -> Result<Markup, Refusal> {
    let is_open = matches!(detail.task.state, State::Running | State::Done);
    if !is_open || !page.caller.may(&HandOut::SPEC) {
        return Ok(html! {});
    }
    let agents = page.caller.run_if_allowed(ListAgents {}).await?;
    let items = agents.iter().flat_map(|all| &all.items);
    let agents: Vec<&str> = items.filter_map(|it| it["name"].as_str()).collect();
    let given = detail.task.id;
    let target = format!("/tasks/{given}/children");
    let form = html! {
        form method="post" action=(target) hx-post=(target) hx-target="#outcome" {
            (page.view.token())
            datalist #child-agents { @for name in &agents { option value=(name) {} } }
            @for n in 1..=MAX_CHILDREN {
                fieldset.choices {
                    legend { "Child " (n) @if n > 1 { " (empty for none)" } }
                    div.field { label for={ "child-agent-" (n) } { "Agent" } input id={ "child-agent-" (n) } name={ "agent-" (n) } list="child-agents" maxlength="130" autocomplete="off" required[n == 1]; }
                    div.field { label for={ "child-prompt-" (n) } { "Prompt" } textarea id={ "child-prompt-" (n) } name={ "prompt-" (n) } rows="2" dir="auto" required[n == 1] {} }
                }
            }
            div.field { label for="continuation" { "Prompt for this agent, when all children have ended" } textarea #continuation name="continuation" rows="2" required dir="auto" {} }
            div."actions after" { button.btn { "Add children" } }
            pre."code wrap after" { "dalsegno task children " (given) " --file children.json \"Put the parts together.\"" }
        }
    };
    Ok(section("Child tasks", &html! {}, &html! { details { summary { "Add children" } (form) } }))
}

/// Adds the children of the form, and goes on to the page of the task.
pub(in crate::console) async fn add(
    Path(given): Path<Uuid>,
    page: Page,
    headers: HeaderMap,
    form: PageForm,
) -> Result<Response, Problem> {
    let mut children = Vec::new();
    for n in 1..=MAX_CHILDREN {
        let field = |name: &str| form.field(&format!("{name}-{n}")).unwrap_or_default().trim();
        match (field("agent"), field("prompt")) {
            ("", "") => {}
            ("", _) | (_, "") => {
                let detail = format!("child {n} has no agent or no prompt: write both, or none");
                return Err(Refusal::new(Kind::Invalid, "bad_field", detail).into());
            }
            (agent, prompt) => children.push(line(agent, &prompt.replace("\r\n", "\n"))),
        }
    }
    let prompt = form.field("continuation").unwrap_or_default().replace("\r\n", "\n");
    let hand_out = HandOut { id: given, children, continuation: Continuation { prompt } };
    page.caller.run(hand_out).await?;
    Ok(go_on(&headers, &format!("/tasks/{given}")))
}

fn line(agent: &str, prompt: &str) -> Line {
    Line {
        agent: agent.to_owned(),
        instance: "main".to_owned(),
        prompt: prompt.to_owned(),
        node: None,
        flow_templates: None,
        session: None,
        budget: Limit::default(),
        priority: None,
        run_at: None,
        depends_on: Vec::new(),
        on_failure: OnFailure::default(),
        idempotency_key: None,
        tags: Vec::new(),
        metadata: serde_json::Map::new(),
        result_schema: None,
        attachments: Vec::new(),
        within_secs: None,
        parameters: serde_json::Map::new(),
    }
}
