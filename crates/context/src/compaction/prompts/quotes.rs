//! Exact quotes in a summariser's answer.

use crate::{
    compaction::{requirements::REQUIREMENT_MAX_CHARS, sections},
    xml,
};

/// The heading of the quotes. It is not one of the sections that a summary must have.
pub(in crate::compaction) const QUOTES: &str = "Quotes";

const QUOTE_MIN_CHARS: usize = 8;

/// Separates the quotes from an answer. Returns the summary and the quotes, one per line.
pub(in crate::compaction) fn take_quotes(answer: &str) -> (String, Vec<String>) {
    let (mut rest, mut quotes) = (String::with_capacity(answer.len()), Vec::new());
    let mut is_quote = false;
    for line in answer.split_inclusive('\n') {
        let bare = line.trim();
        if sections::is_heading(bare, QUOTES) {
            is_quote = true;
            continue;
        }
        is_quote = is_quote && !bare.starts_with("```") && !sections::is_any_heading(bare);
        match is_quote {
            true if bare.is_empty() => {}
            true => quotes.push(xml::unescape(bare).into_owned()),
            false => rest.push_str(line),
        }
    }
    (rest, quotes)
}

/// Finds a quote in one of the texts. Returns it with the position of its prompt. List and quotation marks around it do not count.
pub(super) fn find_quote<'a>(
    line: &str,
    sources: &(impl Iterator<Item = (i64, &'a str)> + Clone),
) -> Option<(i64, &'a str)> {
    let line = line.trim_start_matches(['-', '*', '•', ' ']).trim();
    let bare = line.trim_matches(['"', '“', '”', '„', '«', '»']);
    [line, bare].into_iter().find_map(|quote| {
        let n_chars = quote.chars().count();
        if !(QUOTE_MIN_CHARS..=REQUIREMENT_MAX_CHARS).contains(&n_chars) {
            return None;
        }
        let mut found = sources.clone().filter_map(|(seq, text)| {
            text.find(quote).map(|at| (seq, &text[at..at + quote.len()]))
        });
        found.next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_removed_anywhere_in_an_answer() {
        let answer = "```\n## Goal\nwin\n## Quotes\n- \"No puns &amp; no jokes.\"\n\n- Keep it calm.\n## Done\nx\n```";
        let (rest, quotes) = take_quotes(answer);
        assert_eq!(rest, "```\n## Goal\nwin\n## Done\nx\n```");
        assert_eq!(quotes, ["- \"No puns & no jokes.\"", "- Keep it calm."]);
        assert!(take_quotes("## Goal\nwin\n**Quotes:**\n- a\n```").0.ends_with("win\n```"));
    }

    #[test]
    fn only_text_of_a_person_is_a_quote() {
        let sources = [(7, "Hello. No puns, ever. Thanks."), (3, "Keep it calm, please.")];
        let verified = |line| find_quote(line, &sources.into_iter());
        assert_eq!(verified("- \"No puns, ever.\""), Some((7, "No puns, ever.")));
        assert_eq!(verified("Keep it calm"), Some((3, "Keep it calm")));
        assert_eq!(verified("No puns ever."), None);
        assert_eq!(verified("- puns"), None);
    }
}
