//! The real CLI with an API that fails, disconnects and calls tools.

use std::{collections::BTreeMap, time::Duration};

use dalsegno::{
    providers::{
        Class, Event, EventSink, Flag, Provider as _, Rebuild, Scope, Status, claude::Kind,
    },
    transcript::Role,
};
use rustix::process::{Pid, Signal};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    api::{Api, Play},
    cli::{Cli, VERSION},
    host::{DEADLINE, Host, SECRET, StoredConversation},
};
use crate::{app::eventually, providers::requests::RETRY};

async fn host() -> Option<(Host, Api)> {
    let cli = Cli::real()?;
    let api = Api::start().await;
    Some((Host::new(&cli, &api), api))
}

#[tokio::test]
async fn api_failures_are_classified() {
    let Some((host, api)) = host().await else { return };
    let mut stored = StoredConversation::new();
    stored.turn(&host, "One.").await;
    let pause = Duration::from_secs(host.config.rate_limit_pause_secs);
    let limited = Class::Snooze { after: pause, scope: Scope::Credential };
    let overloaded = Class::Snooze { after: Duration::ZERO, scope: Scope::Host };
    let too_long = "prompt is too long: 250000 tokens > 200000 maximum";
    let (overflow, poisoned) = (
        Class::Rebuild { reason: Rebuild::Overflow },
        Class::Rebuild { reason: Rebuild::Poisoned },
    );
    let failures = [
        (
            401,
            "",
            "authentication_error",
            "invalid x-api-key",
            "claude.credential_rejected",
            Class::Fail,
        ),
        (403, "", "permission_error", "not allowed", "claude.credential_rejected", Class::Fail),
        (
            429,
            "retry-after: 3600\r\n",
            "rate_limit_error",
            "slow down",
            "claude.rate_limited",
            limited,
        ),
        (429, "", "rate_limit_error", "slow down", "claude.rate_limited", limited),
        (500, "", "api_error", "boom", "claude.api", RETRY),
        (529, "", "overloaded_error", "Overloaded", "claude.overloaded", overloaded),
        (400, "", "invalid_request_error", "messages.1: bad signature", "claude.invalid", poisoned),
        (
            400,
            "",
            "invalid_request_error",
            "Your credit balance is too low",
            "claude.billing",
            Class::Fail,
        ),
        (404, "", "not_found_error", "model: nothing", "claude.model_missing", Class::Fail),
        (400, "", "invalid_request_error", too_long, "claude.overflow", overflow),
    ];
    let failures = failures.map(|(status, headers, kind, message, code, class)| {
        // Some need two requests.
        let play = Play::Fails(status, headers, kind, message);
        (play, code, class)
    });
    for (play, code, class) in failures {
        let api = Api::start().await;
        api.plays([play.clone(), play.clone(), play.clone(), play.clone()]);
        let host = Host {
            config: dalsegno::providers::claude::Config {
                base_url: api.url(),
                ..host.config.clone()
            },
            ..Host::new(&Cli::real().unwrap(), &api)
        };
        let error = host.ask(stored.request("Two.", true)).await.unwrap_err();
        assert_eq!((error.code, error.class), (code, class), "{play:?}: {error}");
        assert!(error.to_string().len() > 20);
    }
    // A session without these failures continues.
    assert_eq!(stored.turn(&host, "Three.").await.message.text, "You said: Three. [3 messages]");
    drop(api);
}

#[tokio::test]
async fn an_api_that_is_absent_delays_the_turn() {
    let Some((host, _api)) = host().await else { return };
    // Bound and not listening: connections are refused, and the port stays taken.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let base_url = format!("http://{}", socket.local_addr().unwrap());
    let config = dalsegno::providers::claude::Config { base_url, ..host.config.clone() };
    let host = Host { config, ..host };
    let error = host.ask(StoredConversation::new().request("One.", false)).await.unwrap_err();
    let put_off = Class::Snooze { after: Duration::ZERO, scope: Scope::Worker };
    assert_eq!((error.code, error.class), ("claude.connect", put_off), "{error}");
    assert!(error.to_string().contains("claude.base_url"), "{error}");
}

