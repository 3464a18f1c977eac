//! Names of agents, instances, skills, nodes and templates.

/// The longest name. Names are part of lanes, paths and addresses.
pub(in crate::domain) const MAX_BYTES: usize = 64;

/// The names that [`is_name`] accepts, for JSON Schemas.
pub(super) const NAME_PATTERN: &str = "^[a-z0-9][a-z0-9_-]{0,63}$";

/// True for a text that can name an agent, an instance, a skill, a node or a template.
pub fn is_name(text: &str) -> bool {
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= MAX_BYTES
        && text.starts_with(fine)
        && text.chars().all(|c| fine(c) || c == '-' || c == '_')
}

/// The closest of the known names, if one is close.
pub fn nearest<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (strsim::jaro_winkler(text, name), name))
        .filter(|(score, _)| *score > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}
