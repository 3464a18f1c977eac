//! MCP servers of an agent, from the key `mcpServers` of its file or from a JSON file beside it.
//!
//! Values may refer to variables of the service as `${NAME}`, but only to those that the configuration lists. The CLI expands such
//! references too, from an environment that holds its credential. The service therefore replaces all of them before the CLI reads the
//! servers.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{Config, Provider};
use crate::domain::files::{self, Fields};

/// MCP servers by name. `Debug` and JSON show only the names, because values may be secrets.
#[derive(Clone, Default, PartialEq)]
pub struct Servers(BTreeMap<String, Value>);

/// Errors of replacing references to variables.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(
        "mcpServers in the agent's file uses the variable {0}, which is not set: set it for the service"
    )]
    Unset(String),
    #[error(
        "mcpServers in the agent's file uses the variable {0}, whose value contains another variable: write the full value"
    )]
    Nested(String),
}

/// The context in which a file is parsed.
#[derive(Debug, Clone, Copy)]
pub(super) struct ParseContext<'a> {
    /// The folder of the agents. Paths of server files are relative to it.
    pub folder: &'a Path,
    /// Variables of the service that the file may refer to.
    pub variables: &'a [String],
    /// Providers that the file may name.
    pub providers: &'a [Provider],
    /// Collects further files that this one names, because a change of them counts as a change of it.
    pub named: &'a RefCell<Vec<PathBuf>>,
}

impl<'a> ParseContext<'a> {
    pub(super) fn new(config: &'a Config, named: &'a RefCell<Vec<PathBuf>>) -> Self {
        Self {
            folder: &config.folder,
            variables: &config.variables,
            providers: &config.known_providers,
            named,
        }
    }
}

/// Name of the MCP server that offers the service's own tools.
pub const OWN_SERVER: &str = "dalsegno";
const KEY: &str = "mcpServers";
const WANTED: &str = "servers by name, such as { board: { type: http, url: \"https://board.example/mcp\" } }, or a path to a JSON file";
const EXAMPLE: &str = "{ board: { type: http, url: \"https://board.example/mcp\" } }";

impl Servers {
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns true if one of them is a program that is started on this host.
    pub fn has_program(&self) -> bool {
        self.0.values().any(|server| server.get("command").is_some())
    }

    /// Replaces references to variables by their values.
    pub fn resolve(
        &self,
        mut variable: impl FnMut(&str) -> Option<String>,
    ) -> Result<BTreeMap<String, Value>, Error> {
        let mut servers = self.0.clone();
        for server in servers.values_mut() {
            fill_in(server, &mut variable)?;
        }
        Ok(servers)
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Serialize for Servers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.keys())
    }
}

pub(super) fn read(fields: &mut Fields<'_>, around: &ParseContext<'_>) -> Servers {
    let Some(value) = fields.value(KEY, WANTED, |value| {
        matches!(value, Value::Object(_) | Value::Array(_) | Value::String(_))
    }) else {
        return Servers::default();
    };
    let found = match value.value {
        Value::Object(servers) => Ok(servers.into_iter().collect()),
        Value::Array(items) => of_list(items),
        Value::String(path) => {
            let path = around.folder.join(path.trim());
            around.named.borrow_mut().push(path.clone());
            of_file(&path)
        }
        _ => Ok(BTreeMap::new()),
    };
    let servers: BTreeMap<String, Value> = match found {
        Ok(servers) => servers,
        Err((message, fix)) => {
            fields.fail(KEY, message, format!("{KEY}: {fix}"));
            return Servers::default();
        }
    };
    for (name, server) in &servers {
        for (message, fix) in server_problems(name, server) {
            fields.fail(KEY, format!("server `{name}` {message}"), fix);
        }
        for variable in variables(server) {
            if !around.variables.contains(&variable) {
                let message = format!(
                    "server `{name}` uses the variable {variable}, which files may not use"
                );
                let fix = format!(
                    "add \"{variable}\" to agents.variables in the configuration, or leave it out"
                );
                fields.fail(KEY, message, fix);
            }
        }
    }
    Servers(servers)
}

/// Reads a list of servers, as in Claude Code's own files. A name alone means a server of the session there. Such names are refused here.
fn of_list(items: Vec<Value>) -> Result<BTreeMap<String, Value>, (String, String)> {
    let mut servers = BTreeMap::new();
    for item in items {
        match item {
            Value::Object(named) => servers.extend(named),
            other => {
                let message =
                    format!("contains {other}, but servers cannot be given by name alone");
                return Err((message, EXAMPLE.to_owned()));
            }
        }
    }
    Ok(servers)
}

/// Reads a file in the format of `.mcp.json`.
fn of_file(path: &Path) -> Result<BTreeMap<String, Value>, (String, String)> {
    const FIX: &str = "a path, from the agent's folder on, to a file such as {\"mcpServers\": {…}}";
    let fail = |what: String| (format!("{} {what}", path.display()), FIX.to_owned());
    let text = files::read(path, files::MAX_BYTES).map_err(|error| fail(error.to_string()))?;
    // Only the line is reported, because values in the file may be secrets.
    let mut content: Value = serde_json::from_str(&text)
        .map_err(|error| fail(format!("is not valid JSON in line {}", error.line())))?;
    match content.get_mut(KEY).map(Value::take) {
        Some(Value::Object(servers)) => Ok(servers.into_iter().collect()),
        _ => Err(fail(format!("has no map `{KEY}`"))),
    }
}

