//! The reference of limits, from the lists beside their constants.

use super::{cells::cell, settings};
use crate::{
    domain::{
        agent_pauses, agents, blackboard, bulk_actions, campaigns, evals, facts, flows, labels,
        limits::{LimitEffect, LimitEntry, LimitValue},
        memory, mentions, parameters, posts, reruns, result_schemas, search, task_files,
        tasks::{self, RunTurn},
        webhooks,
    },
    http, operations,
    queue::Job as _,
    tools,
};

const HEAD: &str = "\
# Limits

Limits that a caller or an agent can reach. A refused request gets the [error code](errors.md) of the last column, and changes nothing; `detail` names the
limit and the given value. A limit with a [setting](settings.md) shows its default, and the values that the setting accepts.

Other limits depend on your budgets, providers and models: see [Limit the cost](../how-to/budgets.md),
[Limit the rate of calls](../how-to/rate-limits.md) and [Context and compaction](../explanation/compaction.md). Days after which data is removed are in
[Control the nightly cleanup](../how-to/cleanup.md).
";

/// Timeouts of providers, whose sections are checked by rules of their own.
const TIMEOUTS: &[LimitEntry] = &[
    of_provider("seconds of a turn on Claude", "claude.total_timeout_secs"),
    of_provider("seconds between two lines of the Claude CLI", "claude.idle_timeout_secs"),
    of_provider("seconds of a call of Ollama", "ollama.total_timeout_secs"),
    of_provider("seconds until an answer of Ollama begins", "ollama.first_byte_timeout_secs"),
    of_provider("seconds of silence within an answer of Ollama", "ollama.idle_timeout_secs"),
    LimitEntry::setting(
        "seconds that a task waits for a provider that refuses calls",
        "providers.busy_max_secs",
        (0, None),
        LimitEffect::Sentence("The task fails. 0: no limit."),
    ),
    LimitEntry::setting(
        "seconds that running work may take after SIGTERM",
        "shutdown.drain_timeout_secs",
        (0, None),
        LimitEffect::Sentence(
            "Turns are interrupted and tried again by another worker, without using up an attempt.",
        ),
    ),
];

const fn of_provider(thing: &'static str, key: &'static str) -> LimitEntry {
    let effect = LimitEffect::Sentence("The attempt has failed, and the task is retried.");
    LimitEntry::setting(thing, key, (1, None), effect)
}

/// Returns all limits by heading.
pub fn limits() -> Vec<(&'static str, Vec<LimitEntry>)> {
    let attempts = LimitEntry::fixed(
        "attempts of a task; waiting uses up none",
        u64::try_from(RunTurn::policy().max_attempts).unwrap_or_default(),
        LimitEffect::Sentence("The task fails, and its job is a dead letter."),
    );
    let tasks = [
        &[attempts][..],
        tasks::LIMITS,
        labels::LIMITS,
        parameters::LIMITS,
        result_schemas::LIMITS,
    ];
    let files = [tasks::ATTACHMENT_LIMITS, task_files::LIMITS];
    let board = [posts::LIMITS, mentions::LIMITS];
    let control = [agent_pauses::LIMITS, bulk_actions::LIMITS];
    vec![
        ("Requests", [http::LIMITS, operations::LIMITS].concat()),
        ("Campaigns", campaigns::LIMITS.to_vec()),
        ("Tasks", tasks.concat()),
        ("Attachments and output files", files.concat()),
        ("Flows", flows::LIMITS.to_vec()),
        ("Board and mentions", board.concat()),
        ("Blackboard", blackboard::LIMITS.to_vec()),
        ("Memory and facts", [memory::LIMITS, facts::LIMITS, search::LIMITS].concat()),
        ("Agents", agents::LIMITS.to_vec()),
        ("Tools of agents", tools::LIMITS.to_vec()),
        ("Reruns and evals", [reruns::LIMITS, evals::LIMITS].concat()),
        ("Pauses and bulk actions", control.concat()),
        ("Webhooks", webhooks::LIMITS.to_vec()),
        ("Waits and timeouts", TIMEOUTS.to_vec()),
    ]
}

/// Writes the reference.
pub(super) fn markdown() -> String {
    let mut text = HEAD.to_owned();
    for (title, limits) in limits() {
        text += &format!("\n## {title}\n\n| limit | value | at the limit |\n|---|---|---|\n");
        for LimitEntry { thing, value, effect } in limits {
            let effect = match effect {
                LimitEffect::Refused(code) => format!("refused: `{code}`"),
                LimitEffect::Sentence(text) => cell(text),
            };
            text += &format!("| {} | {} | {effect} |\n", cell(thing), describe(value));
        }
    }
    text
}

fn describe(value: LimitValue) -> String {
    match value {
        LimitValue::Fixed(most) => grouped(most),
        LimitValue::Setting { key, least, most } => {
            let default = settings::default_of(key);
            let default = default.parse().map_or(default, grouped);
            let range = match most {
                Some(most) => format!("{} to {}", grouped(least), grouped(most)),
                None => format!("{} or more", grouped(least)),
            };
            format!("{default}<br>`{key}`, {range}")
        }
    }
}

/// Writes a number with commas between its thousands.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
