//! Commands with `--url`: the same output as on the database, and clear errors without such a server.

use std::{collections::BTreeSet, net::SocketAddr, process::Stdio};

use dalsegno::{
    domain::amount::Limit,
    operations::{ALL, Command},
};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::{
    CommandOutput, Fixture,
    campaign_commands::{self, Step},
    ended, operator_commands, text,
};
use crate::{
    app::{TestApp, TestDatabase, noon},
    cluster::scratch_folder,
    conversations::world::World,
    http::client::send,
    schedules::put_nightly,
    service::dalsegno,
};

const ADMIN_KEY: &str = "0123456789-the-key-of-the-configuration";

/// A service, and a folder for commands that call it and have no database.
struct ServiceSetup {
    app: TestApp,
    folder: TempDir,
}

impl ServiceSetup {
    async fn with(set: &[(&str, &str)]) -> Self {
        let app = TestApp::start_with(TestDatabase::migrated().await, set).await;
        Self { app, folder: scratch_folder() }
    }

    fn url(&self) -> String {
        format!("http://{}", self.app.address)
    }

    async fn run(&self, arguments: &[&str]) -> CommandOutput {
        run(&self.folder, &[arguments, &["--url", &self.url()]].concat(), &[]).await
    }
}

async fn run(folder: &TempDir, arguments: &[&str], environment: &[(&str, &str)]) -> CommandOutput {
    let mut command = dalsegno(folder.path());
    command.args(arguments).envs(environment.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    ended(command.kill_on_drop(true).spawn().unwrap()).await
}

/// Files that come with the service.
const SHIPPED: [&str; 7] = [
    "copywriter",
    "planner",
    "reviewer",
    "editorial-style",
    "meta-analysis",
    "article-series",
    "reviewed-text",
];

/// Masks values that differ between two databases, times and callers: ids, times, secrets, and the name of the host's
/// user.
fn mask_values(text: &str) -> String {
    let text = with_words_masked(text, "-_:@.+/=", |word| {
        let is_secret = word.starts_with("dals_") || word.starts_with("whsec_");
        is_secret.then_some("SECRET")
    });
    let text = with_words_masked(&text, "-_:@.", |word| {
        let is_hex = word.len() >= 12 && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        match word {
            _ if word.starts_with("cli:") || word.starts_with("anonymous") => Some("CALLER"),
            _ if is_hex && word.contains(|c: char| c.is_ascii_hexdigit()) => Some("ID"),
            _ => None,
        }
    });
    let text = with_callers_masked(&text);
    let mut masked = String::new();
    for c in text.chars() {
        let c = if c.is_ascii_digit() { '0' } else { c };
        if !(matches!(c, '0' | ' ') && masked.ends_with(c)) {
            masked.push(c);
        }
    }
    // Times of the test's clock have no fraction of a second. The service finds the shipped files in its folder, the command in itself.
    let mut masked = masked.replace(".0Z", "Z").replace(".0 UTC", " UTC");
    masked = masked.replace("\"is_built_in\": false", "\"is_built_in\": true");
    for name in SHIPPED {
        masked = masked.replace(&format!("{name} (built in)"), "FILE");
    }
    with_words_masked(&masked, "-_./", |word| word.starts_with("config/").then_some("FILE"))
}

/// Masks the words for callers: the user of this host, and one without a key.
fn with_callers_masked(text: &str) -> String {
    const ON: &str = " on the command line of ";
    let mut masked = text.replace("a caller without a key", "CALLER");
    while let Some(at) = masked.find(ON) {
        let start = masked[..at].rfind([' ', '\n', '(']).map_or(0, |place| place + 1);
        let rest = &masked[at + ON.len()..];
        let host = rest.find(|c: char| !c.is_alphanumeric() && !"-_.".contains(c));
        let host = rest[..host.unwrap_or(rest.len())].trim_end_matches('.');
        let end = at + ON.len() + host.len();
        masked.replace_range(start..end, "CALLER");
    }
    masked
}

/// Masks words, which consist of letters, digits and `signs`, and do not end with a colon or a full stop.
fn with_words_masked(
    text: &str,
    signs: &str,
    mask: impl Fn(&str) -> Option<&'static str>,
) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || signs.contains(c);
    let mut masked = String::new();
    for piece in text.split_inclusive(|c| !is_part(c)) {
        let word = piece.trim_end_matches(|c| !is_part(c)).trim_end_matches([':', '.']);
        masked.push_str(mask(word).unwrap_or(word));
        masked.push_str(&piece[word.len()..]);
    }
    masked
}

