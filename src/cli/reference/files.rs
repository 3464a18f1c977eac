//! The references of files that people write: agents, skills, nodes, flow templates.

use serde_json::Value;

use super::cells::cell;
use crate::domain::files::FileFormat;

pub(super) const AGENTS: &str = "\
# Agent files

A complete agent file, `config/agents/editor.md`:

```markdown
---
name: editor
description: Corrects texts before they are published
---
You are an editor. Correct spelling and grammar, and keep the voice of the author.
Answer with the corrected text alone.
```

It uses provider and model of the section `[agents]` of the [settings](settings.md).

One file per agent: `<agents.folder>/<name>.md` (`config/agents` by default). The front matter is YAML between two lines of `---`. The text after
it is the system prompt, 262,144 bytes at most. Names have 64 lower-case letters, digits, `-` and `_` at most; `all`, `operator` and `system` are
reserved. If the folder exists, it replaces the built-in ones: copy those that you need from `config/`.

Changed files are read again before the next turn. `dalsegno agent check config/agents` lists all problems with file, line and fix. An agent whose
file has problems gets no new tasks, and its tasks wait for the repair.

`agent check` also reports what the service accepts, although the agent cannot work as its file says: rules for unknown tools and servers, tools that
only the lead may use, blackboard tools without a path in `blackboard`, and a `window_tokens` without room beside reserve, prompt, skills and tools.

[agent.schema.json](agent.schema.json) describes the front matter for editors.
";

pub(super) const SKILLS: &str = "\
# Skill files

One folder per skill: `<agents.skills_folder>/<name>/SKILL.md` (`config/skills` by default). The text after the front matter, 131,072 bytes at most,
belongs to the system prompt of each agent whose file lists the skill. `dalsegno agent check` reports problems.

[skill.schema.json](skill.schema.json) describes the front matter for editors.
";

pub(super) const NODES: &str = "\
# Node files

One file per node: `<agents.nodes_folder>/<name>.md` (`config/nodes` by default). The text after the front matter has the instructions that a
conversation receives when it enters the node, together with the required readings. `dalsegno agent nodes` lists all nodes; [Combine
tasks](../how-to/flows.md#instances-and-nodes) says how to use them.

[node.schema.json](node.schema.json) describes the front matter for editors.
";

pub(super) const FLOWS: &str = "\
# Flow templates

One file per template: `<flows.folder>/<name>.md` (`config/flows` by default). The front matter has inputs and steps. The text after it has one
heading `## STEP` per step, with the step's prompt below it. In prompts, `{{topic}}` stands for the input `topic`; in a repeated step, `{{item}}`
and `{{number}}` stand for the item and its number. `dalsegno flow templates` lists all templates, and `dalsegno flow check` all problems
of their files; [Combine tasks](../how-to/flows.md#flows) says how to use them. If the folder exists, it replaces the built-in ones: copy those that
you need from `config/`.

[reviewed-text.md](../../config/flows/reviewed-text.md) is a complete example; [article-series.md](../../config/flows/article-series.md) repeats a
step with `each`. [flow-template.schema.json](flow-template.schema.json) describes the front matter for editors.
";

/// Writes the reference of a kind of file. `schema` is that of the format.
pub(super) fn markdown(head: &str, format: &FileFormat, schema: &Value) -> String {
    let mut text =
        format!("{head}\n## Keys\n\n| key | type | default | meaning |\n|---|---|---|---|\n");
    for about in format.texts {
        let default = if about.default.is_empty() { "required" } else { about.default };
        let value = value_type(&schema["properties"][about.key]);
        text += &format!("| `{}` | {value} | {default} | {} |\n", about.key, cell(about.text));
    }
    for about in format.texts {
        let items = &schema["properties"][about.key]["items"];
        if items["properties"].is_object() {
            text += &format!("\n## Keys of each item of `{}`\n\n{}", about.key, item_keys(items));
        }
    }
    let language = if format.example_text.is_empty() { "yaml" } else { "markdown" };
    text + &format!("\n## Example of each key\n\n```{language}\n{}```\n", format.example())
}

fn item_keys(items: &Value) -> String {
    let required: Vec<&str> =
        items["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut text = String::from("| key | type | required | meaning |\n|---|---|---|---|\n");
    for (name, schema) in items["properties"].as_object().into_iter().flatten() {
        let about = schema["description"].as_str().unwrap_or_default();
        let is_required = if required.contains(&name.as_str()) { "yes" } else { "no" };
        let value = value_type(schema);
        text += &format!("| `{name}` | {value} | {is_required} | {} |\n", cell(about));
    }
    text
}

/// Describes the type of a value in words.
fn value_type(schema: &Value) -> String {
    if let Some(choices) = schema["enum"].as_array() {
        let names = choices.iter().filter_map(Value::as_str).map(|name| format!("`{name}`"));
        return names.collect::<Vec<_>>().join(", ");
    }
    let range = match (schema["minimum"].as_f64(), schema["maximum"].as_f64()) {
        (None, _) => String::new(),
        (Some(least), None) => format!(", {least} or more"),
        (Some(least), Some(most)) => format!(", {least} to {most}"),
    };
    let name = match &schema["type"] {
        Value::String(name) => match name.as_str() {
            "integer" => "whole number",
            "string" => "text",
            "array" => "list",
            "object" => "map",
            "boolean" => "`true` or `false`",
            other => other,
        },
        Value::Array(_) => "list, or text with commas",
        _ => "map, list, or path",
    };
    format!("{name}{range}")
}
