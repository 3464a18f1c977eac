//! Lossless escaping.
//!
//! In text `& < >` become entities; in attribute values also `" '` and every line break. Characters that a tokeniser
//! sees but a reader does not (C0 and C1 controls, bidirectional overrides, tag characters, non-characters) become
//! numeric references in both. Quotes stay as they are in text: they have no meaning there, and `&apos;` in every other
//! sentence would cost tokens and be imitated by the model.

use std::borrow::Cow;

pub fn escape_text(text: &str) -> Cow<'_, str> {
    if next_special(text.as_bytes(), 0) == text.len() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    push_text(&mut out, text);
    Cow::Owned(out)
}

/// Undoes both escapes. Unknown references stay as they are.
pub fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        match reference(rest) {
            Some((character, length)) => {
                out.push(character);
                rest = &rest[length..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Escapes text. Copies whole stretches of harmless bytes, because a long history is escaped on every call.
pub(super) fn push_text(out: &mut String, text: &str) {
    let mut from = 0;
    while from < text.len() {
        let at = next_special(text.as_bytes(), from);
        out.push_str(&text[from..at]);
        from = at;
        // `at` is a leading byte or the end, so this is a character boundary.
        if let Some(character) = text[at..].chars().next() {
            push_character(out, character);
            from += character.len_utf8();
        }
    }
}

pub(super) fn push_attribute(out: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' | '\t' => push_reference(out, character),
            other => push_character(out, other),
        }
    }
}

fn next_special(bytes: &[u8], from: usize) -> usize {
    bytes[from..]
        .iter()
        .position(|byte| SPECIAL[*byte as usize])
        .map_or(bytes.len(), |offset| from + offset)
}

/// Bytes that are, or may begin, a character that has to be escaped.
static SPECIAL: [bool; 256] = special_bytes();

const fn special_bytes() -> [bool; 256] {
    let mut special = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        special[byte] = match byte as u8 {
            b'\n' | b'\t' => false,
            b'&' | b'<' | b'>' | 0x00..=0x1f | 0x7f => true,
            // C1 controls; bidirectional and line separators; the byte order mark and non-characters; tags.
            0xc2 | 0xe2 | 0xef | 0xf0..=0xff => true,
            _ => false,
        };
        byte += 1;
    }
    special
}

fn push_character(out: &mut String, character: char) {
    match character {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        other if is_invisible(other) => push_reference(out, other),
        other => out.push(other),
    }
}

fn push_reference(out: &mut String, character: char) {
    out.push_str("&#x");
    out.push_str(&format!("{:X}", character as u32));
    out.push(';');
}

fn is_invisible(character: char) -> bool {
    let code = character as u32;
    (character.is_control() && character != '\n' && character != '\t')
        || matches!(
            character,
            '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
        )
        || code & 0xfffe == 0xfffe
}

/// Returns the character that `text` begins with as a reference, and the reference's length in bytes.
fn reference(text: &str) -> Option<(char, usize)> {
    // The longest reference of ours is `&#x10FFFF;`.
    let end = text.bytes().take(12).position(|byte| byte == b';')?;
    let character = match &text[1..end] {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        numeric => char::from_u32(u32::from_str_radix(numeric.strip_prefix("#x")?, 16).ok()?)?,
    };
    Some((character, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_invisible_characters_become_references() {
        assert_eq!(escape_text("a<b & c>d 'q' \"r\""), "a&lt;b &amp; c&gt;d 'q' \"r\"");
        assert_eq!(escape_text("\u{0}\r\u{202e}\u{e0041}"), "&#x0;&#xD;&#x202E;&#xE0041;");
        let mut attribute = String::new();
        push_attribute(&mut attribute, "a'b\"\n");
        assert_eq!(attribute, "a&apos;b&quot;&#xA;");
        assert_eq!(escape_text("plain — text, 港 👩‍💻"), "plain — text, 港 👩‍💻");
        assert!(matches!(escape_text("nothing to do"), Cow::Borrowed(_)));
    }

    #[test]
    fn text_that_is_not_a_reference_stays_unchanged() {
        for text in ["&", "&&amp", "&nbsp;", "&#xD800;", "&#x;", "a & b; c"] {
            assert_eq!(unescape(text), text);
        }
    }
}
