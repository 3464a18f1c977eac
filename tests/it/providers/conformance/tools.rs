//! Tools in requests and answers.

use std::{collections::HashSet, sync::Arc};

use dalsegno::{
    providers::{Outcome, Request, StopReason},
    transcript::{Message, Role, ToolCall, ToolSpec},
};
use serde_json::{Value, json};

use super::{
    answers::outcome,
    behaviours,
    dialects::{Answer, Dialect, SentMessage},
    server::{Play, ScriptedServer},
};
use crate::providers::requests::{ask, request};

behaviours![
    a_call_has_its_name_and_arguments,
    an_answer_with_calls_waits_for_their_results,
    parallel_calls_keep_their_order,
    a_call_without_arguments_has_an_empty_object,
    arguments_of_any_depth_arrive_unchanged,
    text_beside_a_call_is_kept,
    a_call_without_an_id_gets_one,
    repeated_ids_become_unique,
    arguments_that_are_not_json_reach_the_tool_as_text,
    tools_are_described_to_the_model,
    a_request_without_tools_mentions_none,
    calls_and_results_are_sent_in_whole_pairs,
    a_missing_result_is_explained,
    a_result_without_its_call_is_not_sent,
    results_follow_in_the_order_of_the_calls,
    arguments_that_are_not_an_object_are_sent_as_one,
];

async fn calls(dialect: &'static dyn Dialect, answer: Answer) -> Vec<ToolCall> {
    outcome(dialect, answer).await.message.tool_calls
}

async fn a_call_has_its_name_and_arguments(dialect: &'static dyn Dialect) {
    let answer = Answer::of(&[]).calls(Some("call_7"), "look_up", json!({ "what": "tide" }));
    let expected = ToolCall {
        id: "call_7".to_owned(),
        name: "look_up".to_owned(),
        arguments: json!({ "what": "tide" }),
        thinking: None,
    };
    assert_eq!(calls(dialect, answer).await, [expected]);
}

async fn an_answer_with_calls_waits_for_their_results(dialect: &'static dyn Dialect) {
    let answer = Answer::of(&[]).calls(Some("call_7"), "stop", json!({}));
    let Outcome { message, stop, .. } = outcome(dialect, answer).await;
    assert_eq!((stop, message.text.as_str()), (StopReason::ToolCalls, ""));
}

