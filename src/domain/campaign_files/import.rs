//! Reads a campaign file.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use sqlx::{AssertSqlSafe, PgConnection, PgPool};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};
use uuid::Uuid;

use super::{
    Counts, Error, Table, columns_of_tables,
    format::{FORMAT, Header, Preamble, RowLine, Trailer, VERSION},
    schema_version, tables,
};
use crate::domain::{
    StatementError,
    audit::{self, Action, Actor},
    campaign_control,
    campaigns::{self, Status},
    embeddings, tasks, text_search, transaction,
};

/// Rows that one statement writes, unless they are long.
const BATCH_ROWS: u64 = 1_000;
const BATCH_BYTES: usize = 1 << 20;
/// A file of a task has at most 256 MB, twice that in hexadecimal.
const LINE_MAX_BYTES: u64 = 600_000_000;
/// Waiting tasks that are read at once.
const WAITING_TASKS: i64 = 500;

/// Options of an import.
#[derive(Debug, Clone, Copy)]
pub struct Import<'a> {
    pub actor: &'a Actor,
    pub now: DateTime<Utc>,
    /// Checks everything, and adds nothing.
    pub is_dry_run: bool,
    /// True if an embedding model is configured.
    pub makes_embeddings: bool,
}

/// Result of an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportResult {
    pub campaign_id: Uuid,
    pub name: String,
    /// `paused`, or `closed` as in the file.
    pub status: Status,
    pub rows: Counts,
    /// Rows of the file that were left out: facts that this installation knows otherwise, and what depends on them.
    pub skipped: Counts,
    /// Tasks that wait for the campaign to be resumed.
    pub waiting_tasks: u64,
    pub is_dry_run: bool,
}

/// Adds the campaign of a file in one transaction, which a file with a fault rolls back. The campaign arrives paused.
pub async fn import(
    pool: &PgPool,
    source: &mut (impl AsyncBufRead + Unpin),
    import: Import<'_>,
) -> Result<ImportResult, Error> {
    let here = schema_version(pool).await?;
    let mut lines = Lines { source, line: Vec::new(), n_lines: 0, sha256: Sha256::new() };
    let header = lines.header(here).await?;
    let mut transaction = transaction::begin(pool).await?;
    let added = Box::pin(write(&mut transaction, &mut lines, &header)).await?;
    let id = header.campaign_id;
    let status = campaigns::get(&mut *transaction, id).await?.status;
    let waiting_tasks = retry_waiting(&mut transaction, id, import.now).await?;
    tasks::await_index(&mut *transaction, id).await?;
    text_search::request_index(&mut transaction).await?;
    if import.makes_embeddings {
        embeddings::request(&mut transaction).await?;
    }
    let status = match status {
        Status::Closed => Status::Closed,
        Status::Active | Status::Paused => {
            let reason = format!("imported from installation {}", header.installation_id);
            campaign_control::pause(&mut transaction, id, &reason).await?.status
        }
    };
    let data =
        json!({ "installation_id": header.installation_id, "exported_at": header.exported_at });
    audit::write(&mut *transaction, import.actor, Action::CampaignImport, id, data, import.now)
        .await?;
    // Checked here, so that a dry run finds what the commit would.
    sqlx::query!("set constraints all immediate")
        .execute(&mut *transaction)
        .await
        .map_err(StatementError::to("check the rows of an import"))?;
    match import.is_dry_run {
        true => transaction.rollback().await.map_err(StatementError::to("roll an import back"))?,
        false => transaction::commit(transaction).await?,
    }
    let RowCounts { rows, skipped } = added;
    let is_dry_run = import.is_dry_run;
    Ok(ImportResult {
        campaign_id: id,
        name: header.name,
        status,
        rows,
        skipped,
        waiting_tasks,
        is_dry_run,
    })
}

#[derive(Debug, Default)]
struct RowCounts {
    rows: Counts,
    skipped: Counts,
}

