//! The commands of pages, run in their order by a shell in an empty folder, as a reader would.
//!
//! Blocks of the language `console` are run. A line without `$ ` starts the service. The lines below a command are its output: for each of
//! them the command has to print a line with the same words of four letters and more, so times, amounts and columns may differ. Ids that a page
//! shows stand for the ids that were printed. Blocks of `toml` that begin with `# NAME.toml` are written to that file. Blocks of
//! `console needs-…` are not run: they need what a test has not, such as a model.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use super::{read, root};
use crate::{
    app::eventually,
    cluster::scratch_folder,
    service::{Service, command},
};

/// Longest time of a command.
const PATIENCE: Duration = Duration::from_secs(60);

enum Step {
    Service,
    File { name: String, text: String },
    Command { text: String, shown: Vec<String> },
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match (language, block.first().and_then(|line| line.strip_prefix("# "))) {
            ("console", _) => steps.extend(console(&block)),
            ("toml", Some(name)) if Path::new(name).extension().is_some_and(|it| it == "toml") => {
                steps.push(Step::File { name: name.to_owned(), text: block.join("\n") });
            }
            _ => {}
        }
    }
    steps
}

fn console(block: &[&str]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in block {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(text), _) => {
                steps.push(Step::Command { text: text.to_owned(), shown: Vec::new() });
            }
            (None, Some(Step::Command { shown, .. })) => shown.push((*line).to_owned()),
            (None, _) => {
                assert_eq!(*line, "dalsegno serve", "the only command without `$ `");
                steps.push(Step::Service);
            }
        }
    }
    steps
}

/// The ids of a text in their order, each once: UUIDs, and runs of hexadecimal digits as long as a part of one.
fn ids(text: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_ascii_hexdigit() || c == '-';
    let mut found = Vec::new();
    for word in text.split(|c: char| !(is_part(c) || c.is_ascii_alphanumeric())) {
        let is_id = [12, 36].contains(&word.len())
            && word.chars().all(is_part)
            && word.contains(|c: char| c.is_ascii_digit());
        if is_id && !found.contains(&word) {
            found.push(word);
        }
    }
    found
}

/// The words that have to be printed: times and amounts are none.
fn words(line: &str) -> Vec<&str> {
    let is_id = |word: &&str| !ids(word).is_empty();
    let parts = line.split(|c: char| c.is_whitespace() || "|:,()`\"".contains(c));
    parts
        .filter(|word| !is_id(word))
        .flat_map(|word| word.split(|c: char| !c.is_alphabetic()))
        .filter(|word| word.chars().count() >= 4)
        .collect()
}

/// The first shown line that no printed line contains.
fn missing<'a>(shown: &'a [String], printed: &str) -> Option<&'a str> {
    let is_printed =
        |line: &str| printed.lines().any(|other| words(line).iter().all(|it| other.contains(it)));
    shown.iter().map(String::as_str).find(|line| !is_printed(line))
}

/// A reader in an empty folder.
struct Reader {
    folder: tempfile::TempDir,
    service: Option<Service>,
    exports: Vec<String>,
    /// Ids that the page shows, with those that were printed here.
    ids: BTreeMap<String, String>,
    n_commands: usize,
}

impl Reader {
    async fn start_service(&mut self) {
        self.service = Some(Service::start(self.folder.path(), &[]).await);
    }

    async fn read(&mut self, page: &str) {
        let steps = steps(page);
        if !steps.iter().any(|step| matches!(step, Step::Service)) {
            self.start_service().await;
        }
        for step in steps {
            match step {
                Step::Service => self.start_service().await,
                Step::File { name, text } => {
                    std::fs::write(self.folder.path().join(name), text).unwrap();
                }
                Step::Command { text, .. } if text.starts_with("export ") => {
                    self.exports.push(text);
                }
                Step::Command { text, shown } => self.run(&text, &shown).await,
            }
        }
    }

    /// Runs a command until its output is as shown, or once if it changes something.
    async fn run(&mut self, text: &str, shown: &[String]) {
        let mut text = text.to_owned();
        for (theirs, ours) in &self.ids {
            text = text.replace(theirs, ours);
        }
        let only_reads = ["ls", "show", "explain", "cost", "transcript"];
        let only_reads = text.split_whitespace().take(3).any(|word| only_reads.contains(&word));
        let attempt = async || {
            let (printed, is_ok) = self.shell(&text).await;
            let missing = missing(shown, &printed).or((!is_ok).then_some("exit code 0"));
            match missing {
                Some(line) => Err(format!("`{text}` has no line like `{line}`:\n{printed}")),
                None => Ok(printed),
            }
        };
        let printed = match attempt().await {
            Ok(printed) => printed,
            Err(fault) if only_reads => eventually(&fault, async || attempt().await.ok()).await,
            Err(fault) => panic!("{fault}"),
        };
        self.n_commands += 1;
        self.learn_ids(&shown.join("\n"), &printed);
    }

