//! YAML files of the deployments, converted to JSON.

use std::path::{Path, PathBuf};

use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use serde_json::{Map, Value};

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the documents of a file.
pub fn documents(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let documents = Yaml::load_from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    documents.iter().map(json).collect()
}

/// Lists all YAML files below a folder.
pub fn files(folder: &str) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![root().join(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|extension| extension == "yaml") => {
                    found.push(path);
                }
                false => {}
            }
        }
    }
    found
}

fn json(yaml: &Yaml<'_>) -> Value {
    match yaml {
        Yaml::Value(Scalar::Integer(number)) => (*number).into(),
        Yaml::Value(Scalar::Boolean(is)) => (*is).into(),
        Yaml::Value(Scalar::String(text)) => text.as_ref().into(),
        Yaml::Value(Scalar::FloatingPoint(number)) => number.into_inner().into(),
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Sequence(all) => all.iter().map(json).collect(),
        Yaml::Mapping(pairs) => {
            let mut map = Map::new();
            for (key, value) in pairs {
                match (key.as_str().unwrap(), json(value)) {
                    // Explicit keys take precedence over merged ones, in any order.
                    ("<<", Value::Object(merged)) => {
                        for (key, value) in merged {
                            map.entry(key).or_insert(value);
                        }
                    }
                    (key, value) => {
                        map.insert(key.to_owned(), value);
                    }
                }
            }
            Value::Object(map)
        }
        other => panic!("unsupported YAML: {other:?}"),
    }
}
