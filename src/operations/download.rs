//! Operations that answer with the bytes of a file.

use serde::{Serialize, de::DeserializeOwned};
use utoipa::ToSchema;

use super::{Call, Refusal, Spec};

/// An operation that answers with a file. `Self` is the input, like that of an [`Operation`](super::Operation).
pub trait Download: Serialize + DeserializeOwned + ToSchema + Send + 'static {
    const SPEC: Spec;

    fn download(self, call: &Call) -> impl Future<Output = Result<DownloadedFile, Refusal>> + Send;
}

/// A file, as its reader saves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DownloadedFile {
    /// Without folders.
    pub name: String,
    /// A type that no browser runs.
    pub media_type: String,
    pub content: Vec<u8>,
}
