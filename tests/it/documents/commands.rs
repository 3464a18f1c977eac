//! The commands of pages, run in their order by a shell in an empty folder, as a reader would.
//!
//! Blocks of the language `console` are run. A line without `$ ` starts the service. The lines below a command are its output: for each of
//! them the command has to print a line with the same words of four letters and more, so times, amounts and columns may differ. Ids that a page
//! shows, also as `019aa2f1-...`, stand for the ids that were printed. Blocks of `toml` that begin with `# NAME.toml` are written to that file.
//! Blocks of `console needs-…` are not run: they need what a test has not, such as a model.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use super::{Block, blocks, documents, read, root};
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
    for Block { language, kind, lines } in blocks(page) {
        match (language, kind, lines.first().and_then(|line| line.strip_prefix("# "))) {
            ("console", "", _) => steps.extend(console(&lines)),
            ("toml", _, Some(name))
                if Path::new(name).extension().is_some_and(|it| it == "toml") =>
            {
                steps.push(Step::File { name: name.to_owned(), text: lines.join("\n") });
            }
            _ => {}
        }
    }
    steps
}

/// Returns true if the shell reads on in the next line.
fn is_unfinished(text: &str) -> bool {
    text.ends_with('\\') || text.matches('\'').count() % 2 == 1
}

