//! The page of a turn: its calls over time, the manifest with reasons, the request as sent, and reruns.

mod difference;
mod forks;
mod provider;
mod requests;
mod reruns;
mod waterfall;

use std::collections::HashMap;

use axum::extract::{Path, Query};
use maud::{Markup, html};
use serde::Deserialize;
use uuid::Uuid;

use super::{
    catalogue::versions,
    job_runs::JobRuns,
    layout::Content,
    page::{Page, PageResult},
    parts::{
        GROUPS, Tone, agent, agent_name, duration, empty, facts, gauge, group_of, id, no_price,
        part_name, section, sentence, title, tokens, wide,
    },
};
use crate::{
    domain::{
        class::Kind,
        files::SourceKind,
        manifests::{CallContext, Part},
        memory,
        posts::HiddenPost,
        prompt_versions::short_hash,
        turns::{Detail, PUT_OFF, State, Turn},
    },
    operations::{
        ListMemory, ListPromptVersions, MAX_LIMIT, Operation as _, Refusal, ShowFile, ShowJob,
        ShowSession, ShowTurn, SourceText,
    },
};

#[derive(Debug, Deserialize)]
pub(super) struct PageQuery {
    /// Number of the call whose context is shown, from 1.
    call: Option<i32>,
    /// The turn to compare with: a number, or a link to the page of a turn.
    #[serde(default)]
    with: String,
    /// `request` shows the request as it was sent, `provider` the transcript that the provider keeps.
    #[serde(default)]
    show: String,
    /// A row of the ledger: the call for a summary or for facts that is shown.
    ledger: Option<i64>,
}

pub(super) async fn show(
    Path((given, number)): Path<(Uuid, i32)>,
    Query(query): Query<PageQuery>,
    page: Page,
) -> PageResult {
    let detail = page.caller.run(ShowTurn { id: given, number }).await?;
    let session = page.caller.run(ShowSession { id: given }).await?;
    let listed = &detail.turn;
    let turn = &listed.turn;
    let name = format!("Turn {number} of {}", agent_name(&listed.agent, &listed.instance));
    let here = format!("/sessions/{given}/turns/{number}");
    let call = query.call.unwrap_or(1);
    let context = detail.contexts.iter().find(|it| it.call == call).or(detail.contexts.first());
    let call = context.map_or(1, |it| it.call);
    let request = match (query.show.as_str(), context) {
        ("request", Some(_)) => requests::sent(&page, given, number, call).await?,
        ("provider", _) => provider::transcript(&page, given, number).await?,
        _ => html! {},
    };
    let side_call = match query.ledger {
        Some(row) => provider::side_call(&page, row).await?,
        None => html! {},
    };
    let compared = match query.with.as_str() {
        "" => html! {},
        with => difference::show(&page, turn, with).await?,
    };
    let worker = JobRuns::of_turns(&page, std::slice::from_ref(turn)).await?.worker_of(turn);
    let calls = reruns::load(&page, given, number, call).await?;
    // A call may have tool calls only: the answer of the turn is that of its last call.
    let last = detail.contexts.iter().map(|it| it.call).max().filter(|last| *last != call);
    let answered = match (last, reruns::has_answer(calls.as_ref())) {
        (Some(last), false) => reruns::load(&page, given, number, last).await?,
        _ => None,
    };
    let campaign = session.session.campaign_id;
    let file = agent_file(&page, &listed.agent).await?;
    let text = file.as_ref().and_then(|file| file.text.as_deref());
    let place = (given, number, call);
    let rerun = reruns::forms(&page, place, campaign, calls.as_ref(), text).await?;
    let fork = forks::form(&page, turn).await?;
    let may_list = page.caller.may_reach(&ListPromptVersions::SPEC);
    // The page of an agent without a file does not exist.
    let prompt = file.filter(|_| may_list);
    let prompt = prompt.map(|_| versions::address(&listed.agent, &listed.prompt_hash));
    let links = PartLinks {
        session: given,
        campaign,
        titles: edict_titles(&page, campaign, context).await?,
        prompt: prompt.clone(),
    };
    let body = html! {
        div.head {
            div {
                h1 { bdi { (name) } }
                div.meta { (turn_state(turn)) (agent(&listed.agent, &listed.instance)) span { bdi { (listed.model) } " on " (listed.provider) } a href={ "/tasks/" (turn.task_id) } { (id("task", turn.task_id)) } }
            }
            div.actions { (fork) (rerun) }
        }
        (lede(&page, &detail))
        div.cols {
            div.stack {
                (compared)
                (reruns::answer(&detail, answered.as_ref().or(calls.as_ref())))
                (waterfall::show(&page.view, &detail))
                (side_call)
                @if let Some(context) = context { (manifest(context, &detail.contexts, &here, &links)) }
                @else { (section("Context", &html! {}, &empty(no_context(turn), &format!("dalsegno turn show {given} {number}")))) }
                (hidden_posts(&detail.hidden_posts, campaign))
                (request)
                @if let Some(calls) = &calls { (reruns::table(&page, calls).await?) }
            }
            aside."stack side" {
                (section("Facts", &html! {}, &turn_facts(&page, &detail, worker, prompt.as_deref())))
                (difference::form(&here, number, &query.with))
            }
        }
    };
    let path = html! {
        a href={ "/campaigns/" (session.session.campaign_id) } { "Campaign" } span { "/" }
        a href={ "/sessions/" (given) } { "Session" }
        span.end {
            @if number > 1 { a rel="prev" href={ "/sessions/" (given) "/turns/" (number - 1) } { "← Turn " (number - 1) } }
            @if number < session.session.turns || session.session.successor_id.is_some() { a rel="next" href={ "/sessions/" (given) "/turns/" (number + 1) } { "Turn " (number + 1) " →" } }
        }
    };
    Ok(page.respond(Content { title: &name, path, body, watch: String::new() }).await?)
}

