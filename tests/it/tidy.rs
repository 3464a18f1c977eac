//! The tree itself: sizes, edges between modules, forgotten files, words that have to agree.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// Which top-level modules each one may name. An arrow that is not here does not exist.
const EDGES: &[(&str, &[&str])] = &[
    ("app", &["clock", "config", "domain", "shutdown", "tools", "traces"]),
    (
        "cli",
        &[
            "clock",
            "config",
            "db",
            "doctor",
            "domain",
            "http",
            "jobs",
            "mcp",
            "providers",
            "queue",
            "serve",
            "shutdown",
            "telemetry",
            "tools",
            "transcript",
            "worker",
        ],
    ),
    // What other systems use of us: it speaks HTTP and SQL, and runs nothing.
    ("client", &["domain", "outbound"]),
    ("causes", &[]),
    ("clock", &[]),
    // Section structs live beside their component: `config` only puts them together.
    (
        "config",
        &[
            "db",
            "domain",
            "http",
            "providers",
            "queue",
            "shutdown",
            "telemetry",
            "traces",
            "worker",
        ],
    ),
    // Pure: no IO, no clock, no database.
    ("context", &["transcript"]),
    ("db", &["causes", "clock", "config"]),
    (
        "doctor",
        &["causes", "clock", "config", "db", "domain", "providers", "queue", "tools", "transcript"],
    ),
    ("domain", &["config", "db", "queue", "transcript"]),
    (
        "http",
        &["app", "causes", "config", "db", "domain", "mcp", "queue", "shutdown", "tools", "traces"],
    ),
    (
        "jobs",
        &[
            "causes",
            "clock",
            "config",
            "context",
            "db",
            "domain",
            "outbound",
            "providers",
            "queue",
            "tools",
            "traces",
            "transcript",
        ],
    ),
    ("main", &["cli"]),
    ("mcp", &["tools"]),
    ("outbound", &[]),
    ("providers", &["clock", "outbound", "transcript"]),
    // The queue knows nothing of the domain: it could be a crate of its own.
    ("queue", &["causes", "config", "shutdown"]),
    ("scheduler", &["causes", "clock", "domain", "jobs", "queue"]),
    (
        "serve",
        &[
            "app",
            "clock",
            "config",
            "db",
            "http",
            "jobs",
            "shutdown",
            "telemetry",
            "traces",
            "worker",
        ],
    ),
    ("shutdown", &["config"]),
    ("telemetry", &["config"]),
    // One definition of each tool, for HTTP, stdio and the loops of providers.
    ("tools", &["causes", "clock", "config", "domain", "providers", "queue", "transcript"]),
    ("traces", &["config", "outbound"]),
    ("transcript", &[]),
    (
        "worker",
        &[
            "app",
            "clock",
            "config",
            "db",
            "http",
            "jobs",
            "queue",
            "scheduler",
            "shutdown",
            "telemetry",
            "tools",
            "traces",
        ],
    ),
];

const MAX_LINES: usize = 600;
const MAX_MEDIAN_LINES: usize = 150;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &str, extension: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(root()).unwrap().to_owned(), text));
            }
        }
    }
    found.sort();
    found
}

/// The lines before the tests of a file.
fn lines(text: &str) -> usize {
    text.lines().take_while(|line| *line != "#[cfg(test)]").count()
}

/// `config` for `src/config/layers.rs`, `clock` for `src/clock.rs`.
fn module(path: &Path) -> String {
    let first = path.components().nth(1).unwrap().as_os_str().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// The top-level modules that a text names: `crate::db::..` and `use crate::{db, http::..}`.
fn named_modules(text: &str) -> BTreeSet<String> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    // `main.rs` is a crate of its own and names the library.
    let code = code.collect::<Vec<_>>().join("\n").replace("dalsegno::", "crate::");
    let mut named = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        match after.strip_prefix('{') {
            None => _ = named.insert(word(after)),
            Some(list) => named.extend(first_words(list)),
        }
    }
    named.remove("");
    named
}

/// The first word of each item of a `{a::b, c::{d, e}, f}` list whose opening brace is already gone.
fn first_words(list: &str) -> Vec<String> {
    let (mut depth, mut item, mut items) = (0, String::new(), Vec::new());
    for c in list.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => items.push(std::mem::take(&mut item)),
            _ => item.push(c),
        }
    }
    items.push(item);
    items.iter().map(|item| word(item.trim())).collect()
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[test]
fn files_are_small() {
    let sizes: Vec<_> = files("src", "rs").iter().map(|(p, t)| (lines(t), p.clone())).collect();
    for (n_lines, path) in &sizes {
        assert!(*n_lines <= MAX_LINES, "{} has {n_lines} lines", path.display());
    }
    let mut n_lines: Vec<usize> = sizes.iter().map(|(n, _)| *n).collect();
    n_lines.sort_unstable();
    let median = n_lines[n_lines.len() / 2];
    assert!(median <= MAX_MEDIAN_LINES, "the median file has {median} lines");
}

