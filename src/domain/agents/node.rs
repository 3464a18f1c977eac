//! A node: a named place in the work, with instructions and required readings.
//!
//! Readings are files below the folder of the nodes: neither `..`, an absolute path nor a symbolic link leads out of it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::servers::ParseContext;
use crate::domain::{
    files::{self, Fields, File, Problem},
    text,
};

/// Maximum size of instructions and readings together: all of it enters the conversation at each entry.
pub(super) const ENTRY_MAX_BYTES: usize = 256 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Node {
    pub name: String,
    pub description: String,
    /// Required readings: paths as the node's file names them.
    pub readings: Vec<String>,
    /// Text that a session gets when it arrives at the node.
    #[serde(skip)]
    pub entry: String,
}

/// Reads a node. Paths of readings are relative to `folder`.
pub(super) fn parse(
    file: &File,
    folder: &Path,
    around: &ParseContext<'_>,
) -> Result<Node, Vec<Problem>> {
    let (mut fields, document) = file.open()?;
    let (name, description, readings) = read_keys(&mut fields, &file.name);
    let (contract, fix) = (document.text(), "the instructions for agents that enter the node");
    fields.check_text("text after the front matter", &contract, ENTRY_MAX_BYTES, fix);
    let texts = read_all(&mut fields, &readings, folder, around);
    let entry = entry(&name, &contract, &texts);
    if entry.len() > ENTRY_MAX_BYTES {
        let message = format!(
            "with the instructions of the node they have {} bytes, at most {ENTRY_MAX_BYTES} are allowed",
            entry.len()
        );
        fields.fail("readings", message, "fewer or shorter files");
    }
    fields.finish(Node { name, description, readings, entry })
}

/// Reads the keys: name, description, readings.
pub(super) fn read_keys(fields: &mut Fields<'_>, file_name: &str) -> (String, String, Vec<String>) {
    let name = fields.name(file_name);
    let description = fields.required("description", "one line that describes the node");
    (name, description, fields.names("readings"))
}

/// A reading with its name.
type Text<'a> = (&'a str, String);

fn read_all<'a>(
    fields: &mut Fields<'_>,
    readings: &'a [String],
    folder: &Path,
    around: &ParseContext<'_>,
) -> Vec<Text<'a>> {
    let mut texts = Vec::with_capacity(readings.len());
    for name in readings {
        let path: PathBuf = folder.join(name);
        around.named.borrow_mut().push(path.clone());
        match resolve_inside(&path, folder).and_then(|path| read(&path)) {
            Ok(text) => texts.push((name.as_str(), text)),
            Err(message) => {
                let fix = format!(
                    "a file of UTF-8 text with at most {ENTRY_MAX_BYTES} bytes inside {0}, by its path from there",
                    folder.display()
                );
                fields.fail("readings", format!("`{name}` {message}"), fix);
            }
        }
    }
    texts
}

/// Resolves symbolic links. A reading outside of the folder is refused, because its text is sent to the provider at each entry.
fn resolve_inside(path: &Path, folder: &Path) -> Result<PathBuf, String> {
    let real = |path: &Path| path.canonicalize().map_err(|error| unreadable(&error));
    let (path, folder) = (real(path)?, real(folder)?);
    match path.starts_with(&folder) {
        true => Ok(path),
        false => Err(format!("leads out of {}", folder.display())),
    }
}

fn unreadable(error: &std::io::Error) -> String {
    format!("cannot be read: {error}")
}

fn read(path: &Path) -> Result<String, String> {
    let text = files::read(path, ENTRY_MAX_BYTES as u64).map_err(|error| error.to_string())?;
    text::check("file", &text, ENTRY_MAX_BYTES)
        .map_err(|error| format!("is not valid: {error}"))?;
    Ok(text)
}

fn entry(name: &str, contract: &str, texts: &[Text<'_>]) -> String {
    let mut entry = format!("You are at the node `{name}` now. What it asks for:\n\n{contract}");
    for (name, text) in texts {
        entry.push_str(&format!("\n\nRequired reading `{name}`:\n\n{}", text.trim_end()));
    }
    entry
}
