//! Memory items as files: Markdown with front matter.
//!
//! Reading a written file gives the same item. The provenance in a file is for people and is ignored on import: the importer becomes the
//! author.

use std::fmt::Write as _;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::Value;

use super::{Item, Kind};
use crate::domain::{
    files::{Document as File, FrontMatter},
    timestamp,
};

/// The content of an item's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub kind: Kind,
    /// The owner of a journal, as the file spells it.
    pub owner: Option<String>,
    pub name: String,
    pub title: String,
    pub expires_at: Option<DateTime<Utc>>,
    pub body: String,
}

/// All problems of a file, each with its line if there is one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct NoDocument(pub Vec<String>);

/// Keys written for people and ignored on import.
const PROVENANCE: [&str; 6] = ["version", "trust", "author", "written_at", "task_id", "turn"];

pub fn write(item: &Item) -> String {
    let mut file = String::from("---\n");
    let mut line = |key: &str, value: String| {
        let _ = writeln!(file, "{key}: {value}");
    };
    // A JSON string is also a YAML string.
    let quoted = |text: &str| Value::from(text).to_string();
    let time = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Micros, true);
    line("kind", item.kind.as_str().to_owned());
    if let Some(owner) = &item.owner {
        line("owner", quoted(owner));
    }
    line("name", quoted(&item.name));
    line("title", quoted(&item.title));
    if let Some(end) = item.expires_at {
        line("expires_at", quoted(&time(end)));
    }
    line("version", item.version.to_string());
    line("trust", item.trust.as_str().to_owned());
    line("author", quoted(&item.author));
    line("written_at", quoted(&time(item.written_at)));
    if let Some((task_id, turn)) = item.task_id.zip(item.turn) {
        line("task_id", quoted(&task_id.to_string()));
        line("turn", turn.to_string());
    }
    file.push_str("---\n\n");
    file.push_str(item.body.as_deref().unwrap_or_default());
    file.push('\n');
    file
}

/// Parses a file. `file` is its name in problems.
pub fn read(file: &str, content: &str) -> Result<Document, NoDocument> {
    let parsed = File::parse(file, content)
        .map_err(|problem| NoDocument(vec![problem.to_string().replace('\n', ";")]))?;
    let mut problems = Vec::new();
    let known = ["kind", "owner", "name", "title", "expires_at"];
    for (key, found) in &parsed.values {
        if !known.contains(&key.as_str()) && !PROVENANCE.contains(&key.as_str()) {
            problems.push(format!("line {}: unknown key `{key}`", found.line));
        }
    }
    let mut text = |key: &str| match parsed.values.get(key) {
        None => None,
        Some(FrontMatter { value: Value::String(text), .. }) => Some(text.clone()),
        // `name: 2026` is meant as a text.
        Some(FrontMatter { value: value @ (Value::Number(_) | Value::Bool(_)), .. }) => {
            Some(value.to_string())
        }
        Some(found) => {
            problems.push(format!("line {}: `{key}` is not a text", found.line));
            None
        }
    };
    let (kind, owner, name) = (text("kind"), text("owner"), text("name"));
    let (title, expires_at) = (text("title"), text("expires_at"));
    let kind = Kind::ALL.into_iter().find(|known| Some(known.as_str()) == kind.as_deref());
    if kind.is_none() {
        problems.push("`kind` must be edict, record or journal".to_owned());
    }
    for (key, value) in [("name", &name), ("title", &title)] {
        if value.is_none() {
            problems.push(format!("`{key}` is missing"));
        }
    }
    let expires_at = expires_at.map(|text| timestamp::parse(&text));
    if let Some(Err(error)) = &expires_at {
        problems.push(format!("`expires_at`: {error}"));
    }
    match (kind, name, title) {
        (Some(kind), Some(name), Some(title)) if problems.is_empty() => Ok(Document {
            kind,
            owner,
            name,
            title,
            expires_at: expires_at.and_then(Result::ok),
            body: body(parsed.rest).to_owned(),
        }),
        _ => Err(NoDocument(problems)),
    }
}

/// Strips the empty line at the beginning and the end of the last line. All other white space belongs to the text.
fn body(rest: &str) -> &str {
    let text = rest.strip_prefix("\r\n").or(rest.strip_prefix('\n')).unwrap_or(rest);
    text.strip_suffix("\r\n").or(text.strip_suffix('\n')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::domain::memory::{Origin, Trust};

    fn item(title: &str, body: &str, kind: Kind, end: Option<i64>) -> Item {
        let at = DateTime::from_timestamp(1_764_000_000, 123_456_000).unwrap();
        Item {
            id: Uuid::nil(),
            campaign_id: Uuid::nil(),
            kind,
            owner: (kind == Kind::Journal).then(|| "curator/2".to_owned()),
            name: "2026".to_owned(),
            version: 3,
            title: title.to_owned(),
            body: Some(body.to_owned()),
            bytes: 0,
            trust: Trust::Agent,
            origin: Origin::Agent,
            author: "key:\"ci\": 'x'".to_owned(),
            task_id: Some(Uuid::nil()),
            turn: Some(1),
            created_at: at,
            written_at: at,
            expires_at: end.and_then(|secs| DateTime::from_timestamp(secs, 0)),
            revoked_at: None,
            revoked_by: None,
        }
    }

    fn check(title: &str, body: &str, kind: Kind, end: Option<i64>) {
        let item = item(title, body, kind, end);
        let read = read("x.md", &write(&item)).unwrap();
        let expected = Document {
            kind,
            owner: item.owner.clone(),
            name: item.name.clone(),
            title: title.to_owned(),
            expires_at: item.expires_at,
            body: body.to_owned(),
        };
        assert_eq!(read, expected);
    }

    proptest! {
        #[test]
        fn a_memory_file_round_trips(
            title in "[^\\p{Cc}\u{2028}\u{2029}\u{feff}\u{fffe}\u{ffff}]{1,40}",
            body in "(---\n|\r\n|\n|[ -~]|\\PC){0,60}",
            kind in 0..3_usize,
            end in proptest::option::of(0..4_000_000_000_i64),
        ) {
            check(&title, &body, Kind::ALL[kind], end);
        }
    }

    #[test]
    fn a_text_of_punctuation_and_spaces_stays_unchanged() {
        for body in ["---\nkind: edict\n---\n", "\n\n  x  \n\n", "\r\n", "", "\u{202e}a\u{1b}[31m"]
        {
            check("true", body, Kind::Record, None);
        }
    }

    #[test]
    fn all_problems_of_a_file_are_reported_together() {
        let wrong = "---\nkind: rule\ntitle: [a]\nexpires_at: soon\ncolour: red\n---\nText.";
        let said = read("x.md", wrong).unwrap_err().to_string();
        for part in [
            "`kind` must",
            "line 3: `title`",
            "`name` is",
            "`expires_at`: invalid time",
            "`colour`",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(read("x.md", "No front matter.").is_err());
    }
}
