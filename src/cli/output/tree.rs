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

/// A list as formats of one line per item need it.
#[derive(Debug, PartialEq)]
pub(super) struct Page {
    pub(super) items: Vec<Tree>,
    /// The other fields that hold something, such as `next`.
    pub(super) beside: Tree,
}

impl Tree {
    pub(super) fn of(value: &impl Serialize) -> Self {
        let json = serde_json::to_string(value).unwrap_or_default();
        serde_json::from_str(&json).unwrap_or(Self::Null)
    }

    /// Returns the items of a list, also of one with fields beside its items; other data is one item.
    pub(super) fn into_page(self) -> Page {
        let is_items =
            |(name, value): &(String, Self)| name == "items" && matches!(value, Self::List(_));
        match self {
            Self::List(items) => Page { items, beside: Self::Null },
            Self::Fields(fields) if fields.iter().any(is_items) => {
                let (items, beside): (Vec<_>, Vec<_>) = fields.into_iter().partition(is_items);
                let items =
                    items.into_iter().flat_map(|(_, items)| items.into_page().items).collect();
                let beside = beside.into_iter().filter(|(_, value)| !value.is_empty()).collect();
                Page { items, beside: Self::Fields(beside) }
            }
            other => Page { items: vec![other], beside: Self::Null },
        }
    }

    /// Returns true for null and for a list or an object without content.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Null => true,
            Self::List(items) => items.is_empty(),
            Self::Fields(fields) => fields.is_empty(),
            Self::Bool(_) | Self::Number(_) | Self::Text(_) => false,
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

    #[test]
    fn fields_beside_items_are_kept_if_they_hold_something() {
        let page = |json: &str| serde_json::from_str::<Tree>(json).unwrap().into_page();
        let listed = page(r#"{"created":2,"items":[1,2],"next":"a","problems":[],"at":null}"#);
        assert_eq!(listed.items.len(), 2);
        assert_eq!(listed.beside.to_json(), r#"{"created":2,"next":"a"}"#);
        assert!(page(r#"{"items":[],"next":null}"#).beside.is_empty());
        let one = page(r#"{"items":1}"#);
        assert_eq!((one.items.len(), one.beside.is_empty()), (1, true));
    }
}
