//! All texts that people and models read, collected in one committed file for reviews, and checked for words and shapes
//! that `CONTRIBUTING.md` rules out.

mod rust;
mod sources;
mod words;

use std::collections::BTreeMap;

use super::root;

/// The committed file.
const COMMITTED: &str = "docs/reference/messages.md";

/// A part of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    Errors,
    Actions,
    Database,
    Other,
    Explanations,
    Checks,
    Logs,
    Metrics,
    Models,
    Commands,
    Routes,
    Settings,
}

impl Section {
    /// Returns the heading, and a line on the texts below it.
    fn title(self) -> (&'static str, &'static str) {
        match self {
            Self::Errors => (
                "Errors",
                "Texts of error types. `{0}` and `{name}` are filled in; the causes follow behind a colon.",
            ),
            Self::Actions => {
                ("Failed statements", "Each completes the sentence \"the database could not …\".")
            }
            Self::Database => (
                "Errors of the SQL functions",
                "Messages and hints of the functions in the schema `dalsegno`.",
            ),
            Self::Other => (
                "Refusals and results",
                "Problem documents, usage errors, output of commands, problems of files and settings.",
            ),
            Self::Explanations => (
                "Explanations",
                "Parts of the answers of `task explain` and `job explain`: the reason, then the next step.",
            ),
            Self::Checks => ("Doctor", "Findings of `dalsegno doctor`, their reasons and fixes."),
            Self::Logs => ("Log lines", "Level, message, and the names of the fields."),
            Self::Metrics => ("Metrics", "Descriptions at `/metrics`."),
            Self::Models => {
                ("Texts for models", "Prompts, notices, and tools with their refusals.")
            }
            Self::Commands => (
                "Commands",
                "Help of each command and of its options. Global options are listed once.",
            ),
            Self::Routes => ("Routes", "Summaries and descriptions in the API document."),
            Self::Settings => ("Settings", "Comments of `config/default.toml`."),
        }
    }
}

/// A text, with the file or command that it belongs to.
#[derive(Debug, Clone)]
pub struct Text {
    pub section: Section,
    pub place: String,
    pub text: String,
}

fn texts() -> Vec<Text> {
    let mut texts: Vec<Text> = [
        rust::texts(),
        sources::sql(),
        sources::settings(),
        sources::commands(),
        sources::routes(),
    ]
    .concat();
    texts.sort_by(|a, b| (a.section, &a.place).cmp(&(b.section, &b.place)));
    texts
}

/// Returns the document: one line per text, in the order of its file.
fn document(texts: &[Text]) -> String {
    let mut document = "# Messages\n\nEvery text that people and models read, collected from the code by a test, to be reviewed as a whole.\n".to_owned();
    let mut sections: BTreeMap<Section, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for Text { section, place, text } in texts {
        let lines = sections.entry(*section).or_default().entry(place.as_str()).or_default();
        if !lines.contains(&text.as_str()) {
            lines.push(text);
        }
    }
    for (section, places) in sections {
        let (title, about) = section.title();
        document.push_str(&format!("\n## {title}\n\n{about}\n"));
        // Short phrases, and many of them: one line per file.
        if section == Section::Actions {
            document.push('\n');
            for (place, lines) in places {
                document.push_str(&format!("- `{place}`: {}\n", lines.join("; ")));
            }
            continue;
        }
        for (place, lines) in places {
            document.push_str(&format!("\n### {place}\n"));
            for line in lines {
                document.push_str(&format!("- {}\n", escaped(line)));
            }
        }
    }
    document
}

/// Escapes `<` outside of code.
fn escaped(line: &str) -> String {
    let parts = line.split('`').enumerate();
    let escape = |(n, part): (usize, &str)| match n % 2 {
        0 => part.replace('<', "\\<"),
        _ => part.to_owned(),
    };
    parts.map(escape).collect::<Vec<_>>().join("`")
}

#[test]
fn the_committed_file_has_every_message() {
    let document = document(&texts());
    let committed = std::fs::read_to_string(root().join(COMMITTED)).unwrap_or_default();
    if document == committed {
        return;
    }
    let written = concat!(env!("CARGO_TARGET_TMPDIR"), "/messages.md");
    std::fs::write(written, &document).unwrap();
    let is_new = |line: &&str| !committed.lines().any(|other| other == *line);
    let new: Vec<&str> = document.lines().filter(is_new).take(5).collect();
    panic!(
        "{COMMITTED} differs from the code. Read the change, then: cp {written} {COMMITTED}\nfirst new lines: {new:#?}"
    );
}

#[test]
fn messages_use_plain_words() {
    let texts = texts();
    for section in [
        Section::Errors,
        Section::Database,
        Section::Logs,
        Section::Commands,
        Section::Routes,
        Section::Settings,
    ] {
        let n = texts.iter().filter(|text| text.section == section).count();
        assert!(n > 60, "{n} texts in {section:?}: the test looks in the wrong place");
    }
    let mut wrong: Vec<String> = texts
        .iter()
        .flat_map(|Text { place, text, .. }| {
            words::ruled_out(text).into_iter().map(move |why| format!("{place}: {why}: {text}"))
        })
        .collect();
    for document in dalsegno::cli::documents().unwrap() {
        for line in document.text.lines().filter(|_| document.name.ends_with(".md")) {
            let found = words::ruled_out(line).into_iter();
            wrong.extend(found.map(|why| format!("{}: {why}: {line}", document.name)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The first line of a doc comment is the noun or the verb that a reader searches for.
#[test]
fn doc_comments_begin_with_a_noun_or_a_verb() {
    let mut n_comments = 0;
    for folder in ["src", "crates", "workers", "tests", "benches", "fuzz", "examples"] {
        for (path, text) in super::files(folder, "rs") {
            let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
            for (before, line) in std::iter::once(&"").chain(&lines).zip(&lines) {
                if let Some(title) = doc_comment(line)
                    && doc_comment(before).is_none()
                {
                    n_comments += 1;
                    let first = title.split_whitespace().next().unwrap_or_default();
                    assert!(
                        !words::NO_TITLE.contains(&first),
                        "{}: begin with a noun or a verb, not with {first}: {title}",
                        path.display()
                    );
                }
            }
        }
    }
    assert!(n_comments > 2_000, "{n_comments} doc comments: the test looks in the wrong place");
}

fn doc_comment(line: &str) -> Option<&str> {
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))
}
