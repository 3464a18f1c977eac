//! The page of a session: its transcript beside what the model sees.

pub(super) mod compaction;
mod pair;
pub(super) mod turns;
mod window;

use axum::{
    extract::{Path, Query},
    http::HeaderMap,
    response::{Html, IntoResponse as _},
};
use maud::{Markup, html};
use serde::Deserialize;
use uuid::Uuid;

use self::window::{Place, Window};
use super::{
    estimates,
    layout::Content,
    lists::session_state,
    page::{Page, PageResult},
    parts::{
        Action, Confirmation, Tone, agent, agent_name, counted, empty, facts, gauge, icon, id,
        next_page, no_price, section, sentence, tokens, wide,
    },
    turn::turn_state,
};
use crate::{
    domain::{
        compactions::{Compaction, Outcome},
        conversations::Detail,
        explanations::SessionExplanation,
        manifests::{CallContext, Part},
        turns::Turn,
    },
    operations::{
        CompactSession, EstimateSession, ExplainSession, ForkSession, InterruptSession, Refusal,
        ResetSession, ShowCampaign, ShowSession, ShowTurn, UncompactSession,
    },
};

#[derive(Debug, Deserialize)]
pub(super) struct PageQuery {
    /// The place in the transcript after which the page begins.
    cursor: Option<i64>,
    /// The place in the transcript before which the page ends.
    before: Option<i64>,
    /// `true` estimates the next turn.
    #[serde(default)]
    estimate: String,
}

