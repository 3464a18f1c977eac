//! The answer of a call, and the calls that are made again to compare their answers with it.

use chrono::TimeDelta;
use maud::{Markup, html};
use uuid::Uuid;

use crate::{
    console::{
        page::Page,
        parts::{
            Action, Confirmation, Tone, beginning, coded, counted, duration, no_price, rendered,
            section, sentence, title, tokens, wide, word_diff,
        },
    },
    domain::{
        class::Kind,
        reruns::{OriginalCall, Rerun, State},
        turns::Detail,
    },
    operations::{
        ExplainJob, ListReruns, Refusal, RerunTurn, ShowCampaign, TurnReruns, diff_words,
    },
};

const WHILE_OPEN: &str = "every 2s";
/// Waiting reruns that are explained.
const MAX_EXPLAINED: usize = 3;

/// Loads a call with its reruns. `None`: the turn has no call, or the caller may not list them.
pub(super) async fn load(
    page: &Page,
    id: Uuid,
    number: i32,
    call: i32,
) -> Result<Option<TurnReruns>, Refusal> {
    match page.caller.run_if_allowed(ListReruns { id, number, call: Some(call) }).await {
        Err(refusal) if matches!(refusal.kind, Kind::NotFound | Kind::Conflict | Kind::Invalid) => {
            Ok(None)
        }
        found => found,
    }
}

/// Returns true if the answer of a call has a text.
pub(super) fn has_answer(calls: Option<&TurnReruns>) -> bool {
    let answer = calls.and_then(|calls| calls.original.answer.as_deref());
    answer.is_some_and(|text| !text.is_empty())
}

/// Renders the beginning of the answer, which unfolds to the whole.
pub(super) fn answer(detail: &Detail, calls: Option<&TurnReruns>) -> Markup {
    let Some(calls) = calls else { return html! {} };
    let Some(text) = calls.original.answer.as_ref().filter(|text| !text.is_empty()) else {
        return html! {};
    };
    let session = calls.original.session_id;
    let place = detail.prompt_seq.map_or_else(
        || format!("/sessions/{session}"),
        |seq| format!("/sessions/{session}?cursor={}#m{seq}", seq - 1),
    );
    let end = html! {
        (counted(text.split_whitespace().count(), "word", "words")) " · " a href=(place) { "in the transcript" }
    };
    let body =
        html! { details { summary { bdi { (title(text)) } } (beginning(text, &place, rendered)) } };
    section("Answer", &end, &body)
}

