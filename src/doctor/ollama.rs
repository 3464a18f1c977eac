//! Checks of Ollama: the server, and the models that agents name. Without agents on Ollama there are no findings.

use tokio_util::sync::CancellationToken;

use super::{
    Finding,
    model_requirements::{ModelRequirements, list, required_models},
};
use crate::{
    causes::causes,
    config::Config,
    domain::agents::Catalogue,
    providers::ollama::{self, ModelSummary, Ollama},
};

const CHECK: &str = "ollama";
const WHY: &str = "turns on Ollama are calls to the server at ollama.base_url";
const MODEL: &str = "ollama model";
const WHY_MODEL: &str = "a turn fails if its model is not pulled, cannot call the tools of its agent, or has too small a window";

/// Timeout for each answer, so that a diagnosis ends.
const PATIENCE_SECS: u64 = 10;

pub(super) async fn examine(config: &Config) -> Vec<Finding> {
    let catalogue = Catalogue::load(&config.agents).unwrap_or_default();
    let models = required_models(config, &catalogue, ollama::NAME);
    if models.is_empty() {
        return Vec::new();
    }
    let patient = ollama::Config {
        connect_timeout_secs: config.ollama.connect_timeout_secs.min(PATIENCE_SECS),
        idle_timeout_secs: config.ollama.idle_timeout_secs.min(PATIENCE_SECS),
        ..config.ollama.clone()
    };
    let never = CancellationToken::new();
    let version = match Ollama::new(patient) {
        Ok(ollama) => ollama.version(&never).await.map(|version| (ollama, version)),
        Err(error) => Err(error),
    };
    let (ollama, version) = match version {
        Ok(reached) => reached,
        Err(error) => {
            let fix = "start the server (`ollama serve`), or correct ollama.base_url";
            let down = Finding::fail(CHECK, causes(&error), WHY, fix);
            let skipped = "the server does not answer";
            return vec![down, Finding::skipped(MODEL, skipped, WHY_MODEL)];
        }
    };
    let what = format!("version {version} at {}", config.ollama.base_url);
    let mut findings = vec![Finding::ok(CHECK, what, WHY)];
    for (name, wanted) in models {
        let found = ollama.model(name, &never).await;
        findings.push(match found {
            Ok(model) => judge(config, name, &wanted, model),
            Err(error) => {
                let what = format!("{} (for {})", causes(&error), list(&wanted.users));
                let fix = format!("`ollama pull {name}` on that server, or name another model");
                Finding::fail(MODEL, what, WHY_MODEL, fix)
            }
        });
    }
    findings
}

fn judge(
    config: &Config,
    name: &str,
    wanted: &ModelRequirements<'_>,
    model: ModelSummary,
) -> Finding {
    if model.has_no_tools && !wanted.with_tools.is_empty() {
        let agents = list(&wanted.with_tools);
        let what = format!("{name} cannot call tools, which the files of {agents} grant");
        let fix = "name a model with `tools` among its capabilities (`ollama show`), or remove `tools` from the files";
        return Finding::fail(MODEL, what, WHY_MODEL, fix);
    }
    let configured = config.ollama.num_ctx_of(name);
    if model.window_tokens < configured {
        let what = format!(
            "{name} supports {} tokens, but ollama.num_ctx is {configured}: calls get {}",
            model.window_tokens, model.window_tokens
        );
        let fix = format!("set num_ctx of {name} in ollama.models, or name another model");
        return Finding::warn(MODEL, what, WHY_MODEL, fix);
    }
    if let Some((tokens, agent)) = wanted.window
        && tokens > i64::from(model.window_tokens)
    {
        let what = format!(
            "{agent} needs a window of {tokens} tokens, but calls of {name} get {}",
            model.window_tokens
        );
        let fix = "raise ollama.num_ctx, or lower window_tokens in its file";
        return Finding::warn(MODEL, what, WHY_MODEL, fix);
    }
    let what =
        format!("{name}, window {} tokens, for {}", model.window_tokens, list(&wanted.users));
    Finding::ok(MODEL, what, WHY_MODEL)
}
