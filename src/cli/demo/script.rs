//! What the demo asks for: the campaign and the words of its tasks. Everything it prints comes from the tables.

use std::ops::RangeInclusive;

pub(super) const CAMPAIGN: &str = "The lighthouse series";

pub(super) const BRIEF: &str = "\
A series of ten short parts about lighthouses and the people who kept them, one part a day from 1 December 2026. Each part \
names one lamp of the catalogue by its number and links to its page.";

pub(super) const CLIENT_CONTEXT: &str = "\
Client: Harbour & Light, maker of storm lamps since 1921 (an invented company). Readers: people who like the sea and distrust \
advertising. Tone: plain, exact, a little dry. Catalogue: https://harbour-light.example/catalogue, contract HL-2026-117.";

pub(super) const PLAN: &str =
    "Plan the series: ten parts, their order, and what each of them has to leave to the next one.";

/// In the middle of this part a worker is killed.
pub(super) const KILLED_PART: usize = 4;
/// After this part the conversation rests until it has expired.
pub(super) const LAST_PART_BEFORE_REST: usize = 8;
pub(super) const N_PARTS: usize = TITLES.len();

const TITLES: [&str; 10] = [
    "The lamp before the tower",
    "Why the keeper counted the flashes",
    "A logbook without a single wreck",
    "The winter nobody came",
    "Fog, bells and other arguments",
    "The woman who refused the pension",
    "Oil, gas, electricity",
    "The last letter from the rock",
    "What the ships saw",
    "The light that was left on",
];

/// Long enough that there is a middle in which the worker can be killed.
const KILLED_PART_DIRECTION: &str = " [[sim: words 400]]";

pub(super) fn part(number: usize) -> String {
    let title = TITLES.get(number - 1).copied().unwrap_or_default();
    let [lamp, page, day] = identifiers(number);
    let direction = if number == KILLED_PART { KILLED_PART_DIRECTION } else { "" };
    format!(
        "Write part {number} of {N_PARTS}: {title}.{direction}\n\n\
         It names the lamp {lamp}, links to {page} and appears on {day}."
    )
}

/// What part `number` has to keep letter by letter, and what no summary may lose.
pub(super) fn identifiers(number: usize) -> [String; 3] {
    let lamp = 100 + number * 37;
    [
        format!("LH-{lamp:04}"),
        format!("https://harbour-light.example/lamps/{lamp}"),
        format!("2026-12-{number:02}"),
    ]
}

pub(super) fn review(parts: RangeInclusive<usize>, drafts: &[String]) -> String {
    let (first, last) = (parts.start(), parts.end());
    let openings: Vec<String> =
        drafts.iter().map(|draft| format!("- {}", opening(draft))).collect();
    format!("Review the openings of parts {first} to {last}.\n\n{}", openings.join("\n"))
}

/// The beginning of a draft, without what the simulation says of itself.
fn opening(draft: &str) -> String {
    let is_own = |line: &&str| {
        !line.is_empty()
            && !["(Simulated", "Follows on", "Context:"].iter().any(|p| line.starts_with(p))
    };
    let text: Vec<&str> = draft.lines().filter(is_own).take(2).collect();
    text.join(": ").chars().take(220).collect()
}
