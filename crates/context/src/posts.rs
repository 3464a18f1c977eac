//! Posts of the board, as they are sent and as the transcript keeps them.
//!
//! A turn shows the posts that came since the last one. When it is committed they become an entry of the transcript in front of
//! its task, so that later calls hold them at the same place and byte for byte, compaction folds them like everything else,
//! and nothing has to be shown twice. The entry's text is the JSON of the posts and not their XML: elements are always made
//! from values, never taken from a text.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::xml::Element;

/// What is shown of the board in one turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posts<'a> {
    /// Further posts, for which there was no room.
    pub left_out: i64,
    /// In order of `seq`.
    #[serde(borrow)]
    pub posts: Vec<Post<'a>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Post<'a> {
    pub id: Uuid,
    pub seq: i64,
    /// From the row; what the text says of its sender does not count.
    #[serde(borrow)]
    pub sender: Cow<'a, str>,
    /// Whom it is addressed to: names, with a blank between them.
    #[serde(borrow)]
    pub to: Cow<'a, str>,
    /// RFC 3339, formatted by the caller.
    #[serde(borrow)]
    pub posted_at: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Uuid>,
    #[serde(borrow)]
    pub text: Cow<'a, str>,
}

impl<'a> Posts<'a> {
    /// The text of their entry.
    pub fn to_entry(&self) -> String {
        // Strings and numbers always have a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// `None`: the text is not one of [`to_entry`](Self::to_entry).
    pub(super) fn of_entry(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub(super) fn element(&self) -> Element<'_> {
        let children = self.posts.iter().map(Post::element).collect();
        let element = Element::with_children("posts", children);
        match self.left_out {
            0 => element,
            n_posts => element.attribute("left_out", n_posts.to_string()),
        }
    }
}

impl Post<'_> {
    fn element(&self) -> Element<'_> {
        let element = Element::with_text("post", self.text.as_ref())
            .attribute("id", self.id.to_string())
            .attribute("sender", self.sender.as_ref())
            .attribute("to", self.to.as_ref())
            .attribute("timestamp", self.posted_at.as_ref());
        match self.reply_to {
            Some(id) => element.attribute("reply_to", id.to_string()),
            None => element,
        }
    }
}
