//! Attachments as a caller sends them, and the checks that need no database.

use std::{collections::HashSet, fmt, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::{Error, Source, types};
use crate::domain::task_files::check_name;

/// A file for a task: its content, or a file of another task of the campaign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAttachment {
    /// Name that the model is told, without folders. By default that of `file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255, min_length = 1)]
    pub name: Option<String>,
    /// The content in Base64: a PNG, JPEG, GIF or WebP image, a PDF, or text in UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, content_encoding = "base64")]
    pub content: Option<FileBytes>,
    /// The type according to its sender. A content that contradicts it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The task of the campaign that has the file. Together with `file`, in place of `content`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Uuid>,
    /// Name of an output file of that task, or of one of its attachments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// Bytes of a file, in JSON as Base64.
#[derive(Clone, PartialEq, Eq)]
pub struct FileBytes(pub Arc<[u8]>);

/// Limits of the attachments of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub max_files: usize,
    pub max_file_bytes: u64,
    pub max_task_bytes: u64,
}

/// Bytes of the attachments of a task.
#[derive(Debug, Default)]
pub(super) struct Space(u64);

/// Checks names, sizes and types. Files of other tasks are checked when they are found.
pub fn check(limits: &Limits, attachments: &[NewAttachment]) -> Result<(), Error> {
    if attachments.len() > limits.max_files {
        return Err(Error::TooMany { n: attachments.len(), max: limits.max_files });
    }
    let (mut names, mut space) = (HashSet::new(), Space::default());
    for (number, attachment) in (1..).zip(attachments) {
        let name = attachment.name().ok_or(Error::Incomplete { number })?;
        check_name(name.as_bytes())
            .map_err(|reason| Error::Name { name: name.to_owned(), reason })?;
        if name.contains('/') {
            return Err(Error::Folder { name: name.to_owned() });
        }
        if !names.insert(name) {
            return Err(Error::Duplicate { name: name.to_owned() });
        }
        match attachment.source().ok_or(Error::Incomplete { number })? {
            Source::Upload { content, .. } => {
                space.take(limits, name, n_bytes(content))?;
                types::check(name, attachment.media_type.as_deref(), content)?;
            }
            Source::Reference { .. } => {}
        }
    }
    Ok(())
}

/// Describes attachments for the comparison under an idempotency key: contents by their digests, references as they are written.
pub fn digest_text(attachments: &[NewAttachment]) -> Option<String> {
    let one = |attachment: &NewAttachment| match attachment.source() {
        Some(Source::Upload { name, content }) => {
            json!([name, hex::encode(Sha256::digest(content))])
        }
        Some(Source::Reference { name, task_id, file }) => json!([name, task_id, file]),
        None => json!(null),
    };
    let all: Vec<_> = attachments.iter().map(one).collect();
    (!all.is_empty()).then(|| format!("attachments {}", json!(all)))
}

impl NewAttachment {
    /// Builds an attachment from a file.
    pub fn upload(name: impl Into<String>, content: Vec<u8>) -> Self {
        let content = Some(FileBytes(content.into()));
        Self { name: Some(name.into()), content, media_type: None, task: None, file: None }
    }

    /// Returns the name that the model is told.
    fn name(&self) -> Option<&str> {
        let of_file = || self.file.as_deref()?.rsplit('/').next();
        self.name.as_deref().or_else(of_file)
    }

    /// Returns the place of the content; `None` if the fields do not fit together.
    pub(super) fn source(&self) -> Option<Source<'_>> {
        let name = self.name()?;
        match (&self.content, self.task, &self.file) {
            (Some(FileBytes(content)), None, None) => Some(Source::Upload { name, content }),
            (None, Some(task_id), Some(file)) if self.media_type.is_none() => {
                Some(Source::Reference { name, task_id, file })
            }
            _ => None,
        }
    }
}

