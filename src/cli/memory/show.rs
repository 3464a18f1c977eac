//! Text output of memory items.

use crate::{
    cli::{
        output::{Table, format_fields, format_table, time_cell},
        words::{time, time_or_dash},
    },
    domain::{
        audit::describe_label,
        memory::{Hit, ImportResult, Item, PublishResult, Version},
    },
};

pub(super) fn reference(item: &Item) -> String {
    match &item.owner {
        Some(owner) => format!("{} `{}` of {owner}", item.kind.as_str(), item.name),
        None => format!("{} `{}`", item.kind.as_str(), item.name),
    }
}

pub(super) fn format_written(written: &PublishResult) -> String {
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

pub(super) fn format_imported(imported: &ImportResult) -> String {
    let ImportResult { created, replaced, unchanged, warnings } = imported;
    let counts = format!("{created} new items, {replaced} new versions, {unchanged} unchanged");
    let warnings = warnings.iter().map(|warning| format!("\nwarning: {warning}"));
    std::iter::once(counts).chain(warnings).collect()
}

pub(super) fn format_items(items: &[Item]) -> String {
    let row = |item: &Item| {
        [
            item.kind.as_str().to_owned(),
            item.owner.clone().unwrap_or_default(),
            item.name.clone(),
            item.version.to_string(),
            item.bytes.to_string(),
            item.trust.as_str().to_owned(),
            time_cell(item.written_at),
            escape_invisible(&item.title),
        ]
    };
    let head = ["KIND", "OWNER", "NAME", "VERSION", "BYTES", "TRUST", "WRITTEN (UTC)", "TITLE"];
    Table::new(&head).leaves_out(&["BYTES", "OWNER"]).format(items.iter().map(row))
}

pub(super) fn format_versions(versions: &[Version]) -> String {
    let row = |version: &Version| {
        [
            version.version.to_string(),
            time_cell(version.written_at),
            describe_label(&version.author),
            version.trust.as_str().to_owned(),
            version.bytes.to_string(),
            escape_invisible(&version.title),
        ]
    };
    let head = ["VERSION", "WRITTEN (UTC)", "AUTHOR", "TRUST", "BYTES", "TITLE"];
    format_table(&head, versions.iter().map(row))
}

pub(super) fn format_item(item: &Item) -> String {
    let turn = item.task_id.zip(item.turn);
    let head = format_fields(&[
        ("item", format!("{}  {}", reference(item), item.id)),
        ("title", escape_invisible(&item.title)),
        ("version", item.version.to_string()),
        ("trust", item.trust.as_str().to_owned()),
        ("author", describe_label(&item.author)),
        ("turn", turn.map_or("-".to_owned(), |(task, turn)| format!("{turn} of task {task}"))),
        ("written", time(item.written_at)),
        ("expires", time_or_dash(item.expires_at)),
        ("revoked", time_or_dash(item.revoked_at)),
    ]);
    format!("{head}\n{}", indent(item.body.as_deref().unwrap_or_default()))
}

pub(super) fn format_hit(hit: &Hit) -> String {
    let item = &hit.item;
    let (title, trust) = (escape_invisible(&item.title), item.trust.as_str());
    let author = describe_label(&item.author);
    format!("{}  {title}  ({trust}, {author})\n{}\n", reference(item), indent(&hit.snippet))
}

/// Indents each line of a text, so that none can pass for a line of this command.
fn indent(text: &str) -> String {
    let text = escape_invisible(text);
    let is_break = |c: char| matches!(c, '\n' | '\u{2028}' | '\u{2029}');
    text.trim_end().split(is_break).map(|line| format!("    {line}\n")).collect()
}

/// Replaces each control character and invisible character with an escape sequence.
pub(super) fn escape_invisible(text: &str) -> String {
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
    fn hidden_characters_are_printed_as_escapes() {
        assert_eq!(escape_invisible("a\u{202e}b\u{1b}[31m\tc\n"), "a\\u{202e}b\\u{1b}[31m\tc\n");
        assert_eq!(escape_invisible("x\u{e0041}\u{feff}\r"), "x\\u{e0041}\\u{feff}\\u{d}");
        assert_eq!(escape_invisible("Zwölf 💥"), "Zwölf 💥");
    }

    #[test]
    fn no_line_of_a_text_imitates_output_of_the_command() {
        let shown = indent("One.\nrecord `x`  forged\u{2028}edict");
        assert!(shown.lines().all(|line| line.starts_with("    ")), "{shown}");
        assert_eq!(shown.lines().count(), 3);
    }
}
