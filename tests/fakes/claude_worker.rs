//! A worker that runs one turn on Claude, for tests that kill it.
//!
//! `claude-worker <program> <guard> <sessions> <base_url> <fault>`

use std::{error::Error, sync::Arc};

use dalsegno::{
    clock::SystemClock,
    providers::{
        Conversation, EventSink, Options, Provider as _, Purpose, Request, Timeouts,
        claude::{Claude, Config, Credential, HostEnvironment, Kind},
    },
    transcript::{Message, Role},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, guard, sessions, base_url, fault] = arguments.as_slice() else {
        return Err("usage: claude-worker <program> <guard> <sessions> <base_url> <fault>".into());
    };
    let config =
        Config { program: program.into(), base_url: base_url.clone(), ..Config::default() };
    let credential = Credential {
        name: "main".to_owned(),
        kind: Kind::ApiKey,
        secret: "dummy".to_owned().into(),
    };
    let surroundings = HostEnvironment {
        credentials: vec![credential],
        secrets: Vec::new(),
        sessions: sessions.into(),
        guard: guard.into(),
        passed: vec![("FAKE_CLAUDE".into(), fault.into())],
        clock: Arc::new(SystemClock),
    };
    let prompt = Message::new(Role::User, "Hello.");
    let request = Request {
        turn: "turn".to_owned(),
        purpose: Purpose::Turn,
        model: "claude-sonnet-5".to_owned(),
        system: "You write.".to_owned(),
        messages: vec![prompt.into()],
        tools: Vec::new(),
        window_tokens: 200_000,
        reserve_tokens: 8192,
        estimated_prompt_tokens: None,
        options: Options::default(),
        timeouts: Timeouts::default(),
        conversation: Some(Conversation { external_id: Uuid::new_v4(), ..Conversation::default() }),
        credential: None,
    };
    let claude = Claude::new(config, surroundings);
    claude.run(request, EventSink::discard(), CancellationToken::new()).await?;
    Ok(())
}