#[tokio::test]
async fn an_answer_longer_than_the_output_limit_arrives_whole() {
    let Some((host, api)) = host().await else { return };
    let mut stored = StoredConversation::new();
    let says = |text: &str, stop| Play::Says(vec![text.to_owned()], stop);
    api.plays([
        says("From the si", "max_tokens"),
        says("gn, da", "max_tokens"),
        says("l segno.", "end_turn"),
    ]);
    let outcome = stored.turn(&host, "Write.").await;
    assert_eq!(outcome.message.text, "From the sign, dal segno.");
    let continued = outcome.conversation.unwrap();
    assert_eq!(continued.calls.len(), 3);
    assert_eq!(outcome.usage.output, Some(33), "all three calls are charged");
    // The parts stay separate messages, in sequence.
    assert_eq!(stored.turn(&host, "Go on.").await.message.text, "You said: Go on. [5 messages]");
    let parts = ["max_tokens"; 4].map(|stop| says("more ", stop));
    api.plays(parts);
    let error = host.ask(stored.request("Never end.", false)).await.unwrap_err();
    assert_eq!((error.code, error.class), ("claude.no_room", Class::Fail));
    assert!(error.usage.unwrap().output.unwrap() > 0, "the failed call is charged, too");
}

#[tokio::test]
async fn a_broken_stream_is_retried() {
    let Some((host, api)) = host().await else { return };
    api.plays([Play::Breaks { within: true }]);
    let mut stored = StoredConversation::new();
    let outcome = stored.turn(&host, "Hello.").await;
    assert_eq!(outcome.message.text, "You said: Hello. [1 messages]");
    assert!(outcome.usage.output.unwrap() > 0, "the turn's own counts are 0 in that case");
    // Between two blocks, the CLI itself does not notice.
    api.plays([Play::Breaks { within: false }]);
    let error = host.ask(stored.request("Go on.", false)).await.unwrap_err();
    assert_eq!((error.code, error.class), ("claude.broken_off", RETRY));
    assert_eq!(stored.turn(&host, "Go on.").await.message.text, "You said: Go on. [3 messages]");
}

#[tokio::test]
async fn a_megabyte_of_answer_and_two_of_prompt_are_transferred() {
    let Some((host, api)) = host().await else { return };
    let long = "0123456789 ü".repeat(1 << 20 >> 3);
    let answer: String = long.chars().take(1 << 20).collect();
    api.plays([Play::Says(vec![answer.clone(), "The end.".to_owned()], "end_turn")]);
    let mut stored = StoredConversation::new();
    let prompt: String = long.chars().cycle().take(2 << 20).collect();
    let mut request = stored.request(&prompt, false);
    // The CLI itself refuses prompts that exceed the model's window.
    request.model = "claude-opus-4-8[1m]".to_owned();
    let outcome = host.ask(request).await.unwrap();
    stored.commit(&prompt, &outcome);
    assert_eq!(outcome.message.text, format!("{answer}The end."));
    assert_eq!(api.last_messages(), [format!("user: {prompt}")]);
}

