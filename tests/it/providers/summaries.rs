//! Answers of an honest model to requests for summaries.

use dalsegno::context::{compaction::sections::SECTIONS, xml};

/// Returns a summary; `None` if the prompt requests something else.
pub fn honest(prompt: &str) -> Option<String> {
    let is_question = prompt.contains("Write the record of the conversation above now.");
    is_question.then(|| record(&must_keep(prompt)))
}

/// Returns the lines that the prompt requires in the summary.
pub fn must_keep(prompt: &str) -> Vec<String> {
    let list = prompt.split_once("<must_keep fence=\"").and_then(|(_, list)| list.split_once('>'));
    let list = list.and_then(|(_, list)| list.split_once("</must_keep>"));
    let list = list.map_or(String::new(), |(list, _)| xml::unescape(list).into_owned());
    list.lines().map(str::to_owned).collect()
}

/// Returns a summary with all headings, and these lines under the last one.
pub fn record(lines: &[String]) -> String {
    let section = |(title, _): &(&str, &str)| format!("## {title}\nThe series goes on.\n");
    let text: String = SECTIONS.iter().map(section).collect();
    format!("{text}{}", lines.join("\n"))
}
