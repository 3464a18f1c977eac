//! Output of commands on a terminal: widths, colours, relative times, `--watch` and completions. Formats for programs.

use std::{io::Read as _, process::Stdio, sync::mpsc};

use rustix::{
    process::Signal,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout},
};

use super::{CommandOutput, Fixture, ended, text};
use crate::{
    app::{SOON, eventually},
    embedded::support::send,
    service::dalsegno,
};

/// Longer than a row of a terminal, and with characters of two columns.
const PROMPT: &str = "春のコレクションについて、港と灯台の話を三部に分けて書いてください。一部は冬の港、二部は灯台守、三部は帰ってくる船について、静かな調子で書くこと。";

impl Fixture {
    /// Returns the output of a command on a terminal of this width.
    async fn on_a_terminal(&self, columns: u16, arguments: &[&str]) -> String {
        let (mut child, output) = self.spawn_on_a_terminal(columns, arguments, &[]);
        tokio::time::timeout(SOON, child.wait()).await.unwrap().unwrap();
        output.iter().collect()
    }

    /// Starts a command on a terminal. The receiver gets the output piece by piece, and ends with the command.
    fn spawn_on_a_terminal(
        &self,
        columns: u16,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> (Child, mpsc::Receiver<String>) {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let size = Winsize { ws_row: 30, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        let inside = std::fs::File::options().read(true).write(true).open(name).unwrap();
        let mut command = dalsegno(self.path());
        command
            .args(arguments)
            .env("DATABASE_URL", self.world.url())
            .envs(environment.iter().copied());
        command.stdin(Stdio::null()).stdout(inside.try_clone().unwrap()).stderr(inside);
        let child = command.kill_on_drop(true).spawn().unwrap();
        drop(command);
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut terminal = std::fs::File::from(terminal);
            let mut bytes = [0; 65_536];
            // Ends with an error when the command has closed the terminal.
            while let Ok(n @ 1..) = terminal.read(&mut bytes) {
                let _ = sender.send(String::from_utf8_lossy(&bytes[..n]).into_owned());
            }
        });
        (child, receiver)
    }

    async fn completions(&self, words: &[&str]) -> CommandOutput {
        let mut command = dalsegno(self.path());
        command.args(["--", "dalsegno"]).args(words).env("DALSEGNO_COMPLETE", "fish");
        command.env("DATABASE_URL", self.world.url());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        ended(command.spawn().unwrap()).await
    }
}

/// Width of a line, in which the characters of the prompt have two columns.
fn width(line: &str) -> usize {
    line.chars().map(|c| if c.is_ascii() || "…█░".contains(c) { 1 } else { 2 }).sum()
}

#[tokio::test]
async fn a_table_fits_its_terminal_and_is_whole_elsewhere() {
    let fixture = Fixture::new().await;
    let task = fixture.add(PROMPT, &[]).await;
    let id = text(&task["id"]);
    for columns in [80, 100] {
        let shown = fixture.on_a_terminal(columns, &["task", "ls", "--color", "never"]).await;
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines.iter().all(|line| width(line) <= columns.into()), "{shown}");
        assert!(lines[0].starts_with("ID            STATE   AGENT"), "{shown}");
        assert!(lines[0].contains("CREATED") && !shown.contains("(UTC)"), "{shown}");
        assert!(lines[1].contains(" ago ") || lines[1].contains(" now "), "{shown}");
        assert!(lines[1].starts_with(&id[24..]) && lines[1].ends_with('…'), "{shown}");
    }
    let wide = fixture.on_a_terminal(80, &["task", "ls", "--wide"]).await;
    assert!(wide.contains(id) && wide.contains(PROMPT) && wide.contains("(UTC)"), "{wide}");
    let piped = fixture.run(&["task", "ls"]).await.stdout;
    assert!(piped.contains(PROMPT) && piped.contains("CREATED (UTC)"), "{piped}");
    assert!(piped.contains(&id[24..]) && !piped.contains(id), "{piped}");
    let wide = fixture.run(&["task", "ls", "--wide"]).await.stdout;
    assert!(wide.contains(id), "{wide}");
}

