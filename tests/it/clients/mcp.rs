//! Two clients by other authors use the tools: the official Python SDK, and the command line of the inspector from npm.
//! Each lists the tools over HTTP and standard input and output, in both versions of the protocol, and calls all of
//! them. The calls are in `tests/mcp-clients/calls.json`; a tool without a call fails the test.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Stdio,
    time::Duration,
};

use dalsegno::tools;
use futures_util::future::join_all;
use serde_json::Value;
use tokio::process::Command;

use super::{
    ExternalSystem,
    packages::{mcp_clients, mcp_inspector, mcp_sdk},
};
use crate::{app::eventually, http::client::send, service::command};

pub const VERSIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];
/// Timeout for a client: the inspector starts anew for each call.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(300);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    Sdk,
    Inspector,
}

/// Calls of a client, by its own report.
#[derive(Debug)]
pub struct ClientReport {
    pub listed: BTreeSet<String>,
    pub called: BTreeSet<String>,
}

impl Client {
    /// Returns the client's program without arguments, or `None` if it is not available.
    pub fn program(self, folder: &Path) -> Option<Command> {
        let programs = mcp_clients();
        let mut program = match self {
            Self::Sdk => command(mcp_sdk()?.to_str().unwrap(), folder),
            Self::Inspector => command("node", folder),
        };
        match self {
            Self::Sdk => program.arg(programs.join("sdk/session.py")),
            Self::Inspector => program
                .arg(programs.join("inspector/session.mjs"))
                .env("MCP_INSPECTOR", mcp_inspector()?),
        };
        program.arg(programs.join("calls.json")).kill_on_drop(true);
        Some(program)
    }
}

/// Waits until a client has made all its calls, and prints the exchange.
pub async fn read_client_report(mut program: Command) -> ClientReport {
    let child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let output =
        tokio::time::timeout(CLIENT_TIMEOUT, child.wait_with_output()).await.unwrap().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    println!("{said}");
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let lines = |mark| said.lines().filter_map(move |line| line.strip_prefix(mark));
    let listed = lines("< ").next().unwrap().split(", ").map(str::to_owned).collect();
    let called = lines("> ").skip(1).map(|line| line.split(' ').next().unwrap().to_owned());
    ClientReport { listed, called: called.collect() }
}

/// Tools that each session of the inspector calls.
const INSPECTOR_TOOLS: [&str; 2] = ["board_post", "status"];

#[tokio::test]
async fn the_python_sdk_lists_and_calls_every_operator_tool() {
    check_all_calls(Client::Sdk).await;
}

#[tokio::test]
async fn the_inspector_lists_and_calls_every_operator_tool() {
    check_all_calls(Client::Inspector).await;
}

async fn check_all_calls(client: Client) {
    if client.program(Path::new("/")).is_none() {
        return;
    }
    let (open, keyed) = (external("false").await, external("true").await);
    let made = keyed.run_operator_command(&["key", "create", "desk", "--scope", "mcp"]).await;
    let key = made["secret"].as_str().unwrap();
    let desk = format!("key:desk:{}", made["handle"].as_str().unwrap());
    assert!(!refused(client, &keyed).await.success(), "a client without a key is refused");
    for method in ["GET", "DELETE"] {
        let path = format!("/mcp/{}", keyed.campaign_id);
        let bearer = [("Authorization", &*format!("Bearer {key}"))];
        let reply = send(keyed.service.address, method, &path, &bearer, "").await;
        assert_eq!(reply.status, 405, "there is no stream and no session: {reply:?}");
    }

    let ways = VERSIONS.map(|version| {
        [("http", &open, "anonymous"), ("key", &keyed, "key"), ("stdio", &keyed, "cli")]
            .map(|(transport, external, author)| (transport, version, external, author))
    });
    let ways = ways.as_flattened();
    join_all(ways.iter().map(|(transport, version, external, _)| {
        let key = (*transport == "key").then_some(key);
        external.session(client, transport, version, key, only(client, transport, version))
    }))
    .await;

    let changes = changes();
    for (_, _, external, author) in &ways[..3] {
        let mut lines = BTreeMap::new();
        for (transport, version, ..) in ways.iter().filter(|way| way.3 == *author) {
            let only = only(client, transport, version);
            let is_called = |tool: &str| only.is_none_or(|only| only.contains(&tool));
            for tool in changes.iter().filter(|tool| is_called(tool)) {
                *lines.entry(tool.clone()).or_insert(0) += 1;
            }
        }
        assert_eq!(external.audit(author).await, lines, "{author}");
    }
    for (transport, version, external, author) in ways {
        if only(client, transport, version).is_none() {
            let author = match *author {
                "key" => &desk,
                "cli" => "cli:",
                anonymous => anonymous,
            };
            external.check_effects(&session_name(client, transport, version), author).await;
        }
    }
}