/// Writes the rows of all lines up to the trailer.
async fn write(
    conn: &mut PgConnection,
    lines: &mut Lines<'_, impl AsyncBufRead + Unpin>,
    header: &Header,
) -> Result<RowCounts, Error> {
    let id = header.campaign_id;
    // A second import of the file waits here for the first.
    campaigns::lock(&mut *conn, id).await?;
    match campaigns::get(&mut *conn, id).await {
        Err(campaigns::Error::Unknown(_)) => {}
        Ok(there) => {
            let (name, status) = (there.name, there.status.as_str());
            return Err(Error::Exists { id, name, status });
        }
        Err(error) => return Err(error.into()),
    }
    sqlx::query!(
        "create temp table imported_numbers (space text not null, old bigint not null, new bigint not null, primary key (space, old))
         on commit drop"
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("prepare the renumbering of an import"))?;
    let plans = plans(&columns_of_tables(&mut *conn).await?, header)?;
    let mut batch = Batch { place: 0, rows: "[".to_owned(), n_rows: 0 };
    let (mut added, mut n_read) = (RowCounts::default(), Counts::new());
    loop {
        let before = lines.sha256.clone();
        let Some(line) = lines.next().await? else {
            return Err(Error::Cut { line: lines.n_lines });
        };
        let number = line.number;
        if let Ok(RowLine { table, row }) = serde_json::from_slice(line.bytes) {
            let place = plans.iter().position(|plan| plan.table.name == table);
            let Some(place) = place.filter(|place| *place >= batch.place) else {
                let reason = format!("rows of table {table} are unknown, or come too late");
                return Err(Error::Line { line: number, reason });
            };
            if place != batch.place || batch.is_full() {
                let plan = plans.get(batch.place);
                batch.write(&mut *conn, id, plan, number, &mut added).await?;
                batch.place = place;
            }
            batch.push(row.get());
            *n_read.entry(table.to_owned()).or_default() += 1;
            continue;
        }
        let trailer: Trailer =
            serde_json::from_slice(line.bytes).map_err(|error| match line.is_whole {
                true => Error::Line { line: number, reason: error.to_string() },
                false => Error::Cut { line: number },
            })?;
        let plan = plans.get(batch.place);
        batch.write(&mut *conn, id, plan, number, &mut added).await?;
        check(&trailer, &n_read, before)?;
        return match lines.next().await? {
            None => Ok(added),
            Some(_) => {
                let reason = "it comes after the last line of the export".to_owned();
                Err(Error::Line { line: number + 1, reason })
            }
        };
    }
}

fn check(trailer: &Trailer, n_read: &Counts, sha256: Sha256) -> Result<(), Error> {
    for table in trailer.rows.keys().chain(n_read.keys()) {
        let count = |counts: &Counts| counts.get(table).copied().unwrap_or_default();
        let (found, expected) = (count(n_read), count(&trailer.rows));
        if found != expected {
            return Err(Error::Count { table: table.clone(), found, expected });
        }
    }
    match hex::encode(sha256.finalize()) == trailer.sha256 {
        true => Ok(()),
        false => Err(Error::Digest),
    }
}

/// The statements for the rows of a table.
struct Plan {
    table: Table,
    renumber: Option<String>,
    write: String,
}

/// Plans the columns that the file has and the database knows. Those that an older file lacks get their defaults.
fn plans(here: &BTreeMap<String, Vec<String>>, header: &Header) -> Result<Vec<Plan>, Error> {
    let known = tables();
    if let Some(other) =
        header.tables.iter().find(|it| known.iter().all(|table| table.name != it.table))
    {
        let reason = format!("table {} is unknown", other.table);
        return Err(Error::Line { line: 1, reason });
    }
    let plan = |table: Table| {
        let in_file = header.tables.iter().find(|it| it.table == table.name);
        let in_file = in_file.map_or(&[][..], |it| &it.columns);
        let mut columns = table.columns(here.get(table.name).map_or(&[], Vec::as_slice));
        columns.retain(|column| in_file.contains(column));
        Plan { renumber: table.renumber(&columns), write: table.write(&columns), table }
    };
    Ok(known.into_iter().map(plan).collect())
}

/// Rows of one table that are written together.
struct Batch {
    /// Of the table's plan.
    place: usize,
    /// A JSON array without its end.
    rows: String,
    n_rows: u64,
}

impl Batch {
    fn is_full(&self) -> bool {
        self.n_rows >= BATCH_ROWS || self.rows.len() >= BATCH_BYTES
    }

    fn push(&mut self, row: &str) {
        if self.n_rows > 0 {
            self.rows.push(',');
        }
        self.rows.push_str(row);
        self.n_rows += 1;
    }

