//! Commands named by alerts, errors, the doctor and the documents: all of them exist.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Lists the files below `folder` with one of these endings.
fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            match path.is_dir() {
                true => folders.push(path),
                false if ending.is_some_and(|it| endings.contains(&it)) => found.push(path),
                false => {}
            }
        }
    }
    found
}

/// Finds the commands after `dalsegno ` in backticks and after a prompt. With `has_texts`, also at the beginning of a
/// string literal, as in the doctor's advice.
fn commands(text: &str, has_texts: bool) -> BTreeSet<String> {
    // Joins string literals that continue on the next line.
    let joined: Vec<&str> = text.split("\\\n").collect();
    let joined: String = joined
        .iter()
        .enumerate()
        .map(|(at, part)| if at == 0 { part } else { part.trim_start() })
        .collect();
    let quoted = |mark: char| {
        let parts = joined.split(mark).skip(1);
        parts
            .filter_map(|part| Some(part.strip_prefix("dalsegno ")?.to_owned()))
            .collect::<Vec<_>>()
    };
    let typed = joined.lines().filter_map(|line| line.trim_start().strip_prefix("$ dalsegno "));
    let all = quoted('`')
        .into_iter()
        .chain(if has_texts { quoted('"') } else { Vec::new() })
        .chain(typed.map(str::to_owned));
    let end = |command: String| {
        let end = command.find(['`', '\n', ';', '|', ',', '>', '\\', '(']);
        let command = &command[..end.unwrap_or(command.len())];
        command.split(" #").next().unwrap_or_default().trim().to_owned()
    };
    let is_command = |command: &String| command.starts_with(|c: char| c.is_ascii_lowercase());
    all.map(end).filter(is_command).collect()
}

/// Splits a command like a shell, with values for its placeholders.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in command.chars().chain([' ']) {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.push(c),
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c == ' ' => {
                words.extend(Some(std::mem::take(&mut word)).filter(|w| !w.is_empty()))
            }
            None => word.push(c),
        }
    }
    words.into_iter().map(fill).collect()
}

fn fill(word: String) -> String {
    if ["TIME", "$TIME"].contains(&word.as_str()) {
        return "2026-11-20T12:00:00Z".to_owned();
    }
    let is_name = |c: char| c.is_ascii_uppercase() || c == '_';
    let is_open =
        word.contains(['{', '<', '…', '[', '%']) || word.contains("...") || word.contains("$");
    match word.split_once('=') {
        Some((key, _)) if is_open => format!("{key}=1"),
        _ if is_open || (word.len() > 1 && word.chars().all(is_name)) => "11111111".to_owned(),
        _ => word,
    }
}

/// Parses the command line up to `--help`.
fn refused(command: &str) -> Option<String> {
    let words = words(command);
    let line = ["dalsegno".to_owned()].into_iter().chain(words).chain(["--help".to_owned()]);
    let error = dalsegno::cli::command().try_get_matches_from(line).err()?;
    (error.kind() != clap::error::ErrorKind::DisplayHelp).then(|| format!("{command}: {error}"))
}

#[test]
fn every_command_named_in_texts_exists() {
    let mut places = files(&root().join("src"), &["rs", "sql"]);
    places.extend(files(&root().join("crates"), &["rs", "sql"]));
    places.extend(files(&root().join("docs"), &["md"]));
    places.extend(files(&root().join("deploy"), &["yaml", "json"]));
    places.extend(files(&root().join("config"), &["toml", "md"]));
    places.extend(["README.md", "GUARANTEES.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    let mut n_commands = 0;
    let mut wrong = Vec::new();
    for place in places {
        let text = std::fs::read_to_string(&place).unwrap();
        for command in commands(&text, place.components().any(|part| part.as_os_str() == "doctor"))
        {
            n_commands += 1;
            let place = place.strip_prefix(root()).unwrap().display();
            wrong.extend(refused(&command).map(|error| format!("{place}: {error}")));
        }
    }
    assert!(n_commands > 150, "{n_commands}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The arguments without a description, of a command and of those below it.
fn undescribed(command: &clap::Command, path: &str) -> Vec<String> {
    let path = format!("{path} {}", command.get_name());
    let bare = command.get_arguments().filter(|argument| argument.get_help().is_none());
    let mut found: Vec<String> = bare.map(|it| format!("{path} {}", it.get_id())).collect();
    found.extend(command.get_subcommands().flat_map(|below| undescribed(below, &path)));
    found
}

#[test]
fn every_argument_of_every_command_is_described() {
    assert_eq!(undescribed(&dalsegno::cli::command(), ""), [""; 0]);
    let bare = clap::Command::new("ls").arg(clap::Arg::new("limit"));
    let above = clap::Command::new("task").subcommand(bare);
    assert_eq!(undescribed(&above, ""), [" task ls limit"]);
}

/// A later `dalsegno serve` in that terminal would wait for the named server instead of starting its own.
#[test]
fn no_document_exports_a_variable_that_names_a_server() {
    let mut places = files(&root().join("docs"), &["md"]);
    places.extend(["README.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    let mut n_commands = 0;
    for place in places {
        for line in std::fs::read_to_string(&place).unwrap().lines() {
            let line = line.trim_start().trim_start_matches("$ ");
            n_commands += usize::from(line.contains("PGHOST="));
            let exports = line.strip_prefix("export ").unwrap_or_default();
            let names_server = exports.split_whitespace().any(|it| it.starts_with("PG"));
            assert!(!names_server, "{}: {line}", place.display());
        }
    }
    assert!(n_commands > 0, "the README sets the variable for one command");
}

#[test]
fn an_unknown_command_in_a_text_is_found() {
    let text = "mend: `dalsegno job ls --dead`, or\n    \"dalsegno task explain {id}; then\" and `dalsegno worker`";
    let found: Vec<String> = commands(text, true).into_iter().collect();
    assert_eq!(found, ["job ls --dead", "task explain {id}", "worker"]);
    assert!(refused("job ls --dead").is_some() && refused("job lst").is_some());
    assert_eq!(refused("job ls --state dead"), None);
    assert_eq!(refused("task explain {id}"), None);
}
