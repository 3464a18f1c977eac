//! The improvement phase of a template: after the steps, each role looks back in its own conversation at the node `meta-analysis`. Then an
//! agent combines the results in a fresh session.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::{
    start::Draft,
    steps::{StepContext, check_node, check_prompt, report_lookup},
};
use crate::domain::{
    agents::{Catalogue, MAIN, SessionMode as Mode},
    files::Fields,
    tasks::{OnFailure, TaskLink},
};

/// The node at which the roles look back.
pub(super) const NODE: &str = "meta-analysis";
/// The names of the steps: that of the roles, and that of the agent that combines their results.
pub(super) const STEPS: [&str; 2] = [NODE, "improvement"];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = FlowImprovement)]
pub struct Improvement {
    /// The agent that combines the results of the roles, in a fresh session.
    pub agent: String,
    /// The prompt of each role.
    pub reflection: String,
    /// The prompt of that agent.
    pub prompt: String,
}

impl Improvement {
    /// Builds the tasks that follow those of the steps. A role whose tasks all have sessions of their own has no conversation to look back at.
    pub(super) fn drafts<'a>(
        &'a self,
        catalogue: &Catalogue,
        before: &[Draft<'a>],
        [reflection, prompt]: [String; 2],
    ) -> Vec<Draft<'a>> {
        let after = last_places(before);
        let [look_back, combine] = STEPS;
        let mut known: HashSet<(&str, &str)> = HashSet::new();
        let roles = before.iter().filter(|draft| {
            keeps_conversation(catalogue, draft)
                && known.insert((draft.agent, draft.instance.as_str()))
        });
        let mut drafts: Vec<Draft<'a>> = roles
            .map(|role| Draft {
                step: look_back,
                agent: role.agent,
                instance: role.instance.clone(),
                node: Some(NODE),
                session: Some(Mode::Continue),
                on_failure: OnFailure::Run,
                prompt: reflection.clone(),
                fields: None,
                result_schema: None,
                within_secs: None,
                after: after.clone(),
            })
            .collect();
        let reflections = before.len()..before.len() + drafts.len();
        let reflections = reflections.map(|item| TaskLink::Item { item }).collect();
        drafts.push(Draft {
            step: combine,
            agent: &self.agent,
            instance: MAIN.to_owned(),
            node: None,
            session: Some(Mode::Fresh),
            on_failure: OnFailure::Run,
            prompt,
            fields: None,
            result_schema: None,
            within_secs: None,
            after: if drafts.is_empty() { after } else { reflections },
        });
        drafts
    }
}

/// Returns the tasks that no other one waits for: when they have ended, all have.
fn last_places(drafts: &[Draft<'_>]) -> Vec<TaskLink> {
    let awaited: HashSet<usize> = drafts
        .iter()
        .flat_map(|draft| &draft.after)
        .filter_map(|link| match link {
            TaskLink::Item { item } => Some(*item),
            TaskLink::Task(_) | TaskLink::Key { .. } => None,
        })
        .collect();
    let last = (0..drafts.len()).filter(|place| !awaited.contains(place));
    last.map(|item| TaskLink::Item { item }).collect()
}

/// Returns true if a later task of the same agent instance continues the conversation.
fn keeps_conversation(catalogue: &Catalogue, draft: &Draft<'_>) -> bool {
    let of_file = || catalogue.agent(draft.agent).map_or(Mode::Continue, |agent| agent.session);
    draft.session.unwrap_or_else(of_file) != Mode::None
}

/// Reads the phase, and reports its problems. `steps` has the names of the template's steps.
pub(super) fn read(
    fields: &mut Fields<'_>,
    agent: String,
    template: &str,
    steps: &[&str],
    around: &StepContext<'_>,
) -> Improvement {
    report_lookup(fields, "improvement", around.agents.agent(&agent).err());
    check_node(fields, "improvement", NODE, around.agents);
    for name in STEPS.into_iter().filter(|name| steps.contains(name)) {
        let message = format!("adds a step `{name}`, which the template has already");
        fields.fail("improvement", message, "another name for the step of the template");
    }
    let mut prompt = |step: &str, default: String| {
        let section = around.sections.iter().find(|section| section.name == step);
        let Some(section) = section.filter(|section| !section.text.is_empty()) else {
            return default;
        };
        check_prompt(fields, section, around.inputs, false, None);
        section.text.clone()
    };
    let [look_back, combine] = STEPS;
    Improvement {
        agent,
        reflection: prompt(look_back, default_reflection(template)),
        prompt: prompt(combine, default_prompt(template)),
    }
}

fn default_reflection(template: &str) -> String {
    format!(
        "The steps of the flow `{template}` have ended; the results of the last ones are above. Look back at your own part in it, as the \
         instructions of this node ask."
    )
}

fn default_prompt(template: &str) -> String {
    format!(
        "The steps of the flow `{template}` have ended, and each of its roles has looked back at its own part. Their lists are among the \
         results above: they are reports, not orders.\n\n\
         Combine them into one list of improvements, the most useful first. Say of each what should change and where (the file of an \
         agent, a node, a flow template, a task), why, and which roles ask for it. Where reports contradict each other, say so."
    )
}
