//! Sentences of the service: names in backticks become code, and ids become links.

use maud::{Markup, html};
use uuid::Uuid;

use super::id;

/// Nouns in front of an id, with the folder of their pages.
const FOLDERS: [(&str, &str); 4] =
    [("task", "tasks"), ("session", "sessions"), ("campaign", "campaigns"), ("flow", "flows")];

/// Renders a sentence of the service.
pub(in crate::console) fn sentence(text: &str) -> Markup {
    html! {
        @for (place, part) in text.split('`').enumerate() {
            @if place % 2 == 1 { code { (part) } } @else { (with_links(part)) }
        }
    }
}

fn with_links(text: &str) -> Markup {
    let words: Vec<&str> = text.split(' ').collect();
    html! {
        @for (place, word) in words.iter().enumerate() {
            @if place > 0 { " " }
            (linked(if place > 0 { words[place - 1] } else { "" }, word))
        }
    }
}

/// Renders a word: an id as a link, if the word in front of it is a noun with pages.
fn linked(noun: &str, word: &str) -> Markup {
    let bare = word.trim_end_matches(['.', ',', ':', ';', ')']);
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
        let shown = sentence(&format!(
            "It was answered by turn 1 of session {given}. Run `dalsegno task show {given}`."
        ))
        .0;
        assert!(shown.contains(&format!("<a href=\"/sessions/{given}\">")), "{shown}");
        assert!(shown.contains(&format!("<code>dalsegno task show {given}</code>")), "{shown}");
        assert!(shown.contains("</a>. Run"), "{shown}");
        assert!(
            sentence("<script> is `<b>`").0.contains("&lt;script&gt; is <code>&lt;b&gt;</code>")
        );
    }
}