pub(super) fn turn_state(turn: &Turn) -> Markup {
    match turn.state {
        State::Running => Tone::Running.state("running", None),
        State::Done => Tone::Done.state("done", None),
        State::Failed if turn.is_put_off() => Tone::Waiting.state("put off", None),
        State::Failed => Tone::Failed.state("failed", None),
        State::Interrupted => Tone::Failed.state("interrupted", None),
    }
}

fn lede(page: &Page, detail: &Detail) -> Markup {
    let turn = &detail.turn.turn;
    let took = duration(turn.ended_at.unwrap_or(page.view.now) - turn.started_at);
    let sent = turn.input_tokens + turn.cache_read_tokens + turn.cache_creation_tokens;
    let words = match turn.state {
        State::Running => format!("It has been running for {took}."),
        State::Done => {
            let cost = match detail.turn.is_unpriced {
                true => "; no price is set for its model".to_owned(),
                false => format!(", for {}", page.view.money(turn.cost_micros)),
            };
            let (sent, got) = (tokens(sent), tokens(turn.output_tokens));
            format!("It took {took}, sent {sent} tokens and got {got} back{cost}.")
        }
        State::Failed if turn.is_put_off() => {
            format!(
                "It was put off after {took}. This used up no attempt: the task waits, and goes on by itself."
            )
        }
        State::Failed => format!("It failed after {took}."),
        State::Interrupted => {
            format!("It was interrupted after {took}; the text that had arrived is kept.")
        }
    };
    html! {
        p.lede #explain tabindex="-1" { (words) @if let Some(error) = &turn.error { " " span.soft { bdi { (sentence(&page.view, error)) } } } }
        @if let Some(choice) = &turn.chain { p."small soft" { "Model: " bdi { (choice.describe()) } "." } }
        @for flag in turn.flags.iter().filter(|flag| *flag != PUT_OFF) { p."small soft" { bdi { (flag) } } }
    }
}

fn no_context(turn: &Turn) -> &'static str {
    match turn.state {
        State::Running => "The context is stored with the end of the turn.",
        _ => "No context is stored: the turn ended before its call was recorded.",
    }
}

