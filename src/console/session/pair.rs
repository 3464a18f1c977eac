//! The transcript beside what the model sees: one grid with a row per message, so that both sides scroll together without a script.

use chrono::DateTime;
use maud::{Markup, html};

use super::window::Window;
use crate::{
    console::{
        page::Page,
        parts::{agent_name, counted, icon, id, rendered, title, tokens},
    },
    domain::{
        compactions::Compaction,
        conversations::Detail,
        manifests::{CallContext, Part},
        messages::{Results, StoredMessage},
    },
    transcript::Role,
};

/// Longest text of a message in the page.
pub(super) const TEXT_MAX_CHARS: usize = 6_000;

/// A part of a transcript, and what is known about its context.
pub(super) struct PairView<'a> {
    pub(super) detail: &'a Detail,
    pub(super) window: &'a Window,
    pub(super) fold: Option<&'a Compaction>,
    /// The context of the last call.
    pub(super) context: Option<&'a CallContext>,
}

pub(super) fn show(page: &Page, shown: &PairView<'_>) -> Markup {
    html! {
        div.pair role="group" aria-label="Transcript and context" {
            div.label { h2 { "Transcript" span.faint { "never changed" } } }
            div."label num" { span.sr { "Tokens" } }
            div.label { h2 { "What the model sees" span.faint { "in the next call" } } }
            (rows(page, shown))
        }
    }
}

/// Renders the rows of the grid. In front of them stands the begin of the session, a fold, or the link to earlier messages.
pub(super) fn rows(page: &Page, shown: &PairView<'_>) -> Markup {
    let begin = shown.window.begin;
    let is_after_fold = shown.fold.is_some_and(|fold| fold.to_seq == begin);
    html! {
        @if is_after_fold { (cut(page, shown)) }
        @else if begin != 0 { (earlier(shown)) }
        @else if shown.window.messages.first().is_some_and(|first| is_taken_over(shown, first)) { (taken_over(shown.detail)) }
        @for (place, message) in shown.window.messages.iter().enumerate() {
            @if is_opening(shown, place) { (opening(shown.detail)) }
            (row(page, shown, message))
        }
        @if shown.window.messages.is_empty() && begin == 0 { (opening(shown.detail)) }
    }
}

/// A link to earlier messages. With a script, they take its place.
fn earlier(shown: &PairView<'_>) -> Markup {
    let before = shown.window.begin + 1;
    let target = format!("/sessions/{}?before={before}", shown.detail.session.id);
    html! {
        div.cut #earlier {
            a."btn slim" href=(target) hx-get=(target) hx-target="#earlier" hx-swap="outerHTML show:none" { "Show earlier messages" }
        }
    }
}

/// Returns true for a message that was written before the session began, in the one that it continues.
fn is_taken_over(shown: &PairView<'_>, message: &StoredMessage) -> bool {
    message.created_at < shown.detail.session.created_at
}

/// Returns true if the session begins in front of this message of the window.
fn is_opening(shown: &PairView<'_>, place: usize) -> bool {
    let messages = &shown.window.messages;
    let is_first = match place.checked_sub(1) {
        Some(before) => is_taken_over(shown, &messages[before]),
        None => shown.window.begin == 0,
    };
    is_first && !is_taken_over(shown, &messages[place])
}

fn taken_over(detail: &Detail) -> Markup {
    html! {
        div."cut begin" { div {
            b { "Taken over from " @match detail.session.predecessor_id { Some(before) => a href={ "/sessions/" (before) } { "the session before" }, None => "an earlier session" } }
        } }
    }
}

fn opening(detail: &Detail) -> Markup {
    let because = serde_json::to_value(detail.session.opened_because).ok();
    let because = because.as_ref().and_then(|it| it.as_str()).unwrap_or_default().replace('_', " ");
    html! { div."cut begin" { div { (icon("segno")) b { "The session begins here" } span.soft { (because) } } } }
}