impl Space {
    /// Takes the space of a file, if it fits.
    pub(super) fn take(&mut self, limits: &Limits, name: &str, n_bytes: u64) -> Result<(), Error> {
        if n_bytes > limits.max_file_bytes {
            let max = limits.max_file_bytes;
            return Err(Error::TooLong { name: name.to_owned(), n_bytes, max });
        }
        self.0 = self.0.saturating_add(n_bytes);
        match self.0 > limits.max_task_bytes {
            true => Err(Error::AllTooLong {
                name: name.to_owned(),
                n_bytes: self.0,
                max: limits.max_task_bytes,
            }),
            false => Ok(()),
        }
    }
}

fn n_bytes(content: &[u8]) -> u64 {
    u64::try_from(content.len()).unwrap_or(u64::MAX)
}

impl Serialize for FileBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for FileBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let content = BASE64_STANDARD.decode(text).map_err(|error| {
            de::Error::custom(format_args!("the content of an attachment is not Base64: {error}"))
        })?;
        Ok(Self(content.into()))
    }
}

/// Without the content, which is long and belongs to the campaign.
impl fmt::Debug for FileBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { max_files: 2, max_file_bytes: 10, max_task_bytes: 15 };

    fn refusal(attachments: &[NewAttachment]) -> String {
        check(&LIMITS, attachments).unwrap_err().to_string()
    }

    fn text(name: &str, n_bytes: usize) -> NewAttachment {
        NewAttachment::upload(name, vec![b'a'; n_bytes])
    }

    fn reference(name: Option<&str>, file: &str) -> NewAttachment {
        let (name, file) = (name.map(str::to_owned), Some(file.to_owned()));
        NewAttachment { name, content: None, media_type: None, task: Some(Uuid::nil()), file }
    }

    #[test]
    fn limits_names_and_sources_are_checked() {
        assert!(check(&LIMITS, &[text("a", 10), text("b", 5)]).is_ok());
        assert!(check(&LIMITS, &[reference(None, "charts/a.png"), text("b", 5)]).is_ok());
        let three = [text("a", 1), text("b", 1), text("c", 1)];
        assert!(refusal(&three).contains("tasks.max_attachments allows 2"));
        assert!(refusal(&[text("a", 11)]).contains("has 11 bytes: tasks.max_attachment_bytes"));
        let both = [text("a", 10), text("b", 6)];
        assert!(refusal(&both).contains("has 16 bytes of attachments"));
        assert!(refusal(&[text("a", 1), text("a", 1)]).contains("two attachments are named `a`"));
        assert!(refusal(&[reference(None, "x/a"), text("a", 1)]).contains("named `a`"));
        for name in ["", "../x", "a\nb", "/x"] {
            assert!(refusal(&[text(name, 1)]).contains("cannot be used"), "{name}");
        }
        assert!(refusal(&[text("a/b", 1)]).contains("no folders"));
        let both = NewAttachment { task: Some(Uuid::nil()), ..text("a", 1) };
        let typed = NewAttachment { media_type: Some("text/plain".into()), ..reference(None, "a") };
        for incomplete in [both, typed, NewAttachment { content: None, ..text("a", 1) }] {
            assert!(refusal(&[incomplete]).starts_with("attachment 1 is incomplete"));
        }
    }

    #[test]
    fn a_content_is_base64_in_json_and_its_digest_identifies_it() {
        let attachment = text("a.txt", 3);
        let json = serde_json::to_value(&attachment).unwrap();
        assert_eq!(json, json!({ "name": "a.txt", "content": "YWFh" }));
        assert_eq!(serde_json::from_value::<NewAttachment>(json).unwrap(), attachment);
        let wrong = json!({ "name": "a", "content": "???" });
        let error = serde_json::from_value::<NewAttachment>(wrong).unwrap_err().to_string();
        assert!(error.contains("is not Base64"), "{error}");
        let of = |attachments: &[NewAttachment]| digest_text(attachments);
        assert_eq!(of(&[]), None);
        assert_ne!(of(&[text("a", 3)]), of(&[text("a", 4)]));
        assert_ne!(of(&[text("a", 3)]), of(&[text("b", 3)]));
        assert_ne!(of(&[text("a", 3), text("b", 3)]), of(&[text("b", 3), text("a", 3)]));
        assert_eq!(format!("{attachment:?}").matches("YWFh").count(), 0);
    }
}
