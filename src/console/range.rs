//! Time ranges of lists and charts, as the query of a page names them.

use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};

use super::parts::{optional, url_text};
use crate::operations::Refusal;

/// The time before now that a page shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeRange {
    Hour,
    Day,
    Week,
}

impl TimeRange {
    pub(super) const ALL: [Self; 3] = [Self::Hour, Self::Day, Self::Week];

    /// Reads a range of the URL; an empty text is none.
    pub(super) fn read(text: &str) -> Result<Option<Self>, Refusal> {
        let find = |text: &str| Self::ALL.into_iter().find(|range| range.as_str() == text);
        optional("a time range (1h, 24h or 7d)", text, find)
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "1h",
            Self::Day => "24h",
            Self::Week => "7d",
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Hour => "last hour",
            Self::Day => "last 24 hours",
            Self::Week => "last 7 days",
        }
    }

    pub(super) fn hours(self) -> i32 {
        match self {
            Self::Hour => 1,
            Self::Day => 24,
            Self::Week => 168,
        }
    }

    /// Returns the beginning of the range.
    pub(super) fn begin(self, now: DateTime<Utc>) -> DateTime<Utc> {
        now - TimeDelta::hours(self.hours().into())
    }
}

/// Renders links to the ranges. `any` is the word for no range, where there is none by default.
pub(super) fn choice(
    target: &str,
    query: &[(&str, &str)],
    current: Option<TimeRange>,
    any: Option<&str>,
) -> Markup {
    let link = |range: &str| {
        let pairs = query.iter().copied().chain([("range", range)]);
        let pairs = pairs.filter(|(_, value)| !value.is_empty());
        let pairs = pairs.map(|(name, value)| format!("{name}={}", url_text(value)));
        let query = pairs.collect::<Vec<_>>().join("&");
        if query.is_empty() { target.to_owned() } else { format!("{target}?{query}") }
    };
    html! {
        nav.choice aria-label="Time range" {
            @if let Some(words) = any { a href=(link("")) aria-current=[current.is_none().then_some("page")] { (words) } }
            @for range in TimeRange::ALL {
                a href=(link(range.as_str())) aria-current=[(current == Some(range)).then_some("page")] title=(range.words()) { (range.as_str()) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_keeps_the_other_filters() {
        let links =
            choice("/tasks", &[("agent", "a b"), ("text", "")], Some(TimeRange::Day), Some("any"));
        let links = links.into_string();
        assert!(links.contains("href=\"/tasks?agent=a%20b\""), "{links}");
        assert!(
            links.contains("href=\"/tasks?agent=a%20b&amp;range=24h\" aria-current=\"page\""),
            "{links}"
        );
        assert_eq!(TimeRange::read("7d").unwrap(), Some(TimeRange::Week));
        assert_eq!(TimeRange::read("").unwrap(), None);
        let refusal = TimeRange::read("2d").unwrap_err();
        assert!(refusal.detail.contains("`2d` is not a time range"), "{refusal:?}");
    }
}
