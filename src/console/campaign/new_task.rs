//! The form for a new task, with an estimate before it is added.

use axum::{
    extract::{Path, Query},
    response::Response,
};
use maud::{Markup, html};
use serde::Deserialize;
use uuid::Uuid;

use crate::{
    console::{
        estimates,
        layout::Content,
        page::{Page, PageResult},
        parts::{Action, bytes, counted, empty},
        problem,
    },
    domain::{
        agents::SessionMode,
        campaigns::Campaign,
        class::Kind,
        task_files::attachments::{ACCEPTED, Limits, NewAttachment},
    },
    http::{Problem, pages::PageForm},
    operations::{AddTask, EstimateTask, ListAgents, Refusal, ShowCampaign},
};

/// Ways to continue a conversation, with their words.
const MODES: [(&str, SessionMode); 3] = [
    ("continue", SessionMode::Continue),
    ("fresh", SessionMode::Fresh),
    ("none", SessionMode::None),
];

/// The fields of the form, as a person has written them. An estimate reads some, and shows all of them again.
#[derive(Debug, Default, Deserialize)]
pub(in crate::console) struct TaskDraft {
    #[serde(default)]
    agent: String,
    #[serde(default)]
    prompt: String,
    #[serde(default)]
    node: String,
    #[serde(default)]
    session: String,
    #[serde(default, rename = "number:priority")]
    priority: String,
    #[serde(default, rename = "time:run_at")]
    run_at: String,
    #[serde(default, rename = "hours:within_secs")]
    within_hours: String,
    #[serde(default, rename = "money:budget.micros")]
    budget: String,
    #[serde(default, rename = "json:result_schema")]
    result_schema: String,
    #[serde(default, rename = "words:tags")]
    tags: String,
    /// Names of the chosen files, which a browser does not keep.
    #[serde(skip)]
    files: Vec<String>,
}

pub(in crate::console) async fn show(
    Path(given): Path<Uuid>,
    Query(draft): Query<TaskDraft>,
    page: Page,
) -> PageResult {
    Ok(respond(&page, given, &draft, None, None).await?)
}

/// Shows the form again with the estimate of the task. Nothing is added.
pub(in crate::console) async fn estimate(
    Path(given): Path<Uuid>,
    page: Page,
    form: PageForm,
) -> Result<Response, Problem> {
    let draft = TaskDraft::of(&form, form.files.iter().map(|file| file.name.clone()).collect());
    let attachments = form.files.iter().map(NewAttachment::from).collect();
    let shown = match page.caller.run(draft.question(given, attachments)).await {
        Ok(estimate) => estimates::show(&page, &estimate).await?,
        // The agent is paused, the prompt is empty, or the campaign is closed: the reason is the answer.
        Err(refusal) => estimates::refused(&page, &refusal),
    };
    let shown = html! {
        (shown)
        @if !draft.within_hours.trim().is_empty() { p."small soft after" { "The estimate is that of an answer at once. With hours to wait, a provider with message batches may charge less." } }
    };
    Ok(respond(&page, given, &draft, None, Some(&shown)).await?)
}

/// Shows a form that was refused again, with the reason above it. It is the answer to a browser without scripts.
pub(in crate::console) async fn refused(
    page: &Page,
    form: &PageForm,
    files: Vec<String>,
    refusal: Refusal,
) -> Result<Response, Problem> {
    let is_input = !matches!(refusal.kind, Kind::Forbidden | Kind::Internal | Kind::Unavailable);
    let given = form.field("id").and_then(|id| id.parse::<Uuid>().ok()).filter(|_| is_input);
    let problem = Problem::from(refusal);
    let Some(given) = given else { return Err(problem) };
    let draft = TaskDraft::of(form, files);
    match respond(page, given, &draft, Some(&problem::block(&problem)), None).await {
        Ok(mut response) => {
            *response.status_mut() = problem.status;
            Ok(response)
        }
        Err(_) => Err(problem),
    }
}

impl TaskDraft {
    fn of(form: &PageForm, files: Vec<String>) -> Self {
        let field = |name: &str| form.field(name).unwrap_or_default().replace("\r\n", "\n");
        Self {
            agent: field("agent"),
            prompt: field("prompt"),
            node: field("node"),
            session: field("session"),
            priority: field("number:priority"),
            run_at: field("time:run_at"),
            within_hours: field("hours:within_secs"),
            budget: field("money:budget.micros"),
            result_schema: field("json:result_schema"),
            tags: field("words:tags"),
            files,
        }
    }

    fn question(&self, campaign: Uuid, attachments: Vec<NewAttachment>) -> EstimateTask {
        let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        EstimateTask {
            id: campaign,
            agent: self.agent.trim().to_owned(),
            instance: "main".to_owned(),
            prompt: given(&self.prompt),
            node: given(&self.node),
            session: MODES.into_iter().find(|(word, _)| *word == self.session).map(|(_, it)| it),
            attachments,
        }
    }

    /// Returns true if a field below `More` has a value.
    fn has_more(&self) -> bool {
        let Self { node, session, priority, run_at, within_hours, budget, .. } = self;
        let more = [node, session, priority, run_at, within_hours, budget];
        more.into_iter().chain([&self.result_schema, &self.tags]).any(|text| !text.is_empty())
    }
}

