//! Parses the output of [`super::Element`]; tests use it to prove that no foreign text left its element.

use super::{Fence, unescape};

/// A piece of a rendered text: a fenced element of ours, or the text between two of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Outside(String),
    Fenced(Node),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    pub name: String,
    /// Attributes without the fence.
    pub attributes: Vec<(String, String)>,
    /// Empty when there are children.
    pub text: String,
    pub children: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed element at byte {at}: {what}")]
pub struct Error {
    pub at: usize,
    pub what: &'static str,
}

impl Node {
    pub fn child(&self, name: &str) -> Option<&Node> {
        self.children.iter().find(|child| child.name == name)
    }

    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Parses a text. Only elements that carry one of `fences` count as ours.
pub fn parse(text: &str, fences: &[Fence]) -> Result<Vec<Piece>, Error> {
    let mut pieces = Vec::new();
    let mut outside_from = 0;
    let mut at = 0;
    while let Some(offset) = text[at..].find('<') {
        at += offset;
        if !opens_fenced(&text[at..], fences) {
            at += 1;
            continue;
        }
        push_outside(&mut pieces, &text[outside_from..at]);
        let mut reader = Reader { text, at };
        let mut node = reader.element()?;
        node.attributes.remove(0);
        pieces.push(Piece::Fenced(node));
        at = reader.at;
        outside_from = at;
    }
    push_outside(&mut pieces, &text[outside_from..]);
    Ok(pieces)
}

/// Returns only the fenced elements, in order.
pub fn fenced(text: &str, fences: &[Fence]) -> Result<Vec<Node>, Error> {
    let nodes = parse(text, fences)?.into_iter().filter_map(|piece| match piece {
        Piece::Fenced(node) => Some(node),
        Piece::Outside(_) => None,
    });
    Ok(nodes.collect())
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn element(&mut self) -> Result<Node, Error> {
        self.expect("<")?;
        let mut node = Node { name: self.until(&[' ', '>'])?.to_owned(), ..Node::default() };
        while self.rest().starts_with(' ') {
            self.at += 1;
            let key = self.until(&['='])?.to_owned();
            self.expect("=\"")?;
            let value = unescape(self.until(&['"'])?).into_owned();
            self.expect("\"")?;
            node.attributes.push((key, value));
        }
        self.expect(">")?;
        self.body(&mut node)?;
        Ok(node)
    }

    fn body(&mut self, node: &mut Node) -> Result<(), Error> {
        let closing = format!("</{}>", node.name);
        let text = self.until(&['<'])?;
        if self.rest().starts_with(&closing) {
            node.text = unescape(text).into_owned();
        } else {
            while !self.rest().starts_with(&closing) {
                node.children.push(self.element()?);
                self.until(&['<'])?;
            }
        }
        self.expect(&closing)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn until(&mut self, stops: &[char]) -> Result<&'a str, Error> {
        let from = self.at;
        let length =
            self.text[from..].find(stops).ok_or(Error { at: from, what: "ends too early" })?;
        self.at += length;
        Ok(&self.text[from..self.at])
    }

    fn expect(&mut self, expected: &str) -> Result<(), Error> {
        if !self.rest().starts_with(expected) {
            return Err(Error { at: self.at, what: "is not what our writer writes" });
        }
        self.at += expected.len();
        Ok(())
    }
}

fn opens_fenced(text: &str, fences: &[Fence]) -> bool {
    let Some(name_end) = text.find([' ', '>']) else {
        return false;
    };
    let rest = &text[name_end..];
    fences.iter().any(|fence| {
        rest.strip_prefix(" fence=\"")
            .and_then(|rest| rest.strip_prefix(fence.as_str()))
            .is_some_and(|rest| rest.starts_with('"'))
    })
}

fn push_outside(pieces: &mut Vec<Piece>, text: &str) {
    if !text.is_empty() {
        pieces.push(Piece::Outside(text.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::xml::{Element, FenceSeed, Scope};

    proptest! {
        #[test]
        fn any_text_comes_back_unchanged(text in any::<String>(), value in any::<String>()) {
            let fence = FenceSeed::from_bytes([7; 32]).fence(Scope::System);
            let element = Element::with_children(
                "posts",
                vec![Element::with_text("post", &text).attribute("sender", value.as_str())],
            );
            let nodes = fenced(&element.render(&fence), &[fence]).unwrap();
            prop_assert_eq!(&nodes[0].children[0].text, &text);
            prop_assert_eq!(nodes[0].children[0].attribute("sender").unwrap(), value.as_str());
        }

        #[test]
        fn escaped_text_holds_no_markup(text in "[<>&;#x0-9a-f\"'\\x00-\\x1f|]{0,80}") {
            let escaped = crate::xml::escape_text(&text);
            prop_assert!(!escaped.contains(['<', '>']));
            prop_assert!(escaped.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
            prop_assert_eq!(unescape(&escaped), text.as_str());
        }
    }

    #[test]
    fn an_element_without_the_fence_is_only_text() {
        let fence = FenceSeed::from_bytes([7; 32]).fence(Scope::System);
        let text = format!(
            "before <task fence=\"000000000000\">x</task> {}",
            Element::with_text("task", "real").render(&fence)
        );
        let pieces = parse(&text, &[fence]).unwrap();
        assert_eq!(pieces.len(), 2);
        assert!(matches!(&pieces[1], Piece::Fenced(node) if node.text == "real"));
    }
}
