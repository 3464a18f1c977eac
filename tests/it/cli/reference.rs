//! The generated documents of `docs/reference`.

use std::path::Path;

use dalsegno::cli;
use serde_json::Value;

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

/// An editor reports a misspelt key only if the schema excludes unknown ones.
#[test]
fn schemas_describe_every_key_and_exclude_others() {
    let mut n_schemas = 0;
    for document in cli::documents().unwrap() {
        if !document.name.ends_with(".schema.json") {
            continue;
        }
        n_schemas += 1;
        let schema: Value = serde_json::from_str(&document.text).unwrap();
        assert_eq!(schema["additionalProperties"], false, "{}", document.name);
        for (key, value) in schema["properties"].as_object().unwrap() {
            let text = value["description"].as_str().unwrap_or_default();
            assert!(text.len() > 10, "{}: {key} has no description", document.name);
            assert!(value["examples"].is_array(), "{}: {key} has no example", document.name);
        }
    }
    assert_eq!(n_schemas, 4);
}
