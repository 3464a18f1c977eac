//! Servers that refuse a call: each refusal has its class, and an error that names the next step.

use std::time::Duration;

use dalsegno::providers::{Class, Error, Scope};
use serde_json::json;

use super::{
    behaviours,
    dialects::Dialect,
    server::{Play, ScriptedServer},
};
use crate::providers::requests::{OVERFLOW, RETRY, ask, fail, request};

behaviours![
    too_many_requests_postpone_without_using_up_an_attempt,
    an_unavailable_server_postpones_without_using_up_an_attempt,
    an_overloaded_server_with_status_529_postpones,
    retry_after_in_seconds_is_the_minimum_wait,
    retry_after_as_a_date_is_the_minimum_wait,
    retry_after_is_at_most_an_hour,
    a_prompt_that_is_too_long_is_recognised_in_all_words,
    a_body_that_is_too_large_is_a_prompt_that_is_too_long,
    a_wrong_key_fails_the_task,
    a_forbidden_call_fails_the_task,
    a_wrong_key_is_recognised_with_any_status,
    an_empty_account_fails_the_task,
    an_unknown_model_fails_the_task_and_is_named,
    a_model_without_tools_fails_the_task,
    html_in_place_of_the_api_fails_the_task,
    html_of_a_proxy_is_retried,
    a_redirect_is_not_followed,
    an_invalid_call_is_rejected,
    a_failing_server_is_retried,
    a_timeout_of_a_proxy_is_retried,
    a_refusal_without_a_body_has_an_error,
    a_long_refusal_becomes_one_short_line,
    a_refusal_is_followed_by_an_answer,
];

/// Plays one refusal, and returns the error.
async fn refused(dialect: &'static dyn Dialect, play: Play) -> Error {
    let server = ScriptedServer::playing(dialect, [play]).await;
    let error = fail(&*server.provider(), request("Write.")).await;
    assert_eq!(server.bodies().len(), 1, "one attempt");
    error
}

async fn check(dialect: &'static dyn Dialect, status: u16, body: &str, code: &str, class: Class) {
    let error = refused(dialect, Play::status(status, body)).await;
    let codes = dialect.codes();
    assert_eq!((error.code, error.class), (&*format!("{codes}.{code}"), class), "{error}");
}

fn snooze(secs: u64) -> Class {
    Class::Snooze { after: Duration::from_secs(secs), scope: Scope::Host }
}

async fn check_wait(dialect: &'static dyn Dialect, headers: &str, secs: u64) {
    for status in [429, 503] {
        let play = Play::Status(status, headers.to_owned(), dialect.refusal("slow down"));
        assert_eq!(refused(dialect, play).await.class, snooze(secs), "{status} {headers}");
    }
}

async fn too_many_requests_postpone_without_using_up_an_attempt(dialect: &'static dyn Dialect) {
    check(dialect, 429, &dialect.refusal("slow down"), "busy", snooze(0)).await;
}

async fn an_unavailable_server_postpones_without_using_up_an_attempt(
    dialect: &'static dyn Dialect,
) {
    check(dialect, 503, &dialect.refusal("loading model"), "busy", snooze(0)).await;
}

async fn an_overloaded_server_with_status_529_postpones(dialect: &'static dyn Dialect) {
    check(dialect, 529, &dialect.refusal("overloaded"), "busy", snooze(0)).await;
}

async fn retry_after_in_seconds_is_the_minimum_wait(dialect: &'static dyn Dialect) {
    check_wait(dialect, "retry-after: 42\r\n", 42).await;
    check_wait(dialect, "retry-after: 0\r\n", 0).await;
    check_wait(dialect, "retry-after: soon\r\n", 0).await;
}

async fn retry_after_as_a_date_is_the_minimum_wait(dialect: &'static dyn Dialect) {
    let dates =
        "date: Sun, 22 Nov 2026 08:00:00 GMT\r\nretry-after: Sun, 22 Nov 2026 08:01:30 GMT\r\n";
    check_wait(dialect, dates, 90).await;
}

async fn retry_after_is_at_most_an_hour(dialect: &'static dyn Dialect) {
    check_wait(dialect, "retry-after: 99999999\r\n", 3600).await;
}

async fn a_prompt_that_is_too_long_is_recognised_in_all_words(dialect: &'static dyn Dialect) {
    for (status, body) in dialect.overflows() {
        check(dialect, status, &body, "overflow", OVERFLOW).await;
    }
}

async fn a_body_that_is_too_large_is_a_prompt_that_is_too_long(dialect: &'static dyn Dialect) {
    check(dialect, 413, "", "overflow", OVERFLOW).await;
}

