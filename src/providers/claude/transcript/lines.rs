//! Lines of a transcript, parsed as little as possible: the CLI's bytes are kept as they are.

use std::borrow::Cow;

use serde::Deserialize;
use uuid::Uuid;

/// Returns true if the file has a message with this id. A line that only mentions the id does not count.
pub(in crate::providers::claude) fn has_message(bytes: &[u8], uuid: Uuid) -> bool {
    let name = uuid.to_string();
    // From the end, because the message is new.
    bytes.rsplit(|byte| *byte == b'\n').any(|line| {
        let mentions = line.windows(name.len()).any(|window| window == name.as_bytes());
        mentions && serde_json::from_slice::<LineId>(line).is_ok_and(|line| line.uuid == Some(uuid))
    })
}

/// Removes torn lines: those that are not JSON or have no line end. The CLI skips them, but appends its next line to one without an end.
pub(in crate::providers::claude) fn repair(bytes: &[u8]) -> Cow<'_, [u8]> {
    if bytes.is_empty() || bytes.ends_with(b"\n") && lines(bytes).all(is_whole) {
        return Cow::Borrowed(bytes);
    }
    let whole = lines(bytes).filter(|line| line.ends_with(b"\n") && is_whole(line));
    Cow::Owned(whole.flatten().copied().collect())
}

/// Returns the lines with their ends.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n')
}

fn is_whole(line: &[u8]) -> bool {
    serde_json::from_slice::<LineId>(line).is_ok()
}

#[derive(Deserialize)]
struct LineId {
    #[serde(default)]
    uuid: Option<Uuid>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "00000000-0000-0000-0000-00000000000a";

    #[test]
    fn only_a_lines_own_id_counts() {
        let id = ID.parse().unwrap();
        let line = format!("{{\"uuid\":\"{ID}\"}}\n");
        let mention = format!("{{\"parentUuid\":\"{ID}\",\"leafUuid\":\"{ID}\"}}\n");
        assert!(has_message(format!("{line}{mention}").as_bytes(), id));
        assert!(!has_message(mention.as_bytes(), id));
        assert!(!has_message(&line.as_bytes()[..line.len() - 3], id));
        assert!(!has_message(b"", id));
    }

    #[test]
    fn torn_lines_are_removed_and_the_rest_stays() {
        let whole: &[u8] = b"{\"a\": 1}\n{\"b\":2}\n";
        assert!(matches!(repair(whole), Cow::Borrowed(_)));
        let torn: &[u8] = b"{\"a\": 1}\n{\"b\":{\"c\"{\"d\":3}\n\0\0\0\n{\"b\":2}\n{\"e\":5}";
        assert_eq!(&*repair(torn), whole);
        assert_eq!(&*repair(b"{\"cut"), b"");
        assert_eq!(&*repair(b""), b"");
    }

    #[test]
    fn lines_before_a_tear_stay_at_any_position() {
        let bytes = b"{\"a\":\"\xc3\xbc\"}\n{\"b\":2}\n{\"c\":3}\n";
        for end in 0..bytes.len() {
            let n_whole = bytes[..end].iter().filter(|byte| **byte == b'\n').count();
            let repaired = repair(&bytes[..end]);
            assert_eq!(repaired.iter().filter(|byte| **byte == b'\n').count(), n_whole);
            assert!(bytes.starts_with(&repaired));
        }
    }
}
