//! Summaries by extraction: sentences of the conversation, sorted into the sections that were asked for.
//!
//! The honest one keeps every pinned identifier with its sentence, and as much else as leaves the result well below its input. The others
//! imitate a careless model, for the code that has to notice.

use super::{config::SummaryMode, tokens};
use crate::providers::Request;

/// A summary in the making: the entries of each section.
struct Draft<'a> {
    sections: &'a [String],
    entries: Vec<Vec<String>>,
    n_tokens: u32,
}

/// Words that assign a sentence to a section, by a part of the section's name. The first match decides.
const MARKERS: [(&str, &[&str]); 8] = [
    ("requirement", &["must", "never", "always", "require", "do not", "only"]),
    ("rule", &["must", "never", "always", "require", "do not", "only"]),
    ("decision", &["decided", "decision", "because", "chose", "agreed"]),
    ("dead", &["failed", "does not work", "rejected", "abandoned"]),
    ("done", &["done", "finished", "delivered", "completed", "published"]),
    ("open", &["todo", "open", "next", "pending", "question"]),
    ("goal", &["goal", "aim", "brief", "audience", "campaign"]),
    ("hint", &["http", "file", "look up"]),
];

const SIGNATURE: &str = "(summarised by the simulated model)";
/// Maximum length of an entry. A longer sentence is cut down to the part around its identifier.
const MAX_ENTRY_CHARS: usize = 240;
/// Tokens of the dash before an entry, and of the marks before a section's name with the text of an empty section.
const PER_ENTRY: u32 = 1;
const PER_SECTION: u32 = 4;
const NOTHING: &str = "None.";
/// Maximum size of a summary in percent of its input, apart from pinned entries.
const WORTH_PERCENT: u32 = 40;
/// Percentage of the available tokens that it fills, apart from pinned entries: the caller counts tokens in another way.
const FILL_PERCENT: u32 = 60;

pub(super) fn write(
    mode: SummaryMode,
    request: &Request,
    sections: &[String],
    pinned: &[String],
    max_tokens: u32,
) -> String {
    let material: Vec<String> =
        request.messages.iter().map(|message| material(&message.text)).collect();
    let sentences = sentences(&material);
    match mode {
        SummaryMode::Honest => honest(&sentences, sections, pinned, max_tokens),
        SummaryMode::DropsIdentifiers => {
            let vague: Vec<String> = sentences.iter().map(|text| vague(text, pinned)).collect();
            let vague: Vec<&str> = vague.iter().map(String::as_str).collect();
            honest(&vague, sections, &[], max_tokens)
        }
        SummaryMode::Empty => String::new(),
        SummaryMode::Bloated => bloated(&sentences, sections, pinned),
    }
}

fn honest(sentences: &[&str], sections: &[String], pinned: &[String], max_tokens: u32) -> String {
    let n_given = sentences.iter().fold(0, |n, text| tokens::count(text).saturating_add(n));
    let worth = u32::try_from(u64::from(n_given) * u64::from(WORTH_PERCENT) / 100);
    let filled = u64::from(max_tokens) * u64::from(FILL_PERCENT) / 100;
    let target = worth.unwrap_or(u32::MAX).min(u32::try_from(filled).unwrap_or(u32::MAX));
    let mut draft = Draft::new(sections);
    for (at, identifier) in pinned.iter().enumerate() {
        if draft.holds(identifier) {
            continue;
        }
        // The identifiers that are still to come always have to fit, at least without their sentences.
        let bare: u32 = pinned[at..].iter().map(|id| tokens::count(id) + PER_ENTRY).sum();
        let sentence = sentences.iter().find(|text| mentions(text, identifier));
        let around = sentence.map(|text| around(text, identifier));
        let around = around.filter(|text| mentions(text, identifier));
        match around.filter(|text| draft.has_room(text, target.saturating_sub(bare))) {
            Some(text) => draft.add(&text),
            None => draft.add(identifier),
        }
    }
    for sentence in sentences.iter().rev() {
        let short = sentence.chars().count() <= MAX_ENTRY_CHARS;
        let is_listed = pinned.iter().any(|identifier| identifier == sentence);
        if short && !is_listed && draft.has_room(sentence, target) && !draft.has(sentence) {
            draft.add(sentence);
        }
    }
    draft.text()
}

fn bloated(sentences: &[&str], sections: &[String], pinned: &[String]) -> String {
    let mut draft = Draft::new(sections);
    for identifier in pinned {
        draft.add(identifier);
    }
    for sentence in sentences.iter().chain(sentences) {
        draft.add(&format!("To say it in full: {sentence}"));
    }
    draft.text()
}

