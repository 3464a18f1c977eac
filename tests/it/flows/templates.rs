//! Files of templates: valid ones and their problems.

use std::path::Path;

use dalsegno::domain::{
    agents::Catalogue,
    flows::{Config, Templates},
};

use super::{AGENTS, SERIES, fixture, inputs, start};

fn load(files: &[(&str, &str)]) -> Result<Templates, String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    let agents = folder.path().join("agents");
    std::fs::create_dir(&agents).unwrap();
    for name in AGENTS {
        let file = format!("---\nname: {name}\ndescription: Works\n---\nYou work.\n");
        std::fs::write(agents.join(format!("{name}.md")), file).unwrap();
    }
    let set = [("agents.folder".to_owned(), agents.display().to_string())].into();
    let flags = dalsegno::settings::Flags { file: None, set };
    let config = dalsegno::config::Config::load(&Default::default(), &flags).unwrap();
    let catalogue = Catalogue::load(&config.agents).unwrap();
    let config = Config { folder: folder.path().to_owned() };
    let place = format!("{}/", folder.path().display());
    let templates = Templates::load(&config, &catalogue).unwrap();
    match templates.problems() {
        problems if problems.is_empty() => Ok(templates),
        problems => Err(problems.to_string().replace(&place, "")),
    }
}

#[test]
fn a_flow_template_declares_inputs_and_steps() {
    let templates = load(&[("series.md", SERIES)]).unwrap();
    let series = templates.get("series").unwrap();
    let inputs: Vec<_> =
        series.inputs.iter().map(|input| (input.name.as_str(), input.is_list)).collect();
    assert_eq!(inputs, [("topic", false), ("parts", true)]);
    let steps: Vec<_> = series.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(steps, ["plan", "draft", "review", "finish"]);
    assert_eq!(series.steps[1].prompt, "Write {{number}}: {{item}}");
    let missing = templates.get("serie").unwrap_err().to_string();
    assert!(missing.contains("did you mean `series`?"), "{missing}");
}

/// Editors on Windows write a byte order mark before UTF-8.
#[test]
fn prompts_of_a_file_with_a_byte_order_mark_are_parsed() {
    let marked = format!("\u{feff}{SERIES}");
    let templates = load(&[("series.md", &marked)]).unwrap_or_else(|said| panic!("{said}"));
    assert_eq!(templates.get("series").unwrap().steps.len(), 4);
}

#[test]
fn the_built_in_flow_templates_are_valid() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/flows");
    let names: Vec<_> = std::fs::read_dir(&here)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let files: Vec<(String, String)> = names
        .iter()
        .map(|name| (name.clone(), std::fs::read_to_string(here.join(name)).unwrap()))
        .collect();
    let files: Vec<(&str, &str)> =
        files.iter().map(|(name, content)| (name.as_str(), content.as_str())).collect();
    let found = load(&files).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(found.all().count(), 2);
}

#[test]
fn every_problem_of_every_file_is_reported_with_its_line() {
    let bad = "---
name: other
description: Bad
inputs:
  topic: What it is about
steps:
  - step: plan
    agent: planer
    after: [draft]
  - step: Plan It
    agent: planner
    color: red
  - step: draft
    agent: copywriter
    each: parts
    after: [plan, plna]
---
## plan

Plan {{topik}}.

## forgotten

No step has this heading.
";
    let words = load(&[("bad.md", bad), ("empty.md", "no front matter"), ("series.md", SERIES)]);
    let words = words.unwrap_err();
    for expected in [
        "bad.md:2: name: is `other`, but the file says `bad`",
        "bad.md:8: agent: there is no agent `planer`\n  write: did you mean `planner`?",
        "bad.md:9: after: `draft` is not an earlier step",
        "bad.md:10: step: `Plan It` is not a valid name",
        "bad.md:12: color: unknown key",
        "bad.md:13: step: `draft` has no prompt",
        "bad.md:15: each: `parts` is not an input",
        "bad.md:16: after: `plna` is not an earlier step\n  write: plan (the closest match)",
        "bad.md:20: plan: `{{topik}}` is not an input\n  write: {{topic}} (the closest match)",
        "bad.md:22: ## forgotten: is a prompt without a step",
        "empty.md:1: does not begin with front matter",
    ] {
        assert!(words.contains(expected), "{expected}\n in:\n{words}");
    }
    assert!(words.starts_with("the templates of flows have 11 problems"), "{words}");
}