/// The buttons that make the call again: as it was, or with another prompt. `file` is the text of the agent's file as it is now.
pub(super) async fn forms(
    page: &Page,
    (id, number, call): (Uuid, i32, i32),
    campaign: Uuid,
    calls: Option<&TurnReruns>,
    file: Option<&str>,
) -> Result<Markup, Refusal> {
    let (given, number, call) = (id.to_string(), number.to_string(), call.to_string());
    let fields = [("id", given.as_str()), ("number", &number), ("call", &call)];
    let here = format!("/sessions/{given}/turns/{number}");
    let action = Action::of::<RerunTurn>("Rerun", "retry", &fields, &here);
    if !action.is_allowed(&page.caller) {
        return Ok(html! {});
    }
    let fixed = calls.and_then(|calls| calls.fixed_temperature.as_deref());
    let budget = budget(page, campaign).await?;
    let command = format!("dalsegno turn rerun {given} --turn {number} --call {call}");
    let with_prompt = file.map(|file| Confirmation {
        action: Action::of::<RerunTurn>("Rerun with another prompt", "retry", &fields, &here),
        id: "confirm-rerun-prompt",
        heading: "Make this call with another prompt",
        consequences: html! {
            p { "A worker sends the same context with the prompt, skills, tools, model and options of this text. Neither the conversation nor the agent's file changes, and tools are not run." }
            (budget)
        },
        fields: html! {
            div.field { label for="rerun-file" { "Agent file, as it is now" } textarea #rerun-file name="agent_file" rows="14" required spellcheck="false" dir="auto" { "\n" (file) } }
            div.field { label for="rerun-file-times" { "Number of reruns, up to 20" } input #rerun-file-times name="times" data-flag="--times" type="number" min="1" max="20" value="1"; }
        },
        command: format!("{command} --agent FILE"),
    });
    let same = Confirmation {
        action,
        id: "confirm-rerun",
        heading: "Make this call again",
        consequences: html! {
            p { "A worker sends the same context. The conversation does not change, and tools are not run. A model with a price is paid from the campaign's budget for reruns." }
            (budget)
        },
        fields: html! {
            div.field { label for="rerun-times" { "Number of reruns, up to 20" } input #rerun-times name="times" data-flag="--times" type="number" min="1" max="20" value="1"; }
            div.field { label for="rerun-model" { "Another model of the same provider; empty for the same one" } input #rerun-model name="model" data-flag="--model" maxlength="200"; }
            @match fixed {
                Some(reason) => p."small soft" { "The temperature cannot be set: " (coded(reason)) "." },
                None => div.field { label for="rerun-temperature" { "Temperature; empty for that of the call" } input #rerun-temperature name="temperature" data-flag="--temperature" type="number" min="0" max="2" step="0.1"; },
            }
        },
        command,
    };
    let (view, caller) = (&page.view, &page.caller);
    Ok(html! {
        (same.button(view, caller))
        @if let Some(with_prompt) = with_prompt { (with_prompt.button(view, caller)) }
    })
}

/// Says what is left of the campaign's budget for reruns, and where it is set.
async fn budget(page: &Page, campaign: Uuid) -> Result<Markup, Refusal> {
    let show = ShowCampaign { id: campaign, summary: true };
    let overview = page.caller.run_if_allowed(show).await?;
    let Some(budget) = overview.and_then(|overview| overview.budget) else { return Ok(html! {}) };
    let target = format!("/campaigns/{campaign}#reruns");
    Ok(html! {
        p.small {
            @match budget.experiments.limit_micros {
                Some(limit) => { "Spent for reruns: " (page.view.money(budget.experiments.spent_micros)) " of " (page.view.money(limit)) ". " a href=(target) { "Change the budget" } },
                None => { "The campaign has no budget for reruns: only models without a price can be called. " a href=(target) { "Set a budget" } },
            }
        }
    })
}

/// Lists the reruns with their answers, compared with that of the call.
pub(super) async fn table(page: &Page, calls: &TurnReruns) -> Result<Markup, Refusal> {
    let reruns = &calls.reruns;
    if reruns.is_empty() {
        return Ok(html! {});
    }
    let waits = waits(page, reruns).await?;
    let original = &calls.original;
    let costs = reruns.iter().map(|rerun| rerun.cost_micros).chain([original.cost_micros]);
    let money = page.view.column(costs);
    let table = html! {
        table.folds {
            thead { tr { th { "No." } th { "Answer" } th { "Model" } th.num { "Temperature" } th { "Made" } th.num { "Took" } th.num { "Tokens out" } th.num { "Cost" } } }
            tbody {
                (original_row(original, &money))
                @for rerun in reruns { (row(page, rerun, original.answer.as_deref(), &money)) }
            }
        }
    };
    let body = html! { (wide("Reruns", &table)) (follow(page, reruns, &waits)) };
    let shown = section("Reruns", &html! { (counted(reruns.len(), "rerun", "reruns")) }, &body);
    Ok(html! { div #reruns { (shown) } })
}

/// Renders the explanations of waiting reruns. A script renews them with the rows of these reruns until all have ended, because reruns are in
/// no feed. Other rows stay: their answers may be unfolded.
fn follow(page: &Page, reruns: &[Rerun], waits: &Markup) -> Markup {
    let queued = reruns.iter().filter(|rerun| rerun.state == State::Queued);
    let rows: Vec<String> = queued.map(|rerun| format!("#{}", row_id(rerun))).collect();
    html! {
        @if !rows.is_empty() {
            div #reruns-waiting hx-get=(page.target) hx-trigger=(WHILE_OPEN) hx-select="#reruns-waiting" hx-select-oob=(rows.join(",")) hx-swap="outerHTML" { (waits) }
        }
    }
}

fn row_id(rerun: &Rerun) -> String {
    format!("rerun-{}", rerun.number)
}

/// Explains why the first of the waiting reruns have not begun.
async fn waits(page: &Page, reruns: &[Rerun]) -> Result<Markup, Refusal> {
    let waiting = reruns.iter().filter(|rerun| rerun.state == State::Queued);
    let mut lines = Vec::new();
    for (rerun, job) in waiting.filter_map(|it| Some((it, it.job_id?))).take(MAX_EXPLAINED) {
        match page.caller.run_if_allowed(ExplainJob { id: job }).await {
            Ok(Some(found)) => lines.push((rerun.number, found)),
            Ok(None) => {}
            // It has ended meanwhile.
            Err(refusal) if refusal.kind == Kind::NotFound => {}
            Err(refusal) => return Err(refusal),
        }
    }
    Ok(html! {
        @for (number, found) in &lines {
            p."small soft after" { "Rerun " (number) ": " (sentence(&page.view, &found.because)) " " (sentence(&page.view, &found.next)) }
        }
    })
}

/// The call itself, to compare the reruns with.
fn original_row(call: &OriginalCall, money: &impl Fn(i64) -> String) -> Markup {
    html! {
        tr {
            td { "the call" }
            td.text { @match call.answer.as_ref().filter(|answer| !answer.is_empty()) { Some(answer) => details { summary { bdi { (title(answer)) } } (rendered(answer)) }, None => span.faint { "no text" } } }
            td { bdi { (call.model) } }
            td.num { "–" }
            td { @if call.is_whole_turn { span.faint { "with all calls of its turn" } } }
            td.num { (took(call.took_ms)) }
            td.num { (call.output_tokens.map(tokens).unwrap_or_default()) }
            td.num { @if call.is_unpriced { (no_price()) } @else { (money(call.cost_micros)) } }
        }
    }
}

fn took(ms: Option<i32>) -> String {
    ms.map(|ms| duration(TimeDelta::milliseconds(ms.into()))).unwrap_or_default()
}

fn row(
    page: &Page,
    rerun: &Rerun,
    original: Option<&str>,
    money: &impl Fn(i64) -> String,
) -> Markup {
    html! {
        tr id=(row_id(rerun)) {
            td { (rerun.number) }
            td.text { (answer_of(rerun, original)) }
            td { bdi { (rerun.model) } }
            td.num { @match rerun.temperature { Some(temperature) => (temperature), None => span.faint { "as the call" } } }
            td { (page.view.time(rerun.created_at)) }
            td.num { (took(rerun.took_ms)) }
            td.num { (rerun.output_tokens.map(tokens).unwrap_or_default()) }
            td.num { @if rerun.is_unpriced { (no_price()) } @else if rerun.state != State::Queued { (money(rerun.cost_micros)) } }
        }
    }
}

fn answer_of(rerun: &Rerun, original: Option<&str>) -> Markup {
    let Some(answer) = &rerun.answer else {
        return match (rerun.state, &rerun.error) {
            (State::Queued, _) => Tone::Waiting.state("waiting", None),
            (_, error) => Tone::Failed.state("failed", error.as_deref()),
        };
    };
    html! {
        details { summary { bdi { (title(answer)) } } (rendered(answer)) }
        @match original {
            Some(original) if original == answer => p."tiny faint" { "The same answer as the call." },
            Some(original) => details { summary."small" { "Compared with the answer of the call" } (word_diff(&diff_words(original, answer))) },
            None => {},
        }
    }
}
