//! The texts of the command tree, of the default settings and of the SQL functions.

use std::collections::BTreeMap;

use clap::{ArgAction, Command};
use serde_json::Value;

use super::{Section, Text};
use crate::tidy::{files, root};

/// Returns the help of each command and of its options.
pub fn commands() -> Vec<Text> {
    let mut command = dalsegno::cli::command();
    command.build();
    let mut texts = Vec::new();
    add_command(&command, "dalsegno", true, &mut texts);
    texts
}

fn add_command(command: &Command, name: &str, is_root: bool, texts: &mut Vec<Text>) {
    let mut add = |text: String| {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if !text.is_empty() {
            texts.push(Text { section: Section::Commands, place: name.to_owned(), text });
        }
    };
    let about = command.get_long_about().or_else(|| command.get_about());
    add(about.map(ToString::to_string).unwrap_or_default());
    for arg in command.get_arguments().filter(|arg| is_root || !arg.is_global_set()) {
        let help = arg.get_long_help().or_else(|| arg.get_help());
        let is_built_in = matches!(
            arg.get_action(),
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
        );
        if let Some(help) = help.filter(|_| !is_built_in) {
            add(format!("`{arg}`: {help}"));
        }
    }
    if is_root {
        add(command.get_after_help().map(ToString::to_string).unwrap_or_default());
    }
    for below in command.get_subcommands().filter(|it| it.get_name() != "help") {
        add_command(below, &format!("{name} {}", below.get_name()), false, texts);
    }
}

/// Returns the summary and description of each route.
pub fn routes() -> Vec<Text> {
    let document: Value = serde_json::from_str(dalsegno::http::document()).unwrap();
    let mut texts = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let place = format!("{} {path}", method.to_uppercase());
            for text in ["summary", "description"].map(|field| operation[field].as_str()) {
                let words = text.unwrap_or_default().split_whitespace().collect::<Vec<_>>();
                let text = words.join(" ");
                if !text.is_empty() {
                    texts.push(Text { section: Section::Routes, place: place.clone(), text });
                }
            }
        }
    }
    texts
}

/// Returns the comments of the default settings, with the settings that they explain.
pub fn settings() -> Vec<Text> {
    let path = "config/default.toml";
    let file = std::fs::read_to_string(root().join(path)).unwrap();
    let mut texts = Vec::new();
    let (mut section, mut keys, mut comment) = (String::new(), Vec::new(), String::new());
    for line in file.lines().chain([""]) {
        if let Some(text) = line.strip_prefix("# ").filter(|_| keys.is_empty()) {
            comment.push_str(text);
            comment.push(' ');
            continue;
        }
        if let Some((key, _)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) {
            keys.push(format!("{section}.{key}"));
            continue;
        }
        if !comment.is_empty() {
            let text = match keys.is_empty() {
                true => comment.clone(),
                false => format!("`{}`: {comment}", keys.join("`, `")),
            };
            texts.push(Text {
                section: Section::Settings,
                place: path.to_owned(),
                text: text.trim_end().to_owned(),
            });
        }
        keys.clear();
        comment = line.strip_prefix("# ").map(|text| format!("{text} ")).unwrap_or_default();
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']').to_owned();
        }
    }
    texts
}

/// Returns the messages and hints of the SQL functions. A later migration replaces a function of an earlier one.
pub fn sql() -> Vec<Text> {
    let mut functions: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
    for (path, text) in files("migrations", "sql") {
        let path = path.display().to_string();
        for (name, body) in functions_of(&text) {
            let texts = raised(body);
            match functions.get_mut(name) {
                Some((place, earlier)) if *place == path => earlier.extend(texts),
                _ => _ = functions.insert(name.to_owned(), (path.clone(), texts)),
            }
        }
    }
    let texts = functions.into_iter().flat_map(|(name, (_, texts))| {
        texts.into_iter().map(move |text| Text {
            section: Section::Database,
            place: name.clone(),
            text,
        })
    });
    texts.collect()
}

/// Returns the functions of a migration by name, each with its body.
fn functions_of(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let functions = text.split("create or replace function ");
    let functions = functions.flat_map(|it| it.split("create function ")).skip(1);
    functions.filter_map(|it| Some((it.split_once('(')?.0, it.split("$body$").nth(1)?)))
}

/// Returns the literals of statements that raise an error or prepare its words.
fn raised(body: &str) -> Vec<String> {
    let marks = ["raise ", "problem :=", "hint :="];
    let is_comment = |line: &&str| line.trim_start().starts_with("--");
    let body = body.lines().filter(|line| !is_comment(line)).collect::<Vec<_>>().join("\n");
    let mut texts = Vec::new();
    for statement in body.split(";\n").filter(|it| marks.iter().any(|mark| it.contains(mark))) {
        let quoted = statement.replace("''", "’");
        let quoted = quoted.split('\'').skip(1).step_by(2);
        texts.extend(quoted.filter(|text| text.contains(' ')).map(str::to_owned));
    }
    texts
}
