//! The scripted server of each provider, and the settings with which a fixture calls it.

use serde_json::Value;

use crate::{
    providers::{
        claude::api::Api,
        conformance::{
            dialects::{Anthropic, OpenAi},
            server::ScriptedServer,
        },
        fake_ollama::FakeOllama,
    },
    turns::{Fixture, claude::Setup},
};

/// Values of settings by their keys.
pub type Settings = Vec<(&'static str, String)>;

/// The variable with the key of the endpoint `anthropic`, and its value.
pub const KEY_VARIABLE: (&str, &str) = ("ANTHROPIC_KEY", "sk-of-the-test");

/// The server that a provider calls.
pub enum Server {
    /// The simulation calls none.
    None,
    Ollama(FakeOllama),
    Endpoint(ScriptedServer),
    Cli(Api),
}

impl Server {
    /// Returns the bodies of all calls of models, in order.
    pub fn bodies(&self) -> Vec<String> {
        let texts = |bodies: Vec<Vec<u8>>| {
            bodies.into_iter().map(|body| String::from_utf8(body).unwrap()).collect()
        };
        match self {
            Self::None => Vec::new(),
            Self::Ollama(server) => texts(server.bodies()),
            Self::Endpoint(server) => texts(server.bodies()),
            Self::Cli(server) => server.requests().iter().map(Value::to_string).collect(),
        }
    }
}

pub async fn simulation(settings: Settings) -> Option<(Server, Fixture)> {
    Some((Server::None, Fixture::new(&borrowed(&settings)).await))
}

pub async fn ollama(settings: Settings) -> Option<(Server, Fixture)> {
    let server = FakeOllama::start().await;
    let settings = [ollama_settings(&server), settings].concat();
    Some((Server::Ollama(server), Fixture::new(&borrowed(&settings)).await))
}

/// Starts an endpoint with chat completions.
pub async fn local(settings: Settings) -> Option<(Server, Fixture)> {
    let server = ScriptedServer::playing(&OpenAi, []).await;
    let settings = [local_settings(&server), settings].concat();
    Some((Server::Endpoint(server), Fixture::new(&borrowed(&settings)).await))
}

/// Starts an endpoint with the Messages API.
pub async fn anthropic(settings: Settings) -> Option<(Server, Fixture)> {
    let server = ScriptedServer::playing(&Anthropic, []).await;
    let settings = [anthropic_settings(&server), settings].concat();
    let fixture = Fixture::new(&borrowed(&settings)).await;
    let (name, key) = KEY_VARIABLE;
    Some((Server::Endpoint(server), fixture.with_variable(name, key)))
}

/// Starts the API that the real CLI calls; `None` where the CLI cannot be obtained.
pub async fn claude(settings: Settings) -> Option<(Server, Fixture)> {
    let Setup { api, fixture } = Setup::new(&borrowed(&settings)).await?;
    api.counts();
    Some((Server::Cli(api), fixture))
}

pub fn ollama_settings(server: &FakeOllama) -> Settings {
    vec![
        ("ollama.base_url", format!("http://{}", server.addr)),
        ("ollama.num_ctx", "16384".to_owned()),
    ]
}

pub fn local_settings(server: &ScriptedServer) -> Settings {
    let models = "[{ name = \"org/model:8b\", window_tokens = 16384 }]";
    vec![
        ("providers.local.base_url", format!("{}/v1", server.base_url())),
        ("providers.local.models", models.to_owned()),
    ]
}

pub fn anthropic_settings(server: &ScriptedServer) -> Settings {
    vec![
        ("providers.anthropic.kind", "anthropic".to_owned()),
        ("providers.anthropic.base_url", format!("{}/v1", server.base_url())),
        ("providers.anthropic.window_tokens", "16384".to_owned()),
        ("providers.anthropic.credential_variable", KEY_VARIABLE.0.to_owned()),
    ]
}

pub fn borrowed<'a>(settings: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    settings.iter().map(|(key, value)| (*key, value.as_str())).collect()
}