#[tokio::test]
async fn lists_of_several_campaigns_name_them_and_fit_eighty_columns() {
    let fixture = Fixture::new().await;
    let long = "A series about the harbour in winter, in twelve parts";
    fixture.json(&["campaign", "create", long, "--brief", "Short."]).await;
    let _service = fixture.serve().await;
    for campaign in ["Harbour", long] {
        let tags = ["--tag", "urgent", "--tag", "winter", "--wait", PROMPT];
        let add = ["task", "add", "--campaign", campaign, "--agent", "copywriter"];
        let added = fixture.run(&[&add[..], &tags].concat()).await;
        assert_eq!(added.code, 0, "{added:?}");
    }
    for list in [["task", "ls"], ["session", "ls"]] {
        let shown = fixture.on_a_terminal(80, &[&list[..], &["--color", "never"]].concat()).await;
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines.len() == 3 && lines.iter().all(|line| width(line) <= 80), "{shown}");
        assert!(lines[0].contains(" CAMPAIGN ") && shown.contains(" Harbour "), "{shown}");
        assert!(shown.contains(" A series about"), "{shown}");
        let wide = fixture.on_a_terminal(80, &[&list[..], &["--wide"]].concat()).await;
        assert!(wide.contains(long), "{wide}");
        let one =
            fixture.on_a_terminal(80, &[&list[..], &["--campaign", "Harbour"]].concat()).await;
        assert!(!one.contains("CAMPAIGN") && one.lines().count() == 2, "{one}");
    }
    let tasks = fixture.on_a_terminal(80, &["task", "ls", "--color", "never"]).await;
    let head = tasks.lines().next().unwrap();
    assert!(head.ends_with("PROMPT") && !head.contains("TAGS"), "{tasks}");
    assert!(head.contains(" CREATED ") && tasks.contains(" ago "), "{tasks}");
    let models = fixture.on_a_terminal(80, &["session", "ls", "--color", "never"]).await;
    let head = models.lines().next().unwrap();
    assert!(head.contains("MODEL") && !head.contains("PROVIDER"), "{models}");
    let preview = ["task", "cancel", "--agent", "copywriter", "--state", "done", "--dry-run"];
    let preview = fixture.run(&preview).await;
    assert!(preview.code == 0, "{preview:?}");
}