async fn parallel_calls_keep_their_order(dialect: &'static dyn Dialect) {
    let mut answer = Answer::of(&[]);
    for n in 0..5 {
        answer = answer.calls(Some(&format!("call_{n}")), "look_up", json!({ "n": n }));
    }
    let calls = calls(dialect, answer).await;
    let numbers: Vec<_> = calls.iter().map(|call| call.arguments["n"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
}

async fn a_call_without_arguments_has_an_empty_object(dialect: &'static dyn Dialect) {
    let answer = Answer::of(&[]).calls(Some("call_7"), "stop", json!({}));
    assert_eq!(calls(dialect, answer).await[0].arguments, json!({}));
}

async fn arguments_of_any_depth_arrive_unchanged(dialect: &'static dyn Dialect) {
    let arguments = json!({
        "text": "\"quoted\" \\ 語 🎼\n{\"not\": \"json\"}",
        "list": [1, 2.5, true, null, { "deep": { "deeper": [] } }],
    });
    let answer = Answer::of(&[]).calls(Some("call_7"), "look_up", arguments.clone());
    assert_eq!(calls(dialect, answer).await[0].arguments, arguments);
}

async fn text_beside_a_call_is_kept(dialect: &'static dyn Dialect) {
    let answer = Answer::of(&["I look ", "it up."]).calls(Some("call_7"), "look_up", json!({}));
    let outcome = outcome(dialect, answer).await;
    assert_eq!(outcome.message.text, "I look it up.");
    assert_eq!(outcome.message.tool_calls.len(), 1);
}

async fn a_call_without_an_id_gets_one(dialect: &'static dyn Dialect) {
    let answer =
        Answer::of(&[]).calls(None, "look_up", json!({ "n": 0 })).calls(None, "stop", json!({}));
    check_unique(&calls(dialect, answer).await);
}

/// The results of a round name their calls, so no two calls of a round may have the same id.
async fn repeated_ids_become_unique(dialect: &'static dyn Dialect) {
    let answer = Answer::of(&[]).calls(Some("call_0"), "look_up", json!({})).calls(
        Some("call_0"),
        "stop",
        json!({}),
    );
    check_unique(&calls(dialect, answer).await);
}

fn check_unique(calls: &[ToolCall]) {
    let ids: HashSet<_> = calls.iter().map(|call| call.id.as_str()).collect();
    assert!(ids.len() == 2 && !ids.contains(""), "{calls:?}");
}

async fn arguments_that_are_not_json_reach_the_tool_as_text(dialect: &'static dyn Dialect) {
    let answer = Answer::of(&[]).calls(Some("call_7"), "look_up", json!({ "what": "tide" }));
    let events = dialect.events(&answer).concat();
    let mut broken = String::from_utf8(events).unwrap();
    for field in ["arguments", "partial_json"] {
        broken = broken.replace(&format!("\"{field}\":\"}}\""), &format!("\"{field}\":\"\""));
    }
    let server = ScriptedServer::playing(dialect, [Play::chunks([broken.into_bytes()])]).await;
    let outcome = ask(&*server.provider(), request("Write.")).await.unwrap();
    let arguments = &outcome.message.tool_calls[0].arguments;
    assert!(arguments.as_str().is_some_and(|text| text.contains("what")), "{arguments}");
}

async fn sent(dialect: &'static dyn Dialect, request: Request) -> (Value, Vec<SentMessage>) {
    let server = ScriptedServer::playing(dialect, []).await;
    ask(&*server.provider(), request).await.unwrap();
    let body = server.calls().remove(0);
    let messages = dialect.messages(&body);
    (body, messages)
}

async fn tools_are_described_to_the_model(dialect: &'static dyn Dialect) {
    let schema = json!({ "type": "object", "properties": { "what": { "type": "string" } } });
    let tool = ToolSpec {
        name: "look_up".to_owned(),
        description: "Looks something up.".to_owned(),
        input_schema: schema.clone(),
    };
    let mut request = request("Write.");
    request.tools = vec![Arc::new(tool)];
    let (body, _) = sent(dialect, request).await;
    let text = body["tools"].to_string();
    assert_eq!(body["tools"].as_array().unwrap().len(), 1);
    for part in ["\"look_up\"", "Looks something up.", &schema.to_string()] {
        assert!(text.contains(part), "{text}");
    }
}

async fn a_request_without_tools_mentions_none(dialect: &'static dyn Dialect) {
    let (body, _) = sent(dialect, request("Write.")).await;
    assert!(body.get("tools").is_none(), "{body}");
}

fn call(id: &str, arguments: Value) -> ToolCall {
    ToolCall { id: id.to_owned(), name: "look_up".to_owned(), arguments, thinking: None }
}

fn result(id: &str) -> Message {
    Message {
        tool_call_id: Some(id.to_owned()),
        tool_name: Some("look_up".to_owned()),
        media: Vec::new(),
        ..Message::new(Role::Tool, format!("result of {id}"))
    }
}

/// Sends a conversation with these messages before the last one. Returns them as the server got them.
async fn history(dialect: &'static dyn Dialect, messages: Vec<Message>) -> Vec<SentMessage> {
    let mut request = request("And now?");
    request.messages.splice(2..2, messages.into_iter().map(Arc::new));
    let (_, sent) = sent(dialect, request).await;
    sent.into_iter().skip(2).collect()
}

fn asking(calls: &[ToolCall]) -> Message {
    Message { tool_calls: calls.to_vec(), ..Message::new(Role::Assistant, "") }
}

async fn calls_and_results_are_sent_in_whole_pairs(dialect: &'static dyn Dialect) {
    let asked = asking(&[call("c1", json!({ "what": "c1" }))]);
    let sent = history(dialect, vec![asked, result("c1")]).await;
    let expected = ("c1".to_owned(), "look_up".to_owned(), json!({ "what": "c1" }));
    // Text before the calls is sent with them, because two messages of one role must not follow each other.
    assert_eq!((sent[0].role.as_str(), sent[0].content.as_str()), ("assistant", "Hello!"));
    assert_eq!(sent[0].calls, [expected]);
    assert_eq!(sent[1].result_of.as_deref(), Some("c1"));
    assert_eq!(sent[1].content, "result of c1");
    assert_eq!((sent[2].role.as_str(), sent[2].content.as_str()), ("user", "And now?"));
}

async fn a_missing_result_is_explained(dialect: &'static dyn Dialect) {
    let asked = asking(&[call("c1", json!({})), call("c2", json!({}))]);
    let notice = Message::new(Role::Notice, "Interrupted.");
    let sent = history(dialect, vec![asked, result("c2"), notice]).await;
    assert_eq!(sent[1].result_of.as_deref(), Some("c1"));
    assert!(sent[1].content.contains("interrupted"), "{sent:?}");
    assert_eq!(sent[2].content, "result of c2");
    assert_eq!(sent[3].content, "Interrupted.\n\nAnd now?");
}

async fn a_result_without_its_call_is_not_sent(dialect: &'static dyn Dialect) {
    let sent = history(dialect, vec![result("c9")]).await;
    assert!(sent.iter().all(|message| message.role != "tool"), "{sent:?}");
}

async fn results_follow_in_the_order_of_the_calls(dialect: &'static dyn Dialect) {
    let asked = asking(&[call("c1", json!({})), call("c2", json!({})), call("c3", json!({}))]);
    let sent = history(dialect, vec![asked, result("c3"), result("c1"), result("c2")]).await;
    let ids: Vec<_> = sent.iter().filter_map(|message| message.result_of.as_deref()).collect();
    assert_eq!(ids, ["c1", "c2", "c3"]);
}

async fn arguments_that_are_not_an_object_are_sent_as_one(dialect: &'static dyn Dialect) {
    let asked = asking(&[call("c1", Value::Null), call("c2", json!("half"))]);
    let sent = history(dialect, vec![asked, result("c1"), result("c2")]).await;
    let arguments: Vec<_> = sent[0].calls.iter().map(|call| call.2.clone()).collect();
    assert_eq!(arguments, [json!({}), json!({ "value": "half" })]);
}