fn schedule_steps() -> Vec<Step> {
    let add = |name, cron, agent| {
        let add = ["schedule", "add", name, "--campaign", "Harbour", "--agent", agent];
        [&add[..], &["--cron", cron, "What is new?"]].concat()
    };
    vec![
        ("put_schedule", add("news", "0 0 8 * * *", "copywriter")),
        // At the time of the cleanup, so that any clock has both in one order.
        ("put_schedule", add("news", "0 0 2 * * *", "copywriter")),
        ("put_schedule", add("news", "0 0 8", "copywriter")),
        ("put_schedule", add("news", "0 0 8 * * *", "copywritter")),
        ("put_schedule", add("cleanup", "0 0 8 * * *", "copywriter")),
        ("list_schedules", vec!["schedule", "ls"]),
        ("show_schedule", vec!["schedule", "show", "news"]),
        ("show_schedule", vec!["schedule", "show", "a/b c"]),
        ("run_schedule", vec!["schedule", "run", "cleanup"]),
        ("pause_schedule", vec!["schedule", "pause", "news", "--reason", "moving"]),
        ("pause_schedule", vec!["schedule", "pause", "news"]),
        ("list_schedules", vec!["schedule", "ls"]),
        ("resume_schedule", vec!["schedule", "resume", "news"]),
        ("remove_schedule", vec!["schedule", "rm", "news"]),
        ("remove_schedule", vec!["schedule", "rm", "cleanup"]),
    ]
}

#[tokio::test]
async fn every_operation_prints_the_same_from_the_database_and_a_server() {
    let local = Fixture::new().await;
    let setup = ServiceSetup::with(&[]).await;
    let there = World::over(setup.app.pool.clone(), Limit::default()).await;
    // The command uses the real clock, the service that of the test: the cleanup is not overdue for either.
    for (world, now) in [(&local.world, chrono::Utc::now()), (&there, noon())] {
        put_nightly(&world.pool, now).await;
        campaign_commands::fill(world).await;
        operator_commands::fill(&world.pool).await;
    }
    [local.path(), setup.folder.path()].into_iter().for_each(campaign_commands::write_files);
    let mut walked = BTreeSet::new();
    let steps = [
        campaign_commands::steps(),
        schedule_steps(),
        operator_commands::steps(),
        campaign_commands::last_steps(),
    ];
    for (operation, command) in steps.concat() {
        walked.insert(operation);
        for form in [&[][..], &["--json"]] {
            let command = [&command[..], form].concat();
            let on = async |world: &World| campaign_commands::named(&command, &world.pool).await;
            let (here, remote) = (on(&local.world).await, on(&there).await);
            let (here, remote) = (words_of(&here), words_of(&remote));
            let (here, remote) = tokio::join!(local.run(&here), setup.run(&remote));
            let words = |output: CommandOutput| {
                (output.code, mask_values(&output.stdout), mask_values(&output.stderr))
            };
            assert_eq!(words(here), words(remote), "{command:?}");
        }
    }
    let with_command =
        |entry: &&dalsegno::operations::Entry| matches!(entry.spec.command, Command::Named(_));
    let all: BTreeSet<_> = ALL.iter().filter(with_command).map(|entry| entry.spec.id).collect();
    // Their lists and figures belong to one database and one process.
    for operation in ["list_erasures", "list_waits", "show_installation", "show_worker_activity"] {
        walked.insert(operation);
    }
    let forgotten: Vec<_> = all.difference(&walked).collect();
    assert!(forgotten.is_empty(), "operations without a command in this test: {forgotten:?}");
}

fn words_of(command: &[String]) -> Vec<&str> {
    command.iter().map(String::as_str).collect()
}