fn server_problems(name: &str, server: &Value) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || !name.chars().all(fine) {
        found.push((
            "has a name that rules for tools cannot contain",
            "letters, digits, - and _".to_owned(),
        ));
    }
    if name == OWN_SERVER {
        let fix = "another name; the service's own tools need no server, only rules such as mcp__dalsegno below tools";
        found.push(("has the reserved name of the service", fix.to_owned()));
    }
    let Value::Object(server) = server else {
        found.push(("is not a map of keys", EXAMPLE.to_owned()));
        return found;
    };
    let text = |key: &str| server.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let is_remote = matches!(text("type"), Some("http" | "sse"));
    match (server.get("type").is_none() || text("type") == Some("stdio"), is_remote) {
        (true, _) if text("command").is_none() => {
            let fix = "command: and args: of the program, or type: http and its url:";
            found.push(("has no command", fix.to_owned()));
        }
        (_, true) if text("url").is_none() => {
            found.push(("has no URL", "url: \"https://…\"".to_owned()));
        }
        (false, false) => {
            found.push(("has an unknown type", "type: stdio, http or sse".to_owned()))
        }
        _ => {}
    }
    let is_list =
        |value: &Value| value.as_array().is_some_and(|all| all.iter().all(Value::is_string));
    let is_map =
        |value: &Value| value.as_object().is_some_and(|all| all.values().all(Value::is_string));
    if server.get("args").is_some_and(|args| !is_list(args)) {
        found.push((
            "has `args` that are not a list of texts",
            "args: [\"--port\", \"7000\"]".to_owned(),
        ));
    }
    for (key, message) in [
        ("env", "has an env that is not a map of texts"),
        ("headers", "has headers that are not a map of texts"),
    ] {
        if server.get(key).is_some_and(|map| !is_map(map)) {
            found.push((message, format!("{key}: {{ NAME: \"value\" }}, with values in quotes")));
        }
    }
    found
}

/// Lists all variables that a server refers to.
fn variables(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut note = |name: &str| {
        found.push(name.to_owned());
        Some(String::new())
    };
    // Cannot fail: each has a value.
    let _ = fill_in(&mut value.clone(), &mut note);
    found
}

fn fill_in(
    value: &mut Value,
    variable: &mut dyn FnMut(&str) -> Option<String>,
) -> Result<(), Error> {
    match value {
        Value::String(text) => *text = filled(text, variable)?,
        Value::Array(items) => items.iter_mut().try_for_each(|item| fill_in(item, variable))?,
        Value::Object(map) => map.values_mut().try_for_each(|item| fill_in(item, variable))?,
        _ => {}
    }
    Ok(())
}

/// Replaces `${NAME}` and `${NAME:-default}` as the CLI would.
fn filled(text: &str, variable: &mut dyn FnMut(&str) -> Option<String>) -> Result<String, Error> {
    let (mut done, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((named, behind)) = after.split_once('}').filter(|(named, _)| !named.is_empty())
        else {
            break;
        };
        let (name, otherwise) = match named.split_once(":-") {
            Some((name, otherwise)) => (name, Some(otherwise.to_owned())),
            None => (named, None),
        };
        let value = variable(name).or(otherwise);
        let value = value.ok_or_else(|| Error::Unset(name.to_owned()))?;
        if value.contains("${") {
            return Err(Error::Nested(name.to_owned()));
        }
        done.push_str(before);
        done.push_str(&value);
        rest = behind;
    }
    done.push_str(rest);
    Ok(done)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resolved(text: &str) -> Result<String, Error> {
        let servers = Servers(BTreeMap::from([("a".to_owned(), json!({ "env": { "X": text } }))]));
        let variable = |name: &str| match name {
            "KEY" => Some("secret".to_owned()),
            "LURE" => Some("${ANTHROPIC_API_KEY}".to_owned()),
            _ => None,
        };
        let all = servers.resolve(variable)?;
        Ok(all["a"]["env"]["X"].as_str().unwrap().to_owned())
    }

    #[test]
    fn variables_are_filled_in_and_none_is_left_to_the_cli() {
        assert_eq!(resolved("Bearer ${KEY}, ${KEY}").unwrap(), "Bearer secret, secret");
        assert_eq!(resolved("${NONE:-plain} $KEY ${").unwrap(), "plain $KEY ${");
        assert_eq!(resolved("${NONE}").unwrap_err(), Error::Unset("NONE".to_owned()));
        assert_eq!(resolved("${LURE}").unwrap_err(), Error::Nested("LURE".to_owned()));
    }

    #[test]
    fn server_definitions_are_not_printed() {
        let servers = Servers(BTreeMap::from([("a".to_owned(), json!({ "url": "planted" }))]));
        assert_eq!(format!("{servers:?} {}", json!(servers)), r#"{"a"} ["a"]"#);
    }
}