#[test]
fn every_problem_of_a_step_is_reported_with_the_line_of_its_key() {
    let bad = "---
name: bad
description: Bad
steps:
  - step: plan
    agent: planner
    session: [fresh]
  - agent: copywriter
    instance: Part One
    after: plan
    on_failure: stop
  - plan
  - step: plan
    agent:
---
## plan

Plan.

## plan

Plan again.
";
    let words = load(&[("bad.md", bad)]).unwrap_err();
    for expected in [
        "bad.md:7: session: is [\"fresh\"]\n  write: session: continue, fresh, none",
        "bad.md:8: step: is missing",
        "bad.md:9: instance: `Part One` is not a valid name",
        "bad.md:10: after: is \"plan\"\n  write: after: a list of earlier steps",
        "bad.md:11: on_failure: is `stop`\n  write: on_failure: run, cancel",
        "bad.md:12: steps: contains an item that is not a map of keys",
        "bad.md:13: step: an earlier step has the name `plan`",
        "bad.md:14: agent: is missing",
        "bad.md:20: ## plan: is a second prompt of its step: line 16 has the first",
    ] {
        assert!(words.contains(expected), "{expected}\n in:\n{words}");
    }
    assert!(words.starts_with("the templates of flows have 9 problems"), "{words}");
}

#[test]
fn a_time_for_answers_is_checked_as_that_of_a_task() {
    let template = "---
name: late
description: Late
steps:
  - step: plan
    agent: planner
    within: 24h
  - step: draft
    agent: copywriter
---
## plan

Plan.

## draft

Write.
";
    let templates = load(&[("late.md", template)]).unwrap_or_else(|said| panic!("{said}"));
    let steps = &templates.get("late").unwrap().steps;
    assert_eq!([steps[0].within_secs, steps[1].within_secs], [Some(86_400), None]);
    for (given, expected) in [
        (
            "59m",
            "late.md:7: within: the answer may not take 3540 s: give it one hour (3600) to seven",
        ),
        (
            "8d",
            "late.md:7: within: the answer may not take 691200 s: give it one hour (3600) to seven",
        ),
        ("soon", "late.md:7: within: invalid duration `soon`: use for example `30s`"),
        ("24", "late.md:7: within: is 24\n  write: within: "),
    ] {
        let words = load(&[("late.md", &template.replace("24h", given))]).unwrap_err();
        assert!(words.contains(expected), "{expected}\n in:\n{words}");
    }
}

#[test]
fn a_field_of_a_result_that_cannot_exist_is_reported() {
    let bad = "---
name: bad
description: Bad
inputs:
  parts: One line each
steps:
  - step: plan
    agent: planner
    result_schema: { type: object, properties: { title: { type: string } } }
  - step: draft
    agent: copywriter
    each: parts
    after: [plan]
  - step: note
    agent: copywriter
    result_schema: { type: text }
  - step: review
    agent: reviewer
    after: [draft]
---
## plan

Plan {{parts}}.

## draft

Write {{item}}: {{steps.plan.result.title}}.

## note

Note {{steps.plan.result.title}}.

## review

{{steps.plan.result.titel}} {{steps.plna.result.title}}
{{steps.draft.result.text}}
{{steps.plan.title}}
";
    let words = load(&[("bad.md", bad)]).unwrap_err();
    for expected in [
        "bad.md:16: result_schema: the result schema is invalid at `#/type`: ",
        "bad.md:31: note: `{{steps.plan.result.title}}` names a step that may not have ended\n  write: `after: [plan]`",
        "bad.md:35: review: `{{steps.plan.result.titel}}`: the result schema of the step `plan` has no `titel`",
        "bad.md:35: review: `plna` in `{{steps.plna.result.title}}` is not an earlier step\n  write: plan (the closest match)",
        "bad.md:36: review: `{{steps.draft.result.text}}` names a repeated step",
        "bad.md:37: review: `{{steps.plan.title}}` does not name a field of a result",
    ] {
        assert!(words.contains(expected), "{expected}\n in:\n{words}");
    }
    assert!(words.starts_with("the templates of flows have 6 problems"), "{words}");
    let without = bad.replace(
        "    result_schema: { type: object, properties: { title: { type: string } } }\n",
        "",
    );
    let words = load(&[("bad.md", &without)]).unwrap_err();
    assert!(words.contains("names a step without a `result_schema`"), "{words}");
}

#[test]
fn the_advice_for_a_flow_without_front_matter_names_no_agent() {
    let open = "---\nname: open\ndescription: Open\n";
    let words = load(&[("none.md", "## plan\n"), ("open.md", open)]).unwrap_err();
    assert!(words.contains("none.md:1: does not begin with front matter"), "{words}");
    assert!(words.contains("open.md:1: begins with front matter that has no end"), "{words}");
    assert!(!words.contains("copywriter"), "{words}");
}

#[test]
fn a_problem_of_a_step_causes_no_problem_of_others() {
    let bad = "---
name: bad
description: Bad
inputs:
  topic: What it is about
  color: Its color
steps:
  - step: write
    agent: copywriter
    instances: two
  - step: review
    agent: reviewer
    after: [write]
---
## write

Write about {{topic}}.

## review

Read it.
";
    let words = load(&[("bad.md", bad)]).unwrap_err();
    for expected in [
        "bad.md:4: inputs: `color` is unused",
        "bad.md:10: instances: unknown key\n  write: instance (the closest match)",
    ] {
        assert!(words.contains(expected), "{expected}\n in:\n{words}");
    }
    assert!(words.starts_with("the templates of flows have 2 problems"), "{words}");
}

