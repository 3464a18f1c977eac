//! One of several copies of an agent, as people write it.
//!
//! ```text
//! curator        the agent `curator`, instance `main`
//! curator_2      instance `2` of it, unless an agent's file has that very name
//! curator/2      the same, whatever files there are
//! curator/eu     instance `eu`
//! ```
//!
//! [`Catalogue::addressed`] reads it and [`Catalogue::written`] writes it, and nobody else does either: what one of them writes
//! the other reads as the same.

use std::sync::Arc;

use super::{Agent, Catalogue, LookupError, Noun, is_name};

/// The instance of whoever names none.
pub const MAIN: &str = "main";

/// Whom a name means.
#[derive(Debug, Clone, Copy)]
pub struct Addressed<'a> {
    /// From the catalogue.
    pub agent: &'a Arc<Agent>,
    pub instance: &'a str,
}

impl Catalogue {
    /// Whom `written` means. `instance` is what was said beside it, [`MAIN`] where nothing was.
    pub fn addressed<'a>(
        &'a self,
        written: &'a str,
        instance: &'a str,
    ) -> Result<Addressed<'a>, LookupError> {
        let (agent, instance) = self.named(written, instance)?;
        Ok(Addressed { agent: self.agent(agent)?, instance })
    }

    /// The names of the agent and of the instance that `written` means. The agent's file may be broken.
    pub fn named<'a>(
        &self,
        written: &'a str,
        instance: &'a str,
    ) -> Result<(&'a str, &'a str), LookupError> {
        let (agent, named) = match (written.split_once('/'), numbered(written)) {
            (Some((agent, named)), _) if is_name(named) => (agent, named),
            (Some(_), _) => return Err(unknown(written, "write it as `curator/2`".to_owned())),
            (None, Some((agent, number))) if !self.has_agent(written) && self.has_agent(agent) => {
                (agent, number)
            }
            (None, _) => (written, MAIN),
        };
        self.check_name(agent)?;
        match (named, instance) {
            (named, MAIN) => Ok((agent, named)),
            (MAIN, instance) => Ok((agent, instance)),
            (named, instance) if named == instance => Ok((agent, instance)),
            (named, instance) => {
                let advice = format!(
                    "it means instance `{named}` of `{agent}`, and instance `{instance}` was asked for beside it; say one of them"
                );
                Err(unknown(written, advice))
            }
        }
    }

    /// How people write an instance of an agent, which may have no file any more.
    pub fn written(&self, agent: &str, instance: &str) -> String {
        if instance == MAIN {
            return agent.to_owned();
        }
        let joined = format!("{agent}_{instance}");
        let reads_back = numbered(&joined) == Some((agent, instance)) && !self.has_agent(&joined);
        if reads_back { joined } else { format!("{agent}/{instance}") }
    }
}

/// `curator` and `2` of `curator_2`. The first copy has no number, and no number begins with 0.
fn numbered(written: &str) -> Option<(&str, &str)> {
    let (agent, number) = written.rsplit_once('_')?;
    let is_number = number.bytes().all(|b| b.is_ascii_digit()) && !number.starts_with('0');
    (is_number && !number.is_empty() && !agent.is_empty()).then_some((agent, number))
}

fn unknown(written: &str, advice: String) -> LookupError {
    LookupError::Unknown { noun: Noun::Agent, name: written.to_owned(), advice }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_number_behind_the_last_line_is_one_of_several() {
        assert_eq!(numbered("curator_2"), Some(("curator", "2")));
        assert_eq!(numbered("art_curator_12"), Some(("art_curator", "12")));
        for plain in
            ["curator", "curator_", "_2", "curator_02", "curator_0", "curator_2b", "curator-2"]
        {
            assert_eq!(numbered(plain), None, "{plain}");
        }
    }
}
