//! The system prompt that results from an agent's file, and the context that a task would get now.

use maud::{Markup, html};

use super::PageQuery;
use crate::{
    console::{
        names::newest_campaigns,
        page::Page,
        parts::{campaign_id, empty, gauge, part_name, section, tokens, wide},
    },
    domain::{
        campaigns::Status, context_previews::ContextPreview, files::SourceFile, manifests::Part,
    },
    operations::{PreviewAgentContext, Refusal},
};

pub(super) async fn show(
    page: &Page,
    file: &SourceFile,
    query: &PageQuery,
) -> Result<Markup, Refusal> {
    let campaigns = newest_campaigns(page).await?;
    let open = || campaigns.iter().filter(|campaign| campaign.status != Status::Closed);
    let named = campaign_id(&query.campaign_id)?;
    let first = open().find(|campaign| !campaign.is_of_eval()).or_else(|| open().next());
    let Some(campaign) = named.or_else(|| first.map(|campaign| campaign.id)) else {
        return Ok(empty(
            "The system prompt contains texts of a campaign, and no campaign is open.",
            "dalsegno campaign create \"Harbour series\"",
        ));
    };
    let here = format!("/catalogue/agent/{}", file.name);
    let form = html! {
        form.filters action=(here) {
            input type="hidden" name="part" value="prompt";
            label { "Campaign" select name="campaign_id" {
                // The URL may name one that is closed, or older than these.
                @if open().all(|it| it.id != campaign) {
                    @let name = campaigns.iter().find(|it| it.id == campaign).map(|it| it.name.clone());
                    option value=(campaign) selected { (name.unwrap_or_else(|| campaign.to_string())) }
                }
                @for it in open() { option value=(it.id) selected[it.id == campaign] { (it.name) } }
            } }
            label.grow { "Prompt of the task" input name="prompt" value=(query.prompt) maxlength="2000" placeholder="…" autocomplete="off"; }
            button.btn { "Preview" }
        }
    };
    let ask = PreviewAgentContext {
        id: campaign,
        agent: file.name.clone(),
        instance: "main".to_owned(),
        prompt: Some(query.prompt.clone()).filter(|prompt| !prompt.trim().is_empty()),
    };
    let shown = match page.caller.run(ask).await {
        Ok(preview) => {
            let command =
                format!("dalsegno context preview --agent {} --campaign {campaign}", file.name);
            sections(&preview, &command)
        }
        // The agent is paused, its turn runs, or its file has problems: the reason is the answer.
        Err(refusal) => {
            html! { div.error { h2 { "No turn could begin now" } p { bdi { (refusal.detail) } } } }
        }
    };
    Ok(html! { (form) (shown) })
}

/// Renders a context that would be sent. `command` prints the same in a terminal.
pub(in crate::console) fn sections(preview: &ContextPreview, command: &str) -> Markup {
    let end = html! { (preview.model) " on " (preview.provider) };
    let sent: Vec<&Part> = preview.parts.iter().filter(|part| part.sent).collect();
    html! {
        p."small soft" {
            @match preview.session_id { Some(session) => { "The next turn would be number " (preview.turn) " of " a href={ "/sessions/" (session) } { "the open session" } "." }, None => "The next turn would open a new session." }
            " Nothing is sent. The same in a terminal: " code { (command) }
        }
        @for note in &preview.notes { p.small { bdi { (note) } } }
        @if let Some(problem) = &preview.problem { p.small { bdi { (problem) } } }
        (section("System prompt", &html! { (preview.system.chars().count()) " characters" }, &html! { pre."code wrap" tabindex="0" dir="auto" { (preview.system) } }))
        (section("Context of the next call", &end, &html! {
            (gauge(&preview.parts))
            (wide("Parts", &parts_table(&preview.parts)))
            @if sent.len() < preview.parts.len() { p."small soft after" { (sent.len()) " of " (preview.parts.len()) " parts would be sent, about " (tokens(preview.estimated_tokens)) " tokens." } }
        }))
        @if !preview.messages.is_empty() {
            (section("Messages", &html! { (preview.messages.len()) }, &html! {
                @for message in &preview.messages {
                    details { summary { (format!("{:?}: ", message.role)) (crate::console::parts::title(&message.text)) } pre."code wrap" dir="auto" { (message.text) } }
                }
            }))
        }
        @if !preview.tools.is_empty() {
            (section("Tools", &html! { (preview.tools.len()) }, &html! { ul."rows small" { @for tool in &preview.tools { li { code { bdi { (tool.name) } } " " span.soft { bdi { (tool.description) } } } } } }))
        }
    }
}

fn parts_table(parts: &[Part]) -> Markup {
    html! {
        table.tree {
            thead { tr { th { "Part" } th { "Why" } th.num { "Tokens" } } }
            tbody {
                @for part in parts {
                    tr.part.out[!part.sent] { td { (part_name(part)) } td { @if !part.sent { "left out: " } (part.reason) } td.num { (tokens(part.tokens)) } }
                }
            }
        }
    }
}