fn console(block: &[&str]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in block {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(text), _) => {
                steps.push(Step::Command { text: text.to_owned(), shown: Vec::new() });
            }
            (None, Some(Step::Command { text, .. })) if is_unfinished(text) => {
                *text = format!("{text}\n{line}");
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

/// The ids of a text in their order, each once: UUIDs, runs of hexadecimal digits as long as a part of one, and beginnings such as `019aa2f1-...`,
/// without the dots.
fn ids(text: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_ascii_hexdigit() || c == '-';
    let mut found = Vec::new();
    for word in text.split(|c: char| !(is_part(c) || c.is_ascii_alphanumeric())) {
        let is_beginning = word.len() == 9 && word.ends_with('-');
        let is_id = (is_beginning || [12, 36].contains(&word.len()))
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
    // Dropped before the folder with its data: without that, it would wait for its database.
    service: Option<Service>,
    folder: tempfile::TempDir,
    exports: Vec<String>,
    /// Ids and addresses that the page shows, with those of this test.
    ids: BTreeMap<String, String>,
    n_commands: usize,
}

impl Reader {
    async fn start_service(&mut self) {
        let service = Service::start(self.folder.path(), &[]).await;
        self.ids.insert("127.0.0.1:7770".to_owned(), service.address.to_string());
        self.service = Some(service);
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
        let only_reads = ["ls", "show", "explain", "cost", "transcript"];
        let only_reads = text.split_whitespace().take(3).any(|word| only_reads.contains(&word));
        let attempt = async || {
            let (printed, is_ok) = self.shell(text).await;
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
        let ours = ids(printed).into_iter().filter(|id| !known.iter().any(|it| it.ends_with(*id)));
        for (theirs, ours) in theirs.zip(ours).collect::<Vec<_>>() {
            if let Some(beginning) = theirs.strip_suffix('-') {
                self.ids.insert(format!("{theirs}..."), ours.to_owned());
                self.ids.insert(beginning.to_owned(), ours.to_owned());
            }
            self.ids.insert(theirs.to_owned(), ours.to_owned());
            if theirs.len() == 36 && ours.len() == 36 {
                self.ids.insert(theirs[24..].to_owned(), ours[24..].to_owned());
            }
        }
    }

    async fn shell(&self, text: &str) -> (String, bool) {
        let binary = PathBuf::from(env!("CARGO_BIN_EXE_dalsegno"));
        let path = std::env::var("PATH").unwrap();
        // A refused request is a failed command.
        let curl = "curl() { command curl --fail-with-body \"$@\"; }";
        let mut script = format!("exec 2>&1\n{curl}\n{}\n{text}", self.exports.join("\n"));
        let mut known: Vec<_> = self.ids.iter().collect();
        // An id may be a part of another one.
        known.sort_by_key(|(theirs, _)| Reverse(theirs.len()));
        for (theirs, ours) in known {
            script = script.replace(theirs, ours);
        }
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
    // Nothing is sent to the example of a receiver.
    let receiver = ("https://example.com".to_owned(), "https://example.invalid".to_owned());
    let mut reader = Reader {
        service: None,
        folder: scratch_folder(),
        exports: Vec::new(),
        ids: BTreeMap::from([receiver]),
        n_commands: 0,
    };
    reader.read(&read(&root().join(page))).await;
    assert!(reader.n_commands > 0, "{page} has no commands");
}

/// Makes a test of each page, and the list of all of them.
macro_rules! pages {
    ($($test:ident: $page:literal,)*) => {
        const PAGES: &[&str] = &[$($page),*];

        $(#[tokio::test]
        async fn $test() {
            read_page($page).await;
        })*
    };
}

pages! {
    the_first_campaign_does_what_it_shows: "docs/tutorials/first-campaign.md",
    the_weekly_series_does_what_it_shows: "docs/tutorials/weekly-series.md",
    a_prompt_is_evaluated_as_shown: "docs/how-to/change-a-prompt.md",
    the_checks_of_incidents_run: "docs/how-to/incidents.md",
    keys_are_rotated_as_shown: "docs/how-to/rotate-keys.md",
    the_terminal_shows_what_its_guide_says: "docs/how-to/terminal.md",
    a_budget_stops_tasks_as_shown: "docs/how-to/budgets.md",
    costs_are_reported_as_shown: "docs/how-to/cost.md",
    schedules_are_made_as_shown: "docs/how-to/schedules.md",
    tasks_are_combined_as_shown: "docs/how-to/flows.md",
    agents_are_controlled_as_shown: "docs/how-to/control-agents.md",
    a_campaign_is_exported_as_shown: "docs/how-to/move-a-campaign.md",
    a_campaign_is_erased_as_shown: "docs/how-to/erase-a-campaign.md",
    the_readme_does_what_it_shows: "README.md",
    tasks_are_enqueued_as_shown: "docs/how-to/enqueue.md",
    structured_results_are_returned_as_shown: "docs/how-to/structured-results.md",
    files_are_attached_as_shown: "docs/how-to/attachments.md",
    api_keys_are_made_as_shown: "docs/how-to/api-keys.md",
    turns_are_inspected_as_shown: "docs/how-to/inspect-turns.md",
    a_cleanup_is_previewed_as_shown: "docs/how-to/cleanup.md",
    output_files_are_saved_as_shown: "docs/how-to/output-files.md",
    a_task_for_a_batch_is_added_as_shown: "docs/how-to/endpoints.md",
    commands_reach_the_service_as_installed: "docs/how-to/install.md",
    a_key_for_the_console_is_made_as_shown: "docs/how-to/console.md",
    the_board_is_posted_to_as_shown: "docs/explanation/board.md",
    a_rate_limit_delays_tasks_as_shown: "docs/how-to/rate-limits.md",
    memory_is_published_as_shown: "docs/explanation/memory.md",
}

/// Blocks that are not run, with the reason.
const NOT_RUN: &[(&str, &str)] = &[
    ("needs-a-minute", "`tests/it/demo.rs` plays it"),
    ("needs-another-installation", "a second service"),
    ("needs-claude", "the Claude Code CLI with a credential"),
    (
        "needs-clone",
        "a clone of the repository, and minutes: `.ci/run` and `scripts/newcomer` run most of them",
    ),
    ("needs-containers", "a container engine"),
    ("needs-history", "work of several days"),
    ("needs-models", "a chain of two models"),
    ("needs-network", "an address that others can reach"),
    ("needs-ollama", "a server with a model"),
    ("needs-owner", "a server of the operator: `tests/it/restore.rs` dumps and restores"),
    ("needs-public-key", "the key of another installation"),
    ("needs-receiver", "a receiver of webhooks"),
    ("needs-root", "root: `scripts/fresh-debian` runs it"),
    ("needs-shell", "the user's shell and its files"),
    ("needs-terminal", "a terminal: it goes on until Ctrl-C"),
];

#[test]
fn every_command_is_run_or_has_a_reason() {
    let (mut faults, mut n_blocks) = (Vec::new(), 0);
    for (path, text) in documents() {
        let page = path.strip_prefix(root()).unwrap().to_str().unwrap();
        for Block { language, kind, lines } in blocks(&text) {
            let is_run = (language, kind) == ("console", "") && PAGES.contains(&page);
            let has_reason = NOT_RUN.iter().any(|(other, _)| *other == kind);
            if ["console", "sh", "bash"].contains(&language) {
                n_blocks += 1;
                if !is_run && !has_reason {
                    faults.push(format!("{page}: {language} {kind}: {lines:?}"));
                }
            }
        }
    }
    assert!(n_blocks > 100, "{n_blocks} blocks of commands were found");
    assert!(faults.is_empty(), "neither run nor with a reason:\n{}", faults.join("\n"));
}

#[test]
fn pages_are_read_as_commands_with_their_outputs() {
    let page = "```toml\n# a.toml\nx = 1\n```\n```console\ndalsegno serve\n```\n\
        ```console\n$ one\nfirst line\n...\n$ two \\\n  'of\n  two'\n```\n```console needs-model\n$ three\n```\n";
    let read: Vec<String> = steps(page)
        .into_iter()
        .map(|step| match step {
            Step::Service => "service".to_owned(),
            Step::File { name, text } => format!("{name}: {text}"),
            Step::Command { text, shown } => format!("{text} > {}", shown.join("/")),
        })
        .collect();
    assert_eq!(
        read,
        ["a.toml: # a.toml\nx = 1", "service", "one > first line/...", "two \\\n  'of\n  two' > "]
    );
    let uuid = "01a222e4-22c5-775e-9f70-7819204c4e9c";
    let text = format!("flow {uuid} of 7819204c4e9c, 019aa2f1-... on 2026-11-28 has 148951 tokens");
    assert_eq!(ids(&text), [uuid, "7819204c4e9c", "019aa2f1-"]);
    let shown = ["review  done  781b0b78b3c3  0.01".to_owned(), "...".to_owned()];
    assert_eq!(missing(&shown, "write done\nreview  running"), Some(shown[0].as_str()));
    assert_eq!(missing(&shown, "review | done | 781b0b78b3c4"), None);
}
