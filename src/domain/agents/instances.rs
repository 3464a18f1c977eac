//! Names of agent instances, as people write them.
//!
//! ```text
//! curator        the agent `curator`, instance `main`
//! curator_2      instance `2` of it, unless an agent's file has that very name
//! curator/2      always instance `2` of the agent `curator`
//! curator/eu     instance `eu`
//! ```
//!
//! [`Catalogue::resolve_addressee`] reads such names. [`Catalogue::format_name`] writes them, or [`agent_name`] where no catalogue is at hand,
//! so that each written name reads back as the same instance.

use std::sync::Arc;

use super::{Agent, Catalogue, FileKind, LookupError, is_name};

/// The default instance of an agent.
pub const MAIN: &str = "main";

/// Formats an agent with its instance: `curator`, `curator/2`.
pub fn agent_name(agent: &str, instance: &str) -> String {
    if instance == MAIN { agent.to_owned() } else { format!("{agent}/{instance}") }
}

/// The agent and the instance that a name refers to.
#[derive(Debug, Clone, Copy)]
pub struct AgentInstance<'a> {
    /// From the catalogue.
    pub agent: &'a Arc<Agent>,
    pub instance: &'a str,
}

impl Catalogue {
    /// Resolves `written` to an agent and an instance. `instance` is the one given beside it, or [`MAIN`].
    pub fn resolve_addressee<'a>(
        &'a self,
        written: &'a str,
        instance: &'a str,
    ) -> Result<AgentInstance<'a>, LookupError> {
        let (agent, instance) = self.parse_name(written, instance)?;
        Ok(AgentInstance { agent: self.agent(agent)?, instance })
    }

    /// Splits `written` into the names of an agent and an instance. The agent's file may be broken.
    pub fn parse_name<'a>(
        &self,
        written: &'a str,
        instance: &'a str,
    ) -> Result<(&'a str, &'a str), LookupError> {
        let (agent, named) = self.split_name(written)?;
        self.check_name(agent)?;
        let named = named.unwrap_or(MAIN);
        match (named, instance) {
            (named, MAIN) => Ok((agent, named)),
            (MAIN, instance) => Ok((agent, instance)),
            (named, instance) if named == instance => Ok((agent, instance)),
            (named, instance) => Err(two_instances(written, agent, named, instance)),
        }
    }

    /// Splits the name in a filter into an agent and an instance. Without an instance, all instances are meant. The agent's file may be
    /// gone: its tasks and sessions can still be found.
    pub fn parse_filter<'a>(
        &self,
        written: &'a str,
        instance: Option<&'a str>,
    ) -> Result<(&'a str, Option<&'a str>), LookupError> {
        let (agent, named) = self.split_name(written)?;
        match (named, instance) {
            (Some(named), Some(instance)) if named != instance => {
                Err(two_instances(written, agent, named, instance))
            }
            (named, instance) => Ok((agent, named.or(instance))),
        }
    }

    /// Checks the name of an agent all of whose instances are meant. For the name of an instance, the error names the agent.
    pub fn check_agent(&self, written: &str) -> Result<(), LookupError> {
        match self.split_name(written) {
            Ok((agent, Some(_))) if self.has_agent(agent) => {
                let advice = format!(
                    "it is an instance, and the command covers all instances of an agent; name `{agent}`"
                );
                Err(unknown(written, advice))
            }
            _ => self.check_name(written),
        }
    }

    /// Splits a name into those of an agent and of an instance, if it names one.
    fn split_name<'a>(&self, written: &'a str) -> Result<(&'a str, Option<&'a str>), LookupError> {
        match (written.split_once('/'), numbered(written)) {
            (Some((agent, named)), _) if is_name(named) => Ok((agent, Some(named))),
            (Some(_), _) => Err(unknown(written, "write it as `curator/2`".to_owned())),
            (None, Some((agent, number))) if !self.has_agent(written) && self.has_agent(agent) => {
                Ok((agent, Some(number)))
            }
            (None, _) => Ok((written, None)),
        }
    }

    /// Formats the name of an instance as people write it. The agent's file may be gone.
    pub fn format_name(&self, agent: &str, instance: &str) -> String {
        if instance == MAIN {
            return agent.to_owned();
        }
        let joined = format!("{agent}_{instance}");
        let reads_back = numbered(&joined) == Some((agent, instance)) && !self.has_agent(&joined);
        if reads_back { joined } else { format!("{agent}/{instance}") }
    }
}

/// Splits `curator_2` into `curator` and `2`. The first copy has no number. Numbers do not begin with 0.
fn numbered(written: &str) -> Option<(&str, &str)> {
    let (agent, number) = written.rsplit_once('_')?;
    let is_number = number.bytes().all(|b| b.is_ascii_digit()) && !number.starts_with('0');
    (is_number && !number.is_empty() && !agent.is_empty()).then_some((agent, number))
}

fn two_instances(written: &str, agent: &str, named: &str, instance: &str) -> LookupError {
    let advice = format!(
        "it names instance `{named}` of `{agent}`, but the request also names instance `{instance}`; give only one of them"
    );
    unknown(written, advice)
}

fn unknown(written: &str, advice: String) -> LookupError {
    LookupError::Unknown { noun: FileKind::Agent, name: written.to_owned(), advice }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_number_after_the_last_underscore_names_an_instance() {
        assert_eq!(numbered("curator_2"), Some(("curator", "2")));
        assert_eq!(numbered("art_curator_12"), Some(("art_curator", "12")));
        for plain in
            ["curator", "curator_", "_2", "curator_02", "curator_0", "curator_2b", "curator-2"]
        {
            assert_eq!(numbered(plain), None, "{plain}");
        }
    }
}
