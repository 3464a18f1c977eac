//! Text output of archives.

use super::show::{format_message, serialised_name};
use crate::{
    cli::{
        output::{format_table, time_cell},
        words::time,
    },
    domain::compactions::{Archive, OpenedArchive},
};

pub(super) fn format_archives(archives: &[Archive]) -> String {
    let row = |archive: &Archive| {
        [
            archive.number.to_string(),
            serialised_name(archive.trigger),
            archive.node.clone().unwrap_or_else(|| "-".to_owned()),
            format!("{} to {}", archive.from_seq, archive.to_seq),
            archive.tokens_before.to_string(),
            archive.tokens_after.map_or_else(|| "-".to_owned(), |tokens| tokens.to_string()),
            time_cell(archive.compacted_at),
            archive.undone_at.map_or_else(String::new, |at| format!("undone {}", time(at))),
        ]
    };
    let head = ["ARCHIVE", "TRIGGER", "NODE", "PLACES", "TOKENS", "AFTER", "MADE (UTC)", ""];
    format_table(&head, archives.iter().map(row))
}

pub(super) fn format_archive(opened: &OpenedArchive) -> String {
    let OpenedArchive { archive, replacement, messages, next } = opened;
    let mut text: String = messages.iter().map(format_message).collect();
    if let Some(next) = next {
        text.push_str(&format!("for more, use `--after {next}`\n\n"));
    }
    text.push_str(&format!("Replaces messages {} to {}:\n", archive.from_seq, archive.to_seq));
    if let Some(flow) = &replacement.flow {
        text.push_str(&format!("{flow:#}\n"));
    }
    text.push_str(&format!("{}\n", replacement.summary.trim_end()));
    text
}
