//! Checks of the source tree: sizes, edges between modules, forgotten files, names that must agree.

mod imports;
mod messages;
mod providers;
mod source;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use self::imports::{Graph, Modules, cycles, edges_within, grouped};

/// The top-level modules that each module may name, directly or through a re-export. Other edges are errors.
const EDGES: &[(&str, &[&str])] = &[
    ("app", &["clock", "domain", "shutdown", "telemetry", "tools", "traces"]),
    ("causes", &[]),
    (
        "cli",
        &[
            "causes",
            "clock",
            "config",
            "context",
            "db",
            "doctor",
            "domain",
            "http",
            "jobs",
            "mcp",
            "metric_catalogue",
            "operations",
            "outbound",
            "private_postgres",
            "providers",
            "queue",
            "serve",
            "settings",
            "shutdown",
            "telemetry",
            "tools",
            "traces",
            "transcript",
            "worker",
        ],
    ),
    // A crate for other systems; the service itself does not use it.
    ("client", &[]),
    ("clock", &[]),
    // Section structs are defined beside their component; `config` only combines them.
    (
        "config",
        &[
            "app",
            "db",
            "domain",
            "http",
            "jobs",
            "providers",
            "queue",
            "settings",
            "shutdown",
            "telemetry",
            "tools",
            "traces",
        ],
    ),
    // Pure: no IO, no clock, no database.
    ("context", &["transcript"]),
    // Of `db` only the type of a migration, which an operation returns.
    ("console", &["context", "db", "domain", "http", "operations", "queue", "transcript"]),
    ("db", &["causes", "clock", "private_postgres", "settings"]),
    (
        "doctor",
        &[
            "causes",
            "clock",
            "config",
            "db",
            "domain",
            "private_postgres",
            "providers",
            "queue",
            "settings",
            "tools",
            "transcript",
        ],
    ),
    ("domain", &["context", "db", "metric", "queue", "settings", "transcript"]),
    (
        "http",
        &[
            "app",
            "causes",
            "db",
            "domain",
            "mcp",
            "metric",
            "operations",
            "settings",
            "shutdown",
            "telemetry",
            "tools",
            "traces",
        ],
    ),
    (
        "jobs",
        &[
            "causes",
            "clock",
            "context",
            "db",
            "domain",
            "metric",
            "outbound",
            "providers",
            "queue",
            "settings",
            "tools",
            "traces",
            "transcript",
        ],
    ),
    ("mcp", &["tools"]),
    // One definition of each metric, beside the code that counts.
    ("metric", &[]),
    (
        "metric_catalogue",
        &["http", "jobs", "metric", "queue", "scheduler", "telemetry", "tools", "traces"],
    ),
    // One definition of each operation, for HTTP and the command line.
    (
        "operations",
        // Of `db` only the type of a migration.
        &[
            "app",
            "causes",
            "clock",
            "context",
            "db",
            "domain",
            "providers",
            "queue",
            "tools",
            "traces",
            "transcript",
        ],
    ),
    ("outbound", &[]),
    ("private_postgres", &["causes", "settings"]),
    ("providers", &["clock", "context", "outbound", "transcript"]),
    // The queue does not know the domain: it is its own crate.
    ("queue", &["causes", "metric", "settings", "shutdown"]),
    ("scheduler", &["causes", "clock", "domain", "jobs", "metric", "queue"]),
    (
        "serve",
        &[
            "clock",
            "config",
            "console",
            "db",
            "http",
            "jobs",
            "providers",
            "queue",
            "shutdown",
            "telemetry",
            "traces",
            "worker",
        ],
    ),
    // A leaf: it knows no section.
    ("settings", &[]),
    ("shutdown", &["settings"]),
    ("telemetry", &["metric", "settings"]),
    // One definition of each tool, for HTTP, stdio and the loops of providers.
    (
        "tools",
        &["causes", "clock", "context", "domain", "metric", "providers", "queue", "transcript"],
    ),
    ("traces", &["metric", "outbound", "settings"]),
    ("transcript", &[]),
    (
        "worker",
        &[
            "app",
            "clock",
            "config",
            "db",
            "doctor",
            "http",
            "jobs",
            "providers",
            "queue",
            "scheduler",
            "shutdown",
            "telemetry",
            "tools",
            "traces",
        ],
    ),
];