    /// Writes the rows before `line`.
    async fn write(
        &mut self,
        conn: &mut PgConnection,
        campaign_id: Uuid,
        plan: Option<&Plan>,
        line: u64,
        added: &mut RowCounts,
    ) -> Result<(), Error> {
        let Some(Plan { table, renumber, write }) = plan.filter(|_| self.n_rows > 0) else {
            return Ok(());
        };
        self.rows.push(']');
        let table_name = table.name;
        let failed = |source| Error::Rows { table: table_name, line, source };
        if let Some(renumber) = renumber {
            let renumber = sqlx::query(AssertSqlSafe(renumber.as_str())).bind(&self.rows);
            renumber.persistent(false).execute(&mut *conn).await.map_err(failed)?;
        }
        let write = sqlx::query(AssertSqlSafe(write.as_str())).bind(&self.rows).bind(campaign_id);
        let n_written =
            write.persistent(false).execute(&mut *conn).await.map_err(failed)?.rows_affected();
        let n_refused = self.n_rows.abs_diff(n_written);
        if n_refused > 0 && !table.may_skip {
            return Err(Error::Refused { table: table_name, line, n_refused });
        }
        if !table.is_second_pass() {
            *added.rows.entry(table_name.to_owned()).or_default() += n_written;
        }
        if n_refused > 0 {
            *added.skipped.entry(table_name.to_owned()).or_default() += n_refused;
        }
        self.n_rows = 0;
        self.rows.clear();
        self.rows.push('[');
        // A long row has made it large.
        self.rows.shrink_to(2 * BATCH_BYTES);
        Ok(())
    }
}

/// Puts the tasks that waited in the file on the queue, in the order in which they were added. They are those that were written as
/// cancelled in this transaction.
async fn retry_waiting(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    now: DateTime<Utc>,
) -> Result<u64, Error> {
    let mut n_tasks = 0;
    loop {
        let waiting = sqlx::query_scalar!(
            "select id from dalsegno.tasks where campaign_id = $1 and state = 'cancelled' and ended_at = now() order by id limit $2",
            campaign_id,
            WAITING_TASKS,
        )
        .fetch_all(&mut *conn)
        .await
        .map_err(StatementError::to("list the waiting tasks of an import"))?;
        if waiting.is_empty() {
            return Ok(n_tasks);
        }
        for id in waiting {
            Box::pin(tasks::retry(&mut *conn, id, now)).await.map_err(Error::Task)?;
            n_tasks += 1;
        }
    }
}

/// The lines of a file, one at a time.
struct Lines<'a, R> {
    source: &'a mut R,
    line: Vec<u8>,
    n_lines: u64,
    /// Of all bytes that were read.
    sha256: Sha256,
}

struct Line<'a> {
    number: u64,
    bytes: &'a [u8],
    /// False: the file ends within the line.
    is_whole: bool,
}

impl<R: AsyncBufRead + Unpin> Lines<'_, R> {
    async fn next(&mut self) -> Result<Option<Line<'_>>, Error> {
        self.line.clear();
        self.line.shrink_to(2 * BATCH_BYTES);
        let mut limited = (&mut *self.source).take(LINE_MAX_BYTES);
        limited.read_until(b'\n', &mut self.line).await.map_err(Error::Read)?;
        if self.line.is_empty() {
            return Ok(None);
        }
        self.n_lines += 1;
        self.sha256.update(&self.line);
        let bytes = self.line.strip_suffix(b"\n");
        if bytes.is_none() && self.line.len() as u64 == LINE_MAX_BYTES {
            return Err(Error::LongLine { line: self.n_lines, max: LINE_MAX_BYTES });
        }
        let (number, is_whole) = (self.n_lines, bytes.is_some());
        Ok(Some(Line { number, bytes: bytes.unwrap_or(&self.line), is_whole }))
    }

    /// Reads the first line. `here` is the schema of the database.
    async fn header(&mut self, here: i64) -> Result<Header, Error> {
        let line = self.next().await?.ok_or(Error::NotCampaignFile)?;
        let preamble: Preamble =
            serde_json::from_slice(line.bytes).map_err(|_| Error::NotCampaignFile)?;
        if preamble.format != FORMAT {
            return Err(Error::NotCampaignFile);
        }
        if preamble.version > VERSION {
            return Err(Error::NewerFormat { found: preamble.version, known: VERSION });
        }
        let header: Header = serde_json::from_slice(line.bytes)
            .map_err(|error| Error::Line { line: 1, reason: error.to_string() })?;
        match header.schema > here {
            true => Err(Error::NewerSchema { found: header.schema, here }),
            false => Ok(header),
        }
    }
}
