//! `dalsegno task add --file FILE`: adds the tasks of a file, one JSON object per line, in batches.
//!
//! A batch is one transaction. With idempotency keys, the command can be repeated after any failure and adds the
//! missing tasks.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, IsTerminal as _},
    path::Path,
};

use anyhow::{Context as _, anyhow};
use serde::Serialize;

use super::add::Add;
use crate::{
    cli::{Context, Exit, Failure, output::Output, server::Server},
    domain::{
        tasks::{Line, TaskLink},
        text::count,
    },
    operations::AddManyTasks,
};

/// Tasks per batch: enough to make few requests, few enough that a mistake late in the file wastes little work.
const BATCH: usize = 1_000;
/// Bytes per batch, far below the limit of a server's request.
const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// Most invalid lines that an error lists.
const MAX_LISTED: usize = 20;

#[derive(Serialize)]
struct AddCounts {
    tasks: usize,
    created: usize,
}

/// Lines of the file with their numbers, which begin at 1.
#[derive(Default)]
struct Batch {
    numbers: Vec<usize>,
    lines: Vec<Line>,
    is_end: bool,
}

/// Lines that are not tasks: the first of them, and the number of all.
#[derive(Default)]
struct InvalidLines {
    listed: Vec<String>,
    n_lines: usize,
}

/// Returns the place and the problem of a task that has no meaning in a file.
type Check = fn(&Line) -> Option<(&'static str, &'static str)>;

pub(super) async fn run(
    add: &Add,
    file: &Path,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let id = add.question.campaign.id(context, server).await?;
    let progress = Progress::new(context.output);
    let mut added = AddCounts { tasks: 0, created: 0 };
    let mut reader = open(file)?;
    let mut number = 0;
    loop {
        let batch = read(&mut *reader, &mut number, check_links);
        let batch = batch.map_err(|failure| progress.end_with(failure, &added))?;
        let Batch { numbers, lines, .. } = with_keys(batch, context.idempotency_key.as_deref());
        if lines.is_empty() {
            break;
        }
        let many =
            server.call(AddManyTasks { id, tasks: lines, unreadable: BTreeMap::new() }).await;
        let many = many.map_err(|failure| with_lines(failure, &numbers));
        let many = many.map_err(|failure| progress.end_with(failure, &added))?;
        added.tasks += many.items.len();
        added.created += many.created;
        progress.show(&added);
    }
    progress.end();
    context.output.print_data(&added, || added.describe());
    Ok(Exit::Ok)
}

/// Reads the tasks of a file for one request, with their line numbers.
pub(super) fn read_all(file: &Path) -> Result<(Vec<usize>, Vec<Line>), Failure> {
    let (mut reader, mut number) = (open(file)?, 0);
    let Batch { numbers, lines, .. } = read(&mut *reader, &mut number, |_| None)?;
    match read(&mut *reader, &mut number, |_| None)?.lines.is_empty() {
        true => Ok((numbers, lines)),
        false => {
            let words = format!("{} has more tasks than one request takes", file.display());
            Err(Failure::new(Exit::Usage, anyhow!(words)))
        }
    }
}

fn open(file: &Path) -> Result<Box<dyn BufRead + Send>, Failure> {
    if file == Path::new("-") {
        return Ok(Box::new(BufReader::new(std::io::stdin())));
    }
    let opened = std::fs::File::open(file)
        .with_context(|| format!("cannot read {}", file.display()))
        .map_err(|error| Failure::new(Exit::Usage, error))?;
    Ok(Box::new(BufReader::new(opened)))
}

/// Reads the next batch; it is empty at the end. After an invalid line, it reads the rest of the file for further ones.
fn read(reader: &mut dyn BufRead, number: &mut usize, check: Check) -> Result<Batch, Failure> {
    let mut invalid = InvalidLines::default();
    let batch = read_batch(reader, number, check, &mut invalid)?;
    let mut is_end = batch.is_end;
    while !invalid.listed.is_empty() && !is_end {
        is_end = read_batch(reader, number, check, &mut invalid)?.is_end;
    }
    match invalid.listed.is_empty() {
        true => Ok(batch),
        false => Err(Failure::new(Exit::Usage, anyhow!(invalid.describe()))),
    }
}

