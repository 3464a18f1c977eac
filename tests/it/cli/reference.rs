//! The generated documents of `docs/reference`.

use std::path::Path;

use dalsegno::{
    cli,
    domain::{
        agents::Catalogue,
        flows::{self, Templates},
    },
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
