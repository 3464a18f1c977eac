//! Data as YAML in block style; texts of several lines are literal blocks.

use std::borrow::Cow;

use saphyr::{Mapping, Scalar, ScalarStyle, Yaml, YamlEmitter};

use super::tree::Tree;

/// Returns one document, without the line `---` before it.
pub(super) fn format_yaml(tree: &Tree) -> String {
    let mut text = String::new();
    let mut emitter = YamlEmitter::new(&mut text);
    emitter.multiline(true);
    // Writing to a text does not fail.
    let _ = emitter.dump(&to_yaml(tree));
    text.strip_prefix("---\n").unwrap_or(&text).to_owned()
}

fn to_yaml(tree: &Tree) -> Yaml<'_> {
    match tree {
        Tree::Null => plain("null"),
        Tree::Bool(value) => Yaml::Value(Scalar::Boolean(*value)),
        Tree::Number(number) => plain(number),
        Tree::Text(text) => quoted(text),
        Tree::List(items) => Yaml::Sequence(items.iter().map(to_yaml).collect()),
        Tree::Fields(fields) => {
            let mut mapping = Mapping::new();
            for (name, value) in fields {
                mapping.insert(quoted(name), to_yaml(value));
            }
            Yaml::Mapping(mapping)
        }
    }
}

/// Returns a scalar that is written as it is.
fn plain(text: &str) -> Yaml<'_> {
    Yaml::Representation(Cow::Borrowed(text), ScalarStyle::Plain, None)
}

/// Returns a text, which the emitter quotes where it has to be quoted.
fn quoted(text: &str) -> Yaml<'_> {
    Yaml::Value(Scalar::String(Cow::Borrowed(text)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use saphyr::LoadableYamlNode as _;

    use super::*;

    #[test]
    fn data_is_written_in_blocks_in_its_order() {
        let json = r#"{"id":"7","name":"Spring: 1","tags":["a","yes"],"none":null,"n":1.5,"list":[],"items":[{"text":"one\ntwo\n","ok":true}]}"#;
        let tree: Tree = serde_json::from_str(json).unwrap();
        let expected = "id: \"7\"\nname: \"Spring: 1\"\ntags:\n  - a\n  - \"yes\"\nnone: null\nn: 1.5\nlist: []\nitems:\n  - text: |\n      one\n      two\n    ok: true";
        assert_eq!(format_yaml(&tree).trim_end(), expected);
    }

    fn read(yaml: &Yaml<'_>) -> Tree {
        match yaml {
            Yaml::Value(Scalar::String(text)) => Tree::Text(text.to_string()),
            Yaml::Value(Scalar::Boolean(value)) => Tree::Bool(*value),
            Yaml::Value(Scalar::Integer(value)) => Tree::Number(value.to_string()),
            Yaml::Value(Scalar::Null) => Tree::Null,
            Yaml::Sequence(items) => Tree::List(items.iter().map(read).collect()),
            Yaml::Mapping(fields) => {
                let text = |name: &Yaml<'_>| name.as_str().unwrap().to_owned();
                Tree::Fields(fields.iter().map(|(name, value)| (text(name), read(value))).collect())
            }
            other => panic!("{other:?}"),
        }
    }

    fn tree() -> impl Strategy<Value = Tree> {
        let leaf = prop_oneof![
            Just(Tree::Null),
            any::<bool>().prop_map(Tree::Bool),
            any::<i32>().prop_map(|n| Tree::Number(n.to_string())),
            "[ -~\n春é#:-]{0,20}".prop_map(Tree::Text),
            "(true|no|~|null|1e3|0x1F|2026-11-28|- a|a: b|---|\\.\\.\\.|\\*x|&x|!x|%x|@x|`x)"
                .prop_map(Tree::Text),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Tree::List),
                prop::collection::btree_map("[a-z: #-]{1,8}", inner, 0..4)
                    .prop_map(|fields| Tree::Fields(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn yaml_is_read_as_the_same_data(tree in tree()) {
            let text = format_yaml(&tree);
            let documents = Yaml::load_from_str(&text).unwrap();
            prop_assert_eq!(read(&documents[0]), tree, "{}", text);
        }
    }
}
