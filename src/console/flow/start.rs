//! The form that starts a flow, made from the inputs of its template.

use std::collections::HashMap;

use axum::{extract::Query, response::Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::graph::{Node, graph};
use crate::{
    console::{
        campaign_choice::CampaignChoice,
        estimates,
        layout::Content,
        page::{Page, PageResult},
        parts::{Action, campaign_id, counted, empty, section, url_text},
    },
    domain::flows::{BrokenTemplate, Input, InputValue, Inputs, Template},
    http::{Problem, pages::PageForm},
    operations::{EstimateFlow, ListFlowTemplates, Operation as _, Refusal, ShowFile, StartFlow},
};

const HERE: &str = "/flows/start";

#[derive(Debug, Default, Deserialize)]
pub(in crate::console) struct StartQuery {
    #[serde(default)]
    template: String,
    #[serde(default)]
    campaign_id: String,
}

pub(in crate::console) async fn show(Query(query): Query<StartQuery>, page: Page) -> PageResult {
    Ok(respond(&page, &query, &[], None).await?)
}

/// Shows the form again with the estimate of the flow. Nothing is started.
pub(in crate::console) async fn estimate(page: Page, form: PageForm) -> Result<Response, Problem> {
    let query = StartQuery {
        template: form.field("template").unwrap_or_default().to_owned(),
        campaign_id: form.field("id").unwrap_or_default().to_owned(),
    };
    let ask = EstimateFlow {
        id: campaign_id(&query.campaign_id)?.unwrap_or_default(),
        template: query.template.clone(),
        inputs: inputs(&form.fields),
    };
    let shown = match page.caller.run(ask).await {
        Ok(estimate) => estimates::show_flow(&page, &estimate),
        // An input is missing, or an agent is paused: the reason is the answer.
        Err(refusal) => estimates::refused(&page, &refusal),
    };
    Ok(respond(&page, &query, &form.fields, Some(&shown)).await?)
}

/// Reads the inputs of a form, in which empty fields are missing inputs.
fn inputs(fields: &[(String, String)]) -> Inputs {
    let given = fields.iter().filter(|(_, text)| !text.trim().is_empty());
    let input = |(name, text): &(String, String)| {
        if let Some(name) = name.strip_prefix("inputs.") {
            return Some((name.to_owned(), InputValue::Text(text.replace("\r\n", "\n"))));
        }
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let name = name.strip_prefix("lines:inputs.")?.to_owned();
        Some((name, InputValue::List(lines.map(str::to_owned).collect())))
    };
    given.filter_map(input).collect()
}

async fn respond(
    page: &Page,
    query: &StartQuery,
    given: &[(String, String)],
    estimate: Option<&Markup>,
) -> Result<Response, Refusal> {
    let templates = page.caller.run(ListFlowTemplates {}).await?;
    let campaigns = CampaignChoice::load(page, &query.campaign_id).await?;
    let chosen = templates.items.iter().find(|template| template.name == query.template);
    let body = html! {
        div.head { div { h1 { "Start a flow" } } }
        @if templates.items.is_empty() {
            (empty("No flow template can be started. A template is a file with inputs and steps.", "dalsegno flow check"))
        } @else {
            div.cards {
                @for template in &templates.items { (card(page, template, query, chosen)) }
            }
        }
        (broken(page, &templates.broken))
        @match chosen {
            Some(template) => div.stack {
                div.narrow { (form(page, template, &campaigns, given)) }
                div #estimate aria-live="polite" { @if let Some(estimate) = estimate { (estimate) } }
                (section("Steps", &html! { (counted(template.steps.len(), "step", "steps")) }, &steps(template)))
            },
            None => @if !templates.items.is_empty() { p.soft { "Choose a template to see its inputs." } },
        }
    };
    let path = html! { a href="/flows" { "Flows" } span { "/" } span { "Start" } };
    page.respond(Content { title: "Start a flow", path, body, watch: String::new() }).await
}

fn card(page: &Page, template: &Template, query: &StartQuery, chosen: Option<&Template>) -> Markup {
    let file = format!("/catalogue/flow/{}", template.name);
    let target = format!(
        "/flows/start?template={}&campaign_id={}",
        url_text(&template.name),
        url_text(&query.campaign_id)
    );
    let is_chosen = chosen.is_some_and(|it| it.name == template.name);
    html! {
        article.card.chosen[is_chosen] {
            header { a href=(target) aria-current=[is_chosen.then_some("true")] { b { bdi { (template.name) } } } }
            p."small soft" dir="auto" { (template.description) }
            footer { span { (counted(template.steps.len(), "step", "steps")) ", " (counted(template.inputs.len(), "input", "inputs")) } @if page.caller.may_reach(&ShowFile::SPEC) { a href=(file) { "file" } } }
        }
    }
}

/// Names the templates that cannot be started, and why.
fn broken(page: &Page, templates: &[BrokenTemplate]) -> Markup {
    html! {
        @if !templates.is_empty() {
            p."small soft after" {
                "Cannot be started: "
                @for (place, it) in templates.iter().enumerate() {
                    @if place > 0 { ", " }
                    (page.link::<ShowFile>(&format!("/catalogue/flow/{}", it.name), &html! { bdi { (it.name) } })) " (" (counted(it.problems.len(), "problem", "problems")) ")"
                }
            }
        }
    }
}

fn form(
    page: &Page,
    template: &Template,
    campaigns: &CampaignChoice,
    given: &[(String, String)],
) -> Markup {
    let fields = [("template", template.name.as_str())];
    let start = Action::of::<StartFlow>("Start", "running", &fields, "/flows/{id}");
    let command =
        format!("dalsegno flow start {} --campaign CAMPAIGN{}", template.name, flags(template));
    let body = html! {
        div.field {
            label for="flow-campaign" { "Campaign" }
            select #flow-campaign name="id" required { (campaigns.options()) }
        }
        @for input in &template.inputs { (field(input, given)) }
        div."actions after" {
            button."btn primary" { "Start the flow" }
            button.btn formaction=(HERE) hx-post=(HERE) hx-target="#estimate" hx-select="#estimate" hx-swap="outerHTML" { "Estimate first" }
        }
        pre."code wrap after" { (command) }
    };
    let shown = match (start.is_allowed(&page.caller), campaigns.is_empty()) {
        (false, _) => {
            html! { p.soft { "Your key may not start flows: the scope " code { "enqueue" } " is missing." } }
        }
        (true, true) => empty(
            "No campaign is open. A flow belongs to a campaign.",
            "dalsegno campaign create \"Harbour series\"",
        ),
        (true, false) => start.form(&page.view, &body),
    };
    section("Inputs", &html! { (template.name) }, &shown)
}

fn flags(template: &Template) -> String {
    template.inputs.iter().map(|input| format!(" --input {}=TEXT", input.name)).collect()
}

fn field(input: &Input, form: &[(String, String)]) -> Markup {
    let given = format!("input-{}", input.name);
    let name = match input.is_list {
        true => format!("lines:inputs.{}", input.name),
        false => format!("inputs.{}", input.name),
    };
    let text = form.iter().find(|(field, _)| *field == name).map_or("", |(_, text)| text);
    html! {
        div.field {
            label for=(given) { b { bdi { (input.name) } } " " span.soft dir="auto" { (input.about) @if input.is_list { " — one item per line" } } }
            textarea id=(given) name=(name) required rows=(if input.is_list { "5" } else { "3" }) { "\n" (text) }
        }
    }
}

fn steps(template: &Template) -> Markup {
    let place_of: HashMap<&str, usize> = template
        .steps
        .iter()
        .enumerate()
        .map(|(place, step)| (step.name.as_str(), place))
        .collect();
    let nodes: Vec<Node> = template
        .steps
        .iter()
        .map(|step| Node {
            name: step.name.clone(),
            sub: match &step.each {
                Some(each) => format!("{} × {each}", step.agent),
                None => step.agent.clone(),
            },
            tone: None,
            target: None,
            after: step
                .after
                .iter()
                .filter_map(|name| place_of.get(name.as_str()).copied())
                .collect(),
            is_critical: false,
        })
        .collect();
    html! {
        (graph("Steps of the template, from left to right", &nodes))
        @if let Some(improvement) = &template.improvement { p."small soft after" { "After the steps, each role looks back, and " bdi { (improvement.agent) } " combines the results." } }
    }
}