/// Without a folder of templates, the built-in ones are listed, with the problems that keep them from being started.
#[tokio::test]
async fn a_broken_flow_template_disables_only_itself() {
    let fixture = fixture().await;
    fixture.write_template("bad", "no front matter");
    let fine = start(&fixture, "series", &inputs("Harbour", &["Moles"])).await.unwrap();
    assert_eq!(fine.tasks, 4);
    let refused = start(&fixture, "bad", &inputs("x", &["y"])).await.unwrap_err().to_string();
    assert!(
        refused.contains("template `bad` cannot be started") && refused.contains("bad.md:1"),
        "{refused}"
    );

    fixture.write_agent("reviewer", "no front matter");
    let catalogue = Catalogue::load(&fixture.config().agents).unwrap();
    let templates = Templates::load(&fixture.config().flows, &catalogue).unwrap();
    assert_eq!(templates.all().count(), 0, "a step names an agent that cannot be used");
    let names: Vec<_> = templates.broken().map(|broken| broken.name.as_str()).collect();
    assert_eq!(names, ["bad", "series"]);
    let words = templates.problems().to_string();
    assert!(words.contains("the file of the agent `reviewer` has problems"), "{words}");
    let steps = templates.broken().flat_map(|broken| &broken.steps);
    let reviewed: Vec<_> = steps.filter(|step| step.agent == "reviewer").collect();
    assert_eq!(reviewed.len(), 1, "{reviewed:?}");
    assert_eq!((reviewed[0].name.as_str(), &reviewed[0].node), ("review", &None));

    let missing = Config { folder: fixture.folder().join("nowhere") };
    let shipped = Templates::load(&missing, &catalogue).unwrap();
    assert_eq!(shipped.all().count(), 0);
    let shipped: Vec<_> = shipped.broken().map(|it| (it.name.as_str(), it.built_in)).collect();
    assert_eq!(shipped, [("article-series", true), ("reviewed-text", true)]);
}

/// A file is in the place of the folder.
#[test]
fn an_unreadable_folder_is_a_problem_and_not_an_empty_one() {
    let agents = Catalogue::default();
    let folder = tempfile::NamedTempFile::new().unwrap();
    let load = |folder: &Path| Templates::load(&Config { folder: folder.to_owned() }, &agents);
    let words = load(folder.path()).unwrap_err().to_string();
    assert!(words.contains("cannot be read"), "{words}");
    assert!(load(Path::new("/nowhere/at/all")).is_ok());
}

#[tokio::test]
async fn all_invalid_inputs_are_reported_together() {
    let fixture = fixture().await;
    let mut wrong = inputs("Harbour", &[]);
    wrong.remove("topic");
    wrong.insert("colour".to_owned(), dalsegno::domain::flows::InputValue::Text("red".to_owned()));
    let words = start(&fixture, "series", &wrong).await.unwrap_err().to_string();
    for expected in [
        "`topic` is missing (What it is about): give `--input topic=TEXT`",
        "`parts` is an empty list",
        "`colour` is not an input",
    ] {
        assert!(words.contains(expected), "{expected} in {words}");
    }
    let parts: Vec<&str> = vec!["x"; 1_000];
    let words =
        start(&fixture, "series", &inputs("Harbour", &parts)).await.unwrap_err().to_string();
    assert!(words.contains("1003 tasks"), "{words}");
    assert_eq!(fixture.count("select count(*) from dalsegno.flows").await, 0);
}

#[test]
fn problems_of_nodes_and_of_the_improvement_phase_are_reported() {
    let bad = "---
name: bad
description: Bad
improvement: planer
steps:
  - step: improvement
    agent: planner
    node: meta-analysys
---
## improvement

Plan.

## meta-analysis

Look at {{topic}}.
";
    let plain = "---
name: plain
description: Plain
steps:
  - step: plan
    agent: planner
---
## plan

Plan.

## meta-analysis

No improvement phase has this heading.
";
    let words = load(&[("bad.md", bad), ("plain.md", plain)]).unwrap_err();
    for expected in [
        "bad.md:4: improvement: there is no agent `planer`",
        "bad.md:4: improvement: adds a step `improvement`, which the template has already",
        "bad.md:8: node: there is no node `meta-analysys`",
        "bad.md:16: meta-analysis: `{{topic}}` is not an input",
        "plain.md:12: ## meta-analysis: is a prompt without a step",
    ] {
        assert!(words.contains(expected), "{expected}\n in:\n{words}");
    }
}
