//! `dalsegno demo` from end to end, with its own server and workers and a real kill; it leaves nothing behind.

use std::{path::Path, process::Stdio, time::Duration};

use rustix::process::Signal;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    time::timeout,
};

use crate::{
    app::{SOON, eventually, get},
    cluster::scratch_folder,
    embedded::support::send,
    providers::claude::cli::Cli,
    service::{dalsegno, servers_below},
};

/// Longest run; it takes half a minute on an idle machine, mostly for the simulation.
const MAX_RUN: Duration = SOON;

/// A file of the user, which the demo does not read.
const OWN_FILE: &str = "dalsegno.toml";

/// Runs a demo in `folder`. The configured database of the user does not exist, and must not be used.
fn demo(folder: &Path, arguments: &[&str]) -> Command {
    let own = "[database]\nurl = \"postgres://tester@127.0.0.1:1/users_own\"\n";
    std::fs::write(folder.join(OWN_FILE), own).unwrap();
    let mut command = dalsegno(folder);
    command.arg("demo").args(arguments);
    command.env("TMPDIR", folder).env("DATABASE_URL", "postgres://tester@127.0.0.1:1/users_own");
    command.kill_on_drop(true);
    command
}

/// Lists processes whose command line names the folder: workers and server of its demo.
fn processes_of(folder: &Path) -> Vec<u32> {
    let folder = folder.canonicalize().unwrap().display().to_string();
    let pids = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let names_it = |pid: &u32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(&folder)
    };
    pids.filter(names_it).collect()
}

fn leftover_files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name != OWN_FILE).collect()
}

/// Reads lines of the display until one contains `words`, and returns it.
async fn until_shown(child: &mut Child, words: &str) -> String {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let read = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains(words) {
                return line;
            }
        }
        panic!("the demo ended before it said {words:?}");
    };
    let line = timeout(MAX_RUN, read).await.unwrap();
    // Reads the rest, so that the demo never blocks on its output.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    line
}

#[tokio::test]
async fn the_demo_survives_a_kill_a_compaction_and_an_expiry() {
    let folder = scratch_folder();
    let played =
        timeout(MAX_RUN, demo(folder.path(), &["--json"]).output()).await.unwrap().unwrap();
    let (stdout, stderr) =
        (String::from_utf8(played.stdout).unwrap(), String::from_utf8(played.stderr).unwrap());
    let report: Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stderr}"));
    let checks = report["checks"].as_array().unwrap();
    let broken: Vec<&Value> = checks.iter().filter(|check| check["holds"] != true).collect();
    assert!(checks.len() >= 10 && broken.is_empty(), "{broken:?}\n{stderr}");
    assert_eq!((&report["simulated"], &report["ok"]), (&true.into(), &true.into()));
    assert_eq!(played.status.code(), Some(0), "{stderr}");

    let parts = report["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 12);
    for (at, part) in parts.iter().enumerate() {
        let headline = format!("Part {} of 12", at + 1);
        assert!(part["result"].as_str().unwrap().contains(&headline), "{part}");
        assert_eq!(part["writer"], ["writer_a", "writer_b", "writer_c"][at % 3]);
    }
    the_board_tells_who_called_whom(&report);

    let kill = &report["kill"];
    assert!(kill["interrupted_turn"].is_i64() && kill["continued_by_pid"].is_i64(), "{kill}");
    assert_ne!(kill["continued_by_pid"], kill["killed_pid"]);
    let part = usize::try_from(kill["part"].as_u64().unwrap()).unwrap();
    assert!(parts[part - 1]["attempts"].as_u64().unwrap() >= 2, "{kill}");

    let compactions = report["compactions"].as_array().unwrap();
    assert!(!compactions.is_empty());
    for compaction in compactions {
        let tokens = |key: &str| compaction[key].as_i64().unwrap();
        assert!(tokens("tokens_after") < tokens("tokens_before"), "{compaction}");
        assert_eq!(compaction["identifiers_kept"], compaction["identifiers"]);
    }

    let expiry = &report["expiry"];
    assert_eq!(
        (&expiry["closed_because"], &expiry["notice_sent"]),
        (&"expired".into(), &true.into())
    );
    // The first writer's parts.
    assert_eq!(parts[0]["session_id"], expiry["closed_session_id"]);
    assert_eq!(parts[9]["session_id"], expiry["successor_id"]);

    assert_eq!(processes_of(folder.path()), Vec::<u32>::new());
    assert_eq!(leftover_files(folder.path()), Vec::<String>::new());
}

