//! Sentences of the service: names in backticks become code, ids become links, and moments are shown in the time zone of the pages.

use chrono::{DateTime, NaiveDateTime, Utc};
use maud::{Markup, html};
use uuid::Uuid;

use super::{View, agent_name, id, url_text};
use crate::console::names::conversation;

/// Nouns in front of an id, with the folder of their pages.
const FOLDERS: [(&str, &str); 4] =
    [("task", "tasks"), ("session", "sessions"), ("campaign", "campaigns"), ("flow", "flows")];

/// Renders a sentence of the service. Its moments, which are in UTC, are shown in the time zone of the pages.
pub(in crate::console) fn sentence(view: &View, text: &str) -> Markup {
    let parts: Vec<&str> = text.split('`').collect();
    html! {
        @for (place, part) in parts.iter().enumerate() {
            @if place % 2 == 1 { (named(view, parts[place - 1], part)) } @else { (with_links(view, part)) }
        }
    }
}

/// Renders a text in which names in backticks become code.
pub(in crate::console) fn coded(text: &str) -> Markup {
    html! {
        @for (place, part) in text.split('`').enumerate() { @if place % 2 == 1 { code { (part) } } @else { (part) } }
    }
}

/// Renders a text without moments: names in backticks become code, and ids become links.
pub(in crate::console) fn linked_words(text: &str) -> Markup {
    let with_ids = |part: &str| {
        let words: Vec<&str> = part.split(' ').collect();
        html! {
            @for (place, word) in words.iter().enumerate() {
                @if place > 0 { " " }
                (linked(if place > 0 { words[place - 1] } else { "" }, word))
            }
        }
    };
    html! {
        @for (place, part) in text.split('`').enumerate() {
            @if place % 2 == 1 { code { (part) } } @else { (with_ids(part)) }
        }
    }
}

/// Renders a name: that of a lane is a link, where the caller may see lanes.
fn named(view: &View, before: &str, name: &str) -> Markup {
    html! {
        @if before.ends_with("lane ") && view.has_jobs { a href={ "/work/lanes?name=" (url_text(name)) } title=(name) { code { bdi { (lane_name(name)) } } } }
        @else { code { (name) } }
    }
}

/// Names the lane of a conversation by its agent.
fn lane_name(lane: &str) -> String {
    match conversation(lane) {
        Some((_, agent, instance)) => agent_name(agent, instance),
        None => lane.to_owned(),
    }
}

fn with_links(view: &View, text: &str) -> Markup {
    let words: Vec<&str> = text.split(' ').collect();
    let mut out = html! {};
    let mut place = 0;
    while place < words.len() {
        if place > 0 {
            out.0.push(' ');
        }
        let (shown, n_words) = match moment(&words[place..]) {
            Some((at, rest)) => (html! { (view.clock(at)) (rest) }, 3),
            None => {
                let noun = if place > 0 { words[place - 1] } else { "" };
                let is_job = matches!(noun, "job" | "Job");
                let word = words[place];
                let shown = match is_job && !view.has_jobs {
                    true => html! { (word) },
                    false => linked(noun, word),
                };
                (shown, 1)
            }
        };
        out.0.push_str(&shown.0);
        place += n_words;
    }
    out
}

/// Reads the moment with which a text begins, `2026-11-27 22:20:35 UTC`, and the punctuation behind it.
fn moment<'a>(words: &[&'a str]) -> Option<(DateTime<Utc>, &'a str)> {
    let [day, time, zone, ..] = words else { return None };
    let rest = zone.strip_prefix("UTC").filter(|rest| rest.len() <= 1)?;
    let at = NaiveDateTime::parse_from_str(&format!("{day} {time}"), "%Y-%m-%d %H:%M:%S").ok()?;
    Some((at.and_utc(), rest))
}

/// Renders a word: an id as a link, if the word in front of it is a noun with pages.
fn linked(noun: &str, word: &str) -> Markup {
    let bare = word.trim_end_matches(['.', ',', ':', ';', ')']);
    if matches!(noun, "job" | "Job") && bare.parse::<i64>().is_ok_and(|id| id > 0) {
        return html! { a href={ "/work/jobs/" (bare) } { (bare) } (word[bare.len()..]) };
    }
    let Ok(given) = bare.parse::<Uuid>() else { return html! { (word) } };
    if bare.len() != 36 {
        return html! { (word) };
    }
    let rest = &word[bare.len()..];
    let folder = FOLDERS.iter().find(|(name, _)| *name == noun).map(|(_, folder)| folder);
    html! {
        @match folder {
            Some(folder) => a href={ "/" (folder) "/" (given) } { (id("", given)) },
            None => (id("", given)),
        }
        (rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_links_and_names_are_code() {
        let given = "019ab6e2-41c7-7d30-9c14-5be19c14e2b7";
        let shown = sentence(
            &View::example(),
            &format!(
                "It was answered by turn 1 of session {given}. Run `dalsegno task show {given}`."
            ),
        )
        .0;
        assert!(shown.contains(&format!("<a href=\"/sessions/{given}\">")), "{shown}");
        assert!(shown.contains(&format!("<code>dalsegno task show {given}</code>")), "{shown}");
        assert!(shown.contains("</a>. Run"), "{shown}");
        assert!(
            sentence(&View::example(), "<script> is `<b>`")
                .0
                .contains("&lt;script&gt; is <code>&lt;b&gt;</code>")
        );
    }

    #[test]
    fn jobs_and_lanes_are_links() {
        let text = "It waits for job 33 (`run_turn`) in the lane `a b/main`. Job 33 has to end.";
        let shown = sentence(&View::example(), text).0;
        assert!(shown.contains("job <a href=\"/work/jobs/33\">33</a> ("), "{shown}");
        assert!(shown.contains("Job <a href=\"/work/jobs/33\">33</a> has"), "{shown}");
        assert!(
            shown.contains("<a href=\"/work/lanes?name=a%20b%2Fmain\" title=\"a b/main\"><code>"),
            "{shown}"
        );
        let lane = "019ab6e2-41c7-7d30-9c14-5be19c14e2b7/curator/2";
        let shown = sentence(&View::example(), &format!("The lane `{lane}` waits.")).0;
        assert!(shown.contains("<code><bdi>curator/2</bdi></code></a> waits."), "{shown}");
        assert!(shown.contains(&url_text(lane)), "{shown}");
        assert!(shown.contains(&format!("title=\"{lane}\"")), "its campaign: {shown}");
        assert!(sentence(&View::example(), "1 job 2 of 3 `dalsegno lane ls`").0.contains("<code>"));
    }

    #[test]
    fn moments_are_in_the_time_zone_of_the_pages() {
        let text = "It is called again at 2026-07-15 08:20:35 UTC: busy, at 25 UTC.";
        let shown = sentence(&View::example(), text).0;
        assert!(shown.contains(">10:20:35</time>: busy, at 25 UTC."), "{shown}");
        assert!(!shown.contains("08:20:35 UTC"), "{shown}");
    }
}
