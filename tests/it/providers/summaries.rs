//! What a model answers that is asked for a summary and keeps what it is told to keep.

use dalsegno::context::{compaction::sections::SECTIONS, xml};

/// `None`: it is asked for something else.
pub fn honest(prompt: &str) -> Option<String> {
    if !prompt.contains("Write the record of the conversation above now.") {
        return None;
    }
    let list = prompt.split_once("<must_keep fence=\"").and_then(|(_, list)| list.split_once('>'));
    let list = list.and_then(|(_, list)| list.split_once("</must_keep>"));
    let list = list.map_or(String::new(), |(list, _)| xml::unescape(list).into_owned());
    let section = |(title, _): &(&str, &str)| format!("## {title}\nThe series goes on.\n");
    let sections: String = SECTIONS.iter().map(section).collect();
    Some(format!("{sections}{list}"))
}
