//! What a model answers that is asked for a summary and keeps what it is told to keep.

use dalsegno::context::{compaction::sections::SECTIONS, xml};

/// `None`: it is asked for something else.
pub fn honest(prompt: &str) -> Option<String> {
    let is_question = prompt.contains("Write the record of the conversation above now.");
    is_question.then(|| record(&must_keep(prompt)))
}

/// The lines that the question wants to see again.
pub fn must_keep(prompt: &str) -> Vec<String> {
    let list = prompt.split_once("<must_keep fence=\"").and_then(|(_, list)| list.split_once('>'));
    let list = list.and_then(|(_, list)| list.split_once("</must_keep>"));
    let list = list.map_or(String::new(), |(list, _)| xml::unescape(list).into_owned());
    list.lines().map(str::to_owned).collect()
}

/// All headings, and these lines under the last one.
pub fn record(lines: &[String]) -> String {
    let section = |(title, _): &(&str, &str)| format!("## {title}\nThe series goes on.\n");
    let text: String = SECTIONS.iter().map(section).collect();
    format!("{text}{}", lines.join("\n"))
}
