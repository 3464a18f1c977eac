//! The answers of a task: of its last attempt and of those before, rendered, as written, or compared.

use maud::{Markup, html};

use super::PageQuery;
use crate::{
    console::{
        page::Page,
        parts::{beginning, counted, empty, rendered, section, word_diff},
    },
    domain::{
        tasks::{Detail, State},
        turns::{self, Turn},
    },
    operations::{ReadTranscript, Refusal, ShowTurn, diff_words},
    transcript::Role,
};

/// Messages that are read after a prompt to find the answers to it.
const MAX_MESSAGES: i64 = 200;

/// The attempt that the page shows, by its place among the turns of the task, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attempt {
    place: usize,
    n_all: usize,
}

impl Attempt {
    /// Chooses the attempt of the query, or the last one.
    pub(super) fn of(query: &PageQuery, detail: &Detail) -> Self {
        let n_all = detail.turns.len();
        let place = query.attempt.filter(|place| (1..=n_all).contains(place));
        Self { place: place.unwrap_or(n_all), n_all }
    }

    fn is_last(self) -> bool {
        self.place == self.n_all
    }

    fn turn(self, detail: &Detail) -> Option<&Turn> {
        detail.turns.get(self.place.checked_sub(1)?)
    }

    /// Links to the attempts before and after, for people and for the keys `[` and `]`.
    pub(super) fn links(self, here: &str) -> Markup {
        html! {
            @if self.place > 1 { a rel="prev" href={ (here) "?attempt=" (self.place - 1) "#result" } { "← Attempt " (self.place - 1) } }
            @if self.place < self.n_all { a rel="next" href={ (here) "?attempt=" (self.place + 1) "#result" } { "Attempt " (self.place + 1) " →" } }
        }
    }
}

/// The views of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum View {
    Rendered,
    Raw,
    Diff,
}

impl View {
    fn of(text: &str) -> Self {
        match text {
            "raw" => Self::Raw,
            "diff" => Self::Diff,
            _ => Self::Rendered,
        }
    }
}

