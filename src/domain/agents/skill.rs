//! One skill: words that are given to an agent on every call.

use serde::Serialize;

use super::{Problem, fields::Fields, front_matter};
use crate::domain::text;

/// The longest skill, in bytes.
const TEXT_MAX_BYTES: usize = 128 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Skill {
    pub name: String,
    pub description: String,
    #[serde(skip)]
    pub text: String,
}

/// Reads a skill. `folder` is the name of the folder that its file is in.
pub(super) fn parse(file: &str, folder: &str, content: &str) -> Result<Skill, Vec<Problem>> {
    let document = front_matter::parse(file, content).map_err(|problem| vec![problem])?;
    let mut fields = Fields::new(file, document.values);
    let name = fields.name(folder);
    let description = fields.required("description", "when the skill helps, in a line");
    if let Err(error) = text::check("text after the front matter", &document.text, TEXT_MAX_BYTES) {
        fields.whole(error.to_string(), "what the agent should know or do");
    }
    fields.reject_unknown();
    match fields.problems.is_empty() {
        true => Ok(Skill { name, description, text: document.text }),
        false => Err(fields.problems),
    }
}
