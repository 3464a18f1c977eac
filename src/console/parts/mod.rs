//! Parts that pages share: states, ids, times, amounts, lists, forms, charts.

mod charts;
mod context;
mod difference;
mod forms;
#[cfg(debug_assertions)]
pub(super) mod gallery;
mod limits;
mod markdown;
mod prices;
mod tables;
mod view;
mod words;

use maud::{Markup, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use uuid::Uuid;

use super::assets;

pub(super) use self::{
    charts::{Share, share_bar, sparkline, sparkline_from},
    context::{GROUPS, gauge, group_of, part_name},
    difference::{marks_words, word_diff},
    forms::{Action, Confirmation, campaign_id, optional, page_form, place},
    limits::{may_raise, raise_form, refused_retry},
    markdown::rendered,
    prices::{count_unpriced, no_price, price_hint},
    tables::wide,
    view::{View, duration, time_field, tokens},
    words::{coded, linked_words, sentence},
};
pub(super) use crate::domain::{
    agents::agent_name,
    text::{bytes, count as counted},
};

/// Longest title of a page or a row that is made from a text.
pub(super) const TITLE_MAX_CHARS: usize = 90;

/// Longest text in a page. Longer ones are cut, with a link to the whole.
const TEXT_MAX_CHARS: usize = 12_000;

/// The characters that a value in an address cannot have as they are.
const TEXT_IN_URL: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A state as it is shown: icon, word and colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Queued,
    Waiting,
    Running,
    Done,
    Failed,
    Cancelled,
    Held,
    Paused,
}

impl Tone {
    #[cfg(debug_assertions)]
    pub(super) const ALL: [Self; 8] = [
        Self::Queued,
        Self::Waiting,
        Self::Running,
        Self::Done,
        Self::Failed,
        Self::Cancelled,
        Self::Held,
        Self::Paused,
    ];

    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Held => "held",
            Self::Paused => "paused",
        }
    }

    pub(super) fn icon(self) -> &'static str {
        self.class()
    }

    /// Renders icon and word; the reason stands beside the word.
    pub(super) fn state(self, word: &str, why: Option<&str>) -> Markup {
        html! { span class={ "state " (self.class()) } { (icon(self.icon())) span.word { (word) } @if let Some(why) = why { span.why { bdi { (coded(why)) } } } } }
    }

    pub(super) fn badge(self, word: &str, why: Option<&str>) -> Markup {
        html! { span class={ "state badge " (self.class()) } { (icon(self.icon())) span.word { (word) } @if let Some(why) = why { span.why { bdi { (coded(why)) } } } } }
    }
}

pub(super) fn icon(name: &str) -> Markup {
    let target = format!("{}#{name}", assets::path("icons.svg"));
    html! { svg.icon aria-hidden="true" { use href=(target) {} } }
}

/// Returns the first line of a text, shortened.
pub(super) fn title(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("(no text)");
    let line = line.trim_start_matches('#').trim_start();
    let mut short: String = line.chars().take(TITLE_MAX_CHARS).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

/// Shows the end of an id, which tells ids of one time apart; the whole id on hover and for `y`.
pub(super) fn id(noun: &str, id: Uuid) -> Markup {
    let text = id.to_string();
    let end = &text[text.len() - 8..];
    html! { code.id title=(text) data-id=(text) { @if !noun.is_empty() { (noun) " " } "…" (end) } }
}

pub(super) fn agent(agent: &str, instance: &str) -> Markup {
    html! { span.who { (sigil(agent, false)) bdi { (agent_name(agent, instance)) } } }
}

/// Colours that tell names with the same two letters apart.
const TINTS: [&str; 6] = ["tint-1", "tint-2", "tint-3", "tint-4", "tint-5", "tint-6"];

/// Shows the first two letters of a name, in a colour of the name. People have a circle.
pub(super) fn sigil(name: &str, is_person: bool) -> Markup {
    let mut letters = name.chars().filter(|c| c.is_alphanumeric());
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    let second = letters.next().map(|c| c.to_lowercase().to_string()).unwrap_or_default();
    let tint = TINTS[name.bytes().fold(7_usize, |sum, byte| sum * 31 % 9_973 + usize::from(byte))
        % TINTS.len()];
    html! { span.sigil.person[is_person].(tint) aria-hidden="true" { (first) (second) } }
}

/// A part of a page under a ruled heading, with its total or its link at the end.
pub(super) fn section(heading: &str, end: &Markup, body: &Markup) -> Markup {
    html! {
        section.sect {
            header { h2 { (heading) } @if !end.0.is_empty() { span.end { (end) } } }
            (body)
        }
    }
}

/// A link of a tab bar.
pub(super) struct Tab<'a> {
    pub(super) words: &'a str,
    /// Tells the tab of the page apart.
    pub(super) key: &'a str,
    pub(super) target: String,
    pub(super) count: Option<i64>,
}

