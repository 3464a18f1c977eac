//! One real call with each credential. It costs a few tokens, so it runs only on request.

use std::{path::PathBuf, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use super::{Finding, models};
use crate::{
    clock::Clock,
    config::Config,
    domain::agents::Catalogue,
    providers::{
        EventSink, Options, Provider as _, Purpose, Request, Timeouts,
        claude::{Claude, Credential, HostEnvironment},
    },
    transcript::{Message, Role},
};

const CHECK: &str = "claude call";
const WHY: &str = "only a call shows that a credential is accepted and may use the model";
const PATIENCE: Duration = Duration::from_secs(90);
/// Default model: cheap, and available to every credential.
const MODEL: &str = "claude-haiku-4-5";
const ANSWER_MAX_CHARS: usize = 60;

/// Calls Claude once with each credential. `guard` is the path of one of our binaries.
pub async fn smoke(
    config: &Config,
    clock: &Arc<dyn Clock>,
    guard: PathBuf,
    stop: &CancellationToken,
) -> Vec<Finding> {
    let own = |name: &str| config.environment.get(name).map(str::to_owned);
    let model = model(config);
    let folder = config.service.data_dir.join("claude");
    let mut findings = Vec::new();
    for credential in &config.claude.credentials {
        // `credentials` reports credentials that cannot be read.
        let Ok(credential) = credential.resolve(own) else { continue };
        let surroundings = HostEnvironment {
            credentials: vec![credential.clone()],
            secrets: Vec::new(),
            sessions: std::path::absolute(&folder).unwrap_or_else(|_| folder.clone()),
            guard: guard.clone(),
            passed: config.environment.only(&config.claude.pass_variables),
            clock: Arc::clone(clock),
        };
        findings.push(
            call(Claude::new(config.claude.clone(), surroundings), &credential, &model, stop).await,
        );
    }
    if findings.is_empty() {
        findings.push(Finding::skipped(CHECK, "there is no credential to call with", WHY));
    }
    findings
}

/// Returns the model of the first agent on Claude.
fn model(config: &Config) -> String {
    let catalogue = Catalogue::load(&config.agents).unwrap_or_default();
    let first = catalogue.agents().find_map(|agent| models(config, agent).next());
    first.unwrap_or(MODEL).to_owned()
}

async fn call(
    claude: Claude,
    credential: &Credential,
    model: &str,
    stop: &CancellationToken,
) -> Finding {
    let name = &credential.name;
    match claude.run(request(model), EventSink::discard(), stop.clone()).await {
        Ok(outcome) => {
            let said: String = outcome.message.text.trim().chars().take(ANSWER_MAX_CHARS).collect();
            let secs = outcome.durations.total.as_secs_f32();
            let tokens = outcome.prompt_tokens().unwrap_or_default();
            let what = format!(
                "{name}: {model} answered {said:?} after {secs:.1} s (prompt of {tokens} tokens)"
            );
            Finding::ok(CHECK, what, WHY)
        }
        Err(error) => {
            let what = format!("{name}: {error} ({})", error.code);
            Finding::fail(CHECK, what, WHY, "do what the message says, then run it again")
        }
    }
}

fn request(model: &str) -> Request {
    let prompt = Message::new(Role::User, "Answer with the one word: ready");
    Request {
        turn: "doctor".to_owned(),
        purpose: Purpose::Turn,
        model: model.to_owned(),
        system: "You answer in one word.".to_owned(),
        messages: vec![prompt.into()],
        tools: Vec::new(),
        window_tokens: 200_000,
        reserve_tokens: 1024,
        estimated_prompt_tokens: None,
        options: Options::default(),
        timeouts: Timeouts { total: Some(PATIENCE), ..Timeouts::default() },
        // Nothing of this call is kept.
        conversation: None,
        credential: None,
    }
}
