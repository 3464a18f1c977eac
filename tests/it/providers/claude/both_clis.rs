//! Tests of both the real and the scripted CLI, which keep the scripted one faithful.

use std::{fs, os::unix::fs::PermissionsExt as _};

use dalsegno::{
    providers::{Class, Conversation, Event, EventSink, Provider as _, Rebuild, Status, TurnStart},
    transcript::{Message, Role, ToolCall},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    api::{Api, Play},
    cli::Cli,
    host::{DEADLINE, Host, SECRET, StoredConversation},
};
use crate::{
    app::eventually,
    providers::requests::{message, text_of},
};

macro_rules! on_both {
    ($($name:ident)*) => {
        mod on_the_real_one {
            $(#[tokio::test]
            async fn $name() {
                if let Some(cli) = super::Cli::real() {
                    super::$name(cli).await;
                }
            })*
        }
        mod on_the_scripted_one {
            $(#[tokio::test]
            async fn $name() {
                super::$name(super::Cli::Fake).await;
            })*
        }
    };
}

on_both! {
    turns_continue_after_the_previous_one
    a_conversation_continues_on_another_host
    a_damaged_transcript_is_repaired
    messages_of_a_failed_turn_are_cut_off
    a_lost_session_is_rebuilt_from_its_messages
    prompts_are_never_run_as_commands
    a_position_outside_the_transcript_is_a_lost_session
    an_uncommitted_answer_leaves_nothing
    a_one_task_conversation_is_not_stored_and_leaves_nothing
    a_call_that_takes_over_a_session_ends_the_previous_call
    no_preview_and_no_file_shows_a_secret_from_the_prompt
}

async fn turns_continue_after_the_previous_one(cli: Cli) {
    let api = Api::start().await;
    let (host, mut stored) = (Host::new(&cli, &api), StoredConversation::new());
    let first = stored.turn(&host, "One.").await;
    assert_eq!(first.message.text, "You said: One. [1 messages]");
    let continued = first.conversation.unwrap();
    assert_eq!(
        (continued.began, continued.grown.len(), continued.grown[0].from),
        (TurnStart::New, 1, 0)
    );
    assert_eq!(continued.flags, []);
    let n_bytes = continued.grown[0].bytes.len() as u64;

    let second = stored.turn(&host, "Two.").await;
    assert_eq!(second.message.text, "You said: Two. [3 messages]");
    let again = second.conversation.unwrap();
    assert_eq!(
        (again.began, again.grown[0].from),
        (TurnStart::Resumed, n_bytes),
        "only growth is sent"
    );
    assert_ne!(again.head, continued.head);
    assert_eq!(again.messages, [message(Role::Assistant, &second.message.text)]);
    // Each process counts from zero, and the turn's usage is the difference in both cases.
    let turns = [(first.usage, &first.spent, &continued), (second.usage, &second.spent, &again)];
    for (usage, spent, continued) in turns {
        assert_eq!((usage.input, usage.cache_read, usage.output), (Some(25), Some(7), Some(11)));
        assert_eq!(spent.len(), 1);
        assert!(spent[0].cost_micros.unwrap() > 0);
        assert_eq!(continued.calls.len(), 1);
    }
    let folder = host.sessions.path().join(stored.conversation.external_id.to_string());
    let closed = ["config", "work"].map(|name| folder.join(name));
    for path in host.find(".jsonl").iter().chain(&closed) {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o077, 0, "{path:?}");
    }
    let has_no_prompt = || host.find("system.md").is_empty() && host.find("mcp.json").is_empty();
    eventually("no prompt file is left", async || has_no_prompt().then_some(())).await;
    host.is_quiet().await;
}

async fn a_conversation_continues_on_another_host(cli: Cli) {
    let api = Api::start().await;
    let (here, there) = (Host::new(&cli, &api), Host::new(&cli, &api));
    let mut stored = StoredConversation::new();
    stored.turn(&here, "One.").await;
    assert!(!here.claude().lacks_transcript(&stored.conversation).await.unwrap());
    assert!(there.claude().lacks_transcript(&stored.conversation).await.unwrap());
    let lost = there.ask(stored.request("Two.", false)).await.unwrap_err();
    assert_eq!(
        (lost.code, lost.class),
        ("claude.transcript_lost", Class::Rebuild { reason: Rebuild::Lost })
    );

    let second = there.ask(stored.request("Two.", true)).await.unwrap();
    stored.commit("Two.", &second);
    assert_eq!(second.message.text, "You said: Two. [3 messages]");
    assert_eq!(second.conversation.unwrap().began, TurnStart::Restored);
    // Back again: the first host's transcript lacks a turn.
    assert!(here.claude().lacks_transcript(&stored.conversation).await.unwrap());
    let third = here.ask(stored.request("Three.", true)).await.unwrap();
    assert_eq!(third.message.text, "You said: Three. [5 messages]");
}

