//! Data as all structured formats have it.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{MapAccess, SeqAccess, Visitor},
};

/// A JSON value whose fields keep their order, which `serde_json::Value` sorts.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tree {
    Null,
    Bool(bool),
    /// A number as JSON writes it.
    Number(String),
    Text(String),
    List(Vec<Tree>),
    Fields(Vec<(String, Tree)>),
}

impl Tree {
    pub(super) fn of(value: &impl Serialize) -> Self {
        let json = serde_json::to_string(value).unwrap_or_default();
        serde_json::from_str(&json).unwrap_or(Self::Null)
    }

    /// Returns the items of a list, also of one in a page with a cursor; other data is one item.
    pub(super) fn into_items(self) -> Vec<Self> {
        match self {
            Self::List(items) => items,
            Self::Fields(fields) => {
                let is_page = |(name, value): &(String, Self)| {
                    name == "items" && matches!(value, Self::List(_))
                };
                match fields.iter().position(is_page) {
                    Some(place) => fields.into_iter().nth(place).map(|(_, items)| items),
                    None => return vec![Self::Fields(fields)],
                }
                .map_or_else(Vec::new, Self::into_items)
            }
            other => vec![other],
        }
    }

    pub(super) fn to_json(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Number(value) => value.clone(),
            Self::Text(text) => serde_json::to_string(text).unwrap_or_default(),
            Self::List(items) => {
                format!("[{}]", items.iter().map(Self::to_json).collect::<Vec<_>>().join(","))
            }
            Self::Fields(fields) => {
                let field = |(name, value): &(String, Self)| {
                    format!(
                        "{}:{}",
                        serde_json::to_string(name).unwrap_or_default(),
                        value.to_json()
                    )
                };
                format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(","))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Number(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Number(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Number(serde_json::to_string(&value).unwrap_or_default()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Tree, E> {
        Ok(Tree::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = entries.next_entry()? {
            fields.push(field);
        }
        Ok(Tree::Fields(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_the_same_json_in_the_same_order() {
        for json in [r#"{"z":1,"a":[true,null,"x\"\n"],"m":{"y":1.5,"b":-7}}"#, "[]", "\"\""] {
            assert_eq!(serde_json::from_str::<Tree>(json).unwrap().to_json(), json);
        }
    }
}
