//! A skill: text that an agent is given on every call.

use serde::{Deserialize, Serialize};

use crate::domain::files::{File, Problem};

/// The longest skill, in bytes.
const TEXT_MAX_BYTES: usize = 128 * 1024;

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
    let name = fields.name(&file.name);
    let description = fields.required("description", "one line that says when to use the skill");
    let text = document.text();
    let fix = "the instructions of the skill";
    fields.check_text("text after the front matter", &text, TEXT_MAX_BYTES, fix);
    fields.finish(Skill { name, description, text })
}