async fn respond(
    page: &Page,
    given: Uuid,
    draft: &TaskDraft,
    error: Option<&Markup>,
    estimate: Option<&Markup>,
) -> Result<Response, Refusal> {
    let campaign = page.caller.run(ShowCampaign { id: given, summary: true }).await?.campaign;
    let agents = page.caller.run_if_allowed(ListAgents {}).await?;
    let names = |items: Option<&Vec<serde_json::Value>>| -> Vec<String> {
        let items = items.into_iter().flatten();
        items.filter_map(|it| it["name"].as_str().map(str::to_owned)).collect()
    };
    let names = names(agents.as_ref().map(|all| &all.items));
    let nodes: Vec<&str> =
        agents.iter().flat_map(|all| &all.nodes).map(|node| node.name.as_str()).collect();
    let body = html! {
        div.head { div { h1 { "Add a task" } div.meta { span { "to " bdi { (campaign.name) } } } } }
        @if let Some(error) = error { div role="alert" { (error) } }
        div.stack.narrow {
            (form(page, &campaign, draft, &names, &nodes))
            div #estimate aria-live="polite" { @if let Some(estimate) = estimate { (estimate) } }
        }
    };
    let path = html! { a href="/campaigns" { "Campaigns" } span { "/" } a href={ "/campaigns/" (given) } { bdi { (campaign.name) } } };
    page.respond(Content { title: "Add a task", path, body, watch: String::new() }).await
}

fn form(
    page: &Page,
    campaign: &Campaign,
    draft: &TaskDraft,
    agents: &[String],
    nodes: &[&str],
) -> Markup {
    let given = campaign.id.to_string();
    let fields = [("id", given.as_str())];
    let add = Action::of::<AddTask>("Add", "", &fields, "/tasks/{id}").with_files();
    let command = format!(
        "dalsegno task add --campaign {given} --agent AGENT --estimate \"Write part one.\""
    );
    if campaign.closed_at.is_some() {
        return empty(
            "The campaign is closed: it takes no more tasks.",
            "dalsegno campaign create \"Harbour series\"",
        );
    }
    if !add.is_allowed(&page.caller) {
        return empty(
            "The key of this sign-in may not add tasks: the scope `enqueue` is missing.",
            "dalsegno key create NAME --scope enqueue",
        );
    }
    let preview = format!("/campaigns/{given}/tasks/new");
    let body = html! {
        div.field {
            label for="agent" { "Agent; " code { "curator_2" } " is instance 2 of curator" }
            input #agent name="agent" list="agents" required maxlength="130" autocomplete="off" value=(draft.agent);
            datalist #agents { @for name in agents { option value=(name) {} } }
        }
        div.field { label for="prompt" { "Prompt" } textarea #prompt name="prompt" rows="8" required dir="auto" { "\n" (draft.prompt) } }
        (files(page.caller.attachment_limits(), &draft.files))
        details.after open[draft.has_more()] {
            summary { "More: start, hours for the answer, priority, budget, tags, result schema" }
            div.field { label for="node" { "Node" } select #node name="node" { option value="" { "the current one of the conversation" } @for node in nodes { option value=(node) selected[*node == draft.node] { (node) } } } }
            div.field { label for="session" { "Conversation" } select #session name="session" { option value="" { "as the agent's file says" } @for (word, mode) in MODES { option value=(word) selected[word == draft.session] { (meaning(mode)) } } } }
            div.field { label for="priority" { "Priority, 0 to 32767; 0 is the most urgent" } input #priority name="number:priority" type="number" min="0" max="32767" placeholder="100" value=(draft.priority); }
            div.field { label for="run-at" { "Not before, in " (page.view.zone()) } input #run-at type="datetime-local" name="time:run_at" value=(draft.run_at); }
            div.field { label for="within" { "Hours that the answer may take, 1 to 168; a provider with message batches is then asked at its lower price" } input #within name="hours:within_secs" type="number" min="1" max="168" placeholder="as soon as possible" value=(draft.within_hours); }
            div.field { label for="task-limit" { "Budget of the task in " (page.view.currency()) } input #task-limit name="money:budget.micros" inputmode="decimal" pattern="[0-9]+([.,][0-9]{1,6})?" title="An amount such as 12.50" placeholder="none" autocomplete="off" value=(draft.budget); }
            div.field { label for="result-schema" { "Result schema: the JSON Schema that the answer has to match" } textarea #result-schema name="json:result_schema" rows="4" spellcheck="false" placeholder="as the agent's file says" { "\n" (draft.result_schema) } }
            div.field { label for="tags" { "Tags, with commas between them" } input #tags name="words:tags" maxlength="400" autocomplete="off" value=(draft.tags); }
        }
        div."actions after" {
            button."btn primary" { "Add the task" }
            button.btn formaction=(preview) hx-post=(preview) hx-target="#estimate" hx-select="#estimate" hx-swap="outerHTML" { "Estimate first" }
        }
        pre."code wrap after" { (command) }
    };
    add.form(&page.view, &body)
}

/// The field for attachments. `chosen` are those of a form that is shown again.
fn files(limits: Limits, chosen: &[String]) -> Markup {
    if limits.max_files == 0 {
        return html! {};
    }
    let size = |n_bytes: u64| bytes(i64::try_from(n_bytes).unwrap_or(i64::MAX));
    html! {
        div.field {
            label for="files" { "Files for the agent" }
            input #files name="files" type="file" multiple aria-describedby="files-hint";
            p #files-hint."tiny faint" {
                (ACCEPTED) ". At most " (counted(limits.max_files, "file", "files")) ", each of " (size(limits.max_file_bytes)) " at most, together " (size(limits.max_task_bytes)) "."
                @if !chosen.is_empty() { " " b { "Choose the files again: a browser does not keep them in a form that is shown again." } " They were " @for (place, name) in chosen.iter().enumerate() { @if place > 0 { ", " } bdi { (name) } } "." }
            }
        }
    }
}

fn meaning(mode: SessionMode) -> &'static str {
    match mode {
        SessionMode::Continue => "go on where the agent stopped",
        SessionMode::Fresh => "begin without a memory; later tasks go on from here",
        SessionMode::None => "one of its own, which no later task continues",
    }
}
