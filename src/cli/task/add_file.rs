//! `dalsegno task add --file FILE`: the tasks of a file, one JSON object per line, in batches.
//!
//! A batch is one transaction. With idempotency keys the same command can be repeated after any end, and adds what is missing.

use std::{
    io::{BufRead, BufReader, IsTerminal as _},
    path::Path,
};

use anyhow::{Context as _, anyhow};
use serde::Serialize;
use sqlx::PgPool;
use uuid::Uuid;

use super::add::Add;
use crate::{
    cli::{Context, Exit, Failure, output::Output},
    clock::{Clock as _, SystemClock},
    domain::{
        agents::Catalogue,
        campaigns,
        class::Classify as _,
        tasks::{self, After, BulkError, Config, Line, New, Placed},
        transaction::{begin, commit},
    },
};

/// So many that the database is not asked often, and so few that a mistake late in the file has not wasted much.
const BATCH: usize = 1_000;

#[derive(Serialize)]
struct Added {
    tasks: usize,
    created: usize,
}

/// A line of the file, with its number from 1.
struct Numbered {
    number: usize,
    line: Line,
}

/// What stays the same from batch to batch.
struct Target<'a> {
    pool: &'a PgPool,
    config: Config,
    catalogue: Catalogue,
    campaign_id: Uuid,
    added_by: String,
}

pub(super) async fn run(
    add: &Add,
    file: &Path,
    context: &Context,
    pool: &PgPool,
) -> Result<Exit, Failure> {
    let config = context.load()?;
    let target = Target {
        pool,
        added_by: context.who().label().to_string(),
        catalogue: context.agents(&config.agents)?,
        config: config.tasks,
        campaign_id: campaigns::find(pool, &add.question.campaign, None).await?,
    };
    let progress = Progress::new(context.output);
    let mut added = Added { tasks: 0, created: 0 };
    let mut reader = open(file)?;
    let mut number = 0;
    loop {
        let batch = read(&mut *reader, &mut number, add.idempotency_key.as_deref())
            .map_err(|failure| progress.end_with(failure, &added))?;
        if batch.is_empty() {
            break;
        }
        let placed =
            target.add(&batch).await.map_err(|failure| progress.end_with(failure, &added))?;
        added.tasks += placed.len();
        added.created += placed.iter().filter(|placed| placed.created).count();
        progress.show(&added);
    }
    progress.end();
    context.output.data(&added, || added.words());
    Ok(Exit::Ok)
}

fn open(file: &Path) -> Result<Box<dyn BufRead + Send>, Failure> {
    if file == Path::new("-") {
        return Ok(Box::new(BufReader::new(std::io::stdin())));
    }
    let opened = std::fs::File::open(file)
        .with_context(|| format!("{} cannot be read", file.display()))
        .map_err(|error| Failure::new(Exit::Usage, error))?;
    Ok(Box::new(BufReader::new(opened)))
}

/// The next batch; empty at the end. A line without a key gets one of its number, if `prefix` says so.
fn read(
    reader: &mut dyn BufRead,
    number: &mut usize,
    prefix: Option<&str>,
) -> Result<Vec<Numbered>, Failure> {
    let mut batch = Vec::new();
    let mut text = String::new();
    while batch.len() < BATCH {
        text.clear();
        let n_read = reader
            .read_line(&mut text)
            .with_context(|| format!("line {} of the file cannot be read", *number + 1))
            .map_err(|error| Failure::new(Exit::Usage, error))?;
        if n_read == 0 {
            break;
        }
        *number += 1;
        if text.trim().is_empty() {
            continue;
        }
        let mut line = Line::read(&text).map_err(|bad| {
            let place =
                if bad.pointer.is_empty() { String::new() } else { format!(" at {}", bad.pointer) };
            Failure::new(Exit::Usage, anyhow!("line {number}{place}: {bad}"))
        })?;
        if line.depends_on.iter().any(|after| matches!(after, After::Item { .. })) {
            let words =
                "in a file, name the task that is waited for by its key: {\"key\": \"...\"}";
            return Err(Failure::new(
                Exit::Usage,
                anyhow!("line {number} at /depends_on: {words}"),
            ));
        }
        if let (None, Some(prefix)) = (&line.idempotency_key, prefix) {
            line.idempotency_key = Some(format!("{prefix}/{number}"));
        }
        batch.push(Numbered { number: *number, line });
    }
    Ok(batch)
}

impl Target<'_> {
    async fn add(&self, batch: &[Numbered]) -> Result<Vec<Placed>, Failure> {
        let mut news: Vec<New<'_>> = Vec::with_capacity(batch.len());
        for Numbered { number, line } in batch {
            let asked = line.asked_of(self.campaign_id, &self.catalogue, &self.added_by, None);
            news.push(asked.map_err(|error| {
                let exit = Exit::of(error.class().kind);
                Failure::new(exit, anyhow!("line {number}: {error}"))
            })?);
        }
        let mut tx = begin(self.pool).await?;
        let (config, now) = (&self.config, SystemClock.now());
        let placed = tasks::add_many(&mut tx, config, self.campaign_id, &news, now).await;
        let placed = placed.map_err(|error| refused(error, batch))?;
        commit(tx).await?;
        Ok(placed)
    }
}

/// The exit code is that of the first line that is wrong; the words name all of them.
fn refused(error: BulkError, batch: &[Numbered]) -> Failure {
    match error {
        BulkError::All(error) => error.into(),
        BulkError::Items(wrong) => {
            let lines: Vec<String> = wrong
                .iter()
                .filter_map(|(place, error)| Some((batch.get(*place)?.number, error)))
                .map(|(number, error)| format!("line {number}: {error}"))
                .collect();
            let exit = wrong.first().map_or(Exit::Usage, |(_, error)| Exit::of(error.class().kind));
            Failure::new(exit, anyhow!(lines.join("\n")))
        }
    }
}

impl Added {
    fn words(&self) -> String {
        let before = self.tasks - self.created;
        match before {
            0 => format!("{} tasks are added", self.created),
            _ => format!("{} tasks are added, {before} had been added before", self.created),
        }
    }
}

/// A line that a person sees change; nothing where nobody looks.
struct Progress {
    output: Output,
    is_seen: bool,
}

impl Progress {
    fn new(output: Output) -> Self {
        Self { output, is_seen: std::io::stderr().is_terminal() }
    }

    fn show(&self, added: &Added) {
        if self.is_seen {
            self.output.rewrite(&format!("{} tasks, {} new", added.tasks, added.created));
        }
    }

    fn end(&self) {
        if self.is_seen {
            self.output.rewrite("");
        }
    }

    /// What came in before the mistake stays.
    fn end_with(&self, failure: Failure, added: &Added) -> Failure {
        self.end();
        if added.tasks == 0 {
            return failure;
        }
        let words = format!(
            "{} before it are in; with idempotency keys the same command goes on from there",
            added.tasks
        );
        Failure { error: anyhow!("{:#}\n{words}", failure.error), ..failure }
    }
}