impl<'a> Draft<'a> {
    fn new(sections: &'a [String]) -> Self {
        let names = sections.iter().map(|name| tokens::count(name) + PER_SECTION);
        Self {
            sections,
            entries: vec![Vec::new(); sections.len()],
            n_tokens: names.sum::<u32>() + tokens::count(SIGNATURE) + PER_ENTRY,
        }
    }

    fn has_room(&self, text: &str, max_tokens: u32) -> bool {
        self.n_tokens + tokens::count(text) + PER_ENTRY <= max_tokens
    }

    fn has(&self, text: &str) -> bool {
        self.entries.iter().flatten().any(|entry| entry == text)
    }

    fn holds(&self, identifier: &str) -> bool {
        self.entries.iter().flatten().any(|entry| mentions(entry, identifier))
    }

    fn add(&mut self, text: &str) {
        let section = section_of(text, self.sections);
        if let Some(entries) = self.entries.get_mut(section) {
            entries.push(text.to_owned());
            self.n_tokens += tokens::count(text) + PER_ENTRY;
        }
    }

    fn text(mut self) -> String {
        if let Some(last) = self.entries.last_mut() {
            last.push(SIGNATURE.to_owned());
        }
        let mut text = String::new();
        for (name, entries) in self.sections.iter().zip(self.entries) {
            text.push_str(&format!("## {name}\n"));
            if entries.is_empty() {
                text.push_str(&format!("{NOTHING}\n"));
            }
            for entry in entries {
                text.push_str(&format!("- {entry}\n"));
            }
        }
        text.truncate(text.trim_end().len());
        text
    }
}

/// Returns the text to summarise: the text inside of the elements of a prompt, if it has any. Foreign text is escaped there, so everything
/// that looks like a tag is one.
fn material(prompt: &str) -> String {
    let lines: Vec<&str> = prompt.lines().collect();
    // The text after the last element is the request itself.
    let end = lines.iter().rposition(|line| line.starts_with("</"));
    let Some(end) = end else { return prompt.to_owned() };
    let text: Vec<String> = lines[..end].iter().map(|line| without_tags(line)).collect();
    text.join("\n").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

fn without_tags(line: &str) -> String {
    let mut parts = line.split('<');
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str(part.split_once('>').map_or("", |(_, after)| after));
    }
    kept
}

/// Returns the sentences of the text to summarise, in order. Of an earlier summary, returns its entries.
fn sentences(material: &[String]) -> Vec<&str> {
    let lines = material.iter().flat_map(|text| text.lines());
    let lines = lines.filter(|line| !line.starts_with("## "));
    let lines = lines.map(|line| line.strip_prefix("- ").unwrap_or(line));
    let sentences = lines.flat_map(|line| line.split_inclusive(". ")).map(str::trim);
    sentences.filter(|text| !["", NOTHING, SIGNATURE].contains(text)).collect()
}

fn section_of(text: &str, sections: &[String]) -> usize {
    let text = text.to_lowercase();
    let named = |part: &str| sections.iter().position(|name| name.to_lowercase().contains(part));
    let marked = MARKERS.iter().find_map(|(part, words)| {
        let section = named(part)?;
        words.iter().any(|word| text.contains(word)).then_some(section)
    });
    let facts = || named("fact").or_else(|| named("identifier"));
    marked.or_else(facts).unwrap_or(sections.len().saturating_sub(1))
}

/// Returns true if the identifier stands there as a whole: `INV-1` is not in `INV-17`.
fn mentions(text: &str, identifier: &str) -> bool {
    let joins = |outer: Option<char>, inner: Option<char>| {
        outer.is_some_and(char::is_alphanumeric) && inner.is_some_and(char::is_alphanumeric)
    };
    text.match_indices(identifier).any(|(at, found)| {
        let (before, after) = (&text[..at], &text[at + found.len()..]);
        !joins(before.chars().next_back(), found.chars().next())
            && !joins(after.chars().next(), found.chars().next_back())
    })
}

/// Returns the part of a long sentence around its identifier.
fn around(sentence: &str, identifier: &str) -> String {
    if sentence.chars().count() <= MAX_ENTRY_CHARS {
        return sentence.to_owned();
    }
    let (before, after) = sentence.split_once(identifier).unwrap_or((sentence, ""));
    let n_chars = MAX_ENTRY_CHARS.saturating_sub(identifier.chars().count()) / 2;
    let start = before.char_indices().rev().take(n_chars).last().map_or(before.len(), |(at, _)| at);
    let after: String = after.chars().take(n_chars).collect();
    format!("{}{identifier}{after}", &before[start..])
}