/// The parts of a context by group, each with the reason why it was sent or left out.
fn manifest(context: &CallContext, all: &[CallContext], here: &str, links: &PartLinks) -> Markup {
    let rows = html! {
        table.tree {
            thead { tr { th { "Part" } th { "Why" } th.num { "Tokens" } } }
            tbody {
                @for group in GROUPS {
                    @let parts: Vec<_> = context.parts.iter().filter(|part| group_of(part) == group).collect();
                    @if !parts.is_empty() {
                        tr.group {
                            td { svg.swatch aria-hidden="true" { rect class=(group.class) width="100%" height="100%" rx="2" {} } (group.name) }
                            td {} td.num { (tokens(parts.iter().filter(|part| part.sent).map(|part| part.tokens).sum())) }
                        }
                        @for part in parts {
                            tr.part.out[!part.sent] {
                                td { (links.name(part)) }
                                td { @if !part.sent { b { "left out: " } } (part.reason) }
                                td.num { (tokens(part.tokens)) }
                            }
                        }
                    }
                }
            }
        }
    };
    let end = html! { (tokens(context.estimated_tokens)) " tokens estimated" @if let Some(n) = context.counted_tokens { ", " (tokens(n)) " counted" } };
    let body = html! {
        @if all.len() > 1 {
            nav.choice aria-label="Call" { @for other in all { a href={ (here) "?call=" (other.call) } aria-current=[(other.call == context.call).then_some("page")] { "Call " (other.call) } } }
        }
        (gauge(&context.parts))
        (wide("Parts of the context", &rows))
        p.after {
            a.btn href={ (here) "?call=" (context.call) "&show=request#request" } { "Show the request as sent" } " "
            a."btn quiet" href={ (here) "?show=provider#provider" } { "Show the provider's own transcript" }
        }
    };
    section("Context", &end, &body)
}

/// Lists the posts that the context lacks because they are addressed to others.
fn hidden_posts(posts: &[HiddenPost], campaign: Uuid) -> Markup {
    let row = |post: &HiddenPost| {
        let target = format!("/campaigns/{campaign}?cursor={}#p{}", post.seq + 1, post.seq);
        html! { li { a href=(target) { "post " (post.seq) } " from " bdi { (post.sender) } " to " bdi { (post.audience.join(", ")) } } }
    };
    let end = html! { "not in the context" };
    let list = html! { ul.rows { @for post in posts { (row(post)) } } };
    html! { @if !posts.is_empty() { (section("Posts to others", &end, &list)) } }
}

/// Loads the titles of the edicts of a context, by their ids.
async fn edict_titles(
    page: &Page,
    campaign: Uuid,
    context: Option<&CallContext>,
) -> Result<HashMap<String, String>, Refusal> {
    let has_edicts = context.is_some_and(|it| it.parts.iter().any(|part| part.kind == "edict"));
    if !has_edicts {
        return Ok(HashMap::new());
    }
    let list = ListMemory {
        id: campaign,
        kind: Some(memory::Kind::Edict),
        owner: None,
        ended: true,
        cursor: None,
        limit: Some(MAX_LIMIT),
    };
    let listing = page.caller.run_if_allowed(list).await?;
    let items = listing.into_iter().flat_map(|listing| listing.items);
    Ok(items.map(|item| (item.id.to_string(), item.title)).collect())
}

/// Reads the file of an agent, if it has one and the caller may see it.
async fn agent_file(page: &Page, agent: &str) -> Result<Option<SourceText>, Refusal> {
    let show = ShowFile { kind: SourceKind::Agent, name: agent.to_owned() };
    match page.caller.run_if_allowed(show).await {
        Err(refusal) if refusal.kind == Kind::NotFound => Ok(None),
        read => read,
    }
}

/// The places to which the parts of a context lead.
struct PartLinks {
    session: Uuid,
    campaign: Uuid,
    /// Titles of edicts by their ids.
    titles: HashMap<String, String>,
    /// The page of the version of the prompt that the turn had.
    prompt: Option<String>,
}

impl PartLinks {
    /// Names a part, with a link to its messages, its posts, its item of the memory or its version of the prompt.
    fn name(&self, part: &Part) -> Markup {
        let Self { session, campaign, titles, prompt } = self;
        let edict = part.id.as_ref().filter(|_| part.kind == "edict");
        if let Some((id, name)) = edict.and_then(|id| Some((id, titles.get(id)?))) {
            let target = format!("/campaigns/{campaign}?part=memory&item={id}");
            return html! { a href=(target) { "edict " bdi { (title(name)) } } };
        }
        let target = part.span.and_then(|span| match part.kind.as_str() {
            "transcript" | "task" | "notice" | "rounds" | "synthetic_results" | "results" => {
                let (first, before) = (span.from_seq, span.from_seq - 1);
                Some(format!("/sessions/{session}?cursor={before}#m{first}"))
            }
            "posts" => {
                Some(format!("/campaigns/{campaign}?cursor={}#p{}", span.to_seq + 1, span.to_seq))
            }
            _ => None,
        });
        let target = target.or_else(|| prompt.clone().filter(|_| part.kind == "agent_prompt"));
        html! {
            @match target {
                Some(target) => a href=(target) { (part_name(part)) },
                None => (part_name(part)),
            }
        }
    }
}