/// Selects the calls of a session. The SDK calls all tools in each; the inspector, whose calls take half a second,
/// calls all tools in one.
fn only(client: Client, transport: &str, version: &str) -> Option<&'static [&'static str]> {
    let calls_all = client == Client::Sdk || (transport, version) == ("key", VERSIONS[1]);
    (!calls_all).then_some(&INSPECTOR_TOOLS)
}

/// Returns the tools of operators that change data, according to `calls.json`.
fn changes() -> Vec<String> {
    let calls = std::fs::read_to_string(mcp_clients().join("calls.json")).unwrap();
    let calls: Vec<Value> = serde_json::from_str(&calls).unwrap();
    let changes = calls.iter().filter(|call| call["changes"] == true);
    let changes: BTreeSet<&str> = changes.map(|call| call["tool"].as_str().unwrap()).collect();
    let table = tools::table().into_iter().filter(|line| line.operator == "yes");
    table.map(|line| line.tool.to_owned()).filter(|tool| changes.contains(tool.as_str())).collect()
}

/// Returns a name for the session's items and posts.
fn session_name(client: Client, transport: &str, version: &str) -> String {
    format!("{client:?}-{transport}-{version}").to_lowercase()
}

/// Starts a service with a lead, whose journal has an entry.
async fn external(require_key: &str) -> ExternalSystem {
    let settings = settings();
    let settings = settings.each_ref().map(|(name, value)| (*name, value.as_str()));
    let more = [("DALSEGNO_HTTP__REQUIRE_KEY", require_key), ("DALSEGNO_SIM__DIRECTIVES", "true")];
    let external = ExternalSystem::with(&[&settings[..], &more].concat()).await;
    let note = r#"{"name": "first", "title": "Whom to ask", "text": "The harbour master knows."}"#;
    let sql = "select task_id from dalsegno.add_task($1, 'planner', $2)";
    let prompt = format!("Note it. [[sim: call journals_write {note}]]");
    let added = sqlx::query(sql).bind(external.campaign_id).bind(prompt);
    added.execute(&external.pool).await.unwrap();
    eventually("the entry and the turn's context are stored", async || {
        let sql = "select 1 from dalsegno.memory_items, dalsegno.manifests where kind = 'journal'";
        sqlx::query(sql).fetch_optional(&external.pool).await.unwrap()
    })
    .await;
    external
}

