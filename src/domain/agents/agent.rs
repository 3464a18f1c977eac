//! One agent, as its file describes it.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{
    ChainEntry, Config, Grants, MAIN, Provider, SessionMode as Mode, grants, model_chain,
    reserved::RESERVED_NAMES, servers::ParseContext,
};
use crate::domain::{
    amount::{Limit, OnLimit},
    files::{Fields, File, Problem},
};

/// The longest system prompt, in bytes.
pub(super) const PROMPT_MAX_BYTES: usize = 256 * 1024;

/// Default of `history_window`, in posts.
const HISTORY_WINDOW: u32 = 50;

#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Agent {
    pub name: String,
    /// The agent's purpose in one line, which other agents read in their roster.
    pub description: String,
    /// The models that may answer, in the order of preference: at least one.
    pub chain: Vec<ChainEntry>,
    /// The model to ask for a summary when its own has failed twice.
    pub summariser: Option<String>,
    pub window_tokens: Option<i64>,
    /// Tokens of the window that are left for the answer.
    pub reserve_tokens: Option<i64>,
    pub prepare_percent: Option<i64>,
    pub apply_percent: Option<i64>,
    /// A session whose context has this size is rebuilt before its next turn.
    pub rotate_at_tokens: Option<i64>,
    pub ttl_days: Option<u32>,
    /// The lead answers posts without an addressee.
    pub lead: bool,
    /// True: `@name` in its answers on the board creates tasks for others. Default: true for the lead only.
    pub mentions: bool,
    /// Default session mode of its tasks.
    pub session: Mode,
    /// Maximum number of posts of the board that a turn shows at once; 0 for none.
    pub history_window: u32,
    /// On Claude: the CLI is started again after each turn, and waits for the next one.
    pub warm: bool,
    /// True: requests to the agent are read for facts about the campaign's user.
    pub learns_facts: bool,
    /// True: the agent is told these facts with each task.
    pub told_facts: bool,
    /// True: the agent may write such facts, with the tool `facts_write`.
    pub writes_facts: bool,
    pub skills: Vec<String>,
    #[serde(flatten)]
    pub grants: Grants,
    pub options: Options,
    /// Budget of one task.
    pub budget: Limit,
    /// Effect of that budget on a task that reaches it.
    pub on_limit: OnLimit,
    /// The JSON Schema that answers to its tasks have to match. A task or a step of a flow may have another one.
    #[schema(value_type = Option<Object>)]
    pub result_schema: Option<Value>,
    /// The system prompt.
    #[serde(skip)]
    pub prompt: String,
    /// SHA-256 of the prompt, in hex. A session made with another prompt is rebuilt; the lead's also when the roster changes.
    pub prompt_hash: String,
}

impl Agent {
    /// Returns true for the lead's main instance: one conversation, which is told of all other agents and all posts.
    pub fn leads(&self, instance: &str) -> bool {
        self.lead && instance == MAIN
    }

    /// Lists the models that may answer with their providers, as far as the configuration has them.
    pub fn models<'a>(
        &'a self,
        config: &'a Config,
    ) -> impl Iterator<Item = (&'a Provider, Option<&'a str>)> {
        self.chain.iter().map(|entry| entry.resolve(config))
    }

    /// Returns the provider of the first model.
    pub fn first_provider<'a>(&'a self, config: &'a Config) -> &'a Provider {
        let first = self.chain.first().and_then(|entry| entry.provider.as_ref());
        first.unwrap_or(&config.provider)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = AgentOptions)]
