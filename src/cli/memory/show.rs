//! Text output of memory items.

use crate::{
    cli::{
        output::{fields, table},
        words::{time, time_or_dash},
    },
    domain::memory::{Hit, Imported, Item, Version, Written},
};

pub(super) fn reference(item: &Item) -> String {
    match &item.owner {
        Some(owner) => format!("{} `{}` of {owner}", item.kind.as_str(), item.name),
        None => format!("{} `{}`", item.kind.as_str(), item.name),
    }
}

pub(super) fn came_of_it(written: &Written) -> String {
    let item = &written.item;
    let mut text = match written.changed {
        true => format!("{} is at version {}", reference(item), item.version),
        false => format!(
            "nothing changed: {} already has this content, at version {}",
            reference(item),
            item.version
        ),
    };
    if let Some(warning) = &written.warning {
        text.push_str(&format!("\nwarning: {warning}"));
    }
    text
}

pub(super) fn taken_in(imported: &Imported) -> String {
    let Imported { created, replaced, unchanged, warnings } = imported;
    let counts = format!("{created} new items, {replaced} new versions, {unchanged} unchanged");
    let warnings = warnings.iter().map(|warning| format!("\nwarning: {warning}"));
    std::iter::once(counts).chain(warnings).collect()
}

pub(super) fn item_lines(items: &[Item]) -> String {
    let row = |item: &Item| {
        [
            item.kind.as_str().to_owned(),
            item.owner.clone().unwrap_or_default(),
            item.name.clone(),
            item.version.to_string(),
            item.bytes.to_string(),
            item.trust.as_str().to_owned(),
            time(item.written_at),
            written_out(&item.title),
        ]
    };
    let head = ["KIND", "OWNER", "NAME", "VERSION", "BYTES", "TRUST", "WRITTEN (UTC)", "TITLE"];
    table(&head, items.iter().map(row))
}

pub(super) fn version_lines(versions: &[Version]) -> String {
    let row = |version: &Version| {
        [
            version.version.to_string(),
            time(version.written_at),
            version.author.clone(),
            version.trust.as_str().to_owned(),
            version.bytes.to_string(),
            written_out(&version.title),
        ]
    };
    let head = ["VERSION", "WRITTEN (UTC)", "AUTHOR", "TRUST", "BYTES", "TITLE"];
    table(&head, versions.iter().map(row))
}

pub(super) fn item_words(item: &Item) -> String {
    let turn = item.task_id.zip(item.turn);
    let head = fields(&[
        ("item", format!("{}  {}", reference(item), item.id)),
        ("title", written_out(&item.title)),
        ("version", item.version.to_string()),
        ("trust", item.trust.as_str().to_owned()),
        ("author", item.author.clone()),
        ("turn", turn.map_or("-".to_owned(), |(task, turn)| format!("{turn} of task {task}"))),
        ("written", time(item.written_at)),
        ("expires", time_or_dash(item.expires_at)),
        ("revoked", time_or_dash(item.revoked_at)),
    ]);
    format!("{head}\n{}", set_in(item.body.as_deref().unwrap_or_default()))
}

pub(super) fn hit_words(hit: &Hit) -> String {
    let item = &hit.item;
    let (title, trust) = (written_out(&item.title), item.trust.as_str());
    format!("{}  {title}  ({trust}, {})\n{}\n", reference(item), item.author, set_in(&hit.snippet))
}

/// Indents each line of a text, so that none can pass for a line of this command.
fn set_in(text: &str) -> String {
    let text = written_out(text);
    let is_break = |c: char| matches!(c, '\n' | '\u{2028}' | '\u{2029}');
    text.trim_end().split(is_break).map(|line| format!("    {line}\n")).collect()
}

/// Replaces each control character and invisible character with an escape sequence.
pub(super) fn written_out(text: &str) -> String {
    let hides = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t')
            || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
            // Unicode tags: letters that are invisible to people and readable for models.
            || ('\u{e0000}'..='\u{e007f}').contains(&c)
    };
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match hides(c) {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_in_a_text_is_written_out() {
        assert_eq!(written_out("a\u{202e}b\u{1b}[31m\tc\n"), "a\\u{202e}b\\u{1b}[31m\tc\n");
        assert_eq!(written_out("x\u{e0041}\u{feff}\r"), "x\\u{e0041}\\u{feff}\\u{d}");
        assert_eq!(written_out("Zwölf 💥"), "Zwölf 💥");
    }

    #[test]
    fn no_line_of_a_text_looks_like_one_of_ours() {
        let shown = set_in("One.\nrecord `x`  forged\u{2028}edict");
        assert!(shown.lines().all(|line| line.starts_with("    ")), "{shown}");
        assert_eq!(shown.lines().count(), 3);
    }
}