#[tokio::test]
async fn the_agents_of_a_server_come_from_its_files() {
    let files = scratch_folder();
    let (agents, nodes) = (files.path().join("agents"), files.path().join("nodes"));
    for (folder, name) in [(&agents, "editor"), (&nodes, "proof")] {
        std::fs::create_dir_all(folder).unwrap();
        let file = format!("---\nname: {name}\ndescription: Reads proofs\n---\nRead.\n");
        std::fs::write(folder.join(format!("{name}.md")), file).unwrap();
    }
    let folders = [agents.to_str().unwrap(), nodes.to_str().unwrap()];
    let set = [("agents.folder", folders[0]), ("agents.nodes_folder", folders[1])];
    let setup = ServiceSetup::with(&set).await;
    for (list, name) in [("ls", "editor"), ("nodes", "proof")] {
        let listed = setup.run(&["agent", list, "--json"]).await.json();
        assert_eq!((&listed[0]["name"], &listed[1]), (&json!(name), &json!(null)), "{listed}");
        let output = setup.run(&["agent", list]).await;
        assert!(output.code == 0 && output.has("Reads proofs"), "{output:?}");
    }
    let output = setup.run(&["agent", "check"]).await;
    assert!(output.code == 2 && output.has("works on this host"), "{output:?}");
}

#[tokio::test]
async fn a_paged_list_is_printed_as_one() {
    let setup = ServiceSetup::with(&[]).await;
    for _ in 0..205 {
        World::over(setup.app.pool.clone(), Limit::default()).await;
    }
    let listed = setup.run(&["campaign", "ls", "--limit", "203", "--json"]).await.json();
    let ids: BTreeSet<&str> =
        listed.as_array().unwrap().iter().map(|campaign| text(&campaign["id"])).collect();
    assert_eq!(ids.len(), 203);
    let several = setup.run(&["campaign", "show", "Harbour"]).await;
    assert!(several.code == 2 && several.has("more than one campaign matches"), "{several:?}");
}

#[tokio::test]
async fn a_server_requires_a_key_and_checks_its_scopes() {
    let setup =
        ServiceSetup::with(&[("http.require_key", "true"), ("http.admin_key", ADMIN_KEY)]).await;
    put_nightly(&setup.app.pool, noon()).await;
    let output = setup.run(&["schedule", "ls"]).await;
    assert!(output.code == 4 && output.has("--key-file"), "{output:?}");
    let output = setup.run(&["schedule", "ls", "--key", "dals_wrong"]).await;
    assert!(output.code == 4 && output.has("not accepted"), "{output:?}");
    let next = ["cleanup", "--dry-run", "--at", "next", "--key", "dals_wrong"];
    let output = setup.run(&next).await;
    assert!(output.code == 4 && output.has("not accepted"), "{output:?}");
    let admin = format!("Bearer {ADMIN_KEY}");
    let new = json!({ "name": "reader", "scopes": ["read"] }).to_string();
    let headers = [("Authorization", admin.as_str())];
    let made = send(setup.app.address, "POST", "/v1/keys", &headers, &new).await.expect(201);
    let (key, url) = (text(&made["secret"]), setup.url());
    let file = setup.folder.path().join("key");
    std::fs::write(&file, format!("{key}\n")).unwrap();
    let by_file = ["schedule", "ls", "--key-file", file.to_str().unwrap()];
    assert_eq!(setup.run(&by_file).await.code, 0);
    let environment = [("DALSEGNO_URL", url.as_str()), ("DALSEGNO_KEY", key)];
    let output = run(&setup.folder, &["schedule", "ls"], &environment).await;
    assert!(output.code == 0 && output.has("cleanup"), "{output:?}");
    let output = run(&setup.folder, &["schedule", "pause", "cleanup"], &environment).await;
    assert!(
        output.code == 4 && output.has("the key `reader` does not have the scope `operate`"),
        "{output:?}"
    );
    assert!(output.has("`dalsegno key create`"), "{output:?}");
    let output = setup.run(&["schedule", "pause", "cleanup", "--key", ADMIN_KEY]).await;
    assert_eq!(output.code, 0, "{output:?}");
}

#[tokio::test]
async fn a_key_with_the_scope_enqueue_starts_a_flow() {
    let setup =
        ServiceSetup::with(&[("http.require_key", "true"), ("http.admin_key", ADMIN_KEY)]).await;
    let campaign = World::over(setup.app.pool.clone(), Limit::default()).await.campaign.id;
    let admin = format!("Bearer {ADMIN_KEY}");
    let new = json!({ "name": "producer", "scopes": ["enqueue"] }).to_string();
    let headers = [("Authorization", admin.as_str())];
    let made = send(setup.app.address, "POST", "/v1/keys", &headers, &new).await.expect(201);
    let (campaign, key) = (campaign.to_string(), text(&made["secret"]));
    let start = ["flow", "start", "article-series", "--campaign", &campaign, "--key", key];
    let inputs = ["--input", "topic=The harbour", "--input", "parts=Moles"];
    let output = setup.run(&[&start[..], &inputs].concat()).await;
    assert!(output.code == 0 && output.has("is running"), "{output:?}");
}

