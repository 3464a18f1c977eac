//! Types of attachments: found in the content, and compared with what name and sender say.

use super::Error;
use crate::domain::task_files::{
    TEXT,
    media_type::{self, OTHER},
};

const PDF: &str = "application/pdf";

/// Types by the ends of names. Ends that are not listed say nothing.
const ENDS: [(&str, &str); 24] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("pdf", PDF),
    ("txt", TEXT),
    ("md", TEXT),
    ("csv", TEXT),
    ("tsv", TEXT),
    ("json", TEXT),
    ("jsonl", TEXT),
    ("ndjson", TEXT),
    ("xml", TEXT),
    ("html", TEXT),
    ("htm", TEXT),
    ("svg", TEXT),
    ("yaml", TEXT),
    ("yml", TEXT),
    ("toml", TEXT),
    ("log", TEXT),
    ("zip", "application/zip"),
    ("gz", "application/gzip"),
    ("docx", "application/zip"),
];

/// Types that senders declare for files that are text.
const TEXT_TYPES: [&str; 6] = [
    "application/json",
    "application/xml",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "image/svg+xml",
];

/// Returns the type of a content, if it is accepted and neither name nor declaration contradict it.
pub(super) fn check(
    name: &str,
    declared: Option<&str>,
    content: &[u8],
) -> Result<&'static str, Error> {
    let found = media_type::of_content(content);
    let contradiction = |claim, claimed: &str| Error::Contradiction {
        name: name.to_owned(),
        found: describe(found),
        claim,
        claimed: describe(claimed),
    };
    if let Some(claimed) = of_name(name)
        && claimed != found
        && accepts(claimed)
    {
        return Err(contradiction("name", claimed));
    }
    check_accepted(name, found)?;
    match declared.and_then(of_declaration) {
        Some(claimed) if claimed != found => Err(contradiction("type", &claimed)),
        _ => Ok(found),
    }
}

/// Refuses a type that no task can be given.
pub(super) fn check_accepted(name: &str, found: &str) -> Result<(), Error> {
    match accepts(found) {
        true => Ok(()),
        false => Err(Error::NotAccepted { name: name.to_owned(), found: describe(found) }),
    }
}

fn accepts(media_type: &str) -> bool {
    media_type.starts_with("image/") || media_type == PDF || media_type == TEXT
}

fn of_name(name: &str) -> Option<&'static str> {
    let (_, end) = name.rsplit_once('.')?;
    let end = end.to_ascii_lowercase();
    ENDS.iter().find(|(known, _)| *known == end).map(|(_, media_type)| *media_type)
}

/// Returns what a declared type says; `None` if it says nothing.
fn of_declaration(declared: &str) -> Option<String> {
    let bare = declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match bare.as_str() {
        "" | OTHER => None,
        text if text.starts_with("text/") || TEXT_TYPES.contains(&text) => Some(TEXT.to_owned()),
        "image/jpg" => Some("image/jpeg".to_owned()),
        _ => Some(bare),
    }
}

fn describe(media_type: &str) -> String {
    match media_type {
        OTHER => "of an unknown type".to_owned(),
        known => known.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n....";

    #[test]
    fn the_content_decides_and_contradictions_are_refused() {
        let check = |name, declared, content: &[u8]| {
            check(name, declared, content).map_err(|error| error.to_string())
        };
        assert_eq!(check("a.png", Some("image/png"), PNG), Ok("image/png"));
        assert_eq!(check("a", Some("application/octet-stream"), PNG), Ok("image/png"));
        assert_eq!(check("data.csv", Some("text/csv; charset=utf-8"), b"a,b"), Ok(TEXT));
        assert_eq!(check("x.json", Some("application/json"), b"{}"), Ok(TEXT));
        assert_eq!(check("x.unknown", None, b"%PDF-1.7"), Ok(PDF));
        let refused = [
            (
                check("a.png", None, b"%PDF-1.7"),
                "seems to be application/pdf, but its name says image/png",
            ),
            (check("a.txt", None, PNG), "seems to be image/png, but its name says text/plain"),
            (check("a", Some("image/gif"), PNG), "but its type says image/gif"),
            (
                check("a.pdf", None, b"%PDF"),
                "seems to be text/plain, but its name says application/pdf",
            ),
            (
                check("a.zip", None, b"PK\x03\x04"),
                "seems to be application/zip, which is not accepted",
            ),
            (
                check("a.bin", None, b"\xff\xfe\0"),
                "seems to be of an unknown type, which is not accepted",
            ),
        ];
        for (refused, expected) in refused {
            let text = refused.unwrap_err();
            assert!(text.contains(expected) && text.contains("PNG, JPEG"), "{text}");
        }
    }
}
