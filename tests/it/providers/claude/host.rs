//! A host with a CLI, and the steps of a worker on it.

use std::{ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

use dalsegno::{
    clock::ManualClock,
    providers::{
        Conversation, ConversationUpdate, Error, Event, EventSink, Options, Outcome, Provider as _,
        Purpose, Request, Timeouts, TranscriptFile,
        claude::{Claude, Config, Credential, HostEnvironment, Kind},
    },
    transcript::{Message, Role},
};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{api::Api, cli::Cli};
use crate::{
    app::{eventually, noon},
    providers::requests::message,
};

/// Deadline of each call.
pub const DEADLINE: Duration = crate::app::SOON;
pub const SECRET: &str = "sk-ant-dummy-0123456789";
const MODEL: &str = "claude-sonnet-5";

pub struct Host {
    pub sessions: TempDir,
    pub config: Config,
    pub passed: Vec<(OsString, OsString)>,
    pub credential: String,
    pub kind: Kind,
    pub secrets: Vec<String>,
}

impl Host {
    pub fn new(cli: &Cli, api: &Api) -> Self {
        let config = Config {
            program: cli.program(),
            base_url: api.url(),
            max_retries: 0,
            // Long enough for slow machines.
            first_line_timeout_secs: 600,
            mcp_timeout_secs: 150,
            ..Config::default()
        };
        Self {
            sessions: tempfile::tempdir().unwrap(),
            config,
            passed: Vec::new(),
            credential: "main".to_owned(),
            kind: Kind::ApiKey,
            secrets: Vec::new(),
        }
    }

    /// Builds a host with the scripted CLI and one of its faults.
    pub async fn with_fault(fault: &str) -> Self {
        let api = Api::start().await;
        let mut host = Self::new(&Cli::Fake, &api);
        host.passed.push(("FAKE_CLAUDE".into(), fault.into()));
        host
    }

    pub fn claude(&self) -> Claude {
        let credential = Credential {
            name: self.credential.clone(),
            kind: self.kind,
            secret: SECRET.to_owned().into(),
        };
        let surroundings = HostEnvironment {
            credentials: vec![credential],
            secrets: self.secrets.iter().map(|secret| secret.as_str().into()).collect(),
            sessions: self.sessions.path().to_owned(),
            guard: env!("CARGO_BIN_EXE_dalsegno").into(),
            passed: self.passed.clone(),
            clock: Arc::new(ManualClock::at(noon())),
        };
        Claude::new(self.config.clone(), surroundings)
    }

    pub async fn ask(&self, request: Request) -> Result<Outcome, Error> {
        self.ask_with(request, CancellationToken::new()).await.0
    }

    pub async fn ask_with(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> (Result<Outcome, Error>, Vec<Event>) {
        let (sink, mut events) = EventSink::channel(1024);
        let claude = self.claude();
        let call = tokio::time::timeout(DEADLINE, claude.run(request, sink, cancel));
        let result = call.await.expect("the call ends by itself");
        let mut seen = Vec::new();
        while let Some(event) = events.recv().await {
            seen.push(event);
        }
        (result, seen)
    }

    /// Lists files below the sessions with this ending.
    pub fn find(&self, ending: &str) -> Vec<PathBuf> {
        let (mut found, mut folders) = (Vec::new(), vec![self.sessions.path().to_owned()]);
        while let Some(folder) = folders.pop() {
            // Leftovers of calls are removed concurrently.
            let Ok(entries) = std::fs::read_dir(folder) else { continue };
            for entry in entries.flatten().map(|entry| entry.path()) {
                if entry.is_dir() {
                    folders.push(entry);
                } else if entry.to_string_lossy().ends_with(ending) {
                    found.push(entry);
                }
            }
        }
        found
    }

    /// Returns true if no session has left files.
    pub fn is_empty(&self) -> bool {
        std::fs::read_dir(self.sessions.path()).unwrap().next().is_none()
    }

    pub fn processes(&self) -> Vec<String> {
        processes_of(&self.sessions.path().to_string_lossy())
    }

    /// Waits until no process of this host's sessions is left.
    pub async fn is_quiet(&self) {
        eventually("no process is left", async || self.processes().is_empty().then_some(())).await;
    }
}

/// Lists processes with these words in their environment, which children of the CLI inherit in any process group.
pub fn processes_of(words: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let has = |file: &str| {
            let bytes = std::fs::read(entry.path().join(file)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).replace('\0', " ")
        };
        if has("environ").contains(words) {
            found.push(format!("{} {}", entry.file_name().to_string_lossy(), has("cmdline")));
        }
    }
    found
}

/// State that a provider's caller stores, in memory.
#[derive(Debug, Clone)]
pub struct StoredConversation {
    pub conversation: Conversation,
    pub messages: Vec<Message>,
}

impl StoredConversation {
    pub fn new() -> Self {
        let conversation = Conversation { external_id: Uuid::new_v4(), ..Conversation::default() };
        Self { conversation, messages: Vec::new() }
    }

    /// Builds the request for the next turn. The transcript's bytes are omitted unless requested.
    pub fn request(&self, prompt: &str, with_bytes: bool) -> Request {
        let mut conversation = self.conversation.clone();
        if !with_bytes {
            conversation.transcript.iter_mut().for_each(|file| file.bytes = None);
        }
        let mut messages = self.messages.clone();
        messages.push(message(Role::User, prompt));
        Request {
            turn: "turn-1".to_owned(),
            purpose: Purpose::Turn,
            model: MODEL.to_owned(),
            system: "You write for the client.".to_owned(),
            messages: messages.into_iter().map(Arc::new).collect(),
            tools: Vec::new(),
            window_tokens: 200_000,
            reserve_tokens: 8192,
            estimated_prompt_tokens: None,
            options: Options::default(),
            timeouts: Timeouts::default(),
            conversation: Some(conversation),
            credential: None,
        }
    }

    /// Runs a whole turn.
    pub async fn turn(&mut self, host: &Host, prompt: &str) -> Outcome {
        let outcome = host.ask(self.request(prompt, false)).await;
        let outcome =
            outcome.unwrap_or_else(|error| panic!("{prompt:.40}: {} {error}", error.code));
        self.commit(prompt, &outcome);
        outcome
    }

    pub fn commit(&mut self, prompt: &str, outcome: &Outcome) {
        let continued: &ConversationUpdate =
            outcome.conversation.as_deref().expect("a conversation");
        self.messages.push(message(Role::User, prompt));
        self.messages.extend(continued.messages.clone());
        self.conversation.head = Some(continued.head);
        self.conversation.meter = continued.meter.clone();
        for grown in &continued.grown {
            let files = &mut self.conversation.transcript;
            let known = files.iter().position(|file| file.name == grown.name);
            let mut bytes = known.map(|at| files.remove(at).bytes.unwrap()).unwrap_or_default();
            bytes.truncate(usize::try_from(grown.from).unwrap());
            assert_eq!(bytes.len() as u64, grown.from, "a gap in {}", grown.name);
            bytes.extend_from_slice(&grown.bytes);
            assert_eq!(Sha256::digest(&bytes)[..], grown.sha256, "{}", grown.name);
            files.push(TranscriptFile {
                name: grown.name.clone(),
                n_bytes: bytes.len() as u64,
                sha256: grown.sha256,
                bytes: Some(bytes),
            });
        }
    }
}
