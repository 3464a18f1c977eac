//! Checks of endpoints: each server of a section `[providers.NAME]`, and the models that agents name. Without endpoints there are no findings.

use tokio_util::sync::CancellationToken;

use super::{
    Finding,
    model_requirements::{ModelRequirements, list, required_models},
};
use crate::{
    causes::causes,
    config::Config,
    domain::{agents::Catalogue, text::count},
    providers::endpoint::{self, Endpoint, Error, ModelFacts},
};

const CHECK: &str = "endpoint";
const WHY: &str = "turns of agents whose files name the endpoint are calls to its server";
const MODEL: &str = "endpoint model";
const WHY_MODEL: &str = "a turn fails if the server does not have its model, or cannot call the tools of its agent with it";

/// Timeout for each answer, so that a diagnosis ends.
const TIMEOUT_SECS: u64 = 10;

pub(super) async fn examine(config: &Config) -> Vec<Finding> {
    let catalogue = Catalogue::load(&config.agents).unwrap_or_default();
    let mut findings = Vec::new();
    for endpoint in &config.endpoints {
        findings.extend(examine_one(config, &catalogue, endpoint).await);
    }
    findings
}

async fn examine_one(
    config: &Config,
    catalogue: &Catalogue,
    endpoint: &endpoint::Config,
) -> Vec<Finding> {
    let name = &endpoint.name;
    let required = required_models(config, catalogue, name);
    let listed = match list_models(config, endpoint).await {
        Ok(listed) => listed,
        // Servers need not have a list: this one was reached, and accepted the key.
        Err(error @ (Error::NotTheApi { .. } | Error::Malformed { .. })) => {
            let what = format!("{name} does not list its models: {}", causes(&error));
            let fix = format!(
                "make sure that providers.{name}.base_url ends with the version, for example /v1"
            );
            return vec![Finding::warn(CHECK, what, WHY, fix)];
        }
        Err(error) => {
            let fix = format!("start the server, or correct the section [providers.{name}]");
            let mut findings = vec![Finding::fail(CHECK, causes(&error), WHY, fix)];
            if !required.is_empty() {
                let why = format!("{name} does not answer");
                findings.push(Finding::skipped(MODEL, why, WHY_MODEL));
            }
            return findings;
        }
    };
    let what = format!(
        "{name} at {} lists {}",
        endpoint.base_url(),
        count(listed.len(), "model", "models")
    );
    let mut findings = vec![Finding::ok(CHECK, what, WHY)];
    let judged = required.iter().map(|(model, required)| judge(endpoint, &listed, model, required));
    findings.extend(judged);
    findings
}

async fn list_models(
    config: &Config,
    endpoint: &endpoint::Config,
) -> Result<Vec<ModelFacts>, Error> {
    let impatient = endpoint::Config {
        connect_timeout_secs: endpoint.connect_timeout_secs.min(TIMEOUT_SECS),
        idle_timeout_secs: endpoint.idle_timeout_secs.min(TIMEOUT_SECS),
        ..endpoint.clone()
    };
    let variable = |name: &str| config.environment.get(name).map(str::to_owned);
    let endpoint = Endpoint::new(impatient, &variable)?;
    endpoint.list_models(&CancellationToken::new()).await
}

fn judge(
    endpoint: &endpoint::Config,
    listed: &[ModelFacts],
    model: &str,
    required: &ModelRequirements<'_>,
) -> Finding {
    let name = &endpoint.name;
    let users = list(&required.users);
    let Some(facts) = listed.iter().find(|facts| facts.name == model) else {
        let what = format!("{name} does not list {model} (for {users})");
        let fix = "correct `model` in the files, or load the model in the server";
        return Finding::warn(MODEL, what, WHY_MODEL, fix);
    };
    if facts.has_no_tools && !required.with_tools.is_empty() {
        let agents = list(&required.with_tools);
        let what =
            format!("{model} of {name} cannot call tools, which the files of {agents} grant");
        let fix = "name a model with tools, or remove `tools` from the files";
        return Finding::fail(MODEL, what, WHY_MODEL, fix);
    }
    let configured = endpoint.window_tokens_of(model);
    let window = configured.unwrap_or_else(|| facts.window_tokens(endpoint.window_tokens()));
    if let Some((tokens, agent)) = required.window
        && tokens > i64::from(window)
    {
        let what =
            format!("{agent} needs a window of {tokens} tokens, but calls of {model} get {window}");
        let fix = format!(
            "set its window in providers.{name}.models, or lower window_tokens in its file"
        );
        return Finding::warn(MODEL, what, WHY_MODEL, fix);
    }
    Finding::ok(MODEL, format!("{model} of {name}, window {window} tokens, for {users}"), WHY_MODEL)
}
