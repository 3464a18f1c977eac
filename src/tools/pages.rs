//! Answers of tools, cut into pages.
//!
//! Claude Code shows a model only the beginning of a result with more than 50,000 characters. It counts UTF-16 units, as JavaScript does,
//! so some characters count twice. So no page is longer, and one that is not the last contains the cursor of the next.
//!
//! Each page is cut from the answer as it is at that call. Pages of different answers do not fit together. So the cursor contains a mark of
//! its answer, and a cursor with the mark of another answer is refused.

use std::hash::{DefaultHasher, Hasher as _};

use serde::Serialize;
use serde_json::Value;

use super::{Refusal, arguments::Cursor};

/// Size of a page in UTF-16 units. It leaves space for the note about the rest.
pub(super) const PAGE_CHARS: usize = 48_000;

const REST_NOT_SHOWN: &str =
    "[It is done. The rest of this answer is not shown; do not call again for it.]";

/// Answer of a tool before it is cut into pages.
#[derive(Debug, Default)]
pub(super) struct ToolAnswer {
    pub text: String,
    /// Position at which the list continues after this part.
    pub next: Option<String>,
    /// Position at which the shown part of the list began. Set if it differs from the requested one, because others write to the list
    /// meanwhile.
    pub began: Option<String>,
}

impl ToolAnswer {
    /// Answers with JSON, in which the text of others is a string and cannot pass for anything else.
    pub(super) fn json(value: &impl Serialize) -> Result<Self, Refusal> {
        let written = serde_json::to_string(value);
        let text = written.map_err(|error| Refusal::Failed(Box::new(error)))?;
        Ok(Self { text: escape_invisible(text), ..Self::default() })
    }

    pub(super) fn list(value: &Value, next: Option<String>) -> Result<Self, Refusal> {
        Ok(Self { next, ..Self::json(value)? })
    }
}

/// Returns the part of an answer that the cursor points to.
pub(super) fn page(
    said: ToolAnswer,
    tool: &str,
    cursor: &Cursor,
    page_chars: usize,
) -> Result<String, Refusal> {
    let ToolAnswer { text, next, began } = said;
    let Cursor { from_char, mark: expected, .. } = cursor;
    if expected.as_ref().is_some_and(|expected| *expected != mark(&text)) {
        return Err(Refusal::of_text(
            "the answer has changed since that page: start again without `cursor`",
        ));
    }
    let Some(start) = byte_of(&text, *from_char) else {
        return Err(Refusal::of_text(
            "`cursor` is past the end of the answer, which may have changed: start again without it",
        ));
    };
    let rest = &text[start..];
    let cursor = match end_of_page(rest, page_chars) {
        Some((n_chars, end)) => {
            let at = from_char + n_chars;
            let place = began.map(|place| format!("/{place}")).unwrap_or_default();
            let cursor = format!("{at}.{}{place}", mark(&text));
            return Ok(with_continuation(&rest[..end], tool, &cursor));
        }
        None => next.map(|next| format!("0/{next}")),
    };
    Ok(match cursor {
        Some(cursor) => with_continuation(rest, tool, &cursor),
        None if start == 0 => text,
        None => rest.to_owned(),
    })
}

/// Returns a short hash that tells answers apart.
pub(super) fn mark(text: &str) -> String {
    // An attacker gains nothing from an answer with the mark of another one, so the hash is not cryptographic.
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    format!("{:08x}", hasher.finish() >> 32)
}

/// Cuts the answer of a tool that takes no cursor. Most of these tools change something, and a second call would repeat the change.
pub(super) fn first_page(said: ToolAnswer, page_chars: usize) -> String {
    match end_of_page(&said.text, page_chars) {
        Some((_, end)) => format!("{}\n\n{REST_NOT_SHOWN}", &said.text[..end]),
        None => said.text,
    }
}

fn with_continuation(page: &str, tool: &str, cursor: &str) -> String {
    let cursor = Value::from(cursor);
    format!(
        "{page}\n\n[There is more: call {tool} again with the same arguments and \"cursor\": {cursor}.]"
    )
}

