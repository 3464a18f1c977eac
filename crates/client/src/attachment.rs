//! Files for tasks.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::{Serialize, Serializer};
use uuid::Uuid;

/// A file that a task is given with its prompt: an image, a PDF or a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Attachment<'a> {
    /// The content of a file.
    Content {
        /// Name that the model is told, without folders.
        name: &'a str,
        #[serde(serialize_with = "as_base64")]
        content: &'a [u8],
        /// Expected type, such as `image/png`: a content of another type is refused. `None`: the service finds it.
        #[serde(skip_serializing_if = "Option::is_none")]
        media_type: Option<&'a str>,
    },
    /// An output file or an attachment of another task of the campaign.
    File {
        task: Uuid,
        file: &'a str,
        /// Name that the model is told, without folders. `None`: that of the file.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
    },
}

impl<'a> Attachment<'a> {
    pub fn content(name: &'a str, content: &'a [u8]) -> Self {
        Self::Content { name, content, media_type: None }
    }

    pub fn file(task: Uuid, file: &'a str) -> Self {
        Self::File { task, file, name: None }
    }

    /// Returns the attachment with the name that the model is told.
    pub fn named(self, name: &'a str) -> Self {
        match self {
            Self::Content { content, media_type, .. } => {
                Self::Content { name, content, media_type }
            }
            Self::File { task, file, .. } => Self::File { task, file, name: Some(name) },
        }
    }
}

fn as_base64<S: Serializer>(content: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&BASE64_STANDARD.encode(content))
}
