//! The documents: their links, the tests that they name, and their length.

mod commands;
mod snippets;
mod sql;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every document with its text.
fn documents() -> Vec<(PathBuf, String)> {
    let outside_of_docs = [
        "README.md",
        "ARCHITECTURE.md",
        "GUARANTEES.md",
        "CONTRIBUTING.md",
        "clients/python/README.md",
        "clients/typescript/README.md",
        "crates/client/README.md",
    ];
    let mut found: Vec<PathBuf> = outside_of_docs.iter().map(|name| root().join(name)).collect();
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension().and_then(|ending| ending.to_str()) {
                _ if path.is_dir() => folders.push(path),
                Some("md") => found.push(path),
                _ => {}
            }
        }
    }
    found.into_iter().map(|path| (path.clone(), read(&path))).collect()
}

/// A fenced code block.
struct Block<'a> {
    language: &'a str,
    /// The rest of the line with the language.
    kind: &'a str,
    /// Its lines, without the indent of the fence.
    lines: Vec<&'a str>,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let (mut blocks, mut lines) = (Vec::new(), text.lines());
    while let Some(line) = lines.next() {
        let fence = line.trim_start();
        let indent = line.len() - fence.len();
        let Some(info) = fence.strip_prefix("```") else { continue };
        let (language, kind) = info.split_once(' ').unwrap_or((info, ""));
        let inside = lines.by_ref().take_while(|line| line.trim() != "```");
        let lines = inside.map(|line| line.get(indent..).unwrap_or_default()).collect();
        blocks.push(Block { language, kind, lines });
    }
    blocks
}

/// The lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    headings
        .map(|heading| {
            let heading = heading.trim_start_matches('#').trim().to_lowercase();
            let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.collect::<String>().replace(' ', "-")
        })
        .collect()
}

/// The targets of links: the text between `](` and `)`.
fn links(text: &str) -> Vec<String> {
    let text: String = prose(text).collect::<Vec<_>>().join("\n");
    let behind = text.split("](").skip(1);
    behind.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.to_owned()).collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut broken = Vec::new();
    let mut n_links = 0;
    for (path, text) in documents() {
        for link in links(&text) {
            if link.contains("://") {
                continue;
            }
            n_links += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => path.clone(),
                file => path.parent().unwrap().join(file),
            };
            let has_anchor = || anchors(&read(&target)).contains(anchor);
            if !target.exists() || !(anchor.is_empty() || has_anchor()) {
                broken.push(format!("{}: {link}", path.strip_prefix(root()).unwrap().display()));
            }
        }
    }
    assert!(n_links > 50, "{n_links}");
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_document_is_in_the_index() {
    let index = root().join("docs/README.md");
    let listed = links(&read(&index)).into_iter().map(|link| root().join("docs").join(link));
    let listed: BTreeSet<PathBuf> = listed.filter_map(|path| path.canonicalize().ok()).collect();
    let missing = documents().into_iter().map(|(path, _)| path.canonicalize().unwrap());
    let missing: Vec<_> = missing
        .filter(|path| path.starts_with(root().join("docs").canonicalize().unwrap()))
        .filter(|path| !path.ends_with("docs/README.md") && !listed.contains(path))
        .collect();
    assert!(missing.is_empty(), "not in docs/README.md: {missing:?}");
}

#[test]
fn diagrams_are_small_and_have_a_text_and_a_dark_form() {
    const MAX_BYTES: usize = 12 * 1024;
    let shown = documents().into_iter().flat_map(|(path, text)| {
        let folder = path.parent().unwrap().to_owned();
        links(&text).into_iter().map(move |link| folder.join(link))
    });
    let shown: BTreeSet<PathBuf> = shown.filter_map(|path| path.canonicalize().ok()).collect();
    let pictures = std::fs::read_dir(root().join("docs/pictures")).unwrap();
    let pictures = pictures.map(|entry| entry.unwrap().path());
    let diagrams: Vec<_> =
        pictures.filter(|path| path.extension().is_some_and(|ending| ending == "svg")).collect();
    assert!(diagrams.len() > 2, "{diagrams:?}");
    for path in diagrams {
        let (name, text) = (path.display(), read(&path));
        assert!(text.len() <= MAX_BYTES, "{name} has {} bytes", text.len());
        for part in [
            "role=\"img\" aria-labelledby=\"title text\"",
            "<title id=\"title\">",
            "<desc id=\"text\">",
            "prefers-color-scheme: dark",
        ] {
            assert!(text.contains(part), "{name} has no {part}");
        }
        let outside = text.replace("http://www.w3.org/2000/svg", "");
        assert!(!outside.contains("://"), "{name} loads something");
        assert!(shown.contains(&path.canonicalize().unwrap()), "no document shows {name}");
    }
}

#[test]
fn readme_and_architecture_stay_short() {
    for (name, max) in [("README.md", 200), ("ARCHITECTURE.md", 250)] {
        let n_lines = read(&root().join(name)).lines().count();
        assert!(
            n_lines <= max,
            "{name} has {n_lines} lines, {max} are the limit: move details to docs/"
        );
    }
}

/// As `tests/it/file.rs::test`.
#[test]
fn promises_and_requirements_name_tests_that_exist() {
    for document in ["GUARANTEES.md", "docs/reference/requirements.md"] {
        let text = read(&root().join(document));
        let tests = text.split('`').filter(|part| part.starts_with("tests/it/"));
        let named: Vec<_> = tests.filter_map(|part| part.split_once("::")).collect();
        assert!(named.len() > 50, "{document} names {} tests", named.len());
        for (file, test) in named {
            let code = read(&root().join(file));
            assert!(code.contains(&format!("fn {test}(")), "{document} names {file}::{test}");
        }
    }
}

/// Each row of a table in the requirements has the section, the module and at least one test, as its last cell.
#[test]
fn every_requirement_names_a_test() {
    let text = read(&root().join("docs/reference/requirements.md"));
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with('|') && !line.starts_with("|---"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .filter(|cells: &Vec<&str>| cells.first() != Some(&"section"))
        .collect();
    assert!(rows.len() > 60, "{} requirements were found", rows.len());
    for cells in &rows {
        let [_, module, tests] = cells.as_slice() else { panic!("not three cells: {cells:?}") };
        assert!(!module.is_empty(), "no module: {cells:?}");
        let tests: Vec<&str> = tests.split(", ").collect();
        let is_test = |test: &&str| test.starts_with("`tests/it/") && test.contains(".rs::");
        assert!(tests.iter().all(is_test), "not a list of tests: {cells:?}");
    }
    let sections: BTreeSet<(&str, &str)> = rows.iter().map(|cells| (cells[0], cells[2])).collect();
    assert_eq!(sections.len(), rows.len(), "a requirement is listed twice");
}
