//! The files of an installation as people wrote them, to be shown.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{File, Problem};

/// The object that a file describes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    Agent,
    Skill,
    Node,
    /// A flow template.
    Flow,
}

/// A file of an agent, a skill, a node or a flow template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SourceFile {
    #[schema(inline)]
    pub kind: SourceKind,
    pub name: String,
    /// The path on the host of the service.
    pub path: String,
    /// True: the file comes with Dalsegno. A folder of the installation replaces all files of its kind.
    pub is_built_in: bool,
    /// A file with problems is refused.
    pub problems: Vec<Problem>,
    /// `None`: the file cannot be read.
    #[serde(skip)]
    pub text: Option<Arc<str>>,
}

impl SourceKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Skill => "skill",
            Self::Node => "node",
            Self::Flow => "flow",
        }
    }
}

impl SourceFile {
    /// `problems`: those of this file are taken, the others ignored.
    pub(in crate::domain) fn of(kind: SourceKind, file: &File, problems: &[Problem]) -> Self {
        Self {
            kind,
            name: file.name.clone(),
            path: file.path.clone(),
            is_built_in: file.is_built_in,
            problems: problems.iter().filter(|it| it.file == file.path).cloned().collect(),
            text: file.content.as_deref().ok().map(Arc::from),
        }
    }
}