#[test]
fn entry_points_hold_no_logic() {
    for (path, text) in files("workers", "rs") {
        assert!(lines(&text) <= 40, "{}", path.display());
    }
    assert!(std::fs::read_to_string(root().join("src/main.rs")).unwrap().lines().count() <= 30);
}

#[test]
fn modules_name_only_what_they_may() {
    let allowed: BTreeMap<&str, &[&str]> = EDGES.iter().copied().collect();
    for (path, text) in files("src", "rs") {
        let module = module(&path);
        if module == "lib" {
            continue;
        }
        let Some(allowed) = allowed.get(module.as_str()) else {
            panic!("{module} has no line in EDGES");
        };
        for named in named_modules(&text) {
            let fine = named == module || allowed.contains(&named.as_str());
            assert!(fine, "{} names crate::{named}", path.display());
        }
    }
}

#[test]
fn every_edge_is_used() {
    let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in files("src", "rs") {
        used.entry(module(&path)).or_default().extend(named_modules(&text));
    }
    for (module, allowed) in EDGES {
        let used = used.get(*module).unwrap_or_else(|| panic!("{module} is not in src"));
        for edge in *allowed {
            assert!(used.contains(*edge), "{module} may name {edge}, but does not any more");
        }
    }
}

/// A file below `tests/it` is a module of the one beside or above it, or nobody runs it.
#[test]
fn no_test_file_is_forgotten() {
    let files: BTreeMap<PathBuf, String> = files("tests/it", "rs").into_iter().collect();
    for path in files.keys().filter(|path| !path.ends_with("main.rs")) {
        let (name, folder) = match path.ends_with("mod.rs") {
            true => (path.parent().unwrap(), path.parent().unwrap().parent().unwrap()),
            false => (path.as_path(), path.parent().unwrap()),
        };
        let name = name.file_stem().unwrap().to_str().unwrap();
        let parents = ["main.rs", "mod.rs"].map(|parent| folder.join(parent));
        let beside = folder.with_extension("rs");
        let listed =
            parents.iter().chain([&beside]).filter_map(|parent| files.get(parent)).any(|text| {
                text.lines().any(|line| line.trim_start_matches("pub ") == format!("mod {name};"))
            });
        assert!(listed, "{} is no module of what is above it", path.display());
    }
}

/// Only `domain::<noun>`, `queue` and the migrations' own bookkeeping name a table.
#[test]
fn tables_are_named_in_their_own_module_only() {
    let sql = files("src", "rs").into_iter().chain(files("src", "sql"));
    let mut owner: BTreeMap<String, PathBuf> = BTreeMap::new();
    for (path, text) in sql {
        // A noun may have a folder of its own.
        let home: PathBuf = match module(&path).as_str() {
            "queue" => PathBuf::from("src/queue"),
            "domain" => path.components().take(3).collect::<PathBuf>().with_extension(""),
            _ => path.clone(),
        };
        // A turn is about several nouns at once, and so are its statements.
        if ["before.sql", "begin.sql", "end.sql", "unseen.sql", "wanted.sql"]
            .iter()
            .any(|name| path.ends_with(format!("domain/turns/{name}")))
        {
            continue;
        }
        // So is what a session leaves behind.
        if path.starts_with("src/domain/session_summaries")
            && path.extension().is_some_and(|it| it == "sql")
        {
            continue;
        }
        for keyword in ["from ", "into ", "update ", "join "] {
            for after in text.split(&format!("{keyword}dalsegno.")).skip(1) {
                let table = word(after);
                let first = owner.entry(table.clone()).or_insert_with(|| home.clone());
                assert_eq!(*first, home, "{table} is named in {}", path.display());
            }
        }
    }
    assert!(!owner.is_empty(), "no table was found: the test looks for the wrong words");
}

#[test]
fn every_dependency_has_its_reason() {
    let reasons = std::fs::read_to_string(root().join("docs/DEPENDENCIES.md")).unwrap();
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let mut in_dependencies = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            in_dependencies = line.ends_with("dependencies]");
        } else if in_dependencies && let Some((name, _)) = line.split_once(" = ") {
            let named = name == "dalsegno" || reasons.contains(&format!("| {name} |"));
            assert!(named, "{name} has no line in docs/DEPENDENCIES.md");
        }
    }
}

/// ARCHITECTURE.md and GUARANTEES.md name the tests that hold what they say, as `tests/it/file.rs::test`.
#[test]
fn promises_name_tests_that_exist() {
    for document in ["ARCHITECTURE.md", "GUARANTEES.md"] {
        let text = std::fs::read_to_string(root().join(document)).unwrap();
        let tests = text.split('`').filter(|part| part.starts_with("tests/it/"));
        let named: Vec<_> = tests.filter_map(|part| part.split_once("::")).collect();
        assert!(named.len() > 5, "{document} names hardly any test");
        for (file, test) in named {
            let code = std::fs::read_to_string(root().join(file));
            let code = code.unwrap_or_else(|_| panic!("{document} names {file}"));
            assert!(code.contains(&format!("fn {test}(")), "{document} names {file}::{test}");
        }
    }
}

#[test]
fn the_command_tree_is_consistent() {
    dalsegno::cli::command().debug_assert();
}
