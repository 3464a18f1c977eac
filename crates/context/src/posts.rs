//! Posts of the board, in the context and in the transcript.
//!
//! A turn shows the posts since the last turn. At its commit they become an entry of the transcript before its task.
//! Later calls therefore hold them at the same position and byte for byte, compaction folds them like other entries,
//! and no post is shown twice. The text of the entry is the JSON of the posts and not their XML: elements are always
//! made from values, never taken from a text.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{weight::Weight, xml::Element};

/// The posts of the board that one turn shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posts<'a> {
    /// Number of further posts, for which there was no room.
    pub left_out: i64,
    /// In order of `seq`.
    #[serde(borrow)]
    pub posts: Vec<Post<'a>>,
    /// Summary of the archived posts, in the first posts of a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<ArchiveSummary>,
}

/// The authors of the archived posts that the agent may see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveSummary {
    /// The last archived place.
    pub up_to: i64,
    pub senders: Vec<ArchivedSender>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedSender {
    pub sender: String,
    pub posts: i64,
    /// Times in RFC 3339, formatted by the caller.
    pub first_at: String,
    pub last_at: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Post<'a> {
    pub id: Uuid,
    pub seq: i64,
    /// Sender from the row; a sender that the text claims does not count.
    #[serde(borrow)]
    pub sender: Cow<'a, str>,
    /// Names of the addressees, separated by blanks.
    #[serde(borrow)]
    pub to: Cow<'a, str>,
    /// Trust level, from the row; `None` in entries of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Cow<'a, str>>,
    /// Time in RFC 3339, formatted by the caller.
    #[serde(borrow)]
    pub posted_at: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Uuid>,
    #[serde(borrow)]
    pub text: Cow<'a, str>,
}

impl<'a> Posts<'a> {
    /// Returns the text of the transcript entry.
    pub fn to_entry(&self) -> String {
        // Strings and numbers always have a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns true if there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.posts.is_empty() && self.left_out == 0 && self.archived.is_none()
    }

    /// Parses the text of a transcript entry. Returns `None` if it is not from [`to_entry`](Self::to_entry).
    pub fn of_entry(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Counts the posts of each trust level, for the manifest.
    pub(super) fn count_by_trust(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for trust in self.posts.iter().filter_map(|post| post.trust.as_deref()) {
            *counts.entry(trust.to_owned()).or_default() += 1;
        }
        counts
    }

    pub(super) fn element(&self) -> Element<'_> {
        let archived = self.archived.iter().map(ArchiveSummary::element);
        let children = archived.chain(self.posts.iter().map(Post::element)).collect();
        let element = Element::with_children("posts", children);
        match self.left_out {
            0 => element,
            n_posts => element.attribute("left_out", n_posts.to_string()),
        }
    }
}

impl ArchiveSummary {
    /// Returns the weight of the summary with its attributes.
    pub fn weight(&self) -> Weight {
        Weight::of_text(&serde_json::to_string(self).unwrap_or_default())
    }

    fn element(&self) -> Element<'_> {
        let n_posts: i64 = self.senders.iter().map(|sender| sender.posts).sum();
        let sender = |sender: &ArchivedSender| {
            Element::with_text("from", "")
                .attribute("sender", sender.sender.clone())
                .attribute("posts", sender.posts.to_string())
                .attribute("first", sender.first_at.clone())
                .attribute("last", sender.last_at.clone())
        };
        Element::with_children("archived", self.senders.iter().map(sender).collect())
            .attribute("posts", n_posts.to_string())
    }
}

impl Post<'_> {
    /// Returns the weight of the post with its attributes: of a short post, they are most of it.
    pub fn weight(&self) -> Weight {
        Weight::of_text(&serde_json::to_string(self).unwrap_or_default())
    }

    fn element(&self) -> Element<'_> {
        let mut element = Element::with_text("post", self.text.as_ref())
            .attribute("id", self.id.to_string())
            .attribute("sender", self.sender.as_ref());
        if let Some(trust) = &self.trust {
            element = element.attribute("trust", trust.as_ref());
        }
        let element = element
            .attribute("to", self.to.as_ref())
            .attribute("timestamp", self.posted_at.as_ref());
        match self.reply_to {
            Some(id) => element.attribute("reply_to", id.to_string()),
            None => element,
        }
    }
}
