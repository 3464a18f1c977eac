//! Feeds any bytes, cut anywhere: the decoder terminates, with the same events as for the bytes in one piece.
#![no_main]

use dalsegno::providers::stream_json::{Decoder, Limits, TooMuch};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, Vec<u8>)| {
    let (size, bytes) = input;
    let pieces: Vec<&[u8]> = bytes.chunks(usize::from(size) + 1).collect();
    assert_eq!(read(&pieces), read(&[&bytes]));
});

fn read(pieces: &[&[u8]]) -> Result<Vec<String>, TooMuch> {
    let limits = Limits { line_bytes: 1 << 16, total_bytes: 1 << 20 };
    let (mut decoder, mut seen) = (Decoder::within(limits), Vec::new());
    for piece in pieces {
        decoder.push(piece)?;
        while let Some(event) = decoder.next_event()? {
            seen.push(format!("{event:?}"));
        }
    }
    seen.extend(decoder.last_event().map(|event| format!("{event:?}")));
    Ok(seen)
}