/// The layers of `domain`, lowest first: a noun names those of its own layer and below.
const DOMAIN_LAYERS: &[(&str, &[&str])] = &[
    (
        "base",
        &[
            "amount",
            "class",
            "csv",
            "statement_error",
            "files",
            "findings",
            "ids",
            "installation",
            "json_rows",
            "labels",
            "limits",
            "mod",
            "objects",
            "parameters",
            "period_edge",
            "result_schemas",
            "text",
            "text_query",
            "timestamp",
            "transaction",
        ],
    ),
    ("log", &["audit", "feed", "operation_keys", "prices", "task_files", "turn_tokens", "usage"]),
    ("agents", &["agents", "nodes"]),
    ("campaigns", &["budgets", "campaigns"]),
    ("access", &["keys", "sign_ins"]),
    ("board", &["blackboard", "posts"]),
    ("delivery", &["webhooks"]),
    ("memory", &["embeddings", "memory", "search", "tool_calls"]),
    (
        "conversation",
        &[
            "batches",
            "busy_models",
            "context_texts",
            "contexts",
            "campaign_overview",
            "compactions",
            "conversations",
            "costs",
            "facts",
            "failovers",
            "fidelity",
            "manifests",
            "messages",
            "rate_limits",
            "reruns",
            "session_summaries",
            "sessions",
            "transcripts",
            "turns",
        ],
    ),
    (
        "work",
        &[
            "agent_pauses",
            "bulk_actions",
            "campaign_control",
            "evals",
            "explanations",
            "flows",
            "credentials",
            "mentions",
            "schedules",
            "statuses",
            "tasks",
            "text_search",
        ],
    ),
    ("phases", &["context_previews", "estimates", "prompt_versions", "turn_phases"]),
    ("retention", &["campaign_files", "cleanups", "erasures"]),
    ("overview", &["attention"]),
];

/// The most files that may all reach each other.
const MAX_CYCLE_FILES: usize = 10;

/// The phases of a turn, in order. Each names its own folder, earlier phases, and what all of them share.
const TURN_PHASES: [&str; 5] = ["load", "gate", "begin", "call", "commit"];