fn read_batch(
    reader: &mut dyn BufRead,
    number: &mut usize,
    check: Check,
    invalid: &mut InvalidLines,
) -> Result<Batch, Failure> {
    let (mut batch, mut n_bytes) = (Batch::default(), 0);
    let mut text = String::new();
    while batch.lines.len() < BATCH && n_bytes < BATCH_BYTES {
        text.clear();
        let n_read = reader
            .read_line(&mut text)
            .with_context(|| format!("cannot read line {} of the file", *number + 1))
            .map_err(|error| Failure::new(Exit::Usage, error))?;
        if n_read == 0 {
            batch.is_end = true;
            break;
        }
        *number += 1;
        n_bytes += n_read;
        if text.trim().is_empty() {
            continue;
        }
        match Line::read(&text) {
            Ok(line) => {
                if let Some((place, problem)) = check(&line) {
                    invalid.push(format!("line {number} at {place}: {problem}"));
                }
                batch.numbers.push(*number);
                batch.lines.push(line);
            }
            Err(bad) if bad.pointer.is_empty() => invalid.push(format!("line {number}: {bad}")),
            Err(bad) => invalid.push(format!("line {number} at {}: {bad}", bad.pointer)),
        }
    }
    Ok(batch)
}

/// Reports a dependency by its place in a request: a file is sent in several requests.
fn check_links(line: &Line) -> Option<(&'static str, &'static str)> {
    let has_place = line.depends_on.iter().any(|after| matches!(after, TaskLink::Item { .. }));
    let problem = "in a file, name a dependency by its key: {\"key\": \"...\"}";
    has_place.then_some(("/depends_on", problem))
}

/// Gives lines without a key the key `prefix/number`, if there is a prefix.
fn with_keys(mut batch: Batch, prefix: Option<&str>) -> Batch {
    for (number, line) in batch.numbers.iter().zip(&mut batch.lines) {
        if let (None, Some(prefix)) = (&line.idempotency_key, prefix) {
            line.idempotency_key = Some(format!("{prefix}/{number}"));
        }
    }
    batch
}

impl InvalidLines {
    fn push(&mut self, problem: String) {
        self.n_lines += 1;
        if self.listed.len() < MAX_LISTED {
            self.listed.push(problem);
        }
    }

    fn describe(&self) -> String {
        let words = self.listed.join("\n");
        match self.n_lines - self.listed.len() {
            0 => words,
            n_more => format!("{words}\nand {n_more} more"),
        }
    }
}

/// Replaces the places of mistakes in the request with their line numbers.
pub(super) fn with_lines(failure: Failure, numbers: &[usize]) -> Failure {
    let words = failure.wrong.iter().map(|wrong| {
        let place = wrong.pointer.split('/').find_map(|part| part.parse::<usize>().ok());
        match place.and_then(|place| numbers.get(place)) {
            Some(number) => format!("line {number}: {}", wrong.detail),
            None => wrong.detail.clone(),
        }
    });
    let mut invalid = InvalidLines::default();
    words.for_each(|words| invalid.push(words));
    match invalid.listed.is_empty() {
        true => failure,
        false => Failure { error: anyhow!(invalid.describe()), ..failure },
    }
}

impl AddCounts {
    fn describe(&self) -> String {
        let before = self.tasks - self.created;
        let added = count(self.created, "task is added", "tasks are added");
        match before {
            0 => added,
            _ => format!("{added}, {before} had been added before"),
        }
    }
}

/// Progress line on a terminal; silent elsewhere.
struct Progress {
    output: Output,
    is_seen: bool,
}

impl Progress {
    fn new(output: Output) -> Self {
        Self { output, is_seen: std::io::stderr().is_terminal() }
    }

    fn show(&self, added: &AddCounts) {
        if self.is_seen {
            self.output.rewrite_note(&format!("{} tasks, {} new", added.tasks, added.created));
        }
    }

    fn end(&self) {
        if self.is_seen {
            self.output.rewrite_note("");
        }
    }

    /// Adds to the failure that the batches before it stay added.
    fn end_with(&self, failure: Failure, added: &AddCounts) -> Failure {
        self.end();
        if added.tasks == 0 {
            return failure;
        }
        let words = format!(
            "{} added; if they have idempotency keys, run the same command again to add the rest",
            count(added.tasks, "task before it was", "tasks before it were")
        );
        Failure { error: anyhow!("{:#}\n{words}", failure.error), ..failure }
    }
}
