//! Checks of the fields of earlier results that a prompt names.

use super::template::Step;
use crate::domain::{agents::Catalogue, files::nearest, result_schemas, tasks::StepField};

/// The steps before the one whose prompt is checked.
pub(super) struct EarlierSteps<'a> {
    /// Names of all of them, also of those that could not be read.
    pub names: &'a [&'a str],
    pub steps: &'a [Step],
    /// The steps that the one waits for.
    pub after: &'a [String],
    pub agents: &'a Catalogue,
}

impl EarlierSteps<'_> {
    fn find(&self, name: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.name == name)
    }

    /// Returns true if the step has surely ended when the checked one begins.
    fn is_awaited(&self, name: &str) -> bool {
        let mut open: Vec<&str> = self.after.iter().map(String::as_str).collect();
        while let Some(awaited) = open.pop() {
            if awaited == name {
                return true;
            }
            // A step waits for earlier ones only, so this ends.
            open.extend(
                self.find(awaited).into_iter().flat_map(|step| &step.after).map(String::as_str),
            );
        }
        false
    }
}

/// Checks a placeholder that begins with `steps.`. The error is a problem and its fix.
pub(super) fn check_field(name: &str, earlier: &EarlierSteps<'_>) -> Result<(), (String, String)> {
    let Some(field) = StepField::parse(name) else {
        let message = format!("`{{{{{name}}}}}` does not name a field of a result");
        return Err((message, "{{steps.NAME.result.FIELD}} with the name of a step".to_owned()));
    };
    let step_name = &field.step;
    if !earlier.names.contains(&step_name.as_str()) {
        let fix = match nearest(step_name, earlier.names.iter().copied()) {
            Some(near) => format!("{near} (the closest match)"),
            None => "a step that comes before it in the list".to_owned(),
        };
        return Err((format!("`{step_name}` in `{{{{{name}}}}}` is not an earlier step"), fix));
    }
    // The problems of a step that could not be read are reported already.
    let Some(step) = earlier.find(step_name) else { return Ok(()) };
    if !earlier.is_awaited(step_name) {
        let message = format!("`{{{{{name}}}}}` names a step that may not have ended");
        return Err((message, format!("`after: [{step_name}]` in the step")));
    }
    if step.each.is_some() {
        let message = format!("`{{{{{name}}}}}` names a repeated step, which has several results");
        let fix = "nothing: the agent receives all results of the steps in `after`";
        return Err((message, fix.to_owned()));
    }
    let of_agent = || earlier.agents.agent(&step.agent).ok()?.result_schema.as_ref();
    let Some(schema) = step.result_schema.as_ref().or_else(of_agent) else {
        let message = format!("`{{{{{name}}}}}` names a step without a `result_schema`");
        return Err((
            message,
            format!("`result_schema` in the step `{step_name}`, or in the file of its agent"),
        ));
    };
    match result_schemas::missing_field(schema, &field.path) {
        None => Ok(()),
        Some(missing) => {
            let message = format!(
                "`{{{{{name}}}}}`: the result schema of the step `{step_name}` has no `{missing}`"
            );
            Err((message, "a field that the schema lists".to_owned()))
        }
    }
}
