//! Text output of contexts. The texts themselves are printed as they were sent.

use std::collections::BTreeMap;

use crate::{
    cli::{
        Failure,
        output::{format_table, format_wrapped, format_wrapped_fields},
        words::time,
    },
    domain::{class::Kind, usage::Purpose},
    operations::{ContextState, ProviderRequest, Refusal, SentContext, VerifiedCall},
    transcript::{Message, Role, ToolSpec},
};

pub(super) fn format_context(sent: &SentContext) -> String {
    let texts = format_texts(sent.system.as_deref(), &sent.messages, &sent.tools);
    format!("{}{texts}", format_wrapped_fields(&fields(sent)))
}

/// Formats the texts of a call, each in a section of its own.
pub(super) fn format_texts(
    system: Option<&str>,
    messages: &[Message],
    tools: &[ToolSpec],
) -> String {
    let mut text = system.map(|system| section("system", system)).unwrap_or_default();
    for message in messages {
        text.push_str(&section(&title(message), &format_message(message)));
    }
    if !tools.is_empty() {
        let tools: Vec<_> = tools.iter().map(format_tool).collect();
        text.push_str(&section("tools", &tools.join("\n")));
    }
    text
}

fn fields(sent: &SentContext) -> Vec<(&'static str, String)> {
    let counted = match sent.counted_tokens {
        Some(n) => format!("{n} counted by the provider"),
        None => "not counted by the provider".to_owned(),
    };
    let mut fields = vec![
        ("session", sent.session_id.to_string()),
        place(sent),
        ("model", format!("{} on {}", sent.model, sent.provider)),
        ("stored", time(sent.created_at)),
        ("tokens", format!("{} estimated, {counted}", sent.estimated_tokens)),
        ("state", state(sent.state).to_owned()),
    ];
    fields.extend(sent.problem.iter().map(|problem| ("problem", problem.clone())));
    fields.extend(sent.request.as_ref().map(|request| ("request", format_request(request))));
    fields
}

pub(super) fn format_request(
    ProviderRequest { url, sha256, body, .. }: &ProviderRequest,
) -> String {
    let to = url.as_ref().map(|url| format!("POST {url}, ")).unwrap_or_default();
    format!("{to}{} bytes, SHA-256 {sha256}", body.len())
}

/// Returns the place of the call: in its turn, or in the ledger.
fn place(sent: &SentContext) -> (&'static str, String) {
    if let Some(id) = sent.ledger_id {
        let purpose = purpose(sent.purpose);
        return ("call", format!("{id} of the ledger, {purpose}, charged to turn {}", sent.turn));
    }
    let call = sent.call.unwrap_or(1);
    match sent.calls {
        Some(n) if n > 1 => ("turn", format!("{}, call {call} of {n}", sent.turn)),
        _ => ("turn", format!("{}, call {call}", sent.turn)),
    }
}

fn purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Turn => "for a turn",
        Purpose::Summary => "for a summary",
        Purpose::Facts => "for facts",
        Purpose::Rerun => "for a rerun",
    }
}

fn state(state: ContextState) -> &'static str {
    match state {
        ContextState::Exact => "exactly as sent, byte for byte",
        ContextState::NoRequest => "complete; no request was sent",
        ContextState::Erased => "not stored in full, so it cannot be shown",
        ContextState::Differs => "not as it was sent",
        ContextState::UnknownVersion => "stored by another version, so it cannot be shown",
    }
}

pub(super) fn section(title: &str, text: &str) -> String {
    format!("\n──── {title} ────\n{text}\n")
}

pub(super) fn title(message: &Message) -> String {
    match (message.role, &message.tool_name) {
        (Role::Tool, Some(tool)) => format!("result of {tool}"),
        (role, _) => crate::cli::session::serialised_name(role),
    }
}

pub(super) fn format_message(message: &Message) -> String {
    let calls = message.tool_calls.iter();
    let calls = calls.map(|call| format!("[calls {} with {}]", call.name, call.arguments));
    let text = Some(message.text.clone()).filter(|text| !text.is_empty());
    text.into_iter().chain(calls).collect::<Vec<_>>().join("\n")
}

fn format_tool(tool: &ToolSpec) -> String {
    format!("{}: {}\n{}", tool.name, tool.description, tool.input_schema)
}

pub(super) fn format_curl(request: &ProviderRequest) -> Result<String, Failure> {
    let Some(url) = &request.url else {
        let why = "this call ran a program instead of sending a request: --raw prints what the program was given";
        return Err(Refusal::new(Kind::Conflict, "no_request", why).into());
    };
    // `printf` is a part of the shell, so the body may be longer than the arguments of a program.
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    // In double quotes, so that the shell puts the key in.
    let key = request.key_header.as_ref().map(|header| format!(" -H \"{header}\""));
    let headers = request.headers.iter().map(|header| format!(" -H {}", quoted(header)));
    Ok(format!(
        "printf %s {} |\n  curl -sS {} -H 'content-type: application/json'{}{} --data-binary @-",
        quoted(&request.body),
        quoted(url),
        headers.collect::<String>(),
        key.unwrap_or_default(),
    ))
}

pub(super) fn format_verified(calls: &[VerifiedCall]) -> String {
    if calls.is_empty() {
        return "No context of this session is stored yet.".to_owned();
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for call in calls {
        *counts.entry(name(call.state)).or_default() += 1;
    }
    let counts: Vec<_> = counts.into_iter().map(|(name, n)| format!("{n} {name}")).collect();
    let mut text = format_wrapped("", &format!("{} calls: {}", calls.len(), counts.join(", ")));
    let bad: Vec<_> = calls.iter().filter(|call| call.problem.is_some()).collect();
    if !bad.is_empty() {
        let row = |call: &&VerifiedCall| {
            [call.turn.to_string(), called(call), name(call.state).to_owned()]
        };
        text.push('\n');
        text.push_str(&format_table(&["TURN", "CALL", "STATE"], bad.iter().map(row)));
        let problems: std::collections::BTreeSet<_> =
            bad.iter().filter_map(|call| call.problem.as_deref()).collect();
        text.push('\n');
        text.extend(problems.into_iter().map(|problem| format_wrapped("", problem)));
    }
    text
}

/// Names a call within its turn, or by its number in the ledger.
fn called(call: &VerifiedCall) -> String {
    match (call.call, call.ledger_id) {
        (Some(call), _) => call.to_string(),
        (None, Some(id)) => format!("{} ({id} of the ledger)", purpose(call.purpose)),
        (None, None) => "-".to_owned(),
    }
}

fn name(state: ContextState) -> &'static str {
    match state {
        ContextState::Exact => "exactly as sent",
        ContextState::NoRequest => "complete, without a request",
        ContextState::Erased => "not stored in full",
        ContextState::Differs => "not as sent",
        ContextState::UnknownVersion => "of another version",
    }
}