/// The fold in front of the messages: what the summary replaces, and the summary.
fn cut(page: &Page, shown: &PairView<'_>) -> Markup {
    let Some(fold) = shown.fold else { return html! {} };
    let here = format!("/sessions/{}", shown.detail.session.id);
    let after = fold.tokens_after.unwrap_or_default();
    html! {
        div.cut {
            div {
                (icon("fold")) b { "Compaction " (fold.generation) }
                span.soft { "messages " (fold.from_seq) " to " (fold.to_seq) " became a summary on " (page.view.date(fold.created_at)) ", " (tokens(fold.tokens_before)) " → " (tokens(after)) " tokens" }
                span.actions { a."btn quiet slim" href={ (here) "?cursor=" (fold.from_seq - 1) } { "Show the originals" } }
            }
        }
        div.msg { header { b { "Messages " (fold.from_seq) " to " (fold.to_seq) } } p."small soft" { "They stay in the transcript, word for word." } }
        div."spine gone" { span { (tokens(after)) } }
        div."msg seen" {
            header { b { "Summary" } span.end { "in place of the messages" } }
            details { summary { (title(fold.summary.as_deref().unwrap_or("(no text)"))) } (rendered(fold.summary.as_deref().unwrap_or_default())) }
        }
    }
}

fn row(page: &Page, shown: &PairView<'_>, message: &StoredMessage) -> Markup {
    let (sight, is_sent) = sight(shown, message);
    let here = format!("#m{}", message.seq);
    html! {
        article.msg id={ "m" (message.seq) } {
            header {
                b { (author(shown.detail, message)) } span.faint { (kind(message)) ", " a href={ "/sessions/" (shown.detail.session.id) "/turns/" (message.turn) } { "turn " (message.turn) } }
                span.end { (page.view.time(message.created_at)) " · " a href=(here) { (message.seq) } }
            }
            @if message.message.role == Role::Posts { (posts(page, shown.detail, message)) }
            @else if let Some(results) = message.results() { (ends(&results)) }
            @else { (text(message)) }
        }
        div.spine.gone[!is_sent] { span { (tokens(i64::try_from(message.message.text.len() / 4).unwrap_or(0))) } }
        div.msg.seen.not[!is_sent] { header { b { (if is_sent { "Sent" } else { "Not sent" }) } span.end { (sight) } } @if is_sent { p dir="auto" { (heading(message)) } } }
    }
}

/// Says how the model sees a message in the next call, and whether it does.
fn sight(shown: &PairView<'_>, message: &StoredMessage) -> (String, bool) {
    if message.rejected {
        return ("the provider rejected it".to_owned(), false);
    }
    if let Some(fold) = shown.fold.filter(|fold| message.seq <= fold.to_seq) {
        return (format!("in the summary of compaction {}", fold.generation), false);
    }
    match shown.context.and_then(|context| part_of(&context.parts, message.seq)) {
        // The summary of the last call does not apply any more.
        Some(part) if part.is_folded() => ("again, without the summary".to_owned(), true),
        Some(part) => (part.reason.clone(), part.sent),
        None => ("word for word".to_owned(), true),
    }
}

/// Finds the part of a context that has a message.
fn part_of(parts: &[Part], seq: i64) -> Option<&Part> {
    let covers = |part: &&Part| {
        let of_messages = matches!(
            part.kind.as_str(),
            "transcript" | "task" | "notice" | "rounds" | "synthetic_results"
        );
        of_messages && part.span.is_some_and(|span| (span.from_seq..=span.to_seq).contains(&seq))
    };
    parts.iter().rfind(covers)
}

fn author<'a>(detail: &'a Detail, message: &StoredMessage) -> Markup {
    let agent: &'a str = &detail.session.agent;
    match message.message.role {
        Role::Assistant => html! { bdi { (agent) } },
        Role::Tool => html! { bdi { (message.message.tool_name.as_deref().unwrap_or("tool")) } },
        Role::User => html! { bdi { (message.message.tool_name.as_deref().unwrap_or("task")) } },
        Role::System | Role::Notice => html! { "service" },
        Role::Posts => html! { "board" },
    }
}

fn kind(message: &StoredMessage) -> &'static str {
    match (message.message.role, message.partial) {
        (Role::Assistant, true) => "answer, cut off",
        (Role::Assistant, false) => "answer",
        (Role::Tool, _) => "tool result",
        (Role::User, _) => "prompt",
        (Role::System, _) => "system",
        (Role::Notice, _) => "notice",
        (Role::Posts, _) => "posts",
    }
}

