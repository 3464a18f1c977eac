//! The models that a server lists, asked once in a while.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use super::{Endpoint, Error, Kind, ThinkingModes};
use crate::providers::{
    deadline::CallDeadline,
    http::{Activity, Step},
};

/// The last answer of a server.
#[derive(Debug, Default)]
pub(super) struct Models(Mutex<Option<CachedList>>);

/// Facts that a server tells about one of its models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFacts {
    pub name: String,
    pub window: Option<Window>,
    /// True if the server says so. Most servers say nothing about tools.
    pub has_no_tools: bool,
    /// Kinds of thinking that the model accepts. `None`: the server does not say.
    pub thinking: Option<ThinkingModes>,
}

/// A number of tokens, and its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// Window of calls to the server.
    Served(u32),
    /// Window that the model was trained with; the server may give it less.
    Trained(u32),
}

#[derive(Debug, Clone)]
struct CachedList {
    at: Instant,
    models: Arc<Vec<ModelFacts>>,
}

#[derive(Debug, Deserialize)]
struct Reply {
    #[serde(default)]
    data: Vec<Value>,
}

/// Path of the list below the base URL.
const PATH: &str = "models";
/// The same on servers that list a few models at a time.
const LONG_PATH: &str = "models?limit=1000";
/// Time after which the list is asked again: a server may load another model.
const ASK_AGAIN: Duration = Duration::from_secs(600);
/// Maximum number of models that are kept of a list.
const MAX_MODELS: usize = 4096;
/// Places of the window that a server gives to calls, with the servers that have them.
const SERVED: [&str; 7] = [
    "/max_model_len",               // vLLM, SGLang
    "/meta/n_ctx",                  // llama.cpp
    "/loaded_context_length",       // LM Studio
    "/context_window",              // Groq
    "/top_provider/context_length", // OpenRouter
    "/context_length",              // OpenRouter, Together
    "/max_context_window",
];
/// Places of the window of training.
const TRAINED: [&str; 2] = [
    "/meta/n_ctx_train",   // llama.cpp
    "/max_context_length", // LM Studio
];
/// Place of the window in the lists of LiteLLM and of Anthropic. Longer prompts cost more at Anthropic, so the setting is the limit there.
const INPUT: [&str; 1] = ["/max_input_tokens"];

impl Models {
    /// Asks the server for its models.
    pub(super) async fn fetch(
        &self,
        endpoint: &Endpoint,
        deadline: &CallDeadline<'_>,
    ) -> Result<Vec<ModelFacts>, Error> {
        let step = Step::begin(Activity::AskingForModel, endpoint.config.idle_timeout());
        let request = endpoint.client.get(match endpoint.config.kind {
            Kind::OpenAi => PATH,
            Kind::Anthropic => LONG_PATH,
        });
        let reply: Reply = endpoint.fetch(request, step, deadline).await?;
        let kind = endpoint.config.kind;
        let listed = reply.data.iter().take(MAX_MODELS);
        let models: Vec<_> = listed.filter_map(|model| ModelFacts::of(model, kind)).collect();
        self.keep(models.clone());
        Ok(models)
    }

    /// Returns the facts about a model. `None`: the server has no such list, or does not name the model.
    pub(super) async fn find(
        &self,
        endpoint: &Endpoint,
        model: &str,
        deadline: &CallDeadline<'_>,
    ) -> Result<Option<ModelFacts>, Error> {
        if let Some(known) = self.known() {
            return Ok(find_in(&known, model));
        }
        // Two callers may both ask. Neither waits for the other, and the answers are the same.
        match self.fetch(endpoint, deadline).await {
            Ok(models) => Ok(find_in(&models, model)),
            Err(error) if error.is_of_transport() => Err(error),
            Err(error @ (Error::Cancelled | Error::TooLong { .. })) => Err(error),
            // A proxy may let only the calls themselves through.
            Err(error) => {
                tracing::debug!(
                    code = error.code(),
                    "cannot list the models of an endpoint: {error}"
                );
                self.keep(Vec::new());
                Ok(None)
            }
        }
    }