/// Returns the number of characters on the page, at least one, and the byte at which they end. `None` if all of the text fits.
fn end_of_page(text: &str, page_chars: usize) -> Option<(usize, usize)> {
    let mut n_units = 0;
    let mut places = text.char_indices().enumerate();
    places.find_map(|(n_chars, (at, c))| {
        n_units += c.len_utf16();
        (n_units > page_chars && n_chars > 0).then_some((n_chars, at))
    })
}

/// Returns the byte at which character `n_chars` begins, or the end if the text has exactly so many.
fn byte_of(text: &str, n_chars: usize) -> Option<usize> {
    let ends = std::iter::once(text.len());
    text.char_indices().map(|(at, _)| at).chain(ends).nth(n_chars)
}

/// Escapes characters that reverse a line or are invisible, as JSON escapes: the reader gets the same string.
fn escape_invisible(json: String) -> String {
    let is_hidden = |c: char| matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{7f}'..='\u{9f}' | '\u{e0000}'..='\u{e007f}');
    if !json.contains(is_hidden) {
        return json;
    }
    let mut shown = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        match is_hidden(c) {
            true => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    shown.push_str(&format!("\\u{unit:04x}"));
                }
            }
            false => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_add_up_to_the_answer() {
        let whole: String = (0..30_000).map(|n| format!("{n}é🦀 ")).collect();
        let (mut from, mut read) = (Cursor::default(), String::new());
        loop {
            let said = ToolAnswer { text: whole.clone(), next: None, began: Some("7".to_owned()) };
            let page = page(said, "list", &from, PAGE_CHARS).unwrap();
            assert!(page.encode_utf16().count() <= 50_000);
            let Some((text, rest)) = page.split_once("\n\n[") else {
                read.push_str(&page);
                break;
            };
            read.push_str(text);
            let cursor = rest.split('"').nth(3).unwrap();
            from = cursor_of(cursor);
            assert_eq!(from.place.as_deref(), Some("7"));
        }
        assert_eq!(read, whole);
    }

    fn cursor_of(text: &str) -> Cursor {
        Cursor::read(&Value::from(text)).unwrap()
    }

    #[test]
    fn a_page_of_another_answer_is_refused() {
        let said = |text: &str| ToolAnswer { text: text.to_owned(), ..ToolAnswer::default() };
        let first = page(said("[1,2,3]"), "list", &Cursor::default(), 4).unwrap();
        let next = cursor_of(first.split('"').nth(3).unwrap());
        assert_eq!(page(said("[1,2,3]"), "list", &next, 4).unwrap(), ",3]");
        assert!(page(said("[1,2,4]"), "list", &next, 4).is_err());
    }

    #[test]
    fn a_list_names_its_next_page() {
        let said =
            || ToolAnswer { text: "[1]".to_owned(), next: Some("3".to_owned()), began: None };
        let (top, behind) = (Cursor::default(), cursor_of("4"));
        assert!(page(said(), "list", &top, PAGE_CHARS).unwrap().contains(r#""cursor": "0/3""#));
        assert!(page(said(), "list", &behind, PAGE_CHARS).is_err());
    }

    #[test]
    fn an_answer_without_pages_is_cut_and_names_no_next_call() {
        let said = |text: &str| ToolAnswer { text: text.to_owned(), ..ToolAnswer::default() };
        assert_eq!(first_page(said("éèê"), 3), "éèê");
        assert_eq!(first_page(said("éèêë"), 3), format!("éèê\n\n{REST_NOT_SHOWN}"));
    }

    #[test]
    fn invisible_characters_are_escaped_and_stay_the_same() {
        let text = "a\u{202e}b\u{e0041}c\u{7f}é";
        let said = ToolAnswer::json(&text).unwrap().text;
        assert!(said.is_ascii() || said.contains('é'), "{said}");
        assert!(said.contains("\\u202e") && !said.contains('\u{202e}'));
        assert_eq!(serde_json::from_str::<String>(&said).unwrap(), text);
    }
}