const MAX_LINES: usize = 600;
const MAX_MEDIAN_LINES: usize = 150;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the files of the service and of its crates.
fn sources(extension: &str) -> Vec<(PathBuf, String)> {
    [files("src", extension), files("crates", extension)].concat()
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

/// Counts the lines before the tests of a file.
fn lines(text: &str) -> usize {
    text.lines().take_while(|line| *line != "#[cfg(test)]").count()
}

/// Returns `config` for `src/config/layers.rs`, `clock` for `src/clock.rs`.
fn module(path: &Path) -> String {
    let first = path.components().nth(1).unwrap().as_os_str().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[test]
fn files_are_small() {
    let sizes: Vec<_> = sources("rs").iter().map(|(p, t)| (lines(t), p.clone())).collect();
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

/// Returns the files that each file of the service and of its crates needs.
fn imports() -> Graph {
    let files: Vec<_> =
        sources("rs").into_iter().map(|(path, text)| (module_file(&path), text)).collect();
    Modules::parse(files.iter().map(|(path, text)| (path.as_path(), text.as_str()))).files()
}

/// Returns `queue/job.rs` for `crates/queue/src/job.rs`.
fn module_file(path: &Path) -> PathBuf {
    let parts: Vec<&str> = path.iter().map(|part| part.to_str().unwrap()).collect();
    match parts.as_slice() {
        ["src", rest @ ..] => rest.iter().collect(),
        ["crates", name, "src", rest @ ..] => {
            Path::new(&name.replace('-', "_")).join(rest.iter().collect::<PathBuf>())
        }
        _ => panic!("{} belongs to no crate", path.display()),
    }
}

/// Groups the files by top-level module. The leaves of `crates/base` and the messages of `crates/context` count one by
/// one, under their names in the service.
fn top_level_modules(files: &Graph) -> Graph {
    let module = |path: &str| match path {
        "context/transcript.rs" => "transcript".to_owned(),
        _ => first_part(path.strip_prefix("base/").unwrap_or(path)),
    };
    grouped(files, |path| Some(module(path)).filter(|module| module != "lib"))
}

fn nouns(files: &Graph) -> Graph {
    grouped(files, |path| path.strip_prefix("domain/").map(first_part))
}

/// Returns `config` for `config/print.rs`, `clock` for `clock.rs`.
fn first_part(path: &str) -> String {
    path.split(['/', '.']).next().unwrap().to_owned()
}

#[test]
fn modules_import_only_their_allowed_edges() {
    let named = top_level_modules(&imports());
    let allowed: Graph = EDGES
        .iter()
        .map(|(module, names)| {
            (module.to_string(), names.iter().map(|it| it.to_string()).collect())
        })
        .collect();
    for (module, named) in &named {
        let allowed =
            allowed.get(module).unwrap_or_else(|| panic!("{module} has no line in EDGES"));
        let differ: Vec<_> = named.symmetric_difference(allowed).collect();
        assert!(differ.is_empty(), "{module} and EDGES differ in {differ:?}");
    }
    assert_eq!(named.len(), allowed.len(), "EDGES has a line for a module that is not in src");
}

#[test]
fn no_modules_import_each_other_in_a_cycle() {
    let files = imports();
    for graph in [top_level_modules(&files), nouns(&files)] {
        assert!(
            graph.len() > 20,
            "{} modules were found: the test searches the wrong folder",
            graph.len()
        );
        if let Some(cycle) = cycles(&graph).first() {
            panic!("import cycle:\n{}", edges_within(&graph, cycle));
        }
    }
    for cycle in cycles(&files) {
        let edges = edges_within(&files, &cycle);
        assert!(
            cycle.len() <= MAX_CYCLE_FILES,
            "an import cycle of {} files:\n{edges}",
            cycle.len()
        );
    }
}

#[test]
fn no_phase_of_a_turn_imports_a_later_one() {
    let place = |path: &str| {
        let (folder, _) = path.strip_prefix("jobs/run_turn/")?.split_once('/')?;
        Some(TURN_PHASES.iter().position(|phase| *phase == folder).unwrap_or_else(|| {
            panic!("{folder} is missing in TURN_PHASES");
        }))
    };
    let files = imports();
    let mut n_names = 0;
    for (file, names) in &files {
        let Some(own) = place(file) else { continue };
        for named in names {
            assert_ne!(named, "jobs/run_turn/mod.rs", "{file} imports the overview of the turn");
            let other = place(named);
            n_names += usize::from(other.is_some());
            assert!(
                other.is_none_or(|other| other <= own),
                "{file} imports {named}, a later phase"
            );
        }
    }
    assert!(n_names > 50, "{n_names} names were found: the test searches the wrong folder");
}

#[test]
fn nouns_import_only_their_own_layer_and_lower_ones() {
    let layer = |noun: &str| {
        let found = DOMAIN_LAYERS.iter().position(|(_, nouns)| nouns.contains(&noun));
        found.unwrap_or_else(|| panic!("domain::{noun} is missing in DOMAIN_LAYERS"))
    };
    for (noun, names) in nouns(&imports()) {
        for named in names {
            let (from, to) = (layer(&noun), layer(&named));
            assert!(
                to <= from,
                "domain::{noun} ({}) imports domain::{named}, which is in a layer above ({})",
                DOMAIN_LAYERS[from].0,
                DOMAIN_LAYERS[to].0,
            );
        }
    }
}

/// A file below `tests/it` must be a module of the one beside or above it. Otherwise it never runs.
#[test]
fn every_test_file_is_part_of_the_binary() {
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
        assert!(listed, "{} is not declared as a module", path.display());
    }
}

/// Only `domain::<noun>`, the crate of the queue and the migrations' own bookkeeping name a table.
#[test]
fn tables_are_named_only_in_their_own_module() {
    let sql = sources("rs").into_iter().chain(sources("sql"));
    let mut owner: BTreeMap<String, PathBuf> = BTreeMap::new();
    for (path, text) in sql {
        // A noun may have its own folder.
        let home: PathBuf = match module(&path).as_str() {
            _ if path.starts_with("crates") => path.components().take(2).collect(),
            // The phases of a turn write its row.
            "domain" if path.starts_with("src/domain/turn_phases") => "src/domain/turns".into(),
            "domain" => path.components().take(3).collect::<PathBuf>().with_extension(""),
            _ => path.clone(),
        };
        // A turn concerns several nouns at once, and so do its statements.
        if [
            "begin.sql",
            "end.sql",
            "load.sql",
            "previous_session.sql",
            "progress.sql",
            "unseen.sql",
        ]
        .iter()
        .any(|name| path.ends_with(format!("domain/turn_phases/{name}")))
        {
            continue;
        }
        // A campaign file has the rows of all of them.
        if path.starts_with("src/domain/campaign_files") {
            continue;
        }
        // So do the statements for session summaries, reports and the search in transcripts. Texts of contexts are stored under the lease of a turn, and while
        // their facts exist. The cleanup looks for batches whose turns have ended. Waits
        // for budgets are counted of open tasks. Answers of evals are looked up in the ledger, by their tasks and reruns.
        let is_of_several = path.starts_with("src/domain/session_summaries")
            || path.starts_with("src/domain/batches")
            || path.ends_with("budgets/count_waiting.sql")
            || path.starts_with("src/domain/fidelity")
            || path.starts_with("src/domain/costs")
            || path.starts_with("src/domain/text_search")
            || path.ends_with("evals/unpriced_variants.sql")
            || path.starts_with("src/domain/prompt_versions.sql")
            || path.starts_with("src/domain/context_texts.sql");
        if is_of_several && path.extension().is_some_and(|it| it == "sql") {
            continue;
        }
        for keyword in ["from ", "into ", "update ", "join "] {
            for after in text.split(&format!("{keyword}dalsegno.")).skip(1) {
                let table = word(after);
                // A transcript tells which of its prompts have files, to save a round trip.
                if table == "task_attachments" && path.starts_with("src/domain/messages") {
                    continue;
                }
                let first = owner.entry(table.clone()).or_insert_with(|| home.clone());
                assert_eq!(*first, home, "{table} is named in {}", path.display());
            }
        }
    }
    assert!(!owner.is_empty(), "no table was found: the test searches for the wrong names");
}

/// The tables of the queue come first. Later migrations call the functions of the queue and read its views.
#[test]
fn only_queue_migrations_name_queue_tables() {
    let is_queue = |path: &Path| path.display().to_string().contains("_queue_");
    let (queue, others): (Vec<_>, Vec<_>) =
        files("migrations", "sql").into_iter().partition(|(path, _)| is_queue(path));
    let made = queue.iter().flat_map(|(_, text)| text.split(" table dalsegno.").skip(1));
    let tables: BTreeSet<String> = made.map(word).collect();
    assert!(tables.contains("jobs") && tables.len() > 8, "{tables:?}");
    for (path, text) in &others {
        for after in text.split("dalsegno.").skip(1) {
            let name = word(after);
            let is_call = after[name.len()..].starts_with('(');
            assert!(is_call || !tables.contains(&name), "{} names {name}", path.display());
        }
    }
}

#[test]
fn every_dependency_has_a_documented_reason() {
    let reasons = std::fs::read_to_string(root().join("docs/DEPENDENCIES.md")).unwrap();
    let manifests = files("crates", "toml").into_iter().map(|(_, text)| text);
    let service = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let manifests: Vec<String> = manifests.chain([service]).collect();
    let mut in_dependencies = false;
    for line in manifests.iter().flat_map(|text| text.lines()) {
        if line.starts_with('[') {
            in_dependencies = line.ends_with("dependencies]");
        } else if in_dependencies && let Some((name, _)) = line.split_once(" = ") {
            let named = name.starts_with("dalsegno") || reasons.contains(&format!("| {name} |"));
            assert!(named, "{name} has no line in docs/DEPENDENCIES.md");
        }
    }
}

#[test]
fn the_command_tree_is_consistent() {
    dalsegno::cli::command().debug_assert();
}