pub(super) async fn show(
    page: &Page,
    detail: &Detail,
    query: &PageQuery,
    attempt: Attempt,
) -> Result<Markup, Refusal> {
    let here = format!("/tasks/{}", detail.task.id);
    let view = View::of(&query.result);
    let text = answer(page, detail, attempt).await?;
    let body = match (&text, view) {
        (Some(text), View::Diff) => difference(page, detail, attempt, text).await?,
        (Some(text), View::Raw) => beginning(text, &whole(&here, detail, attempt), raw),
        (Some(text), View::Rendered) => beginning(text, &whole(&here, detail, attempt), rendered),
        (None, _) => no_answer(detail, attempt),
    };
    let n_words = text.as_ref().map(|text| text.split_whitespace().count());
    let end = html! {
        @if !attempt.is_last() { "attempt " (attempt.place) " of " (attempt.n_all) @if n_words.is_some() { ", " } }
        @if let Some(n_words) = n_words { (counted(n_words, "word", "words")) }
    };
    let is_part = text.is_some() && !(attempt.is_last() && detail.task.result.is_some());
    let shown = html! {
        (choices(&here, attempt, view, text.is_some()))
        @if is_part { p."small soft" { (of_part(attempt.turn(detail))) } }
        (body)
    };
    Ok(html! { div #result { (section("Result", &end, &shown)) } })
}

/// The choice of the view, and of the attempt if there are several.
fn choices(here: &str, attempt: Attempt, view: View, has_answer: bool) -> Markup {
    let of = |place: usize| match attempt.n_all {
        0 | 1 => String::new(),
        _ => format!("&attempt={place}"),
    };
    let views = [(View::Rendered, "Rendered", "rendered"), (View::Raw, "Raw", "raw")];
    let diff = [(View::Diff, "Diff", "diff")];
    let views = views.iter().chain(diff.iter().filter(|_| attempt.place > 1));
    html! {
        @if has_answer || attempt.n_all > 1 {
            div.answer-bar {
                nav.choice aria-label="View" {
                    @for (other, words, key) in views { a href={ (here) "?result=" (key) (of(attempt.place)) "#result" } aria-current=[(*other == view).then_some("page")] { (words) } }
                }
                @if attempt.n_all > 1 {
                    nav.choice aria-label="Attempt" {
                        @for place in 1..=attempt.n_all { a href={ (here) "?attempt=" (place) "#result" } aria-current=[(place == attempt.place).then_some("page")] { "Attempt " (place) } }
                    }
                }
            }
        }
    }
}

/// The address of a text that is too long for the page.
fn whole(here: &str, detail: &Detail, attempt: Attempt) -> String {
    match (attempt.is_last() && detail.task.result.is_some(), attempt.turn(detail)) {
        (false, Some(turn)) => format!("/sessions/{}", turn.session_id),
        _ => format!("{here}/result"),
    }
}

/// Compares the answer with that of the nearest earlier attempt that has one.
async fn difference(
    page: &Page,
    detail: &Detail,
    attempt: Attempt,
    text: &str,
) -> Result<Markup, Refusal> {
    for place in (1..attempt.place).rev() {
        let earlier = Attempt { place, ..attempt };
        let Some(before) = answer(page, detail, earlier).await? else { continue };
        let words = html! { p."small soft" { "From attempt " (place) " to attempt " (attempt.place) ", word by word." } };
        return Ok(match before == text {
            true => html! { (words) (empty("Both attempts have the same answer.", "")) },
            false => html! { (words) (word_diff(&diff_words(&before, text))) },
        });
    }
    Ok(empty("No earlier attempt has an answer to compare with.", ""))
}

/// Finds the answer of an attempt: the result, or the part of an answer that had arrived.
async fn answer(page: &Page, detail: &Detail, attempt: Attempt) -> Result<Option<String>, Refusal> {
    if attempt.is_last() && detail.task.result.is_some() {
        return Ok(detail.task.result.clone());
    }
    let Some(turn) = attempt.turn(detail) else { return Ok(None) };
    let ask = ShowTurn { id: turn.session_id, number: turn.number };
    let Some(found) = page.caller.run_if_allowed(ask).await? else { return Ok(None) };
    let Some(prompt) = found.prompt_seq else { return Ok(None) };
    let cursor = Some(prompt - 1);
    let (before, limit) = (None, Some(MAX_MESSAGES));
    let read = ReadTranscript { id: turn.session_id, cursor, before, limit };
    let Some(transcript) = page.caller.run_if_allowed(read).await? else { return Ok(None) };
    let texts = transcript.items.iter().filter(|stored| {
        stored.turn == turn.number
            && stored.message.role == Role::Assistant
            && !stored.message.text.is_empty()
    });
    let texts: Vec<&str> = texts.map(|stored| stored.message.text.as_str()).collect();
    Ok((!texts.is_empty()).then(|| texts.join("\n\n")))
}

/// Tells that a text is not the result of its task.
fn of_part(turn: Option<&Turn>) -> &'static str {
    match turn.map(|turn| turn.state) {
        Some(turns::State::Running) => "These messages have arrived. The attempt goes on.",
        Some(turns::State::Done) => {
            "This is the answer of the attempt. The task has another result, or none yet."
        }
        _ => {
            "This part of the answer had arrived when the attempt ended. It is not the result of the task."
        }
    }
}

fn no_answer(detail: &Detail, attempt: Attempt) -> Markup {
    let task = &detail.task;
    let error = attempt.turn(detail).and_then(|turn| turn.error.as_deref());
    let words = match (attempt.is_last(), task.state, error) {
        (true, State::Queued | State::Running, _) => {
            "There is no result yet. The command prints it as soon as the task has ended."
        }
        (true, State::Cancelled, _) => {
            "No part of an answer had arrived when the task was cancelled."
        }
        (_, _, Some(_)) => "The attempt failed before any of its answer had arrived.",
        (true, ..) => "The task ended without a result.",
        (false, ..) => "No answer of this attempt is stored.",
    };
    let is_open = attempt.is_last() && matches!(task.state, State::Queued | State::Running);
    let wait = if is_open { " --wait 5m" } else { "" };
    let command = format!("dalsegno task show {}{wait}", task.id);
    empty(words, &command)
}

fn raw(text: &str) -> Markup {
    html! { pre."code wrap" dir="auto" tabindex="0" { (text) } }
}
