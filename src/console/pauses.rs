//! Pauses: why, since when, and by whom.

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use super::parts::{View, coded};
use crate::domain::audit::describe_label;

/// Describes a pause: its reason, its author and its begin, as far as they are stored.
pub(super) fn pause_words(
    view: &View,
    reason: &str,
    author: Option<&str>,
    since: Option<DateTime<Utc>>,
) -> Markup {
    html! {
        @if reason.trim().is_empty() { "No reason was given" } @else { bdi { (coded(reason.trim().trim_end_matches('.'))) } } "."
        @if author.is_some() || since.is_some() {
            " Paused" @if let Some(at) = since { " since " (view.calendar(at)) } @if let Some(author) = author { " by " bdi title=(author) { (describe_label(author)) } } "."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_has_its_reason_its_begin_and_its_author() {
        let view = View::example();
        let words = |reason, author, since| pause_words(&view, reason, author, since).0;
        let all = words("client <call>.", Some("cli:ann"), Some(view.now));
        assert!(all.starts_with("<bdi>client &lt;call&gt;</bdi>. Paused since <time"), "{all}");
        assert!(
            all.ends_with(" by <bdi title=\"cli:ann\">ann on the command line</bdi>."),
            "{all}"
        );
        assert_eq!(words("", None, None), "No reason was given.");
    }
}
