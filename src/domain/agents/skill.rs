//! A skill: text that an agent is given on every call.

use serde::{Deserialize, Serialize};

use crate::domain::files::{Fields, File, Problem};

/// The longest skill, in bytes.
pub(super) const TEXT_MAX_BYTES: usize = 128 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Skill {
    pub name: String,
    pub description: String,
    #[serde(skip)]
    pub text: String,
}

/// Reads a skill. Its folder has its name.
pub(super) fn parse(file: &File) -> Result<Skill, Vec<Problem>> {
    let (mut fields, document) = file.open()?;
    let (name, description) = read(&mut fields, &file.name);
    let text = document.text();
    let fix = "the instructions of the skill";
    fields.check_text("text after the front matter", &text, TEXT_MAX_BYTES, fix);
    fields.finish(Skill { name, description, text })
}

/// Reads the keys: name and description.
pub(super) fn read(fields: &mut Fields<'_>, file_name: &str) -> (String, String) {
    let name = fields.name(file_name);
    (name, fields.required("description", "one line that says when to use the skill"))
}