fn turn_facts(page: &Page, detail: &Detail, worker: Markup, version: Option<&str>) -> Markup {
    let turn = &detail.turn.turn;
    let check = turn.history_check.and_then(|check| serde_json::to_value(check).ok());
    let check = check.as_ref().and_then(|it| it.as_str()).unwrap_or_default().replace('_', " ");
    let is_counted =
        turn.calls == 0 || detail.ledger.iter().any(|call| call.input_tokens.is_some());
    let job = format!("/work/jobs/{}", turn.job_id);
    let count = |n: i64| if is_counted { tokens(n) } else { "unknown".to_owned() };
    facts(&[
        ("Task", html! { a href={ "/tasks/" (turn.task_id) } { (id("", turn.task_id)) } }),
        ("Attempt", html! { (turn.attempt) }),
        ("Begun", html! { (page.view.clock(turn.started_at)) }),
        ("Ended", html! { @if let Some(at) = turn.ended_at { (page.view.clock(at)) } }),
        ("Worker", worker),
        ("Calls", html! { (turn.calls) }),
        ("Tokens in", html! { (count(turn.input_tokens)) }),
        ("From the cache", html! { (count(turn.cache_read_tokens)) }),
        ("To the cache", html! { (count(turn.cache_creation_tokens)) }),
        ("Tokens out", html! { (count(turn.output_tokens)) }),
        (
            "Cost",
            html! { @if detail.turn.is_unpriced { (no_price()) } @else { (page.view.money(turn.cost_micros)) } },
        ),
        ("History", html! { (check) }),
        (
            "Prompt",
            html! { @if let Some(seq) = detail.prompt_seq { a href={ "/sessions/" (turn.session_id) "?cursor=" (seq - 1) "#m" (seq) } { "message " (seq) } } },
        ),
        ("Agent's prompt", prompt_version(&detail.turn.prompt_hash, version)),
        (
            "Job",
            html! { (page.link::<ShowJob>(&job, &html! { (turn.job_id) })) ", lease " (turn.lease) },
        ),
    ])
}

/// Names the version of the agent's prompt, with a link to its page.
fn prompt_version(hash: &str, target: Option<&str>) -> Markup {
    let name = html! { "version " code { (short_hash(hash)) } };
    html! { @match target { Some(target) => a href=(target) { (name) }, None => (name) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::manifests::parts_of;

    #[test]
    fn messages_and_posts_of_a_context_are_links() {
        let stored = serde_json::json!({ "parts": [
            { "kind": "transcript", "span": { "from_seq": 3, "to_seq": 8 }, "tokens": 9, "sent": true, "why": "recent_history" },
            { "kind": "posts", "span": { "from_seq": 13, "to_seq": 15 }, "tokens": 9, "sent": true, "why": "since_cursor" },
            { "kind": "tools", "tokens": 9, "sent": true, "why": "every_call" },
            { "kind": "agent_prompt", "tokens": 9, "sent": true, "why": "every_call" },
        ] });
        let (session, campaign) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let prompt = Some(versions::address("copywriter", "ab12"));
        let links = PartLinks { session, campaign, titles: HashMap::new(), prompt };
        let shown: Vec<String> = parts_of(&stored).iter().map(|part| links.name(part).0).collect();
        assert!(shown[0].contains(&format!("/sessions/{session}?cursor=2#m3")), "{shown:?}");
        assert!(shown[1].contains(&format!("/campaigns/{campaign}?cursor=16#p15")), "{shown:?}");
        assert!(!shown[2].contains("href"), "{shown:?}");
        let version = "/catalogue/agent/copywriter?part=versions&amp;version=ab12#version";
        assert!(shown[3].contains(version), "{shown:?}");
    }
}
