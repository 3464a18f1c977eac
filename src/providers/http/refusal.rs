//! Answers with a status other than 2xx, and the texts of servers in errors.

use std::time::Duration;

use serde_json::Value;

use crate::providers::ToldLimits;

/// An HTTP answer that refuses a request.
#[derive(Debug)]
pub(in crate::providers) struct Refusal {
    pub(in crate::providers) status: u16,
    pub(in crate::providers) retry_after: Option<Duration>,
    pub(in crate::providers) told: ToldLimits,
    pub(in crate::providers) body: Vec<u8>,
}

/// Maximum length of a server's message in an error.
const MAX_MESSAGE_CHARS: usize = 300;

impl Refusal {
    /// Returns the server's message, and true if it was in the field `error` of a JSON object.
    pub(in crate::providers) fn message(&self) -> (String, bool) {
        let json: Option<Value> = serde_json::from_slice(&self.body).ok();
        match json.as_ref().and_then(|json| json.get("error")) {
            Some(error) => (excerpt(&error_text(error)), true),
            None => (excerpt(&String::from_utf8_lossy(&self.body)), false),
        }
    }
}

/// Returns the text of an error, which an engine sends as text, as an object, or as an object inside of a text.
pub(in crate::providers) fn error_text(error: &Value) -> String {
    match error {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ Value::Object(_)) => error_text(inner.get("error").unwrap_or(&inner)),
            _ => text.clone(),
        },
        Value::Object(object) => {
            // LiteLLM spells a missing type as Python does.
            let part = |key| object.get(key).and_then(Value::as_str).filter(|it| *it != "None");
            let parts: Vec<_> = ["type", "message"].into_iter().filter_map(part).collect();
            match parts.is_empty() {
                true => error.to_string(),
                false => parts.join(": "),
            }
        }
        other => other.to_string(),
    }
}

/// Returns one line that cannot break a log or a terminal, without the full stop at its end: errors go on after it.
pub(in crate::providers) fn excerpt(text: &str) -> String {
    let line: String = text.split(|c: char| c.is_whitespace() || c.is_control()).fold(
        String::new(),
        |mut line, word| {
            if !word.is_empty() && line.len() <= MAX_MESSAGE_CHARS * 4 {
                line.push_str(if line.is_empty() { "" } else { " " });
                line.push_str(word);
            }
            line
        },
    );
    match line.strip_suffix('.').unwrap_or(&line) {
        "" => "no explanation".to_owned(),
        line => line.chars().take(MAX_MESSAGE_CHARS).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_message_becomes_one_short_line() {
        assert_eq!(excerpt("a\u{1b}[31m\n\tb\0c"), "a [31m b c");
        assert_eq!(excerpt(&"é ".repeat(9_999)).chars().count(), MAX_MESSAGE_CHARS);
        assert_eq!(excerpt(" \n"), "no explanation");
        assert_eq!(excerpt("No connected db."), "No connected db");
    }

    #[test]
    fn a_missing_type_is_not_part_of_the_message() {
        let error = serde_json::json!({ "type": "None", "message": "no model m" });
        assert_eq!(error_text(&error), "no model m");
    }
}