/// Starts a server with one answer for all requests.
async fn server(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    address
}

#[tokio::test]
async fn a_foreign_server_or_version_is_reported_with_the_reason() {
    let folder = scratch_folder();
    let page = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    let json = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
    let moved = "HTTP/1.1 301 Moved Permanently\r\nContent-Length: 0\r\nConnection: close\r\n\
                 Location: https://dalsegno.example.com/v1/schedules\r\n\r\n";
    let gone = "HTTP/1.1 404 Not Found\r\nContent-Length: 36\r\nConnection: close\r\n\r\n\
                {\"code\":\"not_found\",\"detail\":\"none\"}";
    let proxy = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
    let closed_port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for (address, code, words) in [
        (closed_port, 7, "no server can be reached at"),
        (server(page).await, 1, "is not a Dalsegno server"),
        (server(json).await, 1, "has another version than this command"),
        (server(moved).await, 1, "redirects to https://dalsegno.example.com/v1/schedules"),
        (server(gone).await, 1, "has no operation `list_schedules`"),
        (server(proxy).await, 7, "answered 502 Bad Gateway: a proxy cannot reach"),
    ] {
        let url = format!("http://{address}/");
        let output = run(&folder, &["schedule", "ls", "--url", &url], &[]).await;
        assert!(output.code == code && output.has(words) && output.has(&url), "{output:?}");
    }
    let output = run(&folder, &["schedule", "ls", "--url", "localhost:7770"], &[]).await;
    assert!(output.code == 2 && output.has("invalid URL"), "{output:?}");
    let output = run(&folder, &["schedule", "ls", "--url", "http://localhost:7770/v1/"], &[]).await;
    assert!(output.code == 2 && output.has("leave out `/v1`"), "{output:?}");
    let plain = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let url = format!("https://{}/", server(plain).await);
    let output = run(&folder, &["schedule", "ls", "--url", &url], &[]).await;
    assert!(output.code == 7 && output.has("try `http://`"), "{output:?}");
    let url = format!("http://{}/", server(page).await);
    let output = run(&folder, &["feed", "--url", &url], &[]).await;
    assert!(output.code == 1 && output.has("is not a Dalsegno server"), "{output:?}");
    let closed = format!("http://{closed_port}/");
    assert_eq!(run(&folder, &["remote", "add", "prod", &closed], &[]).await.code, 0);
    let output = run(&folder, &["schedule", "ls", "--remote", "prod"], &[]).await;
    assert!(output.code == 7 && output.has("`dalsegno remote add prod URL`"), "{output:?}");
}

#[tokio::test]
async fn a_check_of_local_files_says_that_the_server_may_have_others() {
    let folder = scratch_folder();
    let there = [("DALSEGNO_URL", "http://127.0.0.1:7770")];
    for command in ["agent", "flow"] {
        let output = run(&folder, &[command, "check"], &there).await;
        let words = "of this machine, not of the server http://127.0.0.1:7770";
        assert!(output.code == 0 && output.has(words), "{output:?}");
        let output = run(&folder, &[command, "check"], &[]).await;
        assert!(output.code == 0 && !output.has("not of the server"), "{output:?}");
    }
}

#[tokio::test]
async fn a_command_without_a_remote_form_refuses_a_url() {
    let folder = scratch_folder();
    let there = [("DALSEGNO_URL", "http://127.0.0.1:7770")];
    let output = run(&folder, &["mcp", "--campaign", "Harbour"], &there).await;
    assert!(output.code == 2 && output.has("on the database only"), "{output:?}");
    let output = run(&folder, &["openapi", "--url", "http://127.0.0.1:7770"], &[]).await;
    assert!(output.code == 2 && output.has("works on this host"), "{output:?}");
    let output = run(&folder, &["openapi", "--idempotency-key", "once"], &[]).await;
    assert!(output.code == 2 && output.has("works on this host"), "{output:?}");
    let output = run(&folder, &["schedule", "ls", "--idempotency-key", "é"], &[]).await;
    assert!(output.code == 2 && output.has("visible ASCII"), "{output:?}");
    let nowhere = [("DALSEGNO_URL", "nowhere")];
    let output = run(&folder, &["openapi"], &nowhere).await;
    assert!(output.code == 0 && output.has("Dalsegno"), "{output:?}");
    let output = run(&folder, &["schedule", "ls", "--key", "dals_x"], &[]).await;
    assert!(output.code == 2 && output.has("name it with --url"), "{output:?}");
    let output = run(&folder, &["schedule", "pause", ".."], &there).await;
    assert!(output.code == 2 && output.has("cannot be part of a URL"), "{output:?}");
}

