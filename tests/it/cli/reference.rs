//! The generated documents of `docs/reference`.

use std::path::Path;

use dalsegno::{
    cli,
    config::Config,
    domain::{
        agents::Catalogue,
        flows::{self, Templates},
        limits::{LimitEffect, LimitEntry, LimitValue},
    },
    http,
    settings::{Environment, Flags},
};
use serde_json::Value;

use crate::conversations::world::files;

#[test]
fn the_committed_documents_are_the_generated_ones() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference");
    let mut outdated = Vec::new();
    for document in cli::documents().unwrap() {
        let committed = std::fs::read_to_string(folder.join(document.name)).unwrap_or_default();
        if committed != document.text {
            outdated.push(document.name);
        }
    }
    assert!(
        outdated.is_empty(),
        "out of date: {outdated:?}; `cargo run -- reference docs/reference` writes them"
    );
}

/// Returns the first Markdown example of a generated document.
fn example(name: &str) -> String {
    let document = cli::documents().unwrap().into_iter().find(|it| it.name == name).unwrap();
    let (_, example) = document.text.split_once("```markdown\n").unwrap();
    example.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_examples_of_agents_and_flow_templates_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("editor.md"), example("agent-files.md")).unwrap();
    let catalogue = Catalogue::load(&files(folder.path(), "/no/skills")).unwrap();
    assert!(catalogue.problems().is_empty(), "{}", catalogue.problems());
    assert!(catalogue.agent("editor").unwrap().prompt.starts_with("You are an editor."));

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("short-series.md"), example("flow-templates.md")).unwrap();
    let built_in = Catalogue::load(&files("/no/agents", "/no/skills")).unwrap();
    let flows = flows::Config { folder: folder.path().to_owned() };
    let templates = Templates::load(&flows, &built_in).unwrap();
    assert!(templates.problems().is_empty(), "{}", templates.problems());
    let draft = &templates.get("short-series").unwrap().steps[1];
    assert_eq!(draft.prompt, "Write part {{number}}: {{item}}");
}

/// An editor reports a misspelt key only if the schema excludes unknown ones.
#[test]
fn schemas_describe_every_key_and_exclude_others() {
    let mut n_schemas = 0;
    for document in cli::documents().unwrap() {
        // Campaign files are written by a command, not by hand.
        if !document.name.ends_with(".schema.json") || document.name.starts_with("campaign-file") {
            continue;
        }
        n_schemas += 1;
        let schema: Value = serde_json::from_str(&document.text).unwrap();
        let name = &schema["properties"]["name"]["pattern"];
        assert_eq!(name, "^[a-z0-9][a-z0-9_-]{0,63}$", "{}", document.name);
        assert_eq!(schema["additionalProperties"], false, "{}", document.name);
        for (key, value) in schema["properties"].as_object().unwrap() {
            let text = value["description"].as_str().unwrap_or_default();
            assert!(text.len() > 10, "{}: {key} has no description", document.name);
            assert!(value["examples"].is_array(), "{}: {key} has no example", document.name);
        }
    }
    assert_eq!(n_schemas, 4);
}

fn limits() -> Vec<LimitEntry> {
    let limits: Vec<_> = cli::limits().into_iter().flat_map(|(_, limits)| limits).collect();
    assert!(limits.len() > 80, "{} limits", limits.len());
    limits
}

/// Returns the problems of a setting that is set to a number.
fn problems(key: &str, value: u64) -> Vec<String> {
    let set = vec![(key.to_owned(), value.to_string())];
    let flags = Flags { set, ..Flags::default() };
    let problems = Config::load(&Environment::default(), &flags).err();
    let problems = problems.into_iter().flat_map(|problems| problems.0);
    let of_key = problems.filter(|problem| problem.key == key).map(|problem| problem.message);
    // Not those of a comparison with another setting.
    of_key.filter(|message| !message.contains(" = ")).collect()
}

#[test]
fn ranges_of_settings_in_the_limits_are_those_of_the_configuration() {
    for limit in limits() {
        let LimitValue::Setting { key, least, most } = limit.value else { continue };
        for value in [least, most.unwrap_or(least.max(1))] {
            assert_eq!(problems(key, value), Vec::<String>::new(), "{key} = {value}");
        }
        if least > 0 {
            assert_ne!(problems(key, least - 1), Vec::<String>::new(), "{key} below {least}");
        }
        if let Some(most) = most {
            assert_ne!(problems(key, most + 1), Vec::<String>::new(), "{key} over {most}");
        }
    }
}

#[test]
fn refusals_in_the_limits_are_error_codes_of_the_api() {
    for limit in limits() {
        if let LimitEffect::Refused(code) = limit.effect {
            assert!(http::document().contains(&format!("\"{code}\"")), "{code}: {limit:?}");
        }
    }
}
