//! Files that people write for an installation: agents, skills, nodes and templates of flows, each YAML front matter and then text.
//!
//! A file is taken as a whole or not at all. Every problem of every file is reported at once, with file, line and what to write instead.

mod fields;
mod folder;
mod format;
mod front_matter;
mod key;
mod name;
mod problem;
mod reader;
mod source;

pub(super) use self::{
    fields::Fields,
    folder::{markdown, read_folder, unreadable_folder},
    front_matter::{Document, FrontMatter, ListItem},
    name::MAX_BYTES as NAME_MAX_BYTES,
    problem::list_problems,
};
pub use self::{
    folder::describe_place,
    format::{FileFormat, KeyText},
    key::{Key, ValueType},
    name::{is_name, nearest},
    problem::Problem,
    reader::{Error, FIX, MAX_BYTES, read},
    source::{SourceFile, SourceKind},
};

/// A file that was found.
pub(super) struct File {
    /// The path, as shown to people.
    pub path: String,
    /// The name that follows from the path.
    pub name: String,
    /// The text, or the reason why it cannot be read.
    pub content: Result<String, String>,
    /// True: it comes with Dalsegno.
    pub is_built_in: bool,
}

impl File {
    /// A file that comes with Dalsegno.
    pub fn built_in(name: &str, content: &str) -> Self {
        Self {
            path: format!("{name} (built in)"),
            name: name.to_owned(),
            content: Ok(content.to_owned()),
            is_built_in: true,
        }
    }

    /// Parses the front matter, and returns its keys and the rest.
    pub fn open(&self) -> Result<(Fields<'_>, Document<'_>), Vec<Problem>> {
        let content = self.content.as_deref();
        let content = content.map_err(|error| vec![Problem::of_file(&self.path, error, FIX)])?;
        let mut document = Document::parse(&self.path, content).map_err(|problem| vec![problem])?;
        let values = std::mem::take(&mut document.values);
        Ok((Fields::new(&self.path, values), document))
    }
}
