//! The decoder with streams cut at random places, and with arbitrary bytes.

use dalsegno::providers::stream_json::{Decoder, Event, Limits, TooMuch};
use proptest::{collection::vec, prelude::*};
use serde_json::json;

const LIMITS: Limits = Limits { line_bytes: 4096, total_bytes: 1 << 20 };

/// Returns each event as text, in order.
fn read(pieces: &[&[u8]]) -> Result<Vec<String>, TooMuch> {
    let (mut decoder, mut seen) = (Decoder::within(LIMITS), Vec::new());
    for piece in pieces {
        decoder.push(piece)?;
        while let Some(event) = decoder.next_event()? {
            seen.push(format!("{event:?}"));
        }
    }
    seen.extend(decoder.last_event().map(|event| format!("{event:?}")));
    Ok(seen)
}

fn cut<'a>(mut bytes: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for size in sizes.iter().cycle() {
        if bytes.is_empty() {
            break;
        }
        let (piece, rest) = bytes.split_at((*size).min(bytes.len()));
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

fn line() -> impl Strategy<Value = String> {
    let text = "[a-z\"\\\\ß語🎼\u{2028}\n]{0,40}";
    prop_oneof![
        text.prop_map(|text| json!({"type": "assistant", "uuid": "u",
            "message": {"id": "m", "content": [{"type": "text", "text": text}]}})
        .to_string()),
        text.prop_map(|text| json!({"type": "stream_event",
            "event": {"type": "content_block_delta", "delta": {"text": text}}})
        .to_string()),
        text.prop_map(|text| json!({"type": "user", "message": {"content": text}}).to_string()),
        text.prop_map(|text| json!({"type": text}).to_string()),
        Just("no JSON, but ünïcode".to_owned()),
        Just(r#"{"type":"result","is_error":false,"total_cost_usd":NaN}"#.to_owned()),
        Just(String::new()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn chunk_boundaries_do_not_matter(
        lines in vec(line(), 0..12),
        sizes in vec(1_usize..40, 1..6),
        ends in any::<bool>(),
    ) {
        let mut stream = lines.join("\n");
        if ends {
            stream.push('\n');
        }
        let whole = read(&[stream.as_bytes()]).unwrap();
        prop_assert_eq!(&read(&cut(stream.as_bytes(), &sizes)).unwrap(), &whole);
        let n_lines = lines.iter().filter(|line| !line.is_empty()).count();
        prop_assert_eq!(whole.len(), n_lines);
    }

    #[test]
    fn any_bytes_are_read_to_their_end(
        bytes in vec(any::<u8>(), 0..600),
        sizes in vec(1_usize..40, 1..6),
    ) {
        let whole = read(&[&bytes]).unwrap();
        prop_assert_eq!(read(&cut(&bytes, &sizes)).unwrap(), whole);
    }

    #[test]
    fn a_damaged_line_is_still_one_line(line in line(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        prop_assume!(!line.is_empty() && byte != b'\n');
        let mut bytes = line.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes.extend_from_slice(b"\n{\"type\":\"later\"}\n");
        let seen = read(&[&bytes]).unwrap();
        prop_assert!(seen.len() <= 2 && seen.last().unwrap().contains("later"));
    }
}

#[test]
fn a_line_over_the_limit_ends_the_stream_before_it_is_buffered() {
    let mut decoder = Decoder::within(LIMITS);
    let mut n_pushed = 0;
    let error = loop {
        let pushed = decoder.push(&[b'x'; 1024]).and_then(|()| decoder.next_event().map(|_| ()));
        match pushed {
            Ok(()) => n_pushed += 1024,
            Err(error) => break error,
        }
    };
    assert_eq!(error, TooMuch::Line(4096));
    assert_eq!(n_pushed, 4096);
}

#[test]
fn an_event_of_exactly_the_limit_is_read() {
    let text = "x".repeat(4096 - r#"{"type":"t","text":""}"#.len());
    let line = format!("{{\"type\":\"t\",\"text\":\"{text}\"}}\n");
    let mut decoder = Decoder::within(LIMITS);
    decoder.push(line.as_bytes()).unwrap();
    let Some(Event::Other { raw, .. }) = decoder.next_event().unwrap() else { panic!("no event") };
    assert_eq!(raw.len(), 4096);
}
