//! `dalsegno campaign export` and `import`: campaign files.

use std::{
    fs::OpenOptions,
    io,
    os::fd::AsFd as _,
    os::unix::fs::OpenOptionsExt as _,
    path::PathBuf,
    pin::Pin,
    task::{self, Poll},
};

use anyhow::anyhow;
use clap::Args;
use tokio::{
    fs::File,
    io::{AsyncRead, BufReader, BufWriter, ReadBuf},
};

use crate::{
    cli::{
        Context, Exit, Failure,
        args::CampaignId,
        database::with_database,
        output::format_table,
        progress::{Progress, ProgressBar},
    },
    clock::{Clock as _, SystemClock},
    db::{Database, Use},
    domain::{
        campaign_files::{self, Counts, ExportResult, ImportResult},
        campaigns::{self, Status},
        text::count,
    },
};

/// Bytes that are written or read at once.
const BUFFER_BYTES: usize = 1 << 20;

#[derive(Debug, Args)]
pub(in crate::cli) struct Export {
    #[command(flatten)]
    campaign: CampaignId,
    /// New file to write, which only its owner may read. Default: the standard output.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ImportFlags {
    /// File that `campaign export` has written; `-` reads the standard input.
    file: PathBuf,
    /// Checks the file and shows what it would add; adds nothing.
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn export(export: &Export, context: &Context) -> Result<Exit, Failure> {
    with_database(context, Use::Look, async |database| {
        let exported = write(export, context, database).await?;
        match &export.file {
            Some(path) => context.output.print_data(&exported, || {
                let path = path.display();
                format!("{}{} in {path}", counts(&exported.rows), summary(&exported))
            }),
            None => context.output.print_note(&summary(&exported)),
        }
        Ok(Exit::Ok)
    })
    .await
}

async fn write(
    export: &Export,
    context: &Context,
    database: &Database,
) -> Result<ExportResult, Failure> {
    let given = &export.campaign.id;
    let id = match given.whole() {
        Some(id) => id,
        None => campaigns::find(&database.pool, given, None).await?,
    };
    let out = match &export.file {
        Some(path) => OpenOptions::new().write(true).create_new(true).mode(0o600).open(path),
        None => io::stdout().as_fd().try_clone_to_owned().map(std::fs::File::from),
    };
    let out = out.map_err(|error| {
        let name = export.file.as_ref().map_or("-".into(), |path| path.to_string_lossy());
        let words = format!("cannot create {name}: choose the name of a new file");
        Failure::new(Exit::Usage, anyhow!(error).context(words))
    })?;
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, File::from_std(out));
    let (now, actor) = (SystemClock.now(), context.actor());
    let exported =
        Box::pin(campaign_files::export(&database.pool, id, &actor, now, &mut out)).await;
    if let (Err(_), Some(path)) = (&exported, &export.file) {
        // An import refuses a part of a file, too.
        let _ = tokio::fs::remove_file(path).await;
    }
    Ok(exported?)
}

pub(super) async fn import(flags: &ImportFlags, context: &Context) -> Result<Exit, Failure> {
    with_database(context, Use::Look, async |database| {
        let imported = read(flags, context, database).await?;
        context.output.print_data(&imported, || {
            format!("{}{}", counts(&imported.rows), next_step(&imported))
        });
        Ok(Exit::Ok)
    })
    .await
}

async fn read(
    flags: &ImportFlags,
    context: &Context,
    database: &Database,
) -> Result<ImportResult, Failure> {
    let file = match flags.file.as_os_str() == "-" {
        true => io::stdin().as_fd().try_clone_to_owned().map(std::fs::File::from),
        false => std::fs::File::open(&flags.file),
    };
    let file = file.map_err(|error| {
        let words = format!("cannot read {}", flags.file.display());
        Failure::new(Exit::Usage, anyhow!(error).context(words))
    })?;
    // The size of a pipe is unknown.
    let total = file.metadata().map_or(0, |metadata| metadata.len());
    let bar = ProgressBar::new("bytes", context.output);
    let counted =
        ProgressReader { file: File::from_std(file), progress: Progress { done: 0, total }, bar };
    let mut source = BufReader::with_capacity(BUFFER_BYTES, counted);
    let import = campaign_files::Import {
        actor: &context.actor(),
        now: SystemClock.now(),
        is_dry_run: flags.dry_run,
        makes_embeddings: context.load()?.memory.embeddings_model().is_some(),
    };
    Ok(Box::pin(campaign_files::import(&database.pool, &mut source, import)).await?)
}

/// A file whose progress is shown while it is read.
struct ProgressReader {
    file: File,
    progress: Progress,
    bar: ProgressBar,
}

impl AsyncRead for ProgressReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut task::Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.file).poll_read(task, buffer);
        self.progress.done += (buffer.filled().len() - before) as u64;
        let progress = self.progress;
        self.bar.show(progress);
        polled
    }
}

fn counts(rows: &Counts) -> String {
    format_table(&["TABLE", "ROWS"], rows.iter().map(|(table, n)| [table.clone(), n.to_string()]))
}

fn summary(exported: &ExportResult) -> String {
    let n_messages = exported.rows.get("messages").copied().unwrap_or_default();
    let n_rows: u64 = exported.rows.values().sum();
    let ExportResult { campaign_id, bytes, .. } = exported;
    let messages = count(n_messages, "message", "messages");
    format!("campaign {campaign_id} is exported: {n_rows} rows with {messages}, {bytes} bytes")
}

fn next_step(imported: &ImportResult) -> String {
    let ImportResult { campaign_id: id, name, skipped, waiting_tasks, is_dry_run, .. } = imported;
    let mut text = match is_dry_run {
        true => format!("campaign {id} (`{name}`) would be imported; nothing was added"),
        false => format!("campaign {id} (`{name}`) is imported"),
    };
    for (table, n) in skipped {
        text += &format!(
            "\n{} of table {table} left out, because this installation has others",
            count(*n, "row", "rows")
        );
    }
    if *waiting_tasks > 0 {
        let tasks = count(*waiting_tasks, "task waits", "tasks wait");
        text += &format!("\n{tasks} for it to be resumed");
    }
    if !is_dry_run && imported.status == Status::Paused {
        text += &format!("\nit is paused: `dalsegno campaign resume {id}` continues it");
    }
    text
}