pub(super) async fn show(
    Path(given): Path<Uuid>,
    Query(query): Query<PageQuery>,
    headers: HeaderMap,
    page: Page,
) -> PageResult {
    let detail = page.caller.run(ShowSession { id: given }).await?;
    let session = &detail.session;
    let context = last_context(&page, &detail.last_turns).await?;
    let fold = applied(&detail.compactions);
    let fold_end = fold.map_or(0, |fold| fold.to_seq);
    let window = Window::read(&page, given, Place::of(&query), fold_end).await?;
    let pair = pair::PairView { detail: &detail, window: &window, fold, context: context.as_ref() };
    if headers.contains_key("hx-request") {
        // Earlier messages, which take the place of the link to them.
        return Ok(Html(pair::rows(&page, &pair).into_string()).into_response());
    }
    let explained = page.caller.run(ExplainSession { id: given }).await?;
    let campaign =
        page.caller.run_if_allowed(ShowCampaign { id: session.campaign_id, summary: true }).await?;
    let campaign = campaign.map(|overview| overview.campaign.name);
    let name = agent_name(&session.agent, &session.instance);
    let of = campaign.as_deref().unwrap_or("its campaign");
    let here = format!("/sessions/{given}");
    let body = html! {
        (head(&page, &detail, &format!("{name} in {of}")))
        (explanation(&page, &detail, &explained))
        // The transcript is long, and these are below it.
        nav."actions small" aria-label="Below the transcript" {
            span.faint { "Below:" } @if has_next_turn(&detail) { a href="#next-turn" { "next turn" } } a href="#turns" { "turns" } a href="#compactions" { "compactions" } a href="#facts" { "facts" }
        }
        @if let Some(context) = &context { (context_gauge(context, fold)) }
        @if window.messages.is_empty() && fold.is_none() {
            (empty("No message is stored yet. The first turn stores its prompt and its answer.", &format!("dalsegno task add --campaign {} --agent {} \"Write part one.\"", session.campaign_id, session.agent)))
        } @else {
            (pair::show(&page, &pair))
            (next_page(&here, &[], window.next.as_deref()))
        }
        div.cols {
            div.stack {
                div #next-turn { (estimate(&page, &detail, query.estimate == "true").await?) }
                div #turns { (turns(&page, &detail)) }
                div #compactions { (compactions(&page, &detail)) }
            }
            aside."stack side" { div #facts { (section("Facts", &html! {}, &session_facts(&page, &detail))) } }
        }
    };
    let path = html! {
        a href="/campaigns" { "Campaigns" } span { "/" }
        a href={ "/campaigns/" (session.campaign_id) } { bdi { (of) } } span { "/" }
        a href={ "/sessions?campaign_id=" (session.campaign_id) } { "Sessions" }
        span.end {
            @if let Some(other) = session.predecessor_id { a rel="prev" href={ "/sessions/" (other) } { "← Session before" } }
            @if let Some(other) = session.successor_id { a rel="next" href={ "/sessions/" (other) } { "Session after →" } }
        }
    };
    Ok(page
        .respond(Content {
            title: &format!("{name} in {of}"),
            path,
            body,
            watch: given.to_string(),
        })
        .await?)
}

/// Finds the context of the newest call that is stored.
async fn last_context(page: &Page, turns: &[Turn]) -> Result<Option<CallContext>, Refusal> {
    let Some(turn) = turns.iter().find(|turn| turn.ended_at.is_some()) else { return Ok(None) };
    let detail = page.caller.run(ShowTurn { id: turn.session_id, number: turn.number }).await?;
    Ok(detail.contexts.into_iter().next_back())
}

/// Returns the compaction that the model sees.
fn applied(compactions: &[Compaction]) -> Option<&Compaction> {
    let is_applied = |it: &&Compaction| {
        it.outcome == Outcome::Applied && it.undone_at.is_none() && it.applied_at.is_some()
    };
    compactions.iter().filter(is_applied).max_by_key(|it| it.generation)
}

fn head(page: &Page, detail: &Detail, name: &str) -> Markup {
    let session = &detail.session;
    html! {
        div.head {
            div {
                h1 { bdi { (name) } }
                div.meta {
                    (session_state(session))
                    (agent(&session.agent, &session.instance))
                    span { bdi { (session.model) } " on " (session.provider) }
                    // The numbers of turns go on from the session before.
                    @if session.predecessor_id.is_some() { span { "up to turn " (session.turns) } } @else { span { (counted(session.turns, "turn", "turns")) } }
                    (id("session", session.id))
                }
            }
            (actions(page, detail))
        }
    }
}

fn actions(page: &Page, detail: &Detail) -> Markup {
    let session = &detail.session;
    if session.closed_at.is_some() {
        return html! {};
    }
    let given = session.id.to_string();
    let here = format!("/sessions/{given}");
    let fields = [("id", given.as_str())];
    let (view, caller) = (&page.view, &page.caller);
    let is_running = detail.last_turns.first().is_some_and(|turn| turn.ended_at.is_none());
    let fork = Confirmation {
        action: Action::of::<ForkSession>("Fork", "fork", &fields, "/sessions/{id}"),
        id: "confirm-fork",
        heading: "Fork this conversation",
        consequences: html! { p { "A new instance of the agent goes on from here with the same messages. Both conversations continue independently." } },
        fields: html! { div.field { label for="fork-instance" { "Name of the new instance; empty for the next free number" } input #fork-instance name="instance" data-flag="--as" maxlength="40"; } },
        command: format!("dalsegno session fork {given}"),
    };
    let reset = Confirmation {
        action: Action::of::<ResetSession>("Reset", "", &fields, &here).class("btn danger"),
        id: "confirm-reset",
        heading: "Reset this conversation",
        consequences: html! { p { "The next turn begins a new session. The transcript stays, and the model is told that it was reset." } },
        fields: html! { label.small { input type="checkbox" name="fresh" data-flag="--fresh" value="true"; " Begin without any earlier message" } },
        command: format!("dalsegno session reset {given}"),
    };
    let interrupt = Confirmation {
        action: Action::of::<InterruptSession>("Interrupt", "paused", &fields, &here),
        id: "confirm-interrupt",
        heading: "Interrupt the running turn",
        consequences: html! { p { "The turn stops now; what has arrived is kept. Its task is cancelled." } },
        fields: html! { div.field { label for="interrupt-reason" { "Reason" } input #interrupt-reason name="reason" data-flag="--reason" maxlength="300"; } },
        command: format!("dalsegno session interrupt {given}"),
    };
    html! {
        div.actions {
            (Action::of::<CompactSession>("Compact", "fold", &fields, &here).button(view, caller))
            (fork.button(view, caller))
            @if is_running { (interrupt.button(view, caller)) }
            (reset.button(view, caller))
        }
    }
}

fn explanation(page: &Page, detail: &Detail, explained: &SessionExplanation) -> Markup {
    let is_running = detail.last_turns.first().is_some_and(|turn| turn.ended_at.is_none());
    let tone = match (detail.session.closed_at, is_running) {
        (Some(_), _) => Tone::Done,
        (None, true) => Tone::Running,
        (None, false) => Tone::Queued,
    };
    html! {
        section.explain.(tone.class()) #explain tabindex="-1" aria-label="Explanation" {
            (icon(tone.icon()))
            div { p.lede dir="auto" { (sentence(&page.view, &explained.because)) } p.next dir="auto" { (sentence(&page.view, &explained.next)) } }
        }
    }
}

fn has_next_turn(detail: &Detail) -> bool {
    detail.session.closed_at.is_none() && !detail.session.ephemeral
}

/// Offers an estimate of the next turn of an open session, or shows it.
async fn estimate(page: &Page, detail: &Detail, is_shown: bool) -> Result<Markup, Refusal> {
    let session = &detail.session;
    if !has_next_turn(detail) {
        return Ok(html! {});
    }
    if !is_shown {
        let target = format!("/sessions/{}?estimate=true#estimate", session.id);
        let offer = html! { a.btn href=(target) { "Estimate the next turn" } };
        return Ok(section("Next turn", &html! {}, &offer));
    }
    let shown = match page.caller.run(EstimateSession { id: session.id, prompt: None }).await {
        Ok(estimate) => estimates::show(page, &estimate).await?,
        // The agent is paused, or a turn runs: the reason is the answer.
        Err(refusal) => {
            html! { div.error { h2 { "It cannot be estimated" } p { bdi { (sentence(&page.view, &refusal.detail)) } } } }
        }
    };
    Ok(html! { div #estimate { (shown) } })
}

fn context_gauge(context: &CallContext, fold: Option<&Compaction>) -> Markup {
    let counted =
        context.counted_tokens.map(|n| format!(", {} counted by the provider", tokens(n)));
    let end = html! { (tokens(context.estimated_tokens)) " tokens estimated" (counted.unwrap_or_default()) };
    let body = html! {
        (gauge(&context.parts))
        @if let Some(change) = change_since(context, fold) { p."small soft after" { (change) } }
    };
    html! { div.gauge { (section("Context of the last call", &end, &body)) } }
}

/// Says how the next call differs, if a compaction was made or undone after the last one.
fn change_since(context: &CallContext, fold: Option<&Compaction>) -> Option<String> {
    let made = fold.filter(|fold| fold.applied_at.is_some_and(|at| at > context.created_at));
    match (fold, made) {
        (_, Some(fold)) => Some(format!(
            "Compaction {} was made after this call: the next one is sent its summary in place of messages {} to {}.",
            fold.generation, fold.from_seq, fold.to_seq
        )),
        (None, None) if context.parts.iter().any(Part::is_folded) => Some(
            "Its compaction was undone after this call: the next one is sent the messages again, in place of the summary.".to_owned(),
        ),
        _ => None,
    }
}

fn turns(page: &Page, detail: &Detail) -> Markup {
    let money = page.view.column(detail.last_turns.iter().map(|turn| turn.cost_micros));
    let table = html! {
        table.folds {
            thead { tr { th { "State" } th { "Turn" } th { "Begun" } th.num { "Tokens in" } th.num { "Out" } th.num { "Cost" } } }
            tbody {
                @for turn in &detail.last_turns {
                    tr {
                        td { (turn_state(turn)) }
                        td { a href={ "/sessions/" (turn.session_id) "/turns/" (turn.number) } { "turn " (turn.number) } " of " a href={ "/tasks/" (turn.task_id) } { (id("task", turn.task_id)) } }
                        td { (page.view.time(turn.started_at)) }
                        td.num { (tokens(turn.input_tokens + turn.cache_read_tokens + turn.cache_creation_tokens)) }
                        td.num { (tokens(turn.output_tokens)) }
                        td.num { @if detail.unpriced_turns.contains(&turn.number) { (no_price()) } @else { (money(turn.cost_micros)) } }
                    }
                }
            }
        }
    };
    // The numbers of turns go on from the session before, so the last one is no count.
    let is_first = detail.session.predecessor_id.is_none();
    let end = html! { (detail.last_turns.len()) @if is_first { " of " } @else { " · " } a href={ "/sessions/" (detail.session.id) "/turns" } { @if is_first { (detail.session.turns) } @else { "all" } } };
    match detail.last_turns.is_empty() {
        true => section(
            "Turns",
            &html! { "0" },
            &empty(
                "No turn has begun in this session.",
                &format!("dalsegno turn ls {}", detail.session.id),
            ),
        ),
        false => section("Turns", &end, &wide("Turns", &table)),
    }
}

fn compactions(page: &Page, detail: &Detail) -> Markup {
    if detail.compactions.is_empty() {
        return section(
            "Compactions",
            &html! { "0" },
            &empty(
                "Nothing has been folded: the model sees every message.",
                &format!("dalsegno session compact {}", detail.session.id),
            ),
        );
    }
    let here = format!("/sessions/{}", detail.session.id);
    let table = html! {
        table.folds {
            thead { tr { th { "Outcome" } th { "Messages" } th { "Made" } th.num { "Before" } th.num { "After" } } }
            tbody {
                @for compaction in &detail.compactions {
                    tr {
                        td { a href={ (here) "/compactions/" (compaction.generation) } { (outcome(compaction)) } }
                        td { a href={ (here) "?cursor=" (compaction.from_seq - 1) } { (compaction.from_seq) " to " (compaction.to_seq) } }
                        td { (page.view.time(compaction.created_at)) }
                        td.num { (tokens(compaction.tokens_before)) }
                        td.num { @if let Some(after) = compaction.tokens_after { (tokens(after)) } }
                    }
                }
            }
        }
        @if applied(&detail.compactions).is_some() && detail.session.closed_at.is_none() { div."actions after" { (undo(page, detail.session.id, &here, "Undo the last one")) } }
    };
    section("Compactions", &html! { (detail.compactions.len()) }, &wide("Compactions", &table))
}

fn outcome(compaction: &Compaction) -> &'static str {
    match (compaction.outcome, compaction.undone_at) {
        (_, Some(_)) => "undone",
        (Outcome::Prepared, _) => "prepared",
        (Outcome::Applied, _) => "applied",
        (Outcome::Stale, _) => "out of date",
        (Outcome::Refused, _) => "refused",
    }
}

fn session_facts(page: &Page, detail: &Detail) -> Markup {
    let session = &detail.session;
    let other = |other: Option<Uuid>| html! { @if let Some(other) = other { a href={ "/sessions/" (other) } { (id("", other)) } } };
    facts(&[
        ("Began", html! { (page.view.time(session.created_at)) }),
        ("Last used", html! { (page.view.time(session.used_at)) }),
        ("Expires", html! { (page.view.date(session.expires_at)) }),
        ("Closed", html! { @if let Some(at) = session.closed_at { (page.view.time(at)) } }),
        ("Session before", other(session.predecessor_id)),
        ("Session after", other(session.successor_id)),
        ("Fork of", other(session.forked_from_session)),
        ("Context", html! { (tokens(session.context_tokens)) " tokens" }),
        ("All tokens", html! { (tokens(session.token_count)) }),
        (
            "Provider's id",
            html! { @if let Some(id) = &session.external_session_id { code { bdi { (id) } } } },
        ),
    ])
}

/// The form that undoes the last compaction of a session.
pub(super) fn undo(page: &Page, session_id: Uuid, here: &str, words: &str) -> Markup {
    let given = session_id.to_string();
    let fields = [("id", given.as_str())];
    let undo = Confirmation {
        action: Action::of::<UncompactSession>(words, "undo", &fields, here).class("btn slim"),
        id: "confirm-undo",
        heading: "Undo the last compaction",
        consequences: html! { p { "The next call sends its messages again instead of the summary. A compaction that was prepared after it goes out of date." } },
        fields: html! {},
        command: format!("dalsegno session uncompact {given}"),
    };
    undo.button(&page.view, &page.caller)
}