/// Links between pages that belong together.
pub(super) fn tabs(label: &str, here: &str, all: &[Tab<'_>]) -> Markup {
    html! {
        nav.tabs aria-label=(label) {
            @for Tab { words, key, target, count } in all {
                a href=(target) aria-current=[(*key == here).then_some("page")] { (words) @if let Some(count) = count { span { (count) } } }
            }
        }
    }
}

/// Says why nothing is here, and names the command that changes it.
pub(super) fn empty(words: &str, command: &str) -> Markup {
    html! { div.empty { (coded(words)) @if !command.is_empty() { code { (command) } } } }
}

/// A list of names and values.
pub(super) fn facts(rows: &[(&str, Markup)]) -> Markup {
    html! { dl.facts { @for (name, value) in rows { @if !value.0.is_empty() { dt { (name) } dd { (value) } } } } }
}

/// Wraps a text of a model or a person in paragraphs, as it is.
pub(super) fn plain(text: &str) -> Markup {
    html! { div."said plain" dir="auto" { (text) } }
}

/// Shows the beginning of a long text, with a link to the whole.
pub(super) fn beginning(text: &str, whole: &str, show: fn(&str) -> Markup) -> Markup {
    match text.char_indices().nth(TEXT_MAX_CHARS) {
        None => show(text),
        Some((end, _)) => html! {
            (show(&text[..end]))
            p."small soft after" {
                "The first " (TEXT_MAX_CHARS) " of " (text.chars().count()) " characters. " a href=(whole) { "Show the whole text" }
            }
        },
    }
}

/// A link to the next page of a list.
pub(super) fn next_page(target: &str, query: &[(&str, &str)], next: Option<&str>) -> Markup {
    let Some(next) = next else { return html! {} };
    let target = format!("{target}?{}", encoded(query, next));
    html! { p.pager { a rel="next" href=(target) { "Next page" } } }
}

fn encoded(query: &[(&str, &str)], next: &str) -> String {
    let pairs =
        query.iter().copied().chain([("cursor", next)]).filter(|(_, value)| !value.is_empty());
    let pair = |(name, value): (&str, &str)| format!("{name}={}", url_text(value));
    pairs.map(pair).collect::<Vec<_>>().join("&")
}

/// Encodes a value of a query.
pub(super) fn url_text(text: &str) -> String {
    utf8_percent_encode(text, &TEXT_IN_URL).to_string()
}

/// Begins a text with a capital letter.
pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Quotes a text for a POSIX shell, unless it is a plain word.
pub(super) fn shell_word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./@:".contains(&byte);
    match !text.is_empty() && !text.starts_with('-') && text.bytes().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_line_and_short() {
        assert_eq!(title("\n  # Part one\nmore"), "Part one");
        assert_eq!(title(""), "(no text)");
        let long = title(&"x".repeat(1_000_000));
        assert_eq!(long.chars().count(), TITLE_MAX_CHARS + 1);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn hostile_text_is_escaped() {
        let hostile = "<script>alert(1)</script>\"'&";
        let shown = [
            plain(hostile),
            Tone::Failed.badge(hostile, Some(hostile)),
            facts(&[("Name", html! { (hostile) })]),
            agent(hostile, hostile),
            section(hostile, &html! { (hostile) }, &empty(hostile, hostile)),
        ];
        for markup in shown {
            assert!(!markup.0.contains("<script"), "{}", markup.0);
            assert!(markup.0.contains("&lt;script&gt;"), "{}", markup.0);
        }
    }

    #[test]
    fn a_word_of_a_command_stays_one_argument() {
        assert_eq!(shell_word("a 'b' $(c)"), r"'a '\''b'\'' $(c)'");
        assert_eq!(shell_word("kim@example.org"), "kim@example.org");
        assert_eq!([shell_word(""), shell_word("--yes")], ["''", "'--yes'"]);
    }

    #[test]
    fn a_cursor_of_any_text_stays_one_value() {
        assert_eq!(
            encoded(&[("text", "a b&c"), ("agent", "")], "é"),
            "text=a%20b%26c&cursor=%C3%A9"
        );
    }
}
