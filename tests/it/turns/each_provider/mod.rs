//! The same checks for each provider: contexts, previews, estimates, reruns, forks, pages of the console, and budgets.
//!
//! A new provider adds the start of its server to `servers.rs`, and one line to the list at the end of this file.

mod checks;
pub mod servers;

use std::{panic::AssertUnwindSafe, sync::Arc};

use dalsegno::{
    domain::tasks::Task,
    jobs::Services,
    providers::{Capabilities, RESERVED_NAMES},
};
use futures_util::{FutureExt as _, future::LocalBoxFuture};
use serde_json::Value;
use uuid::Uuid;

use self::servers::{Server, Settings};
use super::{Fixture, fixture::Worker, forks};
use crate::{app::TestApp, http::client, providers::conformance::DIALECTS};

/// The fact that the first prompt states.
const FACT: &str = "BERTH-41";
/// Words that only the first prompt has.
const PART: &str = "The harbour has a mole and a light. ";
/// Asks for the fact. The simulation answers with the words that it was sent.
const QUESTION: &str = "Where is the ferry? [[sim: quote BERTH-]]";
/// Price of a million tokens, in millionths of the currency.
const PRICE: i64 = 100_000_000;
/// More money than all calls of a test may cost, in millionths of the currency.
const ENOUGH: i64 = 100_000_000;

/// A provider with a model, and the start of its server.
#[derive(Clone, Copy)]
struct ProviderCase {
    provider: &'static str,
    model: &'static str,
    /// Words of its answers to [`QUESTION`] that no prompt has.
    answer: &'static str,
    start: fn(Settings) -> Start,
}

type Start = LocalBoxFuture<'static, Option<(Server, Fixture)>>;

/// A conversation of two turns, and the service that shows it.
struct Conversation {
    case: ProviderCase,
    server: Server,
    /// The task of the second turn.
    second: Task,
    worker: Option<Worker>,
    services: Arc<Services>,
    app: TestApp,
    fixture: Fixture,
}

type Check = for<'a> fn(&'a mut Conversation) -> LocalBoxFuture<'a, ()>;

/// The checks by their names. The budgets are last: a task that waits for one would keep the conversation from the others.
const CHECKS: [(&str, Check); 6] = [
    ("contexts", |it| Box::pin(checks::contexts(it))),
    ("estimates", |it| Box::pin(checks::estimates(it))),
    ("reruns", |it| Box::pin(checks::reruns(it))),
    ("forks", |it| Box::pin(checks::forks(it))),
    ("console", |it| Box::pin(checks::console(it))),
    ("budgets", |it| Box::pin(checks::budgets(it))),
];

impl Conversation {
    /// Runs the two turns; `None` where the provider cannot be obtained.
    async fn begin(case: &ProviderCase) -> Option<Self> {
        let ProviderCase { provider, model, start, .. } = *case;
        let price = format!(
            "[{{ provider = \"{provider}\", model = \"{model}\", input = {PRICE}, output = {PRICE} }}]"
        );
        let (server, fixture) = start(vec![("prices.models", price)]).await?;
        // A small reserve, so that a call needs less than the turns before it have spent.
        let route = format!("provider: {provider}\nmodel: {model}\nreserve_tokens: 300\n");
        let file = format!("---\nname: writer\ndescription: Writes\n{route}---\nYou write.\n");
        fixture.write_agent("writer", &file);
        let worker = Some(fixture.start_worker().await);
        let statement = format!("The ferry is at {FACT}. {}", PART.repeat(40));
        forks::run(&fixture, "main", &statement).await;
        let second = forks::run(&fixture, "main", QUESTION).await;
        fixture.settled().await;
        let (services, app) = (fixture.services(&[]), fixture.start_app().await);
        Some(Self { case: *case, server, second, worker, services, app, fixture })
    }

    /// Starts a worker, unless there is one.
    async fn start_worker(&mut self) {
        if self.worker.is_none() {
            self.worker = Some(self.fixture.start_worker().await);
        }
    }

    async fn stop_worker(&mut self) {
        if let Some(worker) = self.worker.take() {
            worker.stop().await;
        }
    }

    fn capabilities(&self) -> Capabilities {
        self.services.providers.find(self.case.provider).unwrap().capabilities()
    }

    fn session_id(&self) -> Uuid {
        self.second.session_id.unwrap()
    }

    /// Sends a request that must succeed.
    async fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let reply = client::send(self.app.address, method, path, &[], &body).await;
        assert!((200..300).contains(&reply.status), "{method} {path}: {reply:?}");
        reply.json()
    }

    async fn get(&self, path: &str) -> Value {
        self.send("GET", path, &Value::Null).await
    }

    /// Runs `context show` for a turn of the session.
    async fn show_context(&self, turn: i32) -> Value {
        let (id, turn) = (self.session_id().to_string(), turn.to_string());
        let shown = ["context", "show", id.as_str(), "--turn", turn.as_str(), "--json"];
        serde_json::from_str(&self.fixture.succeed(&shown).await).unwrap()
    }

    /// Checks that the call with the answer to a task, the last one of all, had the fact.
    fn assert_fact_was_sent(&self, task: &Task) {
        let answer = task.result.clone().unwrap_or_default();
        assert!(answer.contains(self.case.answer), "{answer}");
        let sent = match self.capabilities().is_simulation {
            true => answer,
            false => self.server.bodies().pop().unwrap(),
        };
        assert!(sent.contains(FACT), "{sent}");
    }
}

/// Makes all checks, and reports those that fail.
async fn check(case: &ProviderCase) {
    let Some(mut conversation) = Box::pin(Conversation::begin(case)).await else { return };
    conversation.assert_fact_was_sent(&conversation.second);
    let mut failed = Vec::new();
    for (name, check) in CHECKS {
        conversation.start_worker().await;
        let checked = AssertUnwindSafe(check(&mut conversation)).catch_unwind().await;
        failed.extend(checked.is_err().then_some(name));
    }
    assert!(failed.is_empty(), "{} fails at: {failed:?}", case.provider);
    conversation.stop_worker().await;
}

/// Makes a list of providers, and a test of each.
macro_rules! each_provider {
    ($($name:ident: $provider:literal, $model:literal, $answer:literal, $start:ident;)*) => {
        const PROVIDERS: &[ProviderCase] = &[$(ProviderCase {
            provider: $provider,
            model: $model,
            answer: $answer,
            start: |settings| Box::pin(servers::$start(settings)),
        }),*];
        $(
            #[tokio::test]
            async fn $name() {
                let case = PROVIDERS.iter().find(|case| case.provider == $provider).unwrap();
                Box::pin(check(case)).await;
            }
        )*
    };
}

each_provider! {
    the_simulation: "sim", "sim-1", "The conversation has", simulation;
    ollama: "ollama", "qwen3:8b", "A good answer.", ollama;
    chat_completions: "local", "org/model:8b", "A good answer.", local;
    the_messages_api: "anthropic", "claude-of-the-test", "A good answer.", anthropic;
    the_claude_cli: "claude", "claude-sonnet-5", "You said:", claude;
}

#[test]
fn every_provider_of_the_service_is_checked() {
    let is_built_in = |case: &&ProviderCase| RESERVED_NAMES.contains(&case.provider);
    let n_built_in = PROVIDERS.iter().filter(is_built_in).count();
    assert_eq!(n_built_in, RESERVED_NAMES.len());
    // Of the built-in providers, only Ollama is in the conformance suite. The others there are kinds of endpoints.
    assert_eq!(PROVIDERS.len() - n_built_in, DIALECTS.len() - 1);
}
