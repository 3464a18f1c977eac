//! Files for tasks.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::{Serialize, Serializer};
use uuid::Uuid;

/// A file that a task is given with its prompt: an image, a PDF or a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Attachment<'a> {
    /// The content of a file. The service finds its type.
    Content {
        /// Name that the model is told, without folders.
        name: &'a str,
        #[serde(serialize_with = "as_base64")]
        content: &'a [u8],
    },
    /// An output file or an attachment of another task of the campaign.
    File { task: Uuid, file: &'a str },
}

fn as_base64<S: Serializer>(content: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&BASE64_STANDARD.encode(content))
}
