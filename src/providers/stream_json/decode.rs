//! Decodes one line into one event.

use serde::Deserialize;

use super::{
    event::{
        AssistantLine, ControlResponse, Event, Exchange, Init, RateLimit, Retry, StreamLine,
        TurnResult,
    },
    text::Text,
};

/// Decodes a line. A line without the content that its type promises is garbage, and so is one that is not a JSON object.
pub(super) fn event(line: &[u8]) -> Event<'_> {
    let known = leading_type(line).and_then(|kind| known(kind, line));
    known.or_else(|| any(line)).unwrap_or(Event::Garbage(line))
}

/// Returns the type if it is the first key, as the CLI writes it: most lines are then parsed only once.
fn leading_type(line: &[u8]) -> Option<&str> {
    let rest = line.strip_prefix(br#"{"type":""#)?;
    let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
    let kind = (rest[end] == b'"').then_some(&rest[..end])?;
    std::str::from_utf8(kind).ok()
}

fn known<'a>(kind: &str, line: &'a [u8]) -> Option<Event<'a>> {
    match kind {
        "stream_event" => read(line).map(|shown: StreamLine<'a>| Event::Stream(shown)),
        "assistant" => read(line).map(|said: AssistantLine<'a>| Event::Assistant(said)),
        "user" => read(line).map(|exchange: Exchange<'a>| Event::Exchange(exchange)),
        "result" => result(line).map(|result| Event::Result(Box::new(result))),
        _ => None,
    }
}

/// Decodes a line whose type is not known yet, or is a rare one.
fn any(line: &[u8]) -> Option<Event<'_>> {
    let head: Head<'_> = read(line)?;
    let event = match (&*head.kind, head.subtype.as_deref()) {
        ("system", Some("init")) => read(line).map(|init: Init<'_>| Event::Init(init)),
        ("system", Some("api_retry")) => read(line).map(|retry: Retry<'_>| Event::Retry(retry)),
        ("system", Some("compact_boundary")) => Some(Event::Compacted),
        ("control_response", _) => {
            read(line).map(|controlled: ControlResponse<'_>| Event::Controlled(controlled))
        }
        ("rate_limit_event", _) => {
            read(line).map(|line: RateLimitLine<'_>| Event::RateLimit(line.rate_limit_info))
        }
        (kind @ ("stream_event" | "assistant" | "user" | "result"), _) => {
            return known(kind, line);
        }
        _ => None,
    };
    Some(event.unwrap_or(Event::Other { kind: head.kind, raw: line }))
}

fn result(line: &[u8]) -> Option<TurnResult> {
    read(line).or_else(|| serde_json::from_slice(&without_nan(line)?).ok())
}

/// Returns the line with `null` in place of numbers that JSON does not have. Strings are left as they are.
fn without_nan(line: &[u8]) -> Option<Vec<u8>> {
    const NONE: [&[u8]; 3] = [b"NaN", b"-Infinity", b"Infinity"];
    let (mut mended, mut rest, mut in_string) = (Vec::with_capacity(line.len() + 8), line, false);
    while let Some((byte, after)) = rest.split_first() {
        let none = NONE.iter().find(|none| !in_string && rest.starts_with(none));
        if let Some(none) = none {
            mended.extend_from_slice(b"null");
            rest = &rest[none.len()..];
            continue;
        }
        mended.push(*byte);
        rest = after;
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => {
                let (escaped, after) = rest.split_first()?;
                mended.push(*escaped);
                rest = after;
            }
            _ => {}
        }
    }
    Some(mended)
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    subtype: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct RateLimitLine<'a> {
    #[serde(borrow)]
    rate_limit_info: RateLimit<'a>,
}

fn read<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Option<T> {
    serde_json::from_slice(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(line: &str) -> &'static str {
        match event(line.as_bytes()) {
            Event::Init(_) => "init",
            Event::Retry(_) => "retry",
            Event::Compacted => "compacted",
            Event::RateLimit(_) => "rate limit",
            Event::Assistant(_) => "assistant",
            Event::Exchange(_) => "exchange",
            Event::Stream(_) => "stream",
            Event::Controlled(_) => "controlled",
            Event::Result(_) => "result",
            Event::Other { .. } => "other",
            Event::Garbage(_) => "garbage",
        }
    }

    #[test]
    fn the_position_of_the_type_does_not_matter() {
        for line in [
            r#"{"type":"result","is_error":false}"#,
            r#"{"is_error":false,"type":"result"}"#,
            r#"{ "type" : "result" }"#,
            r#"{"type":"res\u0075lt"}"#,
        ] {
            assert_eq!(kind(line), "result", "{line}");
        }
    }

    #[test]
    fn unknown_events_are_returned_raw() {
        let line = br#"{"type":"prompt_suggestion","text":"\u00fc","message":3}"#;
        let Event::Other { kind, raw } = event(line) else { panic!("another event") };
        assert_eq!((&*kind, raw), ("prompt_suggestion", &line[..]));
        assert_eq!(kind_of_system("hook_started"), "other");
        assert_eq!(kind_of_system("compact_boundary"), "compacted");
    }

    fn kind_of_system(subtype: &str) -> &'static str {
        kind(&format!(r#"{{"type":"system","subtype":"{subtype}","status":{{}}}}"#))
    }

    #[test]
    fn answers_to_all_control_requests_are_decoded() {
        let servers = |line: &str| match event(line.as_bytes()) {
            Event::Controlled(ControlResponse { response }) => {
                let servers = response.response.unwrap_or_default().mcp_servers.into_iter();
                servers.map(|server| format!("{} {}", &*server.name, &*server.status)).collect()
            }
            other => vec![format!("{other:?}")],
        };
        let told = r#"{"type":"control_response","response":{"subtype":"success","request_id":"servers","response":{"mcpServers":[{"name":"n","status":"failed","error":"x","config":{}}]}}}"#;
        assert_eq!(servers(told), ["n failed"]);
        for other in [
            r#"{"type":"control_response","response":{"subtype":"success","request_id":"interrupt","response":{"still_queued":[]}}}"#,
            r#"{"type":"control_response","response":{"subtype":"error","request_id":"servers","error":"Unsupported"}}"#,
            r#"{"type":"control_response"}"#,
        ] {
            assert_eq!(servers(other), Vec::<String>::new(), "{other}");
        }
    }

    #[test]
    fn lines_that_are_not_events_are_garbage() {
        for line in [
            "warning: something",
            "{",
            "[]",
            "3",
            r#"{"type":3}"#,
            r#"{"no":"type"}"#,
            r#"{"type":"assistant"}"#,
            r#"{"type":"assistant","message":"text"}"#,
            r#"{"type":"result"} {"type":"result"}"#,
        ] {
            assert_eq!(kind(line), "garbage", "{line}");
        }
        let cut = &r#"{"type":"other","text":"ü"}"#.as_bytes()[..25];
        assert!(matches!(event(cut), Event::Garbage(_)));
    }

    #[test]
    fn an_invalid_cost_is_unknown() {
        for cost in ["NaN", "null", "\"NaN\"", "-Infinity", "{}", "[1]", "1e999", "true"] {
            let line = format!(
                r#"{{"type":"result","result":"NaN \"NaN\" \\","total_cost_usd":{cost},"modelUsage":{{"m":{{"inputTokens":-1,"outputTokens":7.0,"costUSD":{cost}}}}}}}"#
            );
            let Event::Result(result) = event(line.as_bytes()) else {
                // Out of range is an error of JSON's own reader, and no program writes it.
                assert_eq!(cost, "1e999");
                continue;
            };
            assert_eq!(result.total_cost_usd, None, "{cost}");
            let usage = &result.model_usage["m"];
            assert_eq!((usage.input_tokens, usage.output_tokens), (None, Some(7)));
            assert_eq!(usage.cost_usd, None);
            assert_eq!(result.result.as_deref(), Some(r#"NaN "NaN" \"#));
        }
    }

    #[test]
    fn texts_are_borrowed_where_possible() {
        let line = br#"{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"a \"b\""}}}"#;
        let Event::Stream(shown) = event(line) else { panic!("another event") };
        assert_eq!(&*shown.event.kind, "content_block_delta");
        assert_eq!(shown.event.delta.unwrap().text.as_deref(), Some("a \"b\""));
    }
}
