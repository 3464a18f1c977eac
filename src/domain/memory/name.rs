//! Rules for names, owners, titles and texts of items.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{BODY_MAX_BYTES, Config, Error, TITLE_MAX_CHARS};
use crate::domain::{agents, text};

pub(super) const MAX_CHARS: usize = 64;
/// Longest part of an invalid name that an error message quotes.
const SHOWN_CHARS: usize = 80;

/// Checks a name, which becomes part of paths, addresses and front matter.
pub(super) fn check(name: &str) -> Result<(), Error> {
    let advice = match name {
        _ if agents::is_name(name) => return Ok(()),
        "" => "write one",
        _ if name.chars().count() > MAX_CHARS => "it is longer than 64 characters",
        _ if name.contains(['/', '\\', '.']) => "slashes and dots are not allowed",
        _ if name.starts_with(['-', '_']) => "it must begin with a letter or a digit",
        _ => "it may have only letters a to z, digits, - and _",
    };
    Err(Error::Name { name: name.chars().take(SHOWN_CHARS).collect(), advice })
}

/// Cleans an unchecked name for an error message.
pub(super) fn clean_name(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS).collect()
}

/// Checks the owner of a journal, which becomes a folder name in an export.
pub(super) fn check_owner(owner: &str) -> Result<(), Error> {
    let (agent, instance) = owner.split_once('/').unwrap_or((owner, agents::MAIN));
    match agents::is_name(agent) && agents::is_name(instance) {
        true => Ok(()),
        false => Err(Error::Name {
            name: owner.chars().take(SHOWN_CHARS).collect(),
            advice: "the owner of a journal must be an agent, such as `curator` or `curator/2`",
        }),
    }
}

/// Generates the name of an unnamed entry: its time and enough of its id to be unique.
pub(super) fn of_entry(id: Uuid, now: DateTime<Utc>) -> String {
    let id = id.simple().to_string();
    format!("{}-{}", now.format("%Y%m%d-%H%M%S"), &id[id.len() - 6..])
}

/// Checks a title. It must be one line, because lists, front matter and the texts for agents show it in one.
pub(super) fn check_title(title: &str) -> Result<(), Error> {
    text::check("title", title, TITLE_MAX_CHARS * 4)?;
    match title {
        _ if title.chars().count() > TITLE_MAX_CHARS => {
            Err(Error::Title("has more than 200 characters"))
        }
        _ if title.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) => {
            Err(Error::Title("has a line break or a control character in it"))
        }
        _ => Ok(()),
    }
}

pub(super) fn check_body(body: &str, config: &Config) -> Result<(), Error> {
    Ok(text::check("text of the item", body, config.item_max_bytes.min(BODY_MAX_BYTES))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_path_parts_or_hidden_characters_is_refused_with_advice() {
        for fine in ["tone-of-voice", "a", "2026_plan", &"x".repeat(64)] {
            assert!(check(fine).is_ok(), "{fine}");
        }
        for (name, advice) in [
            ("", "write one"),
            ("../../etc/passwd", "slashes and dots"),
            ("a.md", "slashes and dots"),
            ("c:\\x", "slashes and dots"),
            ("-rf", "must begin with a letter"),
            ("Tone", "letters a to z"),
            ("a b", "letters a to z"),
            ("a\0b", "letters a to z"),
            ("a'; drop table x; --", "letters a to z"),
            ("e\u{202e}x", "letters a to z"),
            (&"x".repeat(65), "longer than 64"),
        ] {
            let said = check(name).unwrap_err().to_string();
            assert!(said.contains(advice), "{said}");
            assert!(!said.contains(['\0', '\u{202e}']), "{said}");
        }
        assert!(check(&"ü".repeat(1_000_000)).unwrap_err().to_string().len() < 1_000);
    }

    #[test]
    fn a_title_is_one_line() {
        for fine in ["The tone", "Zwölf Boxkämpfer", "a\u{202e}b"] {
            assert!(check_title(fine).is_ok(), "{fine}");
        }
        for wrong in ["", "  ", "a\nb", "a\u{2028}b", "a\0", "\u{1b}[31m", &"x".repeat(201)] {
            assert!(check_title(wrong).is_err(), "{wrong:?}");
        }
    }
}
