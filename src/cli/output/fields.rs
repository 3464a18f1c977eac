//! Names and values as aligned lines, and wrapped text.

use unicode_width::UnicodeWidthStr as _;

use super::{
    style::{style, tint, tint_of_state},
    table::pad,
};

/// Names of fields whose values have the colour of the state.
const STATES: [&str; 2] = ["state", "status"];

/// Formats names and values as aligned lines.
pub(in crate::cli) fn format_fields(fields: &[(&str, String)]) -> String {
    let width = name_width(fields);
    let line =
        |(name, value): &(&str, String)| format!("{}  {}\n", pad(name, width), tinted(name, value));
    fields.iter().map(line).collect()
}

/// Formats names and values as aligned lines, and wraps long values.
pub(in crate::cli) fn format_wrapped_fields(fields: &[(&str, String)]) -> String {
    let width = name_width(fields);
    let line = |(name, value): &(&str, String)| {
        format_wrapped(&format!("{}  ", pad(name, width)), &tinted(name, value))
    };
    fields.iter().map(line).collect()
}

fn name_width(fields: &[(&str, String)]) -> usize {
    fields.iter().map(|(name, _)| name.width()).max().unwrap_or(0)
}

/// Adds the colour to a state of one word; with a reason behind it, only to the state.
fn tinted(name: &str, value: &str) -> String {
    let end = value.find([' ', ':', ',']).unwrap_or(value.len());
    let colour = tint_of_state(value).filter(|_| style().is_coloured() && STATES.contains(&name));
    match colour {
        Some(colour) => format!("{}{}", tint(&value[..end], colour), &value[end..]),
        None => value.to_owned(),
    }
}

/// Formats a text behind `prefix`. Lines break between words and are indented below the prefix.
pub(in crate::cli) fn format_wrapped(prefix: &str, text: &str) -> String {
    wrap(prefix, text, style().text_columns())
}

fn wrap(prefix: &str, text: &str, columns: usize) -> String {
    let indent = prefix.width();
    let (mut lines, mut column) = (prefix.to_owned(), indent);
    for word in text.split_whitespace() {
        let width = word.width();
        if column > indent && column + 1 + width > columns {
            lines.push_str(&format!("\n{}", " ".repeat(indent)));
            column = indent;
        } else if column > indent {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += width;
    }
    format!("{}\n", lines.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_wrapped_below_their_beginning() {
        let text = wrap("error  ", &"eleven char ".repeat(8), 80);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("error  eleven") && lines[1].starts_with("       eleven"));
        assert!(lines.iter().all(|line| line.len() <= 80), "{text}");
        assert_eq!(wrap("a  ", "", 80), "a\n");
        assert!(wrap("", &"春の ".repeat(20), 20).lines().all(|line| line.width() <= 20));
    }
}