    /// Returns the facts about a model, without asking the server.
    pub(super) fn find_known(&self, model: &str) -> Option<ModelFacts> {
        find_in(&self.known()?, model)
    }

    fn known(&self) -> Option<Arc<Vec<ModelFacts>>> {
        let list = self.lock();
        let fresh = list.as_ref().filter(|list| list.at.elapsed() < ASK_AGAIN);
        fresh.map(|list| Arc::clone(&list.models))
    }

    fn keep(&self, models: Vec<ModelFacts>) {
        *self.lock() = Some(CachedList { at: Instant::now(), models: Arc::new(models) });
    }

    fn lock(&self) -> MutexGuard<'_, Option<CachedList>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ModelFacts {
    /// Returns the window of calls to this model. `default` applies if the server says nothing, and limits the window of training.
    pub fn window_tokens(&self, default: u32) -> u32 {
        match self.window {
            Some(Window::Served(tokens)) => tokens,
            Some(Window::Trained(tokens)) => tokens.min(default),
            None => default,
        }
    }

    fn of(model: &Value, kind: Kind) -> Option<Self> {
        let number = |places: &[&str]| {
            let numbers = places.iter().filter_map(|place| model.pointer(place)?.as_u64());
            numbers.filter(|tokens| *tokens > 0).find_map(|tokens| u32::try_from(tokens).ok())
        };
        let served = number(&SERVED).map(Window::Served);
        let input = number(&INPUT).map(|tokens| match kind {
            Kind::OpenAi => Window::Served(tokens),
            Kind::Anthropic => Window::Trained(tokens),
        });
        let parameters = model.get("supported_parameters").and_then(Value::as_array);
        Some(Self {
            name: model.get("id")?.as_str()?.to_owned(),
            window: served.or(input).or_else(|| number(&TRAINED).map(Window::Trained)),
            has_no_tools: parameters.is_some_and(|names| !names.iter().any(|name| name == "tools")),
            thinking: model.get("capabilities").and_then(ThinkingModes::of),
        })
    }
}

fn find_in(models: &[ModelFacts], model: &str) -> Option<ModelFacts> {
    models.iter().find(|facts| facts.name == model).cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(model: &Value) -> Option<ModelFacts> {
        ModelFacts::of(model, Kind::OpenAi)
    }

    #[test]
    fn the_window_is_found_in_each_servers_list() {
        let window = |model: Value| of(&model).unwrap().window;
        let served = Some(Window::Served(8192));
        assert_eq!(window(json!({ "id": "m", "max_model_len": 8192 })), served);
        assert_eq!(window(json!({ "id": "m", "context_length": 8192 })), served);
        assert_eq!(window(json!({ "id": "m", "context_window": 8192 })), served);
        let narrower = json!({ "id": "m", "context_length": 65536, "top_provider": { "context_length": 8192 } });
        assert_eq!(window(narrower), served);
        let llama = json!({ "id": "m", "meta": { "n_ctx_train": 8192 } });
        assert_eq!(window(llama.clone()), Some(Window::Trained(8192)));
        assert_eq!(of(&llama).unwrap().window_tokens(4096), 4096);
        let input = json!({ "id": "m", "max_input_tokens": 8192 });
        assert_eq!(window(input.clone()), served);
        let of_anthropic = ModelFacts::of(&input, Kind::Anthropic).unwrap();
        assert_eq!(of_anthropic.window, Some(Window::Trained(8192)));
        assert_eq!(window(json!({ "id": "m" })), None);
        for nonsense in [json!(0), json!(-1), json!("many"), json!(1e300), json!(null)] {
            assert_eq!(window(json!({ "id": "m", "max_model_len": nonsense })), None);
        }
    }

    #[test]
    fn tools_are_assumed_unless_the_server_lists_parameters_without_them() {
        let has_none = |model: Value| of(&model).unwrap().has_no_tools;
        assert!(!has_none(json!({ "id": "m" })));
        assert!(!has_none(json!({ "id": "m", "supported_parameters": ["tools", "seed"] })));
        assert!(has_none(json!({ "id": "m", "supported_parameters": ["seed"] })));
        assert_eq!(of(&json!({ "name": "m" })), None);
    }
}