#[tokio::test]
async fn allowed_mcp_tools_are_called_and_others_refused() {
    let Some((host, api)) = host().await else { return };
    let mut stored = StoredConversation::new();
    let grants = &mut stored.conversation.grants;
    let server = json!({"type": "http", "url": format!("{}/mcp", api.url()), "headers": {"Authorization": "Bearer planted-token"}});
    grants.mcp_servers = BTreeMap::from([("sums".to_owned(), server)]);
    grants.allowed = vec!["mcp__sums__add".to_owned()];
    api.plays([Play::Calls("mcp__sums__add", json!({"a": 2, "b": 3}))]);
    let (outcome, events) =
        host.ask_with(stored.request("Add.", false), CancellationToken::new()).await;
    let outcome = outcome.unwrap();
    stored.commit("Add.", &outcome);
    assert!(events.contains(&Event::Calling { tool: "mcp__sums__add".to_owned() }));
    let continued = outcome.conversation.as_ref().unwrap();
    let roles: Vec<_> = continued.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::Assistant, Role::Tool, Role::Assistant]);
    assert_eq!(continued.messages[0].tool_calls[0].arguments, json!({"a": 2, "b": 3}));
    assert_eq!(continued.messages[1].text, "the sum is 5");
    assert_eq!(continued.messages[1].tool_call_id.as_deref(), Some("toolu_1"));
    assert_eq!(continued.calls.len(), 2);
    assert!(outcome.message.text.starts_with("You said: result the sum is 5"));

    // No longer allowed: the previous permission is not remembered.
    stored.conversation.grants.allowed.clear();
    api.plays([Play::Calls("mcp__sums__add", json!({"a": 2, "b": 3}))]);
    let denied = stored.turn(&host, "Add again.").await;
    let flags = denied.conversation.unwrap().flags;
    assert_eq!(flags, [Flag::Denied("mcp__sums__add".to_owned())]);
    // A missing server is reported.
    let gone = json!({"type": "http", "url": "http://127.0.0.1:1/mcp"});
    stored.conversation.grants.mcp_servers = BTreeMap::from([("gone".to_owned(), gone)]);
    let flags = stored.turn(&host, "Hello.").await.conversation.unwrap().flags;
    assert_eq!(flags, [Flag::ServerMissing("gone".to_owned())]);
}

/// A turn without its tools costs nothing.
#[tokio::test]
async fn the_model_is_not_called_without_a_required_server() {
    let Some((host, api)) = host().await else { return };
    let gone = json!({ "type": "http", "url": "http://127.0.0.1:9/mcp" });
    for _ in 0..3 {
        let mut stored = StoredConversation::new();
        stored.conversation.grants.mcp_servers =
            BTreeMap::from([("gone".to_owned(), gone.clone())]);
        stored.conversation.grants.required_servers = vec!["gone".to_owned()];
        let error = host.ask(stored.request("Hello.", false)).await.unwrap_err();
        assert_eq!(error.code, "claude.unserved", "{error}");
        assert!(error.is_unasked);
    }
    assert_eq!(api.requests(), Vec::<serde_json::Value>::new());
}

#[tokio::test]
async fn thinking_is_shown_and_kept_apart() {
    let Some((host, api)) = host().await else { return };
    api.plays([Play::Thinks("What did they play?")]);
    let call =
        host.ask_with(StoredConversation::new().request("Hello.", false), CancellationToken::new());
    let (outcome, events) = call.await;
    let outcome = outcome.unwrap();
    assert_eq!(outcome.thinking.as_deref(), Some("What did they play?"));
    assert_eq!(outcome.message.text, "You said: Hello. [1 messages]");
    let statuses: Vec<_> =
        events.iter().filter(|event| matches!(event, Event::Status(_))).collect();
    assert_eq!(statuses, [&Event::Status(Status::Thinking), &Event::Status(Status::Answering)]);
}