/// Names a message by its first words, by the number of its results, or by the authors of its posts.
fn heading(message: &StoredMessage) -> Markup {
    if let Some(results) = message.results() {
        return html! { "results of " (counted(results.ends.len(), "task", "tasks")) };
    }
    let Some(posts) = message.posts() else { return html! { (title(&message.message.text)) } };
    let mut authors: Vec<&str> = posts.posts.iter().map(|post| post.sender.as_ref()).collect();
    authors.sort_unstable();
    authors.dedup();
    html! {
        (counted(posts.posts.len(), "post", "posts"))
        @if !authors.is_empty() { " of " @for (place, author) in authors.iter().enumerate() { @if place > 0 { ", " } bdi { (author) } } }
        @if posts.left_out > 0 { ", " (posts.left_out) " left out" }
    }
}

/// Shows posts as the board does: author, addressees, text.
fn posts(page: &Page, detail: &Detail, message: &StoredMessage) -> Markup {
    let Some(posts) = message.posts() else { return text(message) };
    let board = format!("/campaigns/{}", detail.session.campaign_id);
    let at = |text: &str| DateTime::parse_from_rfc3339(text).ok().map(|at| at.to_utc());
    html! {
        @for post in &posts.posts {
            p."small post-head" {
                b { bdi { (post.sender) } } @if !post.to.is_empty() { span.faint { " to " bdi { (post.to) } } }
                @if let Some(at) = at(&post.posted_at) { " · " (page.view.time(at)) }
                " · " a href={ (board) "?cursor=" (post.seq + 1) "#p" (post.seq) } { "post " (post.seq) }
            }
            (rendered(beginning(&post.text)))
        }
        @if let Some(archived) = &posts.archived { p."small soft" { "Posts up to " (archived.up_to) " are archived." } }
        @if posts.left_out > 0 { p."small soft" { (posts.left_out) " further posts were left out for their length." } }
    }
}

/// Shows the results of tasks that the task has waited for: agent, task, state, text.
fn ends(results: &Results) -> Markup {
    html! {
        @for end in &results.ends {
            p."small post-head" {
                b { bdi { (agent_name(&end.agent, &end.instance)) } }
                " · " a href={ "/tasks/" (end.task) } { (id("task", end.task)) } " · " (end.state)
            }
            (rendered(beginning(&end.text)))
            @if end.left_out_chars > 0 { p."small soft" { (end.left_out_chars) " further characters were left out for their length." } }
        }
    }
}

/// Returns the beginning of a text that is too long for the page.
fn beginning(text: &str) -> &str {
    match text.char_indices().nth(TEXT_MAX_CHARS) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

fn text(message: &StoredMessage) -> Markup {
    let text = &message.message.text;
    let short = beginning(text);
    let is_cut = short.len() < text.len();
    html! {
        @match message.message.role {
            Role::Assistant | Role::User => (rendered(short)),
            Role::Tool | Role::Posts | Role::System | Role::Notice => {
                details { summary { (title(text)) } pre."code wrap" dir="auto" { (short) } }
            }
        }
        @if is_cut { p."small soft" { "The first " (TEXT_MAX_CHARS) " of " (text.chars().count()) " characters; " code { "dalsegno session transcript" } " prints all." } }
        @for call in &message.message.tool_calls {
            details { summary { (icon("tool")) " calls " code { bdi { (call.name) } } } pre."code wrap" dir="auto" { (serde_json::to_string_pretty(&call.arguments).unwrap_or_default()) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::domain::messages::EndOfTask;

    #[test]
    fn results_of_other_tasks_are_texts_with_their_authors() {
        let end = EndOfTask {
            task: Uuid::from_u128(7),
            agent: "reviewer".to_owned(),
            instance: "main".to_owned(),
            state: "done".to_owned(),
            text: "It **fits** <script>.".to_owned(),
            left_out_chars: 3,
        };
        let shown = ends(&Results { ends: vec![end] }).0;
        for part in ["reviewer", "/tasks/00000000", "<strong>fits</strong>", "3 further"] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        assert!(!shown.contains("<script>") && !shown.contains("left_out_chars"), "{shown}");
    }
}