async fn check_key(dialect: &'static dyn Dialect, status: u16) {
    let error = refused(dialect, Play::status(status, dialect.refusal("no access"))).await;
    assert_eq!(error.class, Class::Fail, "{error}");
    let words = error.to_string();
    assert!(words.contains("key") || words.contains("authentication"), "{words}");
}

async fn a_wrong_key_fails_the_task(dialect: &'static dyn Dialect) {
    check_key(dialect, 401).await;
}

async fn a_forbidden_call_fails_the_task(dialect: &'static dyn Dialect) {
    check_key(dialect, 403).await;
}

async fn a_wrong_key_is_recognised_with_any_status(dialect: &'static dyn Dialect) {
    let litellm = json!({ "error": {
        "message": "No connected db.", "type": "no_db_connection", "param": null, "code": "400",
    } });
    let gemini = json!([{ "error": {
        "code": 400, "message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT",
    } }]);
    for body in [litellm, gemini] {
        check(dialect, 400, &body.to_string(), "key_refused", Class::Fail).await;
    }
}

async fn an_empty_account_fails_the_task(dialect: &'static dyn Dialect) {
    check(dialect, 402, &dialect.refusal("Insufficient credits"), "no_credit", Class::Fail).await;
    let quota = dialect.refusal("You exceeded your current quota, please check your plan");
    check(dialect, 429, &quota, "no_credit", Class::Fail).await;
}

async fn an_unknown_model_fails_the_task_and_is_named(dialect: &'static dyn Dialect) {
    let (status, body) = dialect.missing_model();
    let error = refused(dialect, Play::status(status, body)).await;
    assert_eq!(error.code, format!("{}.model_missing", dialect.codes()));
    assert_eq!(error.class, Class::Fail);
    assert!(error.to_string().contains("qwen3:8b"), "{error}");
}

async fn a_model_without_tools_fails_the_task(dialect: &'static dyn Dialect) {
    let (status, body) = dialect.no_tools();
    check(dialect, status, &body, "no_tools", Class::Fail).await;
}

async fn html_in_place_of_the_api_fails_the_task(dialect: &'static dyn Dialect) {
    let error = refused(dialect, Play::status(404, "<html><h1>Not found</h1></html>")).await;
    assert_eq!(error.class, Class::Fail, "{error}");
    assert!(error.to_string().contains("base_url"), "{error}");
}

async fn html_of_a_proxy_is_retried(dialect: &'static dyn Dialect) {
    check(dialect, 502, "<html>Bad gateway</html>", "failed", RETRY).await;
}

async fn a_redirect_is_not_followed(dialect: &'static dyn Dialect) {
    let elsewhere = ScriptedServer::playing(dialect, []).await;
    let location = format!("location: {}/api/chat\r\n", elsewhere.base_url());
    let error = refused(dialect, Play::Status(307, location, String::new())).await;
    assert_eq!(error.code, format!("{}.redirected", dialect.codes()));
    assert_eq!(error.class, Class::Fail);
    assert!(elsewhere.requests().is_empty());
}

async fn an_invalid_call_is_rejected(dialect: &'static dyn Dialect) {
    check(dialect, 400, &dialect.refusal("invalid message role"), "refused", Class::Reject).await;
    check(dialect, 422, &dialect.refusal("invalid"), "refused", Class::Reject).await;
}

async fn a_failing_server_is_retried(dialect: &'static dyn Dialect) {
    check(dialect, 500, &dialect.refusal("the runner died"), "failed", RETRY).await;
}

async fn a_timeout_of_a_proxy_is_retried(dialect: &'static dyn Dialect) {
    for status in [408, 499, 504] {
        check(dialect, status, "", "failed", RETRY).await;
    }
}

async fn a_refusal_without_a_body_has_an_error(dialect: &'static dyn Dialect) {
    for status in [300, 400, 401, 404, 418, 429, 500, 599] {
        let error = refused(dialect, Play::status(status, "")).await;
        assert!(!error.to_string().ends_with(": "), "{status}: {error}");
    }
}

async fn a_long_refusal_becomes_one_short_line(dialect: &'static dyn Dialect) {
    let long = format!("a\u{1b}[31m\n{}", "é ".repeat(9_999));
    let error = refused(dialect, Play::status(400, dialect.refusal(&long))).await;
    let words = error.to_string();
    assert!(words.chars().count() < 600, "{} characters", words.chars().count());
    assert!(!words.chars().any(char::is_control), "{words}");
}

async fn a_refusal_is_followed_by_an_answer(dialect: &'static dyn Dialect) {
    let server = ScriptedServer::playing(dialect, [Play::status(500, "")]).await;
    let provider = server.provider();
    fail(&*provider, request("Write.")).await;
    assert_eq!(ask(&*provider, request("Write.")).await.unwrap().message.text, "A good answer.");
}
