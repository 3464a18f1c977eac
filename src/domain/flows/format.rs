//! The documented format of flow templates.

use std::collections::BTreeMap;

use super::template;
use crate::domain::files::{Fields, FileFormat, KeyText};

/// Returns the format of `<flows.folder>/<name>.md`.
pub fn template_format() -> FileFormat {
    let mut fields = Fields::new("", BTreeMap::new());
    template::read_keys(&mut fields, "");
    FileFormat {
        title: "Flow template",
        keys: fields.into_keys(),
        texts: &KEYS,
        example_text: PROMPTS,
    }
}

const PROMPTS: &str = "
## plan

Plan a series about {{topic}}. Its parts: {{parts}}

## draft

Write part {{number}}: {{item}}
";

const KEYS: [KeyText; 5] = [
    KeyText::new(
        "name",
        "",
        "short-series",
        "Name of the template, equal to the name of the file without `.md`.",
    ),
    KeyText::new(
        "description",
        "",
        "A plan, and one text for each part",
        "Purpose of the template in one line.",
    ),
    KeyText::new(
        "inputs",
        "none",
        "{ topic: The subject of the series, parts: One line per part }",
        "Inputs that a start has to give: names with descriptions. An input that a step names in `each` is a list.",
    )
    .with_schema(r#"{ "type": "object", "additionalProperties": { "type": "string" } }"#),
    KeyText::new(
        "steps",
        "",
        "[{ step: plan, agent: planner }, { step: draft, agent: copywriter, each: parts, after: [plan] }]",
        "Steps; each waits for earlier ones only. The text after the front matter has a heading `## NAME` per step, with the prompt below it.",
    )
    .with_schema(STEPS),
    KeyText::new(
        "improvement",
        "none",
        "planner",
        "Agent of an improvement phase after the steps. Each role looks back at its work, in its own conversation at the node `meta-analysis`; then this agent gets their results in a fresh session. The headings `## meta-analysis` and `## improvement` replace the prompts of the two.",
    ),
];

const STEPS: &str = r#"{
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "properties": {
            "step": {
                "type": "string",
                "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$",
                "description": "Name of the step: lower-case letters, digits, `-` and `_`, 64 at most."
            },
            "agent": { "type": "string", "description": "Agent that carries out the step." },
            "instance": {
                "type": "string",
                "description": "Instance of the agent. Of a repeated step: the beginning of its name, before the number. Default: `main`."
            },
            "after": {
                "type": "array",
                "items": { "type": "string" },
                "description": "Earlier steps that this one waits for. Its agent receives their results. Default: none."
            },
            "on_failure": {
                "enum": ["run", "cancel"],
                "description": "Reaction to the failure of a step in `after`. `run`: the step gets all results, failures included. `cancel`: it is cancelled. Default: `run`."
            },
            "session": {
                "enum": ["continue", "fresh", "none"],
                "description": "Session mode of its tasks. Default: that of the agent's file."
            },
            "node": { "type": "string", "description": "Node of its tasks. Default: the session stays at its node." },
            "result_schema": {
                "type": "object",
                "description": "JSON Schema that the answers to its tasks have to match. Prompts of later steps read fields of the results: `{{steps.plan.result.title}}`. Default: that of the agent's file."
            },
            "within": {
                "type": "string",
                "pattern": "^[0-9]+[smhdw]$",
                "description": "Time that the answers to its tasks may take, 1h to 7d, from the end of the steps in `after`: a provider with a batch API is then asked at its lower price for batches. Default: no time is given."
            },
            "each": {
                "type": "string",
                "description": "Input whose items repeat the step: one task per item, with `{{item}}` and `{{number}}` in the prompt. Default: one task."
            }
        },
        "required": ["step", "agent"],
        "additionalProperties": false
    }
}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_description() {
        assert_eq!(template_format().undocumented(), [""; 0]);
    }
}
