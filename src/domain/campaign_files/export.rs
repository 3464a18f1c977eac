//! Writes a campaign file.

use chrono::{DateTime, Utc};
use futures_util::TryStreamExt as _;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use sqlx::{AssertSqlSafe, PgConnection, PgPool};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use uuid::Uuid;

use super::{
    Counts, Error, columns_of_tables,
    format::{FORMAT, Header, TableColumns, Trailer, VERSION},
    schema_version, tables,
};
use crate::domain::{
    StatementError,
    audit::{self, Action, Actor},
    campaigns::{self, Status},
    installation, transaction,
};

/// Result of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExportResult {
    pub campaign_id: Uuid,
    pub name: String,
    pub rows: Counts,
    pub bytes: u64,
    /// Of all bytes before the last line, which contains it.
    pub sha256: String,
}

/// Writes a campaign as JSON Lines, as one snapshot of the database shows it, and adds a line to the audit log.
pub async fn export(
    pool: &PgPool,
    id: Uuid,
    actor: &Actor,
    now: DateTime<Utc>,
    out: &mut (impl AsyncWrite + Unpin),
) -> Result<ExportResult, Error> {
    let schema = schema_version(pool).await?;
    let mut snapshot = transaction::begin_snapshot(pool).await?;
    let campaign = campaigns::get(&mut *snapshot, id).await?;
    check_idle(&mut snapshot, id, campaign.status).await?;
    let installation = installation::get(&mut *snapshot)
        .await
        .map_err(StatementError::to("read the installation"))?;
    let columns = columns_of_tables(&mut snapshot).await?;
    let tables: Vec<_> = tables()
        .into_iter()
        .map(|table| {
            let columns = table.columns(columns.get(table.name).map_or(&[], Vec::as_slice));
            (table, columns)
        })
        .collect();
    let header = Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        schema,
        campaign_id: id,
        name: campaign.name.clone(),
        exported_at: now,
        installation_id: installation.id,
        tables: tables
            .iter()
            .map(|(table, columns)| TableColumns {
                table: table.name.to_owned(),
                columns: columns.clone(),
            })
            .collect(),
    };
    audit::write(pool, actor, Action::CampaignExport, id, serde_json::json!({}), now).await?;
    let mut lines = Lines { out, sha256: Sha256::new(), bytes: 0 };
    lines.write(&serde_json::to_string(&header)?).await?;
    let mut counts = Counts::new();
    for (table, columns) in &tables {
        let n_rows =
            write_rows(&mut snapshot, id, table.name, &table.select(columns), &mut lines).await?;
        if n_rows > 0 {
            counts.insert(table.name.to_owned(), n_rows);
        }
    }
    let sha256 = hex::encode(lines.sha256.clone().finalize());
    let trailer = Trailer { rows: counts, sha256 };
    lines.write(&serde_json::to_string(&trailer)?).await?;
    lines.out.flush().await.map_err(Error::Write)?;
    let Trailer { rows, sha256 } = trailer;
    Ok(ExportResult { campaign_id: id, name: campaign.name, rows, bytes: lines.bytes, sha256 })
}

async fn write_rows(
    conn: &mut PgConnection,
    id: Uuid,
    table: &str,
    select: &str,
    lines: &mut Lines<'_, impl AsyncWrite + Unpin>,
) -> Result<u64, Error> {
    // The rows are read as fast as they are written: nothing collects them.
    let query = sqlx::query_scalar::<_, String>(AssertSqlSafe(select)).bind(id).persistent(false);
    let mut rows = query.fetch(conn);
    let (mut n_rows, mut line) = (0, String::new());
    let failed = || StatementError::to("read the rows of a campaign");
    while let Some(row) = rows.try_next().await.map_err(failed())? {
        line.clear();
        line.extend(["{\"table\":\"", table, "\",\"row\":", &row, "}"]);
        lines.write(&line).await?;
        n_rows += 1;
    }
    Ok(n_rows)
}

struct Lines<'a, W> {
    out: &'a mut W,
    sha256: Sha256,
    bytes: u64,
}

impl<W: AsyncWrite + Unpin> Lines<'_, W> {
    async fn write(&mut self, line: &str) -> Result<(), Error> {
        for bytes in [line.as_bytes(), b"\n"] {
            self.sha256.update(bytes);
            self.bytes += bytes.len() as u64;
            self.out.write_all(bytes).await.map_err(Error::Write)?;
        }
        Ok(())
    }
}

/// Refuses a campaign in which something runs, or may begin: a copy would run it again.
async fn check_idle(conn: &mut PgConnection, id: Uuid, status: Status) -> Result<(), Error> {
    let counts = sqlx::query!(
        r#"select dalsegno.is_erased($1) as "is_erased!",
                  (select count(*) from dalsegno.tasks where campaign_id = $1 and ended_at is null) as "open!",
                  (select count(*) from dalsegno.tasks where campaign_id = $1 and ended_at is null and state = 'running') as "tasks!",
                  (select count(*) from dalsegno.sessions where campaign_id = $1 and state = 'running') as "sessions!",
                  (select count(*) from dalsegno.reruns where campaign_id = $1 and state = 'queued') as "reruns!""#,
        id,
    )
    .fetch_one(conn)
    .await
    .map_err(StatementError::to("check whether a campaign is idle"))?;
    if counts.is_erased {
        return Err(Error::Erased(id));
    }
    let running =
        [("tasks", counts.tasks), ("sessions", counts.sessions), ("reruns", counts.reruns)];
    let running: Vec<String> =
        running.iter().filter(|(_, n)| *n > 0).map(|(noun, n)| format!("{noun}: {n}")).collect();
    if !running.is_empty() {
        return Err(Error::Running { id, running: running.join(", ") });
    }
    match status {
        Status::Active if counts.open > 0 => Err(Error::NotPaused { id, n_open: counts.open }),
        Status::Active | Status::Paused | Status::Closed => Ok(()),
    }
}
