//! The agents, skills and nodes that come with Dalsegno, for an installation that has no folder of its own.

use crate::domain::files::File;

pub(super) fn agents() -> Vec<File> {
    vec![
        File::built_in("copywriter", include_str!("../../../config/agents/copywriter.md")),
        File::built_in("planner", include_str!("../../../config/agents/planner.md")),
        File::built_in("reviewer", include_str!("../../../config/agents/reviewer.md")),
    ]
}

pub(super) fn skills() -> Vec<File> {
    vec![File::built_in(
        "editorial-style",
        include_str!("../../../config/skills/editorial-style/SKILL.md"),
    )]
}

pub(super) fn nodes() -> Vec<File> {
    vec![File::built_in("meta-analysis", include_str!("../../../config/nodes/meta-analysis.md"))]
}