pub struct Options {
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub seed: Option<i64>,
    pub think: Option<Think>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Think {
    Off,
    On,
    Low,
    Medium,
    High,
}

/// An agent with the problems of its file, and the lines of its keys, for problems that only others can see.
pub(super) struct ParsedAgent {
    pub agent: Agent,
    pub problems: Vec<Problem>,
    pub lines: BTreeMap<&'static str, usize>,
}

const ON_LIMIT: [(&str, OnLimit); 2] = [("wait", OnLimit::Wait), ("fail", OnLimit::Fail)];

const THINK: [(&str, Think); 5] = [
    ("off", Think::Off),
    ("on", Think::On),
    ("low", Think::Low),
    ("medium", Think::Medium),
    ("high", Think::High),
];

/// Reads an agent. An error: the file has no front matter that can be read.
pub(super) fn parse(file: &File, around: &ParseContext<'_>) -> Result<ParsedAgent, Vec<Problem>> {
    let (mut fields, document) = file.open()?;
    let agent = read(&mut fields, &file.name, document.text(), around);
    check(&mut fields, &agent);
    let lines = fields.lines();
    Ok(ParsedAgent { agent, problems: fields.into_problems(), lines })
}

pub(super) fn read(
    fields: &mut Fields<'_>,
    file_name: &str,
    prompt: String,
    around: &ParseContext<'_>,
) -> Agent {
    let lead = fields.flag("lead");
    Agent {
        name: fields.name(file_name),
        description: fields.required("description", "one line that describes the agent"),
        chain: model_chain::read(fields, around.providers),
        summariser: fields.text("summariser"),
        window_tokens: fields.number("window_tokens", 1024..=10_000_000),
        reserve_tokens: fields.number("reserve_tokens", 64..=1_000_000),
        prepare_percent: fields.number("prepare_percent", 10..=94),
        apply_percent: fields.number("apply_percent", 11..=95),
        rotate_at_tokens: fields.number("rotate_at_tokens", 0..=i64::MAX),
        ttl_days: fields.number("ttl_days", 1..=3650).and_then(|days| u32::try_from(days).ok()),
        lead,
        mentions: fields.flag_or("mentions", lead),
        session: fields.one_of("session", &Mode::CHOICES).unwrap_or_default(),
        history_window: fields
            .number("history_window", 0..=1000)
            .and_then(|posts| u32::try_from(posts).ok())
            .unwrap_or(HISTORY_WINDOW),
        warm: fields.flag("warm"),
        learns_facts: fields.flag("learns_facts"),
        told_facts: fields.flag("told_facts"),
        writes_facts: fields.flag("writes_facts"),
        skills: fields.names("skills"),
        grants: grants::read(fields, around),
        options: Options {
            temperature: fields.decimal("temperature", 0.0..=2.0),
            top_p: fields.decimal("top_p", 0.0..=1.0),
            seed: fields.number("seed", 0..=i64::MAX),
            think: fields.one_of("think", &THINK),
        },
        budget: Limit {
            micros: fields
                .decimal("task_budget", 0.000_001..=1_000_000.0)
                .map(|units| (units * 1_000_000.0).round() as i64),
            tokens: fields.number("task_budget_tokens", 1..=i64::MAX),
        },
        on_limit: fields.one_of("on_limit", &ON_LIMIT).unwrap_or_default(),
        result_schema: fields.result_schema(),
        prompt_hash: hash(prompt.as_bytes()),
        prompt,
    }
}

fn check(fields: &mut Fields<'_>, agent: &Agent) {
    if RESERVED_NAMES.contains(&agent.name.as_str()) {
        let message = format!(
            "`{}` is reserved: it has another meaning on the board of a campaign",
            agent.name
        );
        fields.fail("name", message, "another name, and a file of that name");
    }
    // The default thresholds of the context are 75 and 85.
    let prepare = agent.prepare_percent.unwrap_or(75);
    let apply = agent.apply_percent.unwrap_or(85);
    if prepare >= apply {
        let key = if agent.prepare_percent.is_some() { "prepare_percent" } else { "apply_percent" };
        let message = format!("prepares a summary at {prepare} %, but applies it at {apply} %");
        fields.fail(key, message, "a prepare_percent below the apply_percent");
    }
    if let Some(limit @ 1..1000) = agent.rotate_at_tokens {
        let message = format!("is {limit}, which leaves no room for a summary");
        fields.fail(
            "rotate_at_tokens",
            message,
            "rotate_at_tokens: 1000 or more, or 0 for no limit",
        );
    }
    if let (Some(window), Some(reserve)) = (agent.window_tokens, agent.reserve_tokens)
        && reserve >= window
    {
        let message = format!("leaves no room in a window of {window} tokens");
        fields.fail("reserve_tokens", message, format!("reserve_tokens: {}", window / 4));
    }
    let fix = "the instructions of the agent";
    let what = "system prompt after the front matter";
    fields.check_text(what, &agent.prompt, PROMPT_MAX_BYTES, fix);
}

/// SHA-256 in hex.
pub(super) fn hash(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