async fn a_damaged_transcript_is_repaired(cli: Cli) {
    let api = Api::start().await;
    let (host, mut stored) = (Host::new(&cli, &api), StoredConversation::new());
    stored.turn(&host, "One.").await;
    let path = host.find(".jsonl").remove(0);
    let whole = fs::read(&path).unwrap();
    let torn = &whole[..whole.len() - 20];
    let garbage = [&whole[..50], &[0; 4096], &whole[50..]].concat();
    for damaged in [torn, &garbage, b""] {
        fs::write(&path, damaged).unwrap();
        assert!(host.claude().lacks_transcript(&stored.conversation).await.unwrap());
    }
    let second = host.ask(stored.request("Two.", true)).await.unwrap();
    assert_eq!(second.message.text, "You said: Two. [3 messages]");
    stored.commit("Two.", &second);
    // Longer, with a torn last line: the stored bytes are not needed.
    let longer = [&fs::read(&path).unwrap()[..], b"{\"type\":\"user\",\"uuid\":\"torn"].concat();
    fs::write(&path, longer).unwrap();
    let third = stored.turn(&host, "Three.").await;
    assert_eq!(third.message.text, "You said: Three. [5 messages]");
    assert_eq!(third.conversation.unwrap().began, TurnStart::Restored);
}

async fn messages_of_a_failed_turn_are_cut_off(cli: Cli) {
    let api = Api::start().await;
    let (mut host, mut stored) = (Host::new(&cli, &api), StoredConversation::new());
    stored.turn(&host, "One.").await;
    // The scripted CLI does not call the API, and hangs by itself.
    api.plays([Play::Hangs]);
    host.passed.push(("FAKE_CLAUDE".into(), "hangs in the turn".into()));
    let cancel = CancellationToken::new();
    let trigger = cancel.clone();
    let request = stored.request("Cut off.", false);
    let path = host.find(".jsonl").remove(0);
    let n_before = fs::metadata(&path).unwrap().len();
    let n_asked = api.requests().len();
    let written = async {
        // A play that this call has not used would go to the next one.
        eventually("the prompt is in the file and the model is called", async || {
            let is_asked = cli == Cli::Fake || api.requests().len() > n_asked;
            (is_asked && fs::metadata(&path).unwrap().len() > n_before).then_some(())
        })
        .await;
        trigger.cancel();
    };
    let ((result, _), ()) = tokio::join!(host.ask_with(request, cancel), written);
    assert_eq!(result.unwrap_err().class, Class::Cancelled);
    assert!(fs::metadata(&path).unwrap().len() > n_before, "the file had no rest to cut off");
    host.is_quiet().await;

    host.passed.clear();
    let next = stored.turn(&host, "Two.").await;
    assert_eq!(next.message.text, "You said: Two. [3 messages]");
    assert_eq!(next.conversation.unwrap().began, TurnStart::Restored);
}

async fn a_lost_session_is_rebuilt_from_its_messages(cli: Cli) {
    let api = Api::start().await;
    let (host, mut stored) = (Host::new(&cli, &api), StoredConversation::new());
    let call = ToolCall {
        id: "call:1".to_owned(),
        name: "look_up".to_owned(),
        arguments: json!({"at": 1}),
        thinking: None,
    };
    let result = Message {
        tool_call_id: Some("call:1".to_owned()),
        tool_name: Some("look_up".to_owned()),
        media: Vec::new(),
        ..message(Role::Tool, "found")
    };
    stored.messages = vec![
        message(Role::User, "Before."),
        Message { tool_calls: vec![call], ..message(Role::Assistant, "I look.") },
        result,
        message(Role::Assistant, "Found."),
    ];
    let outcome = stored.turn(&host, "Now.").await;
    assert_eq!(outcome.message.text, "You said: Now. [5 messages]");
    let continued = outcome.conversation.unwrap();
    assert_eq!((continued.began, continued.grown[0].from), (TurnStart::Rewritten, 0));
    if cli != Cli::Fake {
        let seen = api.last_messages();
        let expected = [
            "user: Before.",
            r#"assistant: I look. | call look_up {"at":1}"#,
            "user: result found",
            "assistant: Found.",
            "user: Now.",
        ];
        assert_eq!(seen, expected);
    }
    assert_eq!(stored.turn(&host, "Later.").await.message.text, "You said: Later. [7 messages]");
}

async fn prompts_are_never_run_as_commands(cli: Cli) {
    let api = Api::start().await;
    let (host, mut stored) = (Host::new(&cli, &api), StoredConversation::new());
    let planted = host.sessions.path().join("planted.txt");
    fs::write(&planted, "the planted words").unwrap();
    let file = format!("Read @{} to me.", planted.display());
    for prompt in ["/clear", "--help", &file, "! ls \u{0}\u{2028} \"\\"] {
        let outcome = stored.turn(&host, prompt).await;
        assert!(outcome.message.text.contains(prompt), "{prompt}: {}", outcome.message.text);
        if cli != Cli::Fake {
            assert!(api.last_messages().last().unwrap().contains(prompt));
            assert!(!api.requests().last().unwrap().to_string().contains("the planted words"));
        }
    }
    let nothing = host.ask(stored.request(" \n\t ", false)).await.unwrap_err();
    assert_eq!((nothing.code, nothing.class), ("claude.nothing_to_send", Class::Fail));
}