#[tokio::test]
async fn a_delivery_on_eighty_columns_has_its_event_its_subject_its_state_and_its_error() {
    let fixture = Fixture::new().await;
    let task = fixture.add("Part one.", &[]).await;
    let url = "https://example.com/a/hook/with/a/long/path/to/the/receiver";
    let webhook = fixture.json(&["webhook", "add", url]).await;
    let id = text(&webhook["id"]);
    fixture.json(&["webhook", "test", id]).await;
    let rows = "insert into dalsegno.webhook_deliveries (id, webhook_id, task_id, created_at, ended_at, attempts, kind, state, last_error, body)
                select gen_random_uuid(), $1::uuid, task_id::uuid, now(), now(), 5, kind, 'failed', 'the receiver refuses the message with a long explanation', body
                  from (values ($2, 'task.cancelled', '{}'), (null, 'budget.warning', $3)) as d (task_id, kind, body)";
    let warning = json!({ "data": { "campaign_id": fixture.campaign() } }).to_string();
    let rows = sqlx::query(rows).bind(id).bind(text(&task["id"])).bind(&warning);
    rows.execute(&fixture.world.pool).await.unwrap();
    let list = ["webhook", "deliveries", "--color", "never"];
    let shown = fixture.on_a_terminal(80, &list).await;
    assert!(shown.lines().all(|line| width(line) <= 80), "{shown}");
    assert!(shown.starts_with(&format!("receiver  {}", &url[8..])), "all lines have it: {shown}");
    let head: Vec<&str> = shown.lines().nth(2).unwrap().split_whitespace().collect();
    assert_eq!(head, ["ID", "KIND", "ABOUT", "STATE", "LAST", "ERROR"], "{shown}");
    let has =
        |words: [&str; 4]| shown.lines().any(|line| words.iter().all(|word| line.contains(word)));
    let error = " the receiver";
    assert!(has(["task.cancelled", &text(&task["id"])[24..], "failed", error]), "{shown}");
    assert!(has(["budget.warning", "campaign Harbour", "failed", error]), "{shown}");
    assert!(has(["webhook.test", " - ", "waiting", " -"]), "{shown}");
    let replay = format!("dalsegno webhook replay --webhook {} --since 20", &id[24..]);
    assert!(shown.contains(&replay), "{shown}");
    let one_webhook = fixture.run(&["webhook", "show", id]).await.stdout;
    assert!(one_webhook.contains("last error") && one_webhook.contains(&replay), "{one_webhook}");
    let fits = |line: &str| width(line) <= 80 || line.starts_with("url ");
    assert!(one_webhook.lines().all(fits), "{one_webhook}");
    assert!(!shown.contains("webhook enable"), "it is enabled: {shown}");
    fixture.json(&["webhook", "disable", id]).await;
    let enable = format!("\n  dalsegno webhook enable {}\n  {replay}", &id[24..]);
    for command in [&list[..], &["webhook", "show", id]] {
        let output = fixture.run(command).await;
        assert!(output.has(&enable), "{output:?}");
    }
    fixture.json(&["webhook", "enable", id]).await;
    fixture.json(&["webhook", "add", "https://example.org/other"]).await;
    let other = "update dalsegno.webhook_deliveries set webhook_id = (select id from dalsegno.webhooks where url like '%.org%')
                  where kind = 'webhook.test'";
    sqlx::query(other).execute(&fixture.world.pool).await.unwrap();
    let two = fixture.on_a_terminal(80, &list).await;
    let head = two.lines().next().unwrap();
    assert!(head.starts_with("ID ") && head.contains(" RECEIVER "), "{two}");
    assert!(two.lines().all(|line| width(line) <= 80) && head.contains("LAST ERROR"), "{two}");
    let filtered = fixture.run(&[&list[..], &["--webhook", id]].concat()).await.stdout;
    assert!(!filtered.contains("RECEIVER") && filtered.contains("receiver"), "{filtered}");
    let wide = fixture.on_a_terminal(80, &[&list[..], &["--wide"]].concat()).await;
    let whole = ["ATTEMPTS", "a long explanation", text(&task["id"]), &url[8..]];
    assert!(whole.iter().all(|word| wide.contains(word)), "{wide}");
    let one = fixture.json(&["webhook", "deliveries", "--failed"]).await;
    let campaigns = one.as_array().unwrap().iter().map(|it| &it["campaign_id"]);
    assert_eq!(campaigns.filter(|id| **id == fixture.campaign()).count(), 1, "{one}");
}

#[tokio::test]
async fn the_list_of_agents_marks_the_paused_ones_and_needs_no_database() {
    let fixture = Fixture::new().await;
    let list = ["agent", "ls", "--color", "never"];
    let shown = fixture.on_a_terminal(80, &list).await;
    assert!(!shown.contains("STATE"), "no agent is paused: {shown}");
    let reason = "the client calls back";
    fixture.json(&["agent", "pause", "planner", "--everywhere", "--reason", reason]).await;
    fixture.json(&["agent", "pause", "copywriter", "--campaign", "Harbour"]).await;
    let line = |shown: &str, agent: &str| {
        shown.lines().find(|line| line.starts_with(agent)).unwrap().to_owned()
    };
    let shown = fixture.on_a_terminal(80, &list).await;
    assert!(shown.lines().all(|line| width(line) <= 80) && shown.contains(" STATE "), "{shown}");
    assert!(line(&shown, "planner").contains("  paused since "), "{shown}");
    assert!(line(&shown, "copywriter").contains("  paused in 1 campaign"), "{shown}");
    assert!(line(&shown, "reviewer").contains("  -  "), "{shown}");
    let whole = fixture.run(&list).await.stdout;
    assert!(line(&whole, "planner").contains(&format!(": {reason}  ")), "{whole}");

    let without = dalsegno(fixture.path()).args(list).output().await.unwrap();
    assert!(without.status.success() && without.stderr.is_empty(), "{without:?}");
    let mut unreachable = dalsegno(fixture.path());
    unreachable.args(list).env("DATABASE_URL", "postgres://tester@127.0.0.1:1/none");
    unreachable.env("DALSEGNO_DATABASE__CONNECT_TIMEOUT_SECS", "1");
    let output = unreachable.output().await.unwrap();
    let note = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && note.contains("cannot read the pauses of agents"),
        "{output:?}"
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("planner"), "{output:?}");
}

