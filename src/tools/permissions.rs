//! Permissions for these tools in an agent's file, in the syntax of Claude Code's rules.
//!
//! ```text
//! mcp__dalsegno, mcp__dalsegno__*    all tools of its role
//! mcp__dalsegno__dispatch            this one; some tools are granted beyond the role by name only
//! ```

use crate::domain::agents::{Grants, OWN_SERVER};

/// Name of the server that offers the tools. A server in an agent's file cannot have it.
pub const SERVER: &str = OWN_SERVER;

/// Permission of an agent's file for one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Permission {
    Nothing,
    /// Granted together with all other tools.
    All,
    ByName,
}

/// Returns true if a file grants any of these tools. A turn without them needs no server and no token.
pub fn are_granted(grants: &Grants) -> bool {
    grants.tools.iter().any(|rule| NamedTools::parse(rule).is_some())
        && !grants
            .disallowed_tools
            .iter()
            .any(|rule| NamedTools::parse(rule) == Some(NamedTools::All))
}

/// Returns the tool of the service that a rule names, without a check that it exists.
pub(super) fn named_tool(rule: &str) -> Option<&str> {
    match NamedTools::parse(rule) {
        Some(NamedTools::One(tool)) => Some(tool),
        Some(NamedTools::All) | None => None,
    }
}

impl Permission {
    pub(super) fn of(grants: &Grants, tool: &str) -> Self {
        let names = |rules: &[String], named| {
            rules.iter().any(|rule| NamedTools::parse(rule) == Some(named))
        };
        let (all, one) = (NamedTools::All, NamedTools::One(tool));
        let is_denied =
            names(&grants.disallowed_tools, all) || names(&grants.disallowed_tools, one);
        match (is_denied, names(&grants.tools, one), names(&grants.tools, all)) {
            (true, _, _) | (false, false, false) => Self::Nothing,
            (false, true, _) => Self::ByName,
            (false, false, true) => Self::All,
        }
    }
}

/// Tools that a rule of the file names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamedTools<'a> {
    All,
    One(&'a str),
}

impl<'a> NamedTools<'a> {
    /// Parses a rule. Returns `None` if it is about other tools.
    fn parse(rule: &'a str) -> Option<Self> {
        let rest = rule.strip_prefix("mcp__")?.strip_prefix(SERVER)?;
        match rest.strip_prefix("__") {
            None => rest.is_empty().then_some(Self::All),
            Some("*") => Some(Self::All),
            Some(tool) => Some(Self::One(tool)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(tools: &[&str], denied: &[&str]) -> Grants {
        let own = |rules: &[&str]| rules.iter().map(|rule| (*rule).to_owned()).collect();
        Grants { tools: own(tools), disallowed_tools: own(denied), ..Grants::default() }
    }

    #[test]
    fn an_agent_file_allows_all_or_some_tools_and_denies_others() {
        let leave =
            |tools: &[&str], denied: &[&str]| Permission::of(&grants(tools, denied), "board_post");
        assert_eq!(leave(&[], &[]), Permission::Nothing);
        assert_eq!(
            leave(&["Read", "mcp__board__board_post", "mcp__dalsegnox"], &[]),
            Permission::Nothing
        );
        assert_eq!(leave(&["mcp__dalsegno__status"], &[]), Permission::Nothing);
        for all in ["mcp__dalsegno", "mcp__dalsegno__*"] {
            assert_eq!(leave(&[all], &[]), Permission::All);
            assert_eq!(leave(&["mcp__dalsegno__board_post"], &[all]), Permission::Nothing);
            assert_eq!(leave(&[all], &["mcp__dalsegno__board_post"]), Permission::Nothing);
            assert_eq!(leave(&[all], &["mcp__dalsegno__status"]), Permission::All);
        }
        assert_eq!(leave(&["mcp__dalsegno", "mcp__dalsegno__board_post"], &[]), Permission::ByName);
    }

    #[test]
    fn only_an_agent_file_that_names_the_tools_allows_them() {
        assert!(!are_granted(&grants(&["Read", "mcp__board"], &[])));
        assert!(are_granted(&grants(&["mcp__dalsegno__status"], &["mcp__dalsegno__dispatch"])));
        assert!(!are_granted(&grants(&["mcp__dalsegno__status"], &["mcp__dalsegno__*"])));
    }
}