/// Checks the calls on the board: from the operator to the planner, from there to the writers and the reviewer, and
/// back.
fn the_board_tells_who_called_whom(report: &Value) {
    let board = report["board"].as_array().unwrap();
    let senders: Vec<&str> = board.iter().map(|post| post["sender"].as_str().unwrap()).collect();
    let count = |name: &str| senders.iter().filter(|sender| **sender == name).count();
    assert_eq!(["operator", "planner", "reviewer", "system"].map(count), [5, 5, 1, 0]);
    assert_eq!(["writer_a", "writer_b", "writer_c"].map(count), [4, 4, 4]);
    for (at, post) in board.iter().enumerate() {
        assert_eq!(post["seq"], at + 1);
        let asked = post["answers"].as_u64().map(|seq| usize::try_from(seq).unwrap());
        let asked = asked.map(|seq| senders[seq - 1]);
        let expected = match senders[at] {
            "operator" => None,
            "planner" => Some("operator"),
            _ => Some("planner"),
        };
        assert_eq!(asked, expected, "{post}");
    }
    let agents = report["agents"].as_array().unwrap();
    let tasks: Vec<u64> = agents.iter().map(|agent| agent["tasks"].as_u64().unwrap()).collect();
    assert_eq!(tasks, [5, 4, 4, 4, 1]);
}

#[tokio::test]
async fn the_demo_on_all_providers_moves_between_them_and_keeps_every_fact() {
    let Some(cli) = Cli::real() else { return };
    let folder = scratch_folder();
    let mut command = demo(folder.path(), &["--providers", "--json"]);
    command.env("DALSEGNO_CLAUDE__PROGRAM", cli.program());
    let played = timeout(MAX_RUN, command.output()).await.unwrap().unwrap();
    let stderr = String::from_utf8(played.stderr).unwrap();
    let report: Value =
        serde_json::from_slice(&played.stdout).unwrap_or_else(|_| panic!("{stderr}"));
    let checks = report["checks"].as_array().unwrap();
    let broken: Vec<&Value> = checks.iter().filter(|check| check["holds"] != true).collect();
    assert!(checks.len() >= 7 && broken.is_empty(), "{broken:?}\n{report:#}\n{stderr}");
    assert_eq!((played.status.code(), &report["ok"]), (Some(0), &true.into()), "{stderr}");
    assert_eq!(report["left_out"], Value::Null);
    let models = report["models"].as_array().unwrap();
    let providers: Vec<&str> = models.iter().map(|it| it["provider"].as_str().unwrap()).collect();
    assert_eq!(providers, ["claude", "ollama", "local", "anthropic", "sim"]);
    for model in &models[..4] {
        // Six answers, and a failure in each round after the first one but its own last one.
        assert_eq!((&model["answered"], &model["failed"]), (&6.into(), &4.into()), "{model}");
    }
    let answers = report["answers"].as_array().unwrap();
    assert_eq!(answers.len(), 30);
    let last: Vec<&Value> = answers.iter().filter(|answer| answer["round"] == 6).collect();
    for answer in last {
        assert_eq!((&answer["facts_known"], &answer["answered_by"]), (&5.into(), &answer["due"]));
    }
    assert_eq!(processes_of(folder.path()), Vec::<u32>::new());
    assert_eq!(leftover_files(folder.path()), Vec::<String>::new());
}

#[tokio::test]
async fn the_demo_on_all_providers_without_the_cli_says_how_to_add_it_in_80_columns() {
    let folder = scratch_folder();
    let mut command = demo(folder.path(), &["--providers"]);
    command.env("DALSEGNO_CLAUDE__PROGRAM", "/no/such/claude");
    let played = timeout(MAX_RUN, command.output()).await.unwrap().unwrap();
    let (stdout, stderr) =
        (String::from_utf8(played.stdout).unwrap(), String::from_utf8(played.stderr).unwrap());
    assert_eq!(played.status.code(), Some(0), "{stdout}{stderr}");
    for words in [
        "The Claude Code CLI took no part: /no/such/claude does not exist",
        "npm install -g @anthropic-ai/claude-code",
        "✓ each answer has every fact that its agent was told (56 of 56)",
        "✓ each failure moved one turn, and used one attempt (12 failures)",
        "All checks passed",
    ] {
        let flat = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(words), "{words}: {stdout}");
    }
    for line in stdout.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert_eq!(leftover_files(folder.path()), Vec::<String>::new());
}

#[tokio::test]
async fn ctrl_c_during_the_demo_leaves_nothing_behind() {
    let folder = scratch_folder();
    let mut demo = demo(folder.path(), &[]);
    let mut demo = demo.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    until_shown(&mut demo, "part 1 is done").await;
    assert_eq!(servers_below(folder.path()).len(), 1);
    // The server and three workers.
    assert!(processes_of(folder.path()).len() >= 4, "{:?}", processes_of(folder.path()));
    send(demo.id().unwrap(), Signal::INT);
    let ended = timeout(SOON, demo.wait()).await.unwrap().unwrap();
    assert_eq!(ended.code(), Some(130));
    assert_eq!(processes_of(folder.path()), Vec::<u32>::new());
    assert_eq!(leftover_files(folder.path()), Vec::<String>::new());
}