/// Returns the sentence with vague words in place of its identifiers.
fn vague(sentence: &str, pinned: &[String]) -> String {
    let pinned = pinned.iter().filter(|identifier| !identifier.is_empty());
    pinned.fold(sentence.to_owned(), |text, identifier| text.replace(identifier, "the item"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        providers::{Options, Purpose, Timeouts},
        transcript::{Message, Role},
    };

    fn sections() -> Vec<String> {
        ["goal", "hard_requirements", "decisions", "done", "open", "facts"]
            .map(str::to_owned)
            .to_vec()
    }

    fn conversation(n_turns: usize) -> (Request, Vec<String>) {
        let pinned: Vec<String> = (0..n_turns).map(|n| format!("INV-{:04}", n * 37)).collect();
        let text = |n: usize, id: &String| match n % 3 {
            0 => {
                format!("The invoice {id} must never be sent twice. It is a long story otherwise.")
            }
            1 => {
                format!("We decided for {id} because of the price. Nothing else was said that day.")
            }
            _ => format!("{}{id}{}", "and so on ".repeat(60), " and on".repeat(60)),
        };
        let message = |(n, id)| {
            Message::new(if n % 2 == 0 { Role::User } else { Role::Assistant }, text(n, id))
        };
        let request = Request {
            turn: "t".to_owned(),
            purpose: Purpose::Turn,
            model: "sim".to_owned(),
            system: String::new(),
            messages: pinned.iter().enumerate().map(message).map(Arc::new).collect(),
            tools: Vec::new(),
            window_tokens: 8192,
            reserve_tokens: 1024,
            estimated_prompt_tokens: None,
            options: Options::default(),
            timeouts: Timeouts::default(),
            conversation: None,
            credential: None,
        };
        (request, pinned)
    }

    fn summary(mode: SummaryMode, n_turns: usize, max_tokens: u32) -> (String, Vec<String>, u32) {
        let (request, pinned) = conversation(n_turns);
        let text = write(mode, &request, &sections(), &pinned, max_tokens);
        let given = request.messages.iter().map(|message| tokens::count(&message.text)).sum();
        (text, pinned, given)
    }

    /// Returns the text under a heading.
    fn body<'a>(text: &'a str, section: &str) -> &'a str {
        let (_, after) = text.split_once(&format!("## {section}\n")).unwrap();
        after.split("\n## ").next().unwrap()
    }

    #[test]
    fn only_text_inside_elements_is_summarised() {
        let prompt = "<summary_so_far fence=\"1\">## Goal\n- Ten parts.</summary_so_far>\n\n\
                      <conversation fence=\"1\">\n<message from=\"person\">It is &lt;INV-7&gt; &amp;amp; more.</message>\n\
                      </conversation>\n\nWrite the record now.";
        let material = [material(prompt)];
        assert_eq!(sentences(&material), ["Ten parts.", "It is <INV-7> &amp; more."]);
    }

    #[test]
    fn an_honest_summary_keeps_pins_and_saves_tokens() {
        for n_turns in [6, 60, 300] {
            let (text, pinned, given) = summary(SummaryMode::Honest, n_turns, 4_096);
            for section in sections() {
                assert!(!body(&text, &section).is_empty(), "{section}");
            }
            for identifier in pinned {
                assert!(text.contains(&identifier), "{identifier} of {n_turns}");
            }
            assert!(tokens::count(&text) <= 4_096);
            assert!(tokens::count(&text) * 2 < given, "{n_turns} turns");
        }
    }

    #[test]
    fn sentences_are_put_into_their_sections() {
        let (text, ..) = summary(SummaryMode::Honest, 6, 4_096);
        assert!(body(&text, "hard_requirements").contains("INV-0000 must never"));
        assert!(body(&text, "decisions").contains("We decided for INV-0037"));
    }

    #[test]
    fn dishonest_summaries_have_the_requested_fault() {
        let (text, pinned, _) = summary(SummaryMode::DropsIdentifiers, 60, 4_096);
        assert!(sections().iter().all(|section| !body(&text, section).is_empty()));
        assert!(!pinned.iter().any(|identifier| text.contains(identifier)));
        assert_eq!(summary(SummaryMode::Empty, 60, 4_096).0, "");
        let (text, _, given) = summary(SummaryMode::Bloated, 60, 4_096);
        assert!(tokens::count(&text) > given);
    }
}
