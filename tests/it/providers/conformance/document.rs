//! `docs/reference/providers.md`: the behaviours and the providers that have them.

use super::{DIALECTS, GROUPS};

/// The committed file.
const COMMITTED: &str = "docs/reference/providers.md";

const HEAD: &str = "\
# Behaviour of providers

Every provider over HTTP is checked against scripted servers in its own dialect (`tests/it/providers/conformance`). This page is made of the lists of
that suite. A dash says that the servers of a provider cannot show the behaviour; the reason is below.
";

fn document() -> String {
    let names: Vec<_> = DIALECTS.iter().map(|dialect| dialect.name()).collect();
    let mut text = HEAD.to_owned();
    for group in &GROUPS {
        text += &format!("\n## {}\n\n| behaviour | {} |\n", group.title, names.join(" | "));
        text += &format!("|---|{}\n", ":-:|".repeat(names.len()));
        for behaviour in group.behaviours {
            let marks = DIALECTS.iter().map(|dialect| {
                let lacks = dialect.lacks().iter().any(|(name, _)| *name == behaviour.name);
                if lacks { "—" } else { "✓" }
            });
            let marks = marks.collect::<Vec<_>>().join(" | ");
            text += &format!("| {} | {marks} |\n", sentence(behaviour.name));
        }
    }
    text += "\n## Without a counterpart\n\n";
    for dialect in DIALECTS {
        for (name, reason) in dialect.lacks() {
            text += &format!("- {}: {} ({reason})\n", dialect.name(), sentence(name));
        }
    }
    text
}

/// Returns a name of a test as words.
fn sentence(name: &str) -> String {
    name.replace('_', " ")
}

#[test]
fn the_document_is_that_of_the_suite() {
    let document = document();
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(COMMITTED);
    if std::fs::read_to_string(&path).unwrap_or_default() == document {
        return;
    }
    let written = concat!(env!("CARGO_TARGET_TMPDIR"), "/providers.md");
    std::fs::write(written, &document).unwrap();
    panic!("{COMMITTED} differs from the suite: cp {written} {COMMITTED}");
}