#[tokio::test]
async fn the_overview_fits_eighty_columns_and_its_reasons_and_commands_stay_whole() {
    let fixture = Fixture::new().await;
    let task = fixture.add(PROMPT, &[]).await;
    let id = text(&task["id"]);
    let fail = "update dalsegno.tasks set state = 'failed', ended_at = now(), error = $2 where id = $1::uuid";
    let error =
        "the provider refuses the call for a reason that needs more than one row of a terminal";
    sqlx::query(fail).bind(id).bind(error).execute(&fixture.world.pool).await.unwrap();
    let campaign = fixture.campaign();
    let paused = fixture.run(&["campaign", "pause", &campaign, "--reason", error]).await;
    assert_eq!(paused.code, 0, "{paused:?}");
    let shown = fixture.on_a_terminal(80, &["overview", "--color", "never"]).await;
    assert!(shown.lines().all(|line| width(line) <= 80), "{shown}");
    // Times are relative on a terminal, and in UTC in a file.
    assert!(shown.lines().any(|line| line == "NEEDS ATTENTION, SINCE"), "{shown}");
    let file = fixture.run(&["overview"]).await.stdout;
    assert!(file.lines().any(|line| line == "NEEDS ATTENTION, SINCE (UTC)"), "{file}");
    for command in [format!("task retry {id}"), format!("campaign resume {campaign}")] {
        let line = format!("  dalsegno {command}");
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
    let reasons =
        |shown: &str| shown.split_whitespace().collect::<Vec<_>>().join(" ").matches(error).count();
    assert_eq!(reasons(&shown), 2, "{shown}");
    let wide = fixture.on_a_terminal(80, &["overview", "--wide"]).await;
    assert!(reasons(&wide) == 2 && !wide.contains('…'), "{wide}");
}

#[tokio::test]
async fn a_hit_of_a_search_shows_its_match_on_eighty_columns() {
    let fixture = Fixture::new().await;
    let calm = "Write a calm text about the harbour in winter. ";
    let late = format!("{}Mention the lighthouse.", calm.repeat(5));
    let amid = format!("{}Mention the lighthouse. {}", calm.repeat(7), calm.repeat(7));
    fixture.add(&late, &[]).await;
    fixture.add(&amid, &[]).await;
    let search = ["search", "lighthouse", "--color", "never"];
    for columns in [80, 100] {
        let shown = fixture.on_a_terminal(columns, &search).await;
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines.len() == 3 && lines[0].ends_with("TEXT"), "{shown}");
        assert!(lines[1..].iter().all(|line| line.contains("lighthouse")), "{shown}");
        assert!(lines.iter().all(|line| width(line) <= columns.into()), "{shown}");
    }
    let wide = fixture.on_a_terminal(80, &[&search[..], &["--wide"]].concat()).await;
    // A hit has at most 200 characters before its match.
    assert!(wide.contains(&format!("…{}Mention the lighthouse.", calm.repeat(4))), "{wide}");
}

#[tokio::test]
async fn states_and_errors_have_colours_on_a_terminal_that_wants_them() {
    let fixture = Fixture::new().await;
    fixture.add("Part one.", &[]).await;
    let queued = "\u{1b}[33mqueued\u{1b}[0m";
    let list = ["task", "ls"];
    assert!(fixture.on_a_terminal(80, &list).await.contains(queued));
    let plain = [(&list[..], &[("NO_COLOR", "1")][..]), (&list[..], &[("TERM", "dumb")][..])];
    for (arguments, environment) in plain {
        let (mut child, output) = fixture.spawn_on_a_terminal(80, arguments, environment);
        tokio::time::timeout(SOON, child.wait()).await.unwrap().unwrap();
        let output: String = output.iter().collect();
        assert!(output.contains("queued") && !output.contains('\u{1b}'), "{output:?}");
    }
    assert!(!fixture.run(&list).await.stdout.contains('\u{1b}'));
    let always = fixture.run(&["task", "ls", "--color", "always"]).await;
    assert!(always.stdout.contains(queued), "{always:?}");
    let failed = fixture.on_a_terminal(80, &["task", "show", "00000000"]).await;
    assert!(failed.contains("\u{1b}[31merror:\u{1b}[0m there is no task"), "{failed:?}");
}

