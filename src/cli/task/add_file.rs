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
    domain::tasks::{Line, TaskLink},
    operations::AddManyTasks,
};

/// Tasks per batch: enough to make few requests, few enough that a mistake late in the file wastes little work.
const BATCH: usize = 1_000;
/// Bytes per batch, far below the limit of a server's request.
const BATCH_BYTES: usize = 8 * 1024 * 1024;

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
}

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
        let batch = read(&mut *reader, &mut number)
            .and_then(|batch| with_keys(batch, context.idempotency_key.as_deref()));
        let Batch { numbers, lines } =
            batch.map_err(|failure| progress.end_with(failure, &added))?;
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
    let Batch { numbers, lines } = read(&mut *reader, &mut number)?;
    match read(&mut *reader, &mut number)?.lines.is_empty() {
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

/// Reads the next batch; it is empty at the end.
fn read(reader: &mut dyn BufRead, number: &mut usize) -> Result<Batch, Failure> {
    let (mut batch, mut n_bytes) = (Batch::default(), 0);
    let mut text = String::new();
    while batch.lines.len() < BATCH && n_bytes < BATCH_BYTES {
        text.clear();
        let n_read = reader
            .read_line(&mut text)
            .with_context(|| format!("cannot read line {} of the file", *number + 1))
            .map_err(|error| Failure::new(Exit::Usage, error))?;
        if n_read == 0 {
            break;
        }
        *number += 1;
        n_bytes += n_read;
        if text.trim().is_empty() {
            continue;
        }
        let line = Line::read(&text).map_err(|bad| {
            let place =
                if bad.pointer.is_empty() { String::new() } else { format!(" at {}", bad.pointer) };
            Failure::new(Exit::Usage, anyhow!("line {number}{place}: {bad}"))
        })?;
        batch.numbers.push(*number);
        batch.lines.push(line);
    }
    Ok(batch)
}

/// Gives lines without a key the key `prefix/number`, if there is a prefix.
fn with_keys(mut batch: Batch, prefix: Option<&str>) -> Result<Batch, Failure> {
    for (number, line) in batch.numbers.iter().zip(&mut batch.lines) {
        if line.depends_on.iter().any(|after| matches!(after, TaskLink::Item { .. })) {
            let words = "in a file, name a dependency by its key: {\"key\": \"...\"}";
            return Err(Failure::new(
                Exit::Usage,
                anyhow!("line {number} at /depends_on: {words}"),
            ));
        }
        if let (None, Some(prefix)) = (&line.idempotency_key, prefix) {
            line.idempotency_key = Some(format!("{prefix}/{number}"));
        }
    }
    Ok(batch)
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
    let words: Vec<String> = words.collect();
    match words.is_empty() {
        true => failure,
        false => Failure { error: anyhow!(words.join("\n")), ..failure },
    }
}

impl AddCounts {
    fn describe(&self) -> String {
        let before = self.tasks - self.created;
        match before {
            0 => format!("{} tasks are added", self.created),
            _ => format!("{} tasks are added, {before} had been added before", self.created),
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
            "{} tasks before it were added; if they have idempotency keys, run the same command again to add the rest",
            added.tasks
        );
        Failure { error: anyhow!("{:#}\n{words}", failure.error), ..failure }
    }
}