#[tokio::test]
async fn a_stored_server_is_used_until_the_database_is_chosen_again() {
    let setup =
        ServiceSetup::with(&[("http.require_key", "true"), ("http.admin_key", ADMIN_KEY)]).await;
    put_nightly(&setup.app.pool, noon()).await;
    let (folder, url) = (scratch_folder(), setup.url());
    let here = async |arguments: &[&str]| run(&folder, arguments, &[]).await;
    let output = here(&["remote", "add", "prod", &url, "--key", ADMIN_KEY]).await;
    assert!(output.code == 0 && output.has("`dalsegno remote use prod`"), "{output:?}");
    let mode =
        std::fs::metadata(folder.path().join("dalsegno/remotes.json")).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);

    let output = here(&["schedule", "ls", "--remote", "prod"]).await;
    assert!(output.code == 0 && output.stdout.contains("cleanup"), "{output:?}");
    assert_eq!(here(&["remote", "use", "prod"]).await.code, 0);
    let output = here(&["schedule", "ls"]).await;
    assert!(output.code == 0 && output.stdout.contains("cleanup"), "{output:?}");
    assert!(output.stderr.contains(&format!("on prod, {url}")), "{output:?}");
    let listed = here(&["remote", "ls", "--json"]).await.json();
    let expected = json!([{ "name": "prod", "url": url, "has_key": true, "is_current": true }]);
    assert_eq!(listed, expected);
    assert!(!here(&["remote", "ls"]).await.stdout.contains(ADMIN_KEY));

    let output = here(&["mcp", "--campaign", "Harbour"]).await;
    assert!(output.code == 2 && output.has("--remote local"), "{output:?}");
    let output = here(&["schedule", "ls", "--remote", "staging"]).await;
    assert!(output.code == 2 && output.has("no server `staging` (known: prod)"), "{output:?}");
    let output = here(&["remote", "add", "local", &url]).await;
    assert!(output.code == 2 && output.has("means the database"), "{output:?}");
    assert_eq!(here(&["remote", "rm", "prod"]).await.code, 0);
    assert_eq!(here(&["remote", "ls", "--json"]).await.json(), json!([]));
}

/// Returns the head of the single request that arrives.
async fn head_of_request(listener: TcpListener) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let (mut head, mut buffer) = (Vec::new(), [0; 4096]);
    while !head.ends_with(b"\r\n\r\n") {
        let n = stream.read(&mut buffer).await.unwrap();
        head.extend_from_slice(&buffer[..n]);
    }
    let page = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    stream.write_all(page).await.unwrap();
    String::from_utf8(head).unwrap().to_ascii_lowercase()
}

#[tokio::test]
async fn a_key_in_the_environment_is_sent_to_no_other_server() {
    let folder = scratch_folder();
    for (given, is_sent) in [("", true), ("http://dalsegno.example.com", false)] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let environment = [("DALSEGNO_URL", given), ("DALSEGNO_KEY", "dals_mine")];
        let arguments = ["schedule", "ls", "--url", &url];
        let (head, _) =
            tokio::join!(head_of_request(listener), run(&folder, &arguments, &environment));
        assert_eq!(head.contains("authorization: bearer dals_mine"), is_sent, "{given:?}: {head}");
    }
    for odd in ["https://me:secret@dalsegno.example.com", "https://dalsegno.example.com/?a=b"] {
        let output = run(&folder, &["remote", "add", "prod", odd], &[]).await;
        assert!(output.code == 2 && output.has("invalid URL"), "{output:?}");
    }
    let output = run(&folder, &["remote", "ls", "--remote", "prod"], &[]).await;
    assert!(output.code == 2 && output.has("leave out --url and --remote"), "{output:?}");
}
