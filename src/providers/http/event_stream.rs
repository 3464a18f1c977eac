//! Lines of a stream of server-sent events.

/// Returns the data in a line of an event stream. `None`: a comment, or a field that says nothing about the answer.
///
/// Every server sends the JSON of an event in one line, so a line is an event.
pub(in crate::providers) fn event_data(line: &[u8]) -> Option<&[u8]> {
    let data = line.strip_prefix(b"data:")?;
    Some(data.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_data_counts() {
        assert_eq!(event_data(b"data: {}"), Some(&b"{}"[..]));
        assert_eq!(event_data(b"data:{}"), Some(&b"{}"[..]));
        for line in [&b": PROCESSING"[..], b"event: error", b"id: 1", b"retry: 5", b"data"] {
            assert_eq!(event_data(line), None);
        }
    }
}