#[tokio::test]
async fn every_format_has_the_same_data() {
    let fixture = Fixture::new().await;
    fixture.add("Part one.", &["--tag", "late"]).await;
    fixture.add("Part two:\n\"ends\", here", &[]).await;
    let as_json = fixture.json(&["task", "ls"]).await;
    assert_eq!(fixture.run(&["task", "ls", "-o", "json"]).await.json(), as_json);

    let lines = fixture.run(&["task", "ls", "-o", "jsonl"]).await.stdout;
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(json!(lines), as_json);

    let id = text(&as_json[0]["id"]);
    let yaml = fixture.run(&["task", "ls", "--output", "yaml"]).await.stdout;
    assert!(yaml.starts_with("- id: ") && yaml.contains(id), "{yaml}");
    assert!(yaml.contains("prompt: |-\n    Part two:\n    \"ends\", here\n"), "{yaml}");
    assert!(yaml.contains("tags:\n    - late\n"), "{yaml}");

    let csv = fixture.run(&["task", "ls", "-o", "csv"]).await.stdout;
    assert!(csv.starts_with("id,"), "{csv}");
    assert!(
        csv.contains("\"Part two:\n\"\"ends\"\", here\"") && csv.contains(",Part one.,"),
        "{csv}"
    );
    assert_eq!(fixture.run(&["flow", "ls", "-o", "csv"]).await.stdout, "");

    let one = fixture.run(&["task", "show", id, "-o", "yaml"]).await.stdout;
    assert!(one.starts_with("id: ") && one.contains(id), "{one}");
    let refused = fixture.run(&["task", "show", "00000000", "-o", "jsonl"]).await;
    let error: Value = serde_json::from_str(&refused.stderr).unwrap();
    assert_eq!((refused.code, &error["code"]), (3, &json!("not_found")));
    let wrong = fixture.run(&["task", "show", "-o", "json"]).await;
    assert!(wrong.code == 2 && wrong.stderr.starts_with('{'), "{wrong:?}");

    assert_eq!(fixture.run(&["task", "cancel", id, "--reason", "late"]).await.code, 0);
    let events = ["feed", "--after", "0", "--limit", "3", "-o", "csv"];
    let events = fixture.run(&events).await.stdout;
    let lines: Vec<&str> = events.lines().collect();
    let columns = "id,created_at,campaign_id,task_id,session_id,agent,instance,kind,data";
    assert_eq!((lines[0], lines.len()), (columns, 4), "{events}");
    assert!(lines[3].ends_with(r#","{""reason"":""late""}""#), "{events}");
    // Fields beside the items are on stderr, so that each line of stdout is an item.
    let folder = fixture.path().join("config/agents");
    std::fs::create_dir_all(&folder).unwrap();
    let narrow =
        "---\nname: copywriter\ndescription: Writes.\nwindow_tokens: 1024\n---\nYou write.\n";
    std::fs::write(folder.join("copywriter.md"), narrow).unwrap();
    let files = fixture.run(&["agent", "files", "-o", "jsonl"]).await;
    let items = files.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let items: Vec<Value> = items.collect();
    assert!(!items.is_empty() && items.iter().all(|item| item["path"].is_string()), "{files:?}");
    let beside = files.stderr.lines().find(|line| line.starts_with("{\"")).unwrap();
    let beside: Value = serde_json::from_str(beside).unwrap();
    assert_eq!(beside["warnings"][0]["key"], "window_tokens", "{files:?}");
    assert!(beside.get("items").is_none() && beside.get("problems").is_none(), "{beside}");
}

async fn next(lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    tokio::time::timeout(SOON, lines.next_line()).await.unwrap().unwrap().unwrap()
}

#[tokio::test]
async fn a_watched_list_is_printed_again_when_it_changes() {
    let fixture = Fixture::new().await;
    let mut watched = fixture.spawn(&["task", "ls", "--watch=1"]);
    let mut lines = BufReader::new(watched.stdout.take().unwrap()).lines();
    assert!(next(&mut lines).await.starts_with("ID"));
    fixture.add("Part one.", &[]).await;
    assert!(next(&mut lines).await.starts_with("ID"), "unchanged lists are not repeated");
    assert!(next(&mut lines).await.ends_with("Part one."));
    send(watched.id().unwrap(), Signal::INT);
    let status = tokio::time::timeout(SOON, watched.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn a_watched_command_leaves_the_terminal_as_it_was() {
    let fixture = Fixture::new().await;
    let task = fixture.add("Part one.", &[]).await;
    let show = ["task", "show", text(&task["id"]), "--watch"];
    let (mut child, output) = fixture.spawn_on_a_terminal(80, &show, &[]);
    let mut shown = String::new();
    eventually("the task is shown", async || {
        shown.extend(output.try_iter());
        shown.contains("Part one.").then_some(())
    })
    .await;
    assert!(shown.contains("\u{1b}[?1049h") && shown.contains("Every 2 s"), "{shown:?}");
    send(child.id().unwrap(), Signal::INT);
    let status = tokio::time::timeout(SOON, child.wait()).await.unwrap().unwrap();
    shown.extend(output.iter());
    assert!(status.success() && shown.ends_with("\u{1b}[?25h\u{1b}[?1049l"), "{shown:?}");
    // A change cannot be watched.
    assert_eq!(fixture.run(&["task", "cancel", "x", "--watch"]).await.code, 2);
    for command in ["agent status", "queue waits", "worker activity", "search", "campaign versions"]
    {
        let words: Vec<&str> = command.split(' ').chain(["-h"]).collect();
        let help = fixture.run(&words).await.stdout;
        assert!(help.contains("--watch"), "{command}: {help}");
    }
    let missing = fixture.run(&["task", "show", "00000000", "--watch"]).await;
    assert_eq!(missing.code, 3, "{missing:?}");
}

#[tokio::test]
async fn completions_know_campaigns_agents_and_tasks() {
    let fixture = Fixture::new().await;
    let task = fixture.add("Part one.", &[]).await;
    let named = fixture.completions(&["campaign", "show", ""]).await;
    assert!(named.stdout.contains("Harbour\tactive"), "{named:?}");
    assert!(named.stderr.is_empty(), "{named:?}");
    let option = fixture.completions(&["task", "ls", "--campaign", "Har"]).await;
    assert!(option.stdout.contains("Harbour"), "{option:?}");
    let tasks = fixture.completions(&["task", "show", ""]).await;
    let expected = format!("{}\tqueued: Part one.", &text(&task["id"])[24..]);
    assert!(tasks.stdout.contains(&expected), "{tasks:?}");
    let before = fixture.completions(&["task", "add", "--after", ""]).await;
    assert!(before.stdout.contains(&expected), "{before:?}");
    let of_post = fixture.add("Due today.\n@copywriter Part two.", &[]).await;
    let tasks = fixture.completions(&["task", "show", ""]).await;
    let expected = format!("{}\tqueued: @copywriter Part two.", &text(&of_post["id"])[24..]);
    assert!(tasks.stdout.contains(&expected), "{tasks:?}");
    let agents = fixture.completions(&["task", "add", "--agent", "copy"]).await;
    assert!(agents.stdout.contains("copywriter\t"), "{agents:?}");
    let script = fixture.run(&["completions", "bash"]).await.stdout;
    assert!(
        script.contains("DALSEGNO_COMPLETE=\"bash\"") && script.contains("complete"),
        "{script}"
    );
}

#[tokio::test]
async fn a_bulk_action_is_waited_for_with_a_bar() {
    let fixture = Fixture::new().await;
    fixture.add("Part one.", &["--tag", "late"]).await;
    let cancel = ["task", "cancel", "--tag", "late", "--wait"];
    let alone = fixture.run(&[&cancel[..], &["0s"]].concat()).await;
    assert!(alone.code == 6 && alone.stdout.contains("queued"), "{alone:?}");
    let bulk = fixture.json(&["bulk", "ls"]).await;
    let show = ["bulk", "show", text(&bulk[0]["id"]), "--wait", "1m"];
    let (mut child, output) = fixture.spawn_on_a_terminal(100, &show, &[]);
    let mut shown = String::new();
    eventually("the bar is shown", async || {
        shown.extend(output.try_iter());
        shown.contains("tasks  ░░░░░░░░░░░░░░░░░░░░░░░░  0 %  0 of 1").then_some(())
    })
    .await;
    let _service = fixture.serve().await;
    let status = tokio::time::timeout(SOON, child.wait()).await.unwrap().unwrap();
    shown.extend(output.iter());
    // The worker may have begun the task before.
    assert!(status.success() && shown.contains("bulk action"), "{shown:?}");
}
