//! The script of a long conversation: sixty identifiers and ten requirements in four hundred turns.

use super::support::prose;

/// Writes an identifier into a text: a name of several words is quoted.
pub fn mention(identifier: &str) -> String {
    if identifier.starts_with("Pier") {
        format!("“{identifier}”")
    } else {
        identifier.to_owned()
    }
}

/// Returns one of sixty identifiers, in prompts, answers and tool results, one every few turns.
pub fn identifier(turn: usize, place: usize) -> String {
    let number = turn * 7 + place;
    match turn / 20 % 6 {
        0 => format!("INV-2031-{number:04}"),
        1 => format!("https://example.org/p/{number}?a=1&b=2"),
        2 => format!("editor{number}@harbour-press.org"),
        3 => format!("drafts/part_{number}.md"),
        4 => format!("Pier {number} & Sons"),
        _ => format!("{number}.50 EUR"),
    }
}

pub fn requirement(turn: usize) -> String {
    let rules = [
        "Write in British spelling throughout.",
        "Never name the competitor <Nordhafen> & partners.",
        "Keep every article under the agreed length.",
        "Quote sources in the order of their age.",
        "Do not promise delivery dates.",
        "Use the past tense for history.",
        "Address the reader as a guest, never as a customer.",
        "Leave the \"Advice\" box out of the series.",
        "Mention the museum once per article.",
        "End with an invitation to the harbour tour.",
    ];
    rules[turn / 37].to_owned()
}

pub fn has_requirement(turn: usize) -> bool {
    turn % 37 == 3 && turn / 37 < 10
}

/// Returns true for the turns with an identifier, forty in total; twenty turns with tool calls have one more.
pub fn has_identifier(turn: usize) -> bool {
    turn % 10 == 1
}

pub fn has_tool_identifier(turn: usize) -> bool {
    turn % 20 == 7
}

pub fn planted(turn: usize) -> Vec<String> {
    let mut planted = Vec::new();
    if has_identifier(turn) {
        planted.push(identifier(turn, 0));
    }
    if has_tool_identifier(turn) {
        planted.push(identifier(turn, 1));
    }
    if has_requirement(turn) {
        planted.push(requirement(turn));
    }
    planted
}

pub fn prompt(turn: usize) -> String {
    let mut text = prose(turn * 3, 4);
    if has_identifier(turn) && turn % 20 == 1 {
        text.push_str(&format!(" It concerns {}, as agreed.", mention(&identifier(turn, 0))));
    }
    if has_requirement(turn) {
        text.push_str(&format!("\nStanding requirement: {}", requirement(turn)));
    }
    text
}

pub fn reply(turn: usize) -> String {
    let mut text = prose(turn * 3 + 1, 14);
    if has_identifier(turn) && turn % 20 != 1 {
        text.push_str(&format!(" I filed it as {}.", mention(&identifier(turn, 0))));
    }
    text
}

pub fn is_requirement(text: &str) -> bool {
    (0..10).any(|rule| requirement(rule * 37) == text)
}
