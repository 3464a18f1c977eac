//! Flow templates: their list, and the check of their files.

use std::path::Path;

use crate::{
    cli::{
        Context, Exit, Failure,
        agent::{self, require_folder},
        output::Output,
    },
    domain::flows::{Problems, Template, Templates},
    operations::AllTemplates,
};

/// Checks the files and prints the problems to stdout, because they are this command's data.
pub(super) fn check(folder: Option<&Path>, context: &Context) -> Result<Exit, Failure> {
    let mut config = context.load()?;
    if let Some(folder) = folder {
        require_folder(folder, "give the folder with the flow templates")?;
        let flows = folder.join("flows");
        config.flows.folder = match flows.is_dir() {
            true => flows,
            false => folder.to_owned(),
        };
        if folder.join("agents").is_dir() {
            config.agents = agent::with_folder(folder, config.agents)?;
        }
    }
    let catalogue = context.agents(&config.agents)?;
    let (problems, n_templates) = match Templates::load(&config.flows, &catalogue) {
        Ok(templates) => {
            // A built-in template cannot be started if the installation lacks its agents. That is not a problem of a file.
            let own = templates.broken().filter(|broken| !broken.built_in);
            let problems = own.flat_map(|broken| broken.problems.clone()).collect();
            (Problems(problems), templates.all().count())
        }
        Err(problems) => (problems, 0),
    };
    context.output.print_data(&problems.0, || {
        let result = match problems.is_empty() {
            true if n_templates == 1 => "1 flow template is in order".to_owned(),
            true => format!("{n_templates} flow templates are in order"),
            false => problems.to_string().trim_end().to_owned(),
        };
        format!("{result}{}", context.note_local_files())
    });
    match problems.is_empty() {
        true => Ok(Exit::Ok),
        false => Ok(Exit::Usage),
    }
}

pub(super) fn show_templates(templates: &AllTemplates, output: Output) {
    let AllTemplates { items, broken } = templates;
    if !broken.is_empty() {
        let names: Vec<&str> = broken.iter().map(|broken| broken.name.as_str()).collect();
        let problems = broken.iter().flat_map(|broken| broken.problems.clone()).collect();
        let problems = Problems(problems);
        output.print_note(&format!("cannot be started: {}; {problems}", names.join(", ")));
    }
    output.print_list(items, "flow templates", described);
}

fn described(template: &Template) -> String {
    let mut text = format!("{}: {}\n", template.name, template.description);
    for input in &template.inputs {
        let kind = if input.is_list { " (list)" } else { "" };
        text.push_str(&format!("  --input {}=...{kind}  {}\n", input.name, input.about));
    }
    for step in &template.steps {
        let each = step.each.as_ref().map(|each| format!(", for each of {each}"));
        let after = match step.after.is_empty() {
            true => String::new(),
            false => format!(", after {}", step.after.join(", ")),
        };
        let each = each.unwrap_or_default();
        let node = step.node.as_ref().map(|node| format!(", at the node {node}"));
        let node = node.unwrap_or_default();
        text.push_str(&format!(
            "  {}: {}/{}{each}{node}{after}\n",
            step.name, step.agent, step.instance
        ));
    }
    if let Some(phase) = &template.improvement {
        text.push_str(&format!("  improvement: each role, then {}\n", phase.agent));
    }
    text
}
