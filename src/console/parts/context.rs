//! The parts of a context: their groups, which keep their colour on all pages, and their sizes.

use maud::{Markup, html};

use super::{Share, share_bar, tokens};
use crate::domain::manifests::Part;

/// A group of parts, in the order in which they are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::console) struct Group {
    pub(in crate::console) name: &'static str,
    pub(in crate::console) class: &'static str,
}

pub(in crate::console) const GROUPS: [Group; 6] = [
    Group { name: "System", class: "p1" },
    Group { name: "Summary", class: "p2" },
    Group { name: "Messages", class: "p3" },
    Group { name: "Posts", class: "p4" },
    Group { name: "Tools", class: "p5" },
    Group { name: "Prompt", class: "p6" },
];

/// Returns the group of a part.
pub(in crate::console) fn group_of(part: &Part) -> Group {
    let place = match part.kind.as_str() {
        "summary" => 1,
        "transcript" | "synthetic_results" | "rounds" => 2,
        "posts" | "statuses" | "blackboard" | "notice" => 3,
        "tools" => 4,
        "task" | "results" => 5,
        _ => 0,
    };
    GROUPS[place]
}

/// Draws the sizes of the parts that are sent.
pub(in crate::console) fn gauge(parts: &[Part]) -> Markup {
    let sum = |group: Group| -> i64 {
        let sent = parts.iter().filter(|part| part.sent && group_of(part) == group);
        sent.map(|part| part.tokens).sum()
    };
    let shares: Vec<Share> = GROUPS
        .into_iter()
        .filter(|group| sum(*group) > 0)
        .map(|group| Share {
            name: group.name.to_owned(),
            value: sum(group) as f64,
            shown: tokens(sum(group)),
            class: group.class,
        })
        .collect();
    let whole: i64 = GROUPS.into_iter().map(sum).sum();
    share_bar("Tokens of the context by part", &shares, whole as f64, None)
}

/// Names a kind of parts.
fn words_of(kind: &str) -> String {
    match kind {
        "fence_rules" => "rules for quoted texts".to_owned(),
        other => other.replace('_', " "),
    }
}

/// Names a part: `agent prompt`, `messages 12 to 40`.
pub(in crate::console) fn part_name(part: &Part) -> Markup {
    html! {
        (words_of(&part.kind))
        @if let Some(span) = part.span { " " (span.as_range()) @if let Some(n) = span.count.filter(|n| *n <= span.to_seq - span.from_seq) { " (" (n) " of them)" } }
        @match part.id.as_deref().map(|id| (id, id.parse::<uuid::Uuid>())) {
            Some((_, Ok(given))) => { " " (super::id("", given)) }
            Some((id, Err(_))) if id.len() < 60 => { " " code.faint { bdi { (id) } } }
            _ => {}
        }
    }
}