#[tokio::test]
async fn secrets_appear_in_no_argument_and_no_error() {
    let Some((host, api)) = host().await else { return };
    api.plays([Play::Hangs]);
    let mut stored = StoredConversation::new();
    let server = json!({"type": "http", "url": "http://127.0.0.1:1/", "headers": {"Authorization": "Bearer planted-token"}});
    stored.conversation.grants.mcp_servers = BTreeMap::from([("s".to_owned(), server)]);
    let mut request = stored.request("planted-prompt", false);
    request.system = "planted-system".to_owned();
    let cancel = CancellationToken::new();
    let looked = async {
        let found = eventually("the API is called", async || {
            (!api.requests().is_empty()).then(|| host.processes())
        });
        let found = found.await;
        cancel.cancel();
        found
    };
    let (_, processes) = tokio::join!(host.ask_with(request, cancel.clone()), looked);
    assert!(processes.len() >= 2, "{processes:?}");
    for process in processes {
        for secret in [SECRET, "planted-token", "planted-prompt", "planted-system"] {
            assert!(!process.contains(secret), "{process}");
        }
    }
    let body = "the key sk-ant-dummy-0123456789 is not known";
    api.plays([Play::Fails(400, "", "invalid_request_error", body)]);
    let error = host.ask(stored.request("Hello.", false)).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains(SECRET), "{error:?}");
    assert!(error.to_string().contains("[secret]"), "{error}");
}

#[tokio::test]
async fn usage_of_a_killed_turn_has_the_price_of_earlier_ones() {
    let Some((host, api)) = host().await else { return };
    let mut stored = StoredConversation::new();
    stored.turn(&host, "One.").await;
    api.plays([Play::Hangs]);
    let (sink, mut events) = EventSink::channel(64);
    let killed = async {
        while !matches!(events.recv().await, Some(Event::Text(_))) {}
        let program = host.config.program.display().to_string();
        let processes = host.processes();
        let is_cli = |line: &&String| line.split(' ').nth(1) == Some(program.as_str());
        let cli = processes.iter().find(is_cli).unwrap();
        let pid = cli.split(' ').next().unwrap().parse().unwrap();
        rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    };
    let claude = host.claude();
    let call = claude.run(stored.request("Two.", false), sink, CancellationToken::new());
    let call = tokio::time::timeout(DEADLINE, call);
    let (result, ()) = tokio::join!(call, killed);
    let error = result.unwrap().unwrap_err();
    assert_eq!(error.code, "claude.no_result", "{error}");
    assert!(error.spent[0].usage.input.unwrap() > 0, "{:?}", error.spent);
    assert!(error.spent[0].cost_micros.unwrap() > 0, "{:?}", error.spent);
}

#[tokio::test]
async fn commands_of_tools_cannot_read_the_credential() {
    let Some((mut host, api)) = host().await else { return };
    // Looks at its own environment, that of the CLI and of the guard, the credential's pipe, and all files of the call.
    let look = "env; cd /proc/$PPID; tr '\\0' '\\n' < environ; cat cmdline; \
                pipe=$(tr '\\0' '\\n' < environ | sed -n 's/.*_FILE_DESCRIPTOR=//p'); echo pipe=$pipe; \
                timeout 2 cat fd/$pipe; guard=$(sed 's/.*) . //; s/ .*//' stat); \
                tr '\\0' '\\n' < /proc/$guard/environ; cat /proc/$guard/cmdline; \
                grep -r sk-ant \"$HOME/..\" && echo found; echo looked";
    for kind in [Kind::ApiKey, Kind::OauthToken] {
        host.kind = kind;
        let mut stored = StoredConversation::new();
        let grants = &mut stored.conversation.grants;
        grants.built_in = vec!["Bash".to_owned()];
        grants.allowed = vec!["Bash".to_owned()];
        api.plays([Play::Calls("Bash", json!({ "command": look }))]);
        stored.turn(&host, "Look for it.").await;
        // As the CLI itself has sent it.
        let seen = api.last_messages().pop().unwrap();
        assert!(seen.contains("looked") && seen.contains("pipe="), "{kind:?}: {seen}");
        assert!(!seen.contains("pipe=\n"), "{kind:?}: the secret was passed another way: {seen}");
        assert!(!seen.contains("sk-ant-dummy"), "{kind:?}: {seen}");
    }
}

#[tokio::test]
async fn the_installed_cli_has_the_pinned_version() {
    let Some(cli) = Cli::real() else { return };
    let output =
        tokio::process::Command::new(cli.program()).arg("--version").output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.starts_with(VERSION), "{said}");
}