    fn learn_ids(&mut self, shown: &str, printed: &str) {
        let known: Vec<_> = self.ids.values().cloned().collect();
        let theirs = ids(shown).into_iter().filter(|id| !self.ids.contains_key(*id));
        let ours = ids(printed).into_iter().filter(|id| !known.iter().any(|it| it == id));
        for (theirs, ours) in theirs.zip(ours).collect::<Vec<_>>() {
            self.ids.insert(theirs.to_owned(), ours.to_owned());
            if theirs.len() == 36 && ours.len() == 36 {
                self.ids.insert(theirs[24..].to_owned(), ours[24..].to_owned());
            }
        }
    }

    async fn shell(&self, text: &str) -> (String, bool) {
        let binary = PathBuf::from(env!("CARGO_BIN_EXE_dalsegno"));
        let path = std::env::var("PATH").unwrap();
        let script = format!("exec 2>&1\n{}\n{text}", self.exports.join("\n"));
        let mut shell = command("bash", self.folder.path());
        shell
            .args(["-c", &script])
            .env("PATH", format!("{}:{path}", binary.parent().unwrap().display()))
            .stdout(Stdio::piped());
        let output = tokio::time::timeout(PATIENCE, shell.output()).await.unwrap().unwrap();
        (String::from_utf8(output.stdout).unwrap(), output.status.success())
    }
}

async fn read_page(page: &str) {
    let mut reader = Reader {
        folder: scratch_folder(),
        service: None,
        exports: Vec::new(),
        ids: BTreeMap::new(),
        n_commands: 0,
    };
    reader.read(&read(&root().join(page))).await;
    assert!(reader.n_commands >= 3, "{page}: {} commands were found", reader.n_commands);
}

#[tokio::test]
async fn the_first_campaign_does_what_it_shows() {
    read_page("docs/tutorials/first-campaign.md").await;
}

#[tokio::test]
async fn the_weekly_series_does_what_it_shows() {
    read_page("docs/tutorials/weekly-series.md").await;
}

#[tokio::test]
async fn a_prompt_is_evaluated_as_shown() {
    read_page("docs/how-to/change-a-prompt.md").await;
}

#[tokio::test]
async fn the_checks_of_incidents_run() {
    read_page("docs/how-to/incidents.md").await;
}

#[tokio::test]
async fn keys_are_rotated_as_shown() {
    read_page("docs/how-to/rotate-keys.md").await;
}

#[tokio::test]
async fn the_terminal_shows_what_its_guide_says() {
    read_page("docs/how-to/terminal.md").await;
}

#[tokio::test]
async fn a_budget_stops_tasks_as_shown() {
    read_page("docs/how-to/budgets.md").await;
}

#[tokio::test]
async fn costs_are_reported_as_shown() {
    read_page("docs/how-to/cost.md").await;
}

#[tokio::test]
async fn schedules_are_made_as_shown() {
    read_page("docs/how-to/schedules.md").await;
}

#[tokio::test]
async fn tasks_are_combined_as_shown() {
    read_page("docs/how-to/flows.md").await;
}

#[tokio::test]
async fn agents_are_controlled_as_shown() {
    read_page("docs/how-to/control-agents.md").await;
}

#[tokio::test]
async fn a_campaign_is_exported_as_shown() {
    read_page("docs/how-to/move-a-campaign.md").await;
}

#[tokio::test]
async fn a_campaign_is_erased_as_shown() {
    read_page("docs/how-to/erase-a-campaign.md").await;
}

#[test]
fn pages_are_read_as_commands_with_their_outputs() {
    let page = "```toml\n# a.toml\nx = 1\n```\n```console\ndalsegno serve\n```\n\
        ```console\n$ one\nfirst line\n...\n$ two\n```\n```console needs-model\n$ three\n```\n";
    let read: Vec<String> = steps(page)
        .into_iter()
        .map(|step| match step {
            Step::Service => "service".to_owned(),
            Step::File { name, text } => format!("{name}: {text}"),
            Step::Command { text, shown } => format!("{text} > {}", shown.join("/")),
        })
        .collect();
    assert_eq!(read, ["a.toml: # a.toml\nx = 1", "service", "one > first line/...", "two > "]);
    let uuid = "01a222e4-22c5-775e-9f70-7819204c4e9c";
    let text = format!("flow {uuid} of 7819204c4e9c on 2026-11-28 has 148951 tokens");
    assert_eq!(ids(&text), [uuid, "7819204c4e9c"]);
    let shown = ["review  done  781b0b78b3c3  0.01".to_owned(), "...".to_owned()];
    assert_eq!(missing(&shown, "write done\nreview  running"), Some(shown[0].as_str()));
    assert_eq!(missing(&shown, "review | done | 781b0b78b3c4"), None);
}
