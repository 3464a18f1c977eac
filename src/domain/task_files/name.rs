//! Names of files: relative paths that are safe on every system that stores them again.

pub(super) const MAX_BYTES: usize = 255;
/// Characters that a shown name has at most.
const SHOWN_MAX_CHARS: usize = 200;

/// Reasons why a name is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("its name is not valid UTF-8")]
    NotText,
    #[error("its name has {0} bytes, more than {MAX_BYTES}")]
    TooLong(usize),
    #[error("its name contains the character U+{:04X}, which is not allowed in names", u32::from(*.0))]
    Character(char),
    #[error("its name is not a path below the folder `out`")]
    Outside,
}

/// Checks a path with `/` between its parts, and returns it as text.
pub fn check(name: &[u8]) -> Result<&str, NameError> {
    let text = std::str::from_utf8(name).map_err(|_| NameError::NotText)?;
    if text.len() > MAX_BYTES {
        return Err(NameError::TooLong(text.len()));
    }
    if let Some(other) = text.chars().find(|char| is_refused(*char)) {
        return Err(NameError::Character(other));
    }
    match text.split('/').any(|part| matches!(part, "" | "." | "..")) {
        true => Err(NameError::Outside),
        false => Ok(text),
    }
}

/// Returns a name that was refused as it can be stored and printed.
pub fn printable(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    let mut shown = String::new();
    for char in text.chars().take(SHOWN_MAX_CHARS) {
        match is_refused(char) {
            true => shown.extend(char.escape_unicode()),
            false => shown.push(char),
        }
    }
    let shown: String = shown.chars().take(SHOWN_MAX_CHARS).collect();
    if shown.is_empty() { "out".to_owned() } else { shown }
}

/// Controls, the separator of Windows, and marks that change the direction of text, with which a name can pretend to have another ending.
fn is_refused(char: char) -> bool {
    char.is_control()
        || char == '\\'
        || matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_the_folder_are_names() {
        for name in ["report.txt", "charts/a.png", "Übersicht 2.pdf", ".hidden", "...", "a..b"] {
            assert_eq!(check(name.as_bytes()), Ok(name));
        }
        assert!(check("x".repeat(MAX_BYTES).as_bytes()).is_ok());
    }

    #[test]
    fn hostile_names_are_refused() {
        use NameError::{Character, NotText, Outside, TooLong};
        for name in ["", "/etc/passwd", "../x", "a/../../x", "./x", "a//b", "a/", "..", "."] {
            assert_eq!(check(name.as_bytes()), Err(Outside), "{name}");
        }
        for (name, char) in
            [("a\nb", '\n'), ("a\0", '\0'), ("..\\x", '\\'), ("a\u{202e}txt", '\u{202e}')]
        {
            assert_eq!(check(name.as_bytes()), Err(Character(char)));
        }
        assert_eq!(check(b"\xff.txt"), Err(NotText));
        assert_eq!(check("x".repeat(300).as_bytes()), Err(TooLong(300)));
        assert_eq!(
            Character('\n').to_string(),
            "its name contains the character U+000A, which is not allowed in names"
        );
    }

    #[test]
    fn refused_names_are_printed_on_one_line() {
        assert_eq!(printable(b"a\nb\xff"), "a\\u{a}b\u{fffd}");
        assert_eq!(printable(b""), "out");
        assert_eq!(printable("x".repeat(300).as_bytes()).len(), SHOWN_MAX_CHARS);
    }
}
