//! Media types of files, by their first bytes. Names and declarations of the author are not trusted.
//!
//! The types are those that a browser may be told: a text with markup is a plain text here, so that it is never run.

use std::str::from_utf8;

pub const TEXT: &str = "text/plain";
pub const OTHER: &str = "application/octet-stream";

const STARTS: [(&[u8], &str); 7] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
];

pub fn of_content(content: &[u8]) -> &'static str {
    if let Some((_, found)) = STARTS.iter().find(|(start, _)| content.starts_with(start)) {
        return found;
    }
    if content.starts_with(b"RIFF") && content.get(8..12) == Some(b"WEBP") {
        return "image/webp";
    }
    match from_utf8(content).is_ok_and(|text| !text.contains('\0')) {
        true => TEXT,
        false => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_the_type() {
        for (content, expected) in [
            (b"\x89PNG\r\n\x1a\n....".as_slice(), "image/png"),
            (b"RIFF\x01\x02\x03\x04WEBPVP8 ", "image/webp"),
            (b"%PDF-1.7\n", "application/pdf"),
            (b"<html><script>", TEXT),
            (b"<svg xmlns=''/>", TEXT),
            (b"", TEXT),
            ("für".as_bytes(), TEXT),
            (b"f\xfcr", OTHER),
            (b"a\0b", OTHER),
        ] {
            assert_eq!(of_content(content), expected, "{content:?}");
        }
    }
}