fn settings() -> [(&'static str, String); 2] {
    let folder = |name| mcp_clients().join("config").join(name).display().to_string();
    [("DALSEGNO_AGENTS__FOLDER", folder("agents")), ("DALSEGNO_FLOWS__FOLDER", folder("flows"))]
}

async fn refused(client: Client, external: &ExternalSystem) -> std::process::ExitStatus {
    let mut program = client.program(external.folder.path()).unwrap();
    program.args(["stranger", VERSIONS[1]]).arg(external.mcp_url());
    program.output().await.unwrap().status
}

impl ExternalSystem {
    fn mcp_url(&self) -> String {
        format!("{}/mcp/{}", self.url(), self.campaign_id)
    }

    async fn session(
        &self,
        client: Client,
        transport: &str,
        version: &str,
        key: Option<&str>,
        only: Option<&[&str]>,
    ) {
        let mut program = client.program(self.folder.path()).unwrap();
        program.args([&session_name(client, transport, version), version]);
        match transport {
            "stdio" => {
                program.args([env!("CARGO_BIN_EXE_dalsegno"), "mcp", "--campaign"]);
                program.arg(self.campaign_id.to_string());
                program.envs(settings()).env("DATABASE_URL", self.database.url());
            }
            _ => drop(program.arg(self.mcp_url())),
        }
        program.envs(key.map(|key| ("MCP_KEY", key)));
        program.envs(only.map(|only| ("MCP_ONLY", only.join(","))));
        let spoken = read_client_report(program).await;
        let table = self.run_operator_command(&["mcp", "tools"]).await;
        let lines = table.as_array().unwrap().iter().filter(|line| line["operator"] == "yes");
        let offered: BTreeSet<_> =
            lines.map(|line| line["tool"].as_str().unwrap().to_owned()).collect();
        assert_eq!(spoken.listed, offered);
        let expected = only.map(|only| only.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(spoken.called, expected.unwrap_or(offered));
    }

    /// Counts the calls of changing tools by actors of this kind.
    async fn audit(&self, kind: &str) -> BTreeMap<String, i64> {
        let sql = "select subject, count(*) from dalsegno.audit where action = 'tool.call' and actor_kind = $1 group by 1";
        let lines: Vec<(String, i64)> =
            sqlx::query_as(sql).bind(kind).fetch_all(&self.pool).await.unwrap();
        lines.into_iter().collect()
    }

    async fn query_one(&self, sql: &'static str, way: &str) -> Value {
        let found: Vec<Value> =
            sqlx::query_scalar(sql).bind(way).fetch_all(&self.pool).await.unwrap();
        assert_eq!(found.len(), 1, "{sql}: {found:?}");
        found.into_iter().next().unwrap()
    }

    /// Checks that the session's changes were made once each, by this author.
    async fn check_effects(&self, way: &str, author: &str) {
        let by = |row: Value| row["by"].as_str().is_some_and(|by| by.starts_with(author));
        let edict = "select json_build_object('by', author, 'revoked', revoked_at is not null and revoked_by like author || '%')
                       from dalsegno.memory_items where kind = 'edict' and name = 'tone-' || $1";
        let edict = self.query_one(edict, way).await;
        assert!(edict["revoked"] == true && by(edict.clone()), "{edict}");
        let record = "select json_build_object('by', author) from dalsegno.memory_items
                       where kind = 'record' and name = 'tides-' || $1 and body = 'High water is at six.'";
        assert!(by(self.query_one(record, way).await), "{way}");
        let post = "select json_build_object('by', sender, 'text', text) from dalsegno.posts
                     where position('Ahoy from ' || $1 || ':' in text) > 0";
        let post = self.query_one(post, way).await;
        assert_eq!(post["by"], "operator");
        assert_eq!(post["text"], format!("Ahoy from {way}: \"quoted\", ../ and \u{202e}."));
        let dispatched = "select json_build_object('by', added_by) from dalsegno.tasks
                           where prompt = 'Count the boats of ' || $1 || '.'";
        assert!(by(self.query_one(dispatched, way).await), "{way}");
        let begun = "select json_build_object('by', added_by) from dalsegno.tasks
                      where position('Write about ' || $1 || '.' in prompt) > 0";
        assert!(by(self.query_one(begun, way).await), "{way}");
        let board = "select json_build_object('n', document -> $1) from dalsegno.blackboards where document ? $1";
        assert_eq!(self.query_one(board, way).await["n"], 10);
    }
}
