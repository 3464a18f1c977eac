//! Shortens a long text to its beginning, a reference to the archive, and its end.

use crate::weight::Weight;

/// Share of the beginning, in per cent of the room beside the reference: the beginning tells the subject of a text.
const HEAD_PERCENT: u64 = 60;
/// Largest number of bytes by which a cut moves to end at a blank.
const WORD_REACH_BYTES: usize = 40;

/// Shortens `text` to `max`. Returns `None` if it fits as it is. `seq` is its position in the transcript, where the
/// archive has all of it. If `max` is less than the reference weighs, only the reference is left.
pub fn shorten(text: &str, max: Weight, seq: i64) -> Option<String> {
    if Weight::of_text(text) <= max {
        return None;
    }
    let n_chars = text.chars().count();
    let left = max.saturating_sub(Weight::of_text(&reference(n_chars, seq)));
    let head_max = Weight::from_millitokens(left.millitokens() * HEAD_PERCENT / 100);
    let head = &text[..end_of_head(text, head_max)];
    let tail_max = left.saturating_sub(Weight::of_text(head));
    let behind = &text[head.len()..];
    let tail = &behind[start_of_tail(behind, tail_max)..];
    let n_omitted = n_chars - head.chars().count() - tail.chars().count();
    Some(format!("{head}{}{tail}", reference(n_omitted, seq)))
}

fn reference(n_chars: usize, seq: i64) -> String {
    format!("\n[… {n_chars} characters are in the archive of this session, at place {seq} …]\n")
}

/// Returns the end of the longest beginning within `max`, cut at a blank if one is near.
fn end_of_head(text: &str, max: Weight) -> usize {
    let end = longest(text.len(), |bytes| {
        Weight::of_text(&text[..text.floor_char_boundary(bytes)]) <= max
    });
    let end = text.floor_char_boundary(end);
    let near = text.floor_char_boundary(end.saturating_sub(WORD_REACH_BYTES));
    text[near..end].rfind(char::is_whitespace).map_or(end, |at| near + at)
}

/// Returns the start of the longest end within `max`, at the beginning of a word if one is near.
fn start_of_tail(text: &str, max: Weight) -> usize {
    let bytes = longest(text.len(), |bytes| {
        Weight::of_text(&text[text.ceil_char_boundary(text.len() - bytes)..]) <= max
    });
    let start = text.ceil_char_boundary(text.len() - bytes);
    let near = text.ceil_char_boundary((start + WORD_REACH_BYTES).min(text.len()));
    let blank = text[start..near].char_indices().find(|(_, character)| character.is_whitespace());
    blank.map_or(start, |(at, character)| start + at + character.len_utf8())
}

/// Returns the largest length up to `most` that fits, provided that a shorter one always fits too.
fn longest(most: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut fitting, mut least_too_long) = (0, most + 1);
    while fitting + 1 < least_too_long {
        let middle = fitting.midpoint(least_too_long);
        match fits(middle) {
            true => fitting = middle,
            false => least_too_long = middle,
        }
    }
    fitting
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_text_stays_unchanged() {
        assert_eq!(shorten("Short.", Weight::from_millitokens(10_000), 7), None);
    }

    #[test]
    fn long_text_keeps_its_beginning_and_end_and_names_its_archive() {
        let max = Weight::from_millitokens(120_000);
        for filler in ["The tide comes in. ", "9f2c4e7a", "港の歴史", "🦀🦀", "{\"a\": [1, 2]}"]
        {
            let text = format!("First words. {} Last words.", filler.repeat(400));
            let short = shorten(&text, max, 17).unwrap();
            assert!(Weight::of_text(&short) <= max, "{filler}: {short}");
            assert!(Weight::of_text(&short).millitokens() > 90_000, "{filler}: {short}");
            assert!(short.starts_with("First words.") && short.ends_with("Last words."), "{short}");
            let (head, rest) = short.split_once("\n[… ").unwrap();
            let (n_omitted, rest) = rest.split_once(" characters are in the archive").unwrap();
            let (_, tail) = rest.split_once("at place 17 …]\n").unwrap();
            let n_shown = head.chars().count() + tail.chars().count();
            let n_omitted: usize = n_omitted.parse().unwrap();
            assert_eq!(n_shown + n_omitted, text.chars().count());
            assert!(text.starts_with(head) && text.ends_with(tail));
        }
    }

    #[test]
    fn without_room_only_the_reference_is_left() {
        let short = shorten(&"x".repeat(9_000), Weight::ZERO, 3).unwrap();
        assert!(short.contains("9000 characters are in the archive"), "{short}");
    }
}
