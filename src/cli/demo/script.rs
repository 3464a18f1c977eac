//! Texts of the demo: the campaign, its agents and the operator's posts.

use std::{fs, ops::RangeInclusive, path::Path};

pub(super) const CAMPAIGN: &str = "The lighthouse series";

pub(super) const BRIEF: &str = "\
A series of twelve short parts about lighthouses and the people who kept them, one part a day from 1 December 2026. Each part \
names one lamp of the catalogue by its number and links to its page.";

pub(super) const CLIENT_CONTEXT: &str = "\
Client: Harbour & Light, maker of storm lamps since 1921 (an invented company). Readers: people who like the sea and distrust \
advertising. Tone: plain, exact, a little dry. Catalogue: https://harbour-light.example/catalogue, contract HL-2026-117.";

pub(super) const PLANNER: &str = "planner";
pub(super) const WRITERS: [&str; 3] = ["writer_a", "writer_b", "writer_c"];
pub(super) const REVIEWER: &str = "reviewer";

/// Each writer writes one part in each round.
pub(super) const N_ROUNDS: usize = 4;
/// A worker is killed in the middle of this part.
pub(super) const KILLED_PART: usize = 5;
/// After this round, the first writer's session expires.
pub(super) const ROUND_BEFORE_REST: usize = 3;
pub(super) const N_PARTS: usize = TITLES.len();

const TITLES: [&str; N_ROUNDS * WRITERS.len()] = [
    "The lamp before the tower",
    "Why the keeper counted the flashes",
    "A logbook without a single wreck",
    "The winter nobody came",
    "Fog, bells and other arguments",
    "The woman who refused the pension",
    "Oil, gas, electricity",
    "The last letter from the rock",
    "What the ships saw",
    "The cook who could not swim",
    "A coat of paint every spring",
    "The light that was left on",
];

/// Makes the answer long enough to kill the worker in the middle of it.
const KILLED_PART_DIRECTION: &str = " [[sim: words 400]]";

const SHIPPED_PLANNER: &str = include_str!("../../../config/agents/planner.md");
const SHIPPED_WRITER: &str = include_str!("../../../config/agents/copywriter.md");
const SHIPPED_REVIEWER: &str = include_str!("../../../config/agents/reviewer.md");
const SHIPPED_FLOW: &str = include_str!("../../../config/flows/reviewed-text.md");
const SHIPPED_SKILL: &str = include_str!("../../../config/skills/editorial-style/SKILL.md");

/// Writes the files of the agents that come with Dalsegno, with three writers instead of one. Each file tells the agent
/// its name, by which it recognises its line of a post.
pub(super) fn write_agents(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let write = |name: &str, shipped: &str, original: &str| {
        let renamed = shipped.replacen(&format!("name: {original}"), &format!("name: {name}"), 1);
        let text = format!("{}\n\nOn the board your name is @{name}.\n", renamed.trim_end());
        fs::write(folder.join(format!("{name}.md")), text)
    };
    write(PLANNER, SHIPPED_PLANNER, PLANNER)?;
    write(REVIEWER, SHIPPED_REVIEWER, REVIEWER)?;
    WRITERS.iter().try_for_each(|writer| write(writer, SHIPPED_WRITER, "copywriter"))
}

/// Writes a flow template for the agents of the demo: the built-in ones name a `copywriter`.
pub(super) fn write_flows(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let [writer, ..] = WRITERS;
    let text = SHIPPED_FLOW.replace("agent: copywriter", &format!("agent: {writer}"));
    fs::write(folder.join("reviewed-text.md"), text)
}

/// Writes the skill that the files of the writers list.
pub(super) fn write_skills(folder: &Path) -> std::io::Result<()> {
    let skill = folder.join("editorial-style");
    fs::create_dir_all(&skill)?;
    fs::write(skill.join("SKILL.md"), SHIPPED_SKILL)
}

pub(super) fn parts_of(round: usize) -> RangeInclusive<usize> {
    let first = (round - 1) * WRITERS.len() + 1;
    first..=first + WRITERS.len() - 1
}

/// Returns the post that starts a round. Writers' names are in backticks, so that the operator mentions the planner
/// only.
pub(super) fn hand_out(round: usize) -> String {
    let parts = parts_of(round);
    let (first, last) = (parts.start(), parts.end());
    let lines: Vec<String> =
        parts.clone().zip(WRITERS).map(|(number, writer)| line(number, writer)).collect();
    format!(
        "@{PLANNER} Parts {first} to {last} of {N_PARTS} are due. Say what holds, and hand them out:\n\n{}",
        lines.join("\n")
    )
}

pub(super) fn put_together() -> String {
    format!(
        "@{PLANNER} All {N_PARTS} parts are on the board. Put them together, and hand the whole on:\n\n\
         - `@{REVIEWER}` The series of {N_PARTS} parts: read it as one text, and give your verdict."
    )
}

/// Returns the identifiers of part `number`, which no summary may change or lose.
pub(super) fn identifiers(number: usize) -> [String; 3] {
    let lamp = 100 + number * 37;
    [
        format!("LH-{lamp:04}"),
        format!("https://harbour-light.example/lamps/{lamp}"),
        format!("2026-12-{number:02}"),
    ]
}

fn line(number: usize, writer: &str) -> String {
    let title = TITLES.get(number - 1).copied().unwrap_or_default();
    let [lamp, page, day] = identifiers(number);
    let direction = if number == KILLED_PART { KILLED_PART_DIRECTION } else { "" };
    format!(
        "- `@{writer}` Part {number} of {N_PARTS}: {title}. It names the lamp {lamp}, links to {page} and appears on {day}.{direction}"
    )
}
