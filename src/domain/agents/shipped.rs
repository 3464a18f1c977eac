//! The agents, skills and nodes that come with Dalsegno, for an installation that has no folder of its own.

use super::catalogue::File;

pub(super) fn agents() -> Vec<File> {
    vec![
        file("copywriter", include_str!("../../../config/agents/copywriter.md")),
        file("planner", include_str!("../../../config/agents/planner.md")),
        file("reviewer", include_str!("../../../config/agents/reviewer.md")),
    ]
}

pub(super) fn skills() -> Vec<File> {
    vec![file("editorial-style", include_str!("../../../config/skills/editorial-style/SKILL.md"))]
}

pub(super) fn nodes() -> Vec<File> {
    vec![file("meta-analysis", include_str!("../../../config/nodes/meta-analysis.md"))]
}

fn file(name: &str, content: &str) -> File {
    File {
        path: format!("{name} (built in)"),
        name: name.to_owned(),
        content: Ok(content.to_owned()),
    }
}
