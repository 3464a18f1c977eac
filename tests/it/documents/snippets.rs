//! The snippets of documents in TOML, JSON, YAML and Markdown, read by the parsers of the program, and those in SQL.
//!
//! A second word behind the fence says what a snippet is, if it is not the usual one of its language: ```` ```toml eval ````. YAML is the front
//! matter of an agent file, or a part of it.

use std::fs;

use dalsegno::{
    config::Config,
    domain::{
        agents::{Catalogue, DraftAgent},
        evals::Eval,
        flows::{self, Templates},
        memory, result_schemas,
    },
    settings::{Environment, Flags},
};
use serde_json::{Value, json};

use super::{Block, blocks, documents, read, root};
use crate::app::{TestDatabase, execute};

/// Documents whose snippets are not read here, with the reason.
const EXCEPTIONS: [(&str, &str); 4] = [
    ("docs/reference/agent-files.md", "all keys, of which some exclude each other"),
    ("docs/reference/flow-templates.md", "generated: `cli::reference` reads its example"),
    ("docs/reference/nodes.md", "generated: names a reading that does not exist"),
    ("docs/reference/skills.md", "generated: front matter without the text of a skill"),
];

/// Pages whose SQL is not run here, with the reason.
const SQL_EXCEPTIONS: [(&str, &str); 4] = [
    ("docs/explanation/memory.md", "needs pgvector and a model"),
    ("docs/how-to/pgbouncer.md", "changes a role of the whole server"),
    ("docs/how-to/upgrade.md", "`ServiceRole` runs it with a role of its own"),
    ("docs/reference/sql.md", "generated: signatures of functions"),
];

fn load(text: &str) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dalsegno.toml");
    fs::write(&file, text).unwrap();
    let flags = Flags { file: Some(file), set: Vec::new() };
    Config::load(&Environment::default(), &flags).map_err(|problems| problems.to_string())
}

/// The configuration for agent files: with the endpoints of the guide to them.
fn config() -> Config {
    let page = read(&root().join("docs/how-to/endpoints.md"));
    let endpoints = blocks(&page).into_iter().find(|block| block.language == "toml").unwrap();
    let variables = "[agents]\nvariables = [\"BOARD_TOKEN\"]\n";
    load(&format!("{variables}{}", endpoints.lines.join("\n"))).unwrap()
}

fn read_agent(text: &str, config: &Config) -> Result<(), String> {
    let catalogue = Catalogue::load(&config.agents).unwrap();
    let agent = DraftAgent::parse(text, &catalogue, &config.agents);
    agent.map(drop).map_err(|problems| problems.to_string())
}

fn read_flow(text: &str, config: &Config) -> Result<(), String> {
    let name = text.lines().find_map(|line| line.strip_prefix("name: ")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(format!("{name}.md")), text).unwrap();
    let agents = Catalogue::load(&config.agents).unwrap();
    let config = flows::Config { folder: folder.path().to_owned() };
    let problems = Templates::load(&config, &agents).unwrap().problems();
    if problems.is_empty() { Ok(()) } else { Err(problems.to_string()) }
}

/// Compares with a schema of the API document.
fn read_as(schema: &str, text: &str) -> Result<(), String> {
    let document = read(&root().join("docs/reference/openapi.json"));
    let document = document.replace("#/components/schemas/", "#/$defs/");
    let mut document: Value = serde_json::from_str(&document).unwrap();
    let schemas = document["components"]["schemas"].take();
    let schema = json!({ "$ref": format!("#/$defs/{schema}"), "$defs": schemas });
    result_schemas::read_answer(&schema, text).map(drop)
}

fn read_block(block: &Block<'_>, config: &Config) -> Result<(), String> {
    let text = block.lines.join("\n");
    match (block.language, block.kind) {
        ("toml", "") => load(&text).map(drop),
        ("toml", "eval") => Eval::read("eval.toml", &text, |_| Ok(String::new()))
            .map(drop)
            .map_err(|error| format!("{error:?}")),
        ("toml", "cargo") => {
            toml::from_str::<toml::Table>(&text).map(drop).map_err(|error| error.to_string())
        }
        ("yaml", "") if text.starts_with("---\n") => read_agent(&format!("{text}\nText."), config),
        ("yaml", "") => {
            read_agent(&format!("---\nname: one\ndescription: One\n{text}\n---\nText."), config)
        }
        ("markdown", "") => read_agent(&text, config),
        ("markdown", "flow") => read_flow(&text, config),
        ("markdown", "memory") => {
            memory::read_document("item.md", &text).map(drop).map_err(|error| error.to_string())
        }
        ("json", "result-schema") => {
            let schema = serde_json::from_str(&text).map_err(|error| error.to_string())?;
            result_schemas::check(&schema).map_err(|error| error.to_string())
        }
        ("json", schema) => read_as(schema, &text),
        _ => Err("no snippet is of this kind".to_owned()),
    }
}

#[test]
fn every_snippet_is_read_without_a_problem() {
    let config = config();
    let (mut faults, mut n_read) = (Vec::new(), 0);
    for (path, text) in documents() {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap();
        if EXCEPTIONS.iter().any(|(exception, _)| *exception == name) {
            continue;
        }
        let read_here = ["toml", "yaml", "markdown", "json"];
        for block in blocks(&text).iter().filter(|block| read_here.contains(&block.language)) {
            n_read += 1;
            if let Err(fault) = read_block(block, &config) {
                let lines = block.lines.join("\n");
                faults
                    .push(format!("{name}: {} {}:\n{lines}\n{fault}", block.language, block.kind));
            }
        }
    }
    assert!(n_read > 20, "{n_read} snippets were found");
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[tokio::test]
async fn every_snippet_in_sql_is_accepted_by_the_database() {
    let database = TestDatabase::migrated().await;
    execute(&database.options, "create table orders (id bigserial, what text)").await;
    let mut n_read = 0;
    for (path, text) in documents() {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap();
        if SQL_EXCEPTIONS.iter().any(|(exception, _)| *exception == name) {
            continue;
        }
        for block in blocks(&text).iter().filter(|block| block.language == "sql") {
            n_read += 1;
            // The names and types of arguments are checked, and the call is not run: its campaign does not exist.
            let explained = |line: &&str| {
                let explain = if line.starts_with("select ") { "explain " } else { "" };
                format!("{explain}{line}\n")
            };
            let sql: String = block.lines.iter().map(explained).collect();
            let sql = sql.replace("019aa2f1-...", "019aa2f1-6c7e-7d2e-8f57-3f0d4c1b9a10");
            execute(&database.options, &sql.replace("to orders;", "to current_user;")).await;
        }
    }
    assert!(n_read > 4, "{n_read} snippets were found");
}

#[test]
fn a_wrong_snippet_is_found() {
    let config = config();
    let is_read = |language, kind, text: &'static str| {
        read_block(&Block { language, kind, lines: text.lines().collect() }, &config).is_ok()
    };
    assert!(is_read("toml", "", "[ollama]\nnum_ctx = 16384"));
    assert!(!is_read("toml", "", "[ollama]\nnum_ctxt = 16384"));
    assert!(is_read("yaml", "", "provider: local\nmodel: qwen3-8b"));
    assert!(!is_read("yaml", "", "provider: locale\nmodel: qwen3-8b"));
    assert!(is_read("json", "NewTask", r#"{ "agent": "planner", "prompt": "Plan." }"#));
    assert!(!is_read("json", "NewTask", r#"{ "agent": "planner", "promt": "Plan." }"#));
    assert!(!is_read("json", "result-schema", r#"{ "type": "objekt" }"#));
}