#[tokio::test]
async fn an_open_demo_shows_its_campaign_and_keeps_its_database() {
    let folder = scratch_folder();
    for n_campaigns in 1..=2 {
        let mut open = demo(folder.path(), &["--open"]);
        let mut open = open.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let line = until_shown(&mut open, "http://").await;
        let (_, page) = line.split_once("http://").unwrap();
        let (address, path) = page.split_once('/').unwrap();
        let address = address.parse().unwrap();
        let shown = get(address, &format!("/{path}")).await.unwrap();
        assert!(shown.status == 200 && shown.body.contains("The lighthouse series"), "{shown:?}");
        let campaigns = get(address, "/v1/campaigns").await.unwrap();
        let campaigns: Value = serde_json::from_str(&campaigns.body).unwrap();
        assert_eq!(campaigns["items"].as_array().unwrap().len(), n_campaigns);
        let refused = demo(folder.path(), &["--open"]).output().await.unwrap();
        let reason = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(5), "{reason}");
        assert!(reason.contains("another demo uses"), "{reason}");
        send(open.id().unwrap(), Signal::INT);
        let ended = timeout(SOON, open.wait()).await.unwrap().unwrap();
        assert_eq!(ended.code(), Some(130));
        assert_eq!(processes_of(folder.path()), Vec::<u32>::new());
        assert!(folder.path().join(".dalsegno/demo/demo.lock").exists());
    }
}

#[tokio::test]
async fn a_kept_demo_is_looked_at_with_the_command_that_it_prints() {
    let folder = scratch_folder();
    let played =
        timeout(MAX_RUN, demo(folder.path(), &["--keep"]).output()).await.unwrap().unwrap();
    let (stdout, stderr) =
        (String::from_utf8(played.stdout).unwrap(), String::from_utf8(played.stderr).unwrap());
    assert_eq!(played.status.code(), Some(0), "{stdout}{stderr}");
    assert_eq!(processes_of(folder.path()), Vec::<u32>::new());
    let kept = folder.path().join(".dalsegno/demo");
    let serve = stdout.lines().find_map(|line| line.trim().strip_prefix("open  ")).unwrap();
    let file = kept.canonicalize().unwrap().join("dalsegno.toml");
    // The variable of this user would replace the setting of the file.
    let expected = format!("dalsegno --config {} --set database.url= serve", file.display());
    assert_eq!(serve, expected);
    assert!(kept.join("agents/planner.md").exists());
    let text = std::fs::read_to_string(file).unwrap();
    assert!(
        text.contains(".dalsegno/demo/agents\"") && text.contains("provider = \"sim\""),
        "{text}"
    );
    let command = stdout.lines().find_map(|line| line.trim().strip_prefix("look  dalsegno "));
    let mut look = dalsegno(folder.path());
    look.args(command.unwrap().split(' '));
    // The settings of the user, which the demo did not use, name another database.
    look.env("DATABASE_URL", "postgres://tester@127.0.0.1:1/users_own");
    let looked = timeout(SOON, look.output()).await.unwrap().unwrap();
    let (tasks, error) =
        (String::from_utf8(looked.stdout).unwrap(), String::from_utf8(looked.stderr).unwrap());
    assert!(tasks.contains("writer_a") && tasks.contains("done"), "{tasks}{error}");
}

#[tokio::test]
async fn workers_do_not_outlive_a_killed_demo_and_the_next_one_cleans_up() {
    let folder = scratch_folder();
    let mut killed = demo(folder.path(), &[]);
    let mut killed = killed.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    until_shown(&mut killed, "rules for parts 1 to 3 is done").await;
    send(killed.id().unwrap(), Signal::KILL);
    killed.wait().await.unwrap();
    let servers = servers_below(folder.path());
    eventually("the workers are gone", async || {
        processes_of(folder.path()).iter().all(|pid| servers.contains(pid)).then_some(())
    })
    .await;
    // The server is left over: the next demo stops it, and ignores folders that are not a killed demo's.
    assert_eq!(servers.len(), 1);
    let foreign = folder.path().join("dalsegno-demo-notes");
    std::fs::create_dir(&foreign).unwrap();
    let mut living = demo(folder.path(), &[]);
    let mut living = living.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    until_shown(&mut living, "removed the files of killed demos: 1").await;
    assert_eq!(leftover_files(folder.path()).len(), 2, "only its own folder is removed");
    assert!(foreign.exists() && !servers_below(folder.path()).contains(&servers[0]));
    // A running demo is not a leftover.
    let mut next = demo(folder.path(), &[]);
    let mut next = next.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    until_shown(&mut next, "worker processes").await;
    assert_eq!((leftover_files(folder.path()).len(), servers_below(folder.path()).len()), (3, 2));
    for mut ended in [next, living] {
        send(ended.id().unwrap(), Signal::INT);
        assert_eq!(timeout(SOON, ended.wait()).await.unwrap().unwrap().code(), Some(130));
    }
    assert_eq!(processes_of(folder.path()), Vec::<u32>::new());
    assert_eq!(leftover_files(folder.path()), ["dalsegno-demo-notes"]);
}