async fn a_position_outside_the_transcript_is_a_lost_session(cli: Cli) {
    let api = Api::start().await;
    let (host, mut stored) = (Host::new(&cli, &api), StoredConversation::new());
    stored.turn(&host, "One.").await;
    stored.conversation.head = Some(uuid::Uuid::new_v4());
    let error = host.ask(stored.request("Two.", false)).await.unwrap_err();
    assert_eq!(
        (error.code, error.class),
        ("claude.session_lost", Class::Rebuild { reason: Rebuild::Lost })
    );
}

async fn an_uncommitted_answer_leaves_nothing(cli: Cli) {
    let api = Api::start().await;
    let host = Host::new(&cli, &api);
    let mut request = StoredConversation::new().request("Sum it up.", false);
    request.conversation = None;
    let (outcome, events) = host.ask_with(request, CancellationToken::new()).await;
    let outcome = outcome.unwrap();
    assert_eq!(outcome.message.text, "You said: Sum it up. [1 messages]");
    assert_eq!(outcome.conversation, None);
    assert_eq!(text_of(&events), outcome.message.text);
    assert!(events.contains(&Event::Status(Status::Answering)));
    eventually("no process is left", async || host.is_empty().then_some(())).await;
    let gone = Conversation { credential: Some("gone".to_owned()), ..Conversation::default() };
    let mut request = StoredConversation::new().request("One.", false);
    request.conversation = Some(gone);
    let outcome = host.ask(request).await.unwrap();
    assert_eq!(
        outcome.message.text, "You said: One. [1 messages]",
        "the conversation continues on another credential"
    );
}

async fn a_one_task_conversation_is_not_stored_and_leaves_nothing(cli: Cli) {
    let api = Api::start().await;
    let host = Host::new(&cli, &api);
    let mut stored = StoredConversation::new();
    stored.conversation.is_temporary = true;
    let outcome = stored.turn(&host, "Only this.").await;
    assert_eq!(outcome.message.text, "You said: Only this. [1 messages]");
    assert_eq!(outcome.conversation.unwrap().grown, []);
    eventually("no process is left", async || host.is_empty().then_some(())).await;
}

async fn a_call_that_takes_over_a_session_ends_the_previous_call(cli: Cli) {
    let api = Api::start().await;
    let (mut host, mut stored) = (Host::new(&cli, &api), StoredConversation::new());
    stored.turn(&host, "One.").await;
    let path = host.find(".jsonl").remove(0);
    let n_before = fs::metadata(&path).unwrap().len();
    api.plays([Play::Hangs]);
    host.passed.push(("FAKE_CLAUDE".into(), "hangs in the turn".into()));
    let n_asked = api.requests().len();
    // Another worker of this host, which does not know yet that its lease is lost.
    let (before, request) = (host.claude(), stored.request("Two.", false));
    let (sink, _events) = EventSink::channel(1);
    let call =
        tokio::spawn(async move { before.run(request, sink, CancellationToken::new()).await });
    eventually("the prompt is in the file and the model is called", async || {
        let is_asked = cli == Cli::Fake || api.requests().len() > n_asked;
        (is_asked && fs::metadata(&path).unwrap().len() > n_before).then_some(())
    })
    .await;
    host.passed.clear();
    let outcome = stored.turn(&host, "Two, again.").await;
    assert_eq!(outcome.message.text, "You said: Two, again. [3 messages]");
    let error = tokio::time::timeout(DEADLINE, call).await.unwrap().unwrap().unwrap_err();
    assert_eq!(error.code, "claude.no_result", "{error}");
    host.is_quiet().await;
    let next = stored.turn(&host, "Three.").await;
    assert_eq!(next.message.text, "You said: Three. [5 messages]");
    assert_eq!(next.conversation.unwrap().began, TurnStart::Resumed, "the file is unchanged");
}

async fn no_preview_and_no_file_shows_a_secret_from_the_prompt(cli: Cli) {
    let api = Api::start().await;
    let (mut host, mut stored) = (Host::new(&cli, &api), StoredConversation::new());
    host.secrets.push("planted-variable".to_owned());
    let prompt = format!("The key is {SECRET}, and the other planted-variable.");
    let (outcome, events) =
        host.ask_with(stored.request(&prompt, false), CancellationToken::new()).await;
    let outcome = outcome.unwrap();
    let masked = "You said: The key is [secret], and the other [secret]. [1 messages]";
    assert_eq!((outcome.message.text.as_str(), text_of(&events).as_str()), (masked, masked));
    stored.commit(&prompt, &outcome);
    let file = stored.conversation.transcript[0].bytes.as_ref().unwrap();
    let file = String::from_utf8_lossy(file);
    assert!(!file.contains(SECRET) && file.contains("The key is [secret]"), "{file}");
    let next = stored.turn(&host, "Go on.").await;
    assert_eq!(next.message.text, "You said: Go on. [3 messages]");
    assert_eq!(next.conversation.unwrap().began, TurnStart::Resumed);
}
