//! Tool calls that arrive in fragments.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    providers::{Request, call_ids::CallIds},
    transcript::ToolCall,
};

/// Calls of an answer so far.
#[derive(Debug, Default)]
pub(super) struct CallDrafts(Vec<CallDraft>);

#[derive(Debug, Default)]
struct CallDraft {
    index: Option<u64>,
    id: String,
    name: String,
    /// JSON as text, in the order of its fragments.
    arguments: String,
}

/// Part of a call in one event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CallDelta {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionDelta>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FunctionDelta {
    name: Option<String>,
    /// Text; an object from servers that do not follow the API.
    arguments: Option<Value>,
}

impl CallDrafts {
    pub(super) fn add(&mut self, delta: CallDelta) {
        let function = delta.function.unwrap_or_default();
        let (id, name) = (delta.id.unwrap_or_default(), function.name.unwrap_or_default());
        let draft = self.draft_of(delta.index, &id, &name);
        if draft.id.is_empty() {
            draft.id = id;
        }
        // Some servers repeat the name with each fragment.
        if draft.name != name {
            draft.name.push_str(&name);
        }
        match function.arguments {
            Some(Value::String(fragment)) => draft.arguments.push_str(&fragment),
            Some(whole @ Value::Object(_)) => draft.arguments = whole.to_string(),
            _ => {}
        }
    }

    /// Returns true if the arguments of a call break off, for an answer that was cut. Those of the last call may be missing as a whole.
    pub(super) fn has_half_a_call(&self) -> bool {
        let is_missing = self.0.last().is_some_and(|draft| draft.arguments.is_empty());
        is_missing || self.0.iter().any(|draft| matches!(draft.arguments(), Value::String(_)))
    }

    /// Returns the calls. Each gets an id that no other call of the request has.
    pub(super) fn into_calls(self, request: &Request) -> Vec<ToolCall> {
        let mut ids = CallIds::of(request);
        let drafts = self.0.into_iter().enumerate().map(|(at, draft)| {
            let arguments = draft.arguments();
            ToolCall { id: ids.unique(draft.id, at), name: draft.name, arguments, thinking: None }
        });
        drafts.collect()
    }

    /// Finds the draft that a fragment continues, or begins one.
    fn draft_of(&mut self, index: Option<u64>, id: &str, name: &str) -> &mut CallDraft {
        let found = match index {
            // Some servers give all parallel calls the same index. Another id with a name begins another call.
            Some(_) => self.0.iter().rposition(|draft| {
                let is_other = !id.is_empty() && !name.is_empty() && draft.id != id;
                draft.index == index && !is_other
            }),
            None if !id.is_empty() => self.0.iter().rposition(|draft| draft.id == id),
            None if name.is_empty() => self.0.len().checked_sub(1),
            None => None,
        };
        let at = found.unwrap_or(self.0.len());
        if found.is_none() {
            self.0.push(CallDraft { index, ..CallDraft::default() });
        }
        &mut self.0[at]
    }
}

impl CallDraft {
    /// Returns the arguments as JSON. Text that is not JSON stays text: the tool refuses it, and the model reads why.
    fn arguments(&self) -> Value {
        match self.arguments.trim() {
            "" => Value::Object(Map::new()),
            text => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn drafts(deltas: &Value) -> Vec<(String, String, Value)> {
        let mut drafts = CallDrafts::default();
        for delta in deltas.as_array().unwrap() {
            drafts.add(serde_json::from_value(delta.clone()).unwrap());
        }
        let parts = drafts.0.iter().map(|it| (it.id.clone(), it.name.clone(), it.arguments()));
        parts.collect()
    }

    #[test]
    fn the_last_call_of_a_cut_answer_has_arguments_or_is_half_a_call() {
        let is_half = |deltas: Value| {
            let mut drafts = CallDrafts::default();
            for delta in deltas.as_array().unwrap() {
                drafts.add(serde_json::from_value(delta.clone()).unwrap());
            }
            drafts.has_half_a_call()
        };
        let call = |index: u64, arguments: &str| {
            let id = format!("c{index}");
            let function = json!({ "name": "look", "arguments": arguments });
            json!({ "index": index, "id": id, "function": function })
        };
        assert!(is_half(json!([call(0, "{}"), call(1, "")])));
        assert!(is_half(json!([call(0, "{\"n\":")])));
        assert!(!is_half(json!([call(0, ""), call(1, "{}")])));
    }

    fn call(id: &str, name: &str, arguments: Value) -> (String, String, Value) {
        (id.to_owned(), name.to_owned(), arguments)
    }

    #[test]
    fn fragments_are_joined_by_index() {
        let joined = drafts(&json!([
            { "index": 0, "id": "a", "function": { "name": "look", "arguments": "" } },
            { "index": 1, "id": "b", "function": { "name": "stop" } },
            { "index": 0, "function": { "arguments": "{\"at\":" } },
            { "index": 0, "function": { "name": "look", "arguments": "\"ß\"}" } },
        ]));
        assert_eq!(joined, [call("a", "look", json!({ "at": "ß" })), call("b", "stop", json!({}))]);
    }

    #[test]
    fn calls_with_one_index_or_none_stay_apart() {
        let expected = [call("a", "look", json!({ "n": 1 })), call("b", "look", json!({ "n": 2 }))];
        let same = drafts(&json!([
            { "index": 0, "id": "a", "function": { "name": "look", "arguments": "{\"n\":1}" } },
            { "index": 0, "id": "b", "function": { "name": "look", "arguments": "{\"n\":2}" } },
        ]));
        assert_eq!(same, expected);
        let none = drafts(&json!([
            { "id": "a", "function": { "name": "look", "arguments": "{\"n\"" } },
            { "function": { "arguments": ":1}" } },
            { "id": "b", "function": { "name": "look", "arguments": { "n": 2 } } },
        ]));
        assert_eq!(none, expected);
    }
}
