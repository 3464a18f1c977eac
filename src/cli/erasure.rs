//! `dalsegno erasure`: verifies receipts and vacuums tables.

use std::{io, path::PathBuf};

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    Context, Exit, Failure,
    database::with_database,
    output::{format_table, time_cell, time_cell_or_dash},
    server::with_server,
};
use crate::{
    clock::{Clock as _, SystemClock},
    db::{self, Database, Use, Vacuum},
    domain::{
        erasures::{self, Erasure, Key},
        text::count,
        transaction::{begin, commit},
    },
    operations::ListErasures,
};

/// Printed below an empty list.
const NO_ERASURES: &str = "no erasures: `dalsegno campaign erase CAMPAIGN` erases a campaign";

#[derive(Debug, Subcommand)]
pub(super) enum ErasureCommand {
    /// Lists erasures, those that were requested last first.
    Ls {
        /// Maximum number of erasures, up to 1000.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
        limit: i64,
    },
    /// Verifies the signature of a receipt. Needs no database.
    Verify(Verify),
    /// Vacuums all tables, so that erased texts leave the data files. Requires a connection as the owner of the tables.
    Vacuum(VacuumTables),
}

#[derive(Debug, Args)]
pub(super) struct Verify {
    /// Receipt from `dalsegno campaign erase ID --json`; `-` reads the standard input.
    file: PathBuf,
    /// Public key of the signer, as `dalsegno doctor` shows it. Default: the key in `erasures.key_file`.
    #[arg(long, value_name = "KEY")]
    public_key: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct VacuumTables {
    /// Rewrites tables and indexes. Each table is locked meanwhile, and turns wait.
    #[arg(long)]
    full: bool,
}

impl ErasureCommand {
    /// Returns true for commands that run as operations.
    pub(super) fn is_remote(&self) -> bool {
        matches!(self, Self::Ls { .. })
    }
}

pub(super) async fn run(command: &ErasureCommand, context: &Context) -> Result<Exit, Failure> {
    match command {
        ErasureCommand::Ls { limit } => list(*limit, context).await,
        ErasureCommand::Verify(verify) => self::verify(verify, context),
        ErasureCommand::Vacuum(tables) => {
            with_database(context, Use::Look, async |database| {
                vacuum(tables, context, database).await
            })
            .await
        }
    }
}

async fn list(limit: i64, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| {
        let page = |cursor: Option<String>, limit| ListErasures {
            cursor: cursor.and_then(|cursor| cursor.parse().ok()),
            limit: Some(limit),
        };
        let erasures = server.items(limit, page).await?;
        context.output.print_rows(&erasures, false, NO_ERASURES, || format_erasures(&erasures));
        Ok(Exit::Ok)
    })
    .await
}

fn format_erasures(erasures: &[Erasure]) -> String {
    let row = |erasure: &Erasure| {
        [
            erasure.campaign_id.to_string(),
            time_cell(erasure.asked_at),
            time_cell_or_dash(erasure.ended_at),
            if erasure.signed.is_some() { "signed" } else { "" }.to_owned(),
            erasure.reason.clone(),
        ]
    };
    let head = ["CAMPAIGN", "REQUESTED (UTC)", "ENDED (UTC)", "RECEIPT", "REASON"];
    format_table(&head, erasures.iter().map(row))
}

fn verify(Verify { file, public_key: key }: &Verify, context: &Context) -> Result<Exit, Failure> {
    let text = match file.as_os_str() == "-" {
        true => io::read_to_string(io::stdin()),
        false => std::fs::read_to_string(file),
    };
    let text = text.map_err(|error| {
        let error = anyhow!(error).context(format!("cannot read the receipt {}", file.display()));
        Failure::new(Exit::Usage, error)
    })?;
    let expected = match key {
        Some(key) => Some(key.clone()),
        None => key_of_here(context)?,
    };
    let signed = erasures::verify(&text, expected.as_deref())
        .map_err(|error| Failure::new(Exit::Failed, error.into()))?;
    let data = json!({ "valid": expected.as_ref().map(|_| true), "public_key": signed.public_key });
    context.output.print_data(&data, || match expected {
        Some(_) => "the receipt is valid".to_owned(),
        None => format!(
            "the signature matches the receipt, but the signer {} is unknown here: pass the key that `dalsegno doctor` shows with `--public-key`",
            signed.public_key
        ),
    });
    Ok(if expected.is_some() { Exit::Ok } else { Exit::Failed })
}

/// Returns the public key of this installation, or `None` without a key file.
fn key_of_here(context: &Context) -> Result<Option<String>, Failure> {
    let config = context.load()?;
    let key = Key::open(&config.erasures.key_file(&config.service.data_dir));
    let key = key.map_err(|error| Failure::new(Exit::Failed, error.into()))?;
    Ok(key.map(|key| key.public_text()))
}

async fn vacuum(
    tables: &VacuumTables,
    context: &Context,
    database: &Database,
) -> Result<Exit, Failure> {
    let mode = if tables.full { Vacuum::Full } else { Vacuum::Plain };
    let began = SystemClock.now();
    let vacuumed = db::vacuum(&database.pool, mode, &CancellationToken::new()).await?;
    if let Some(words) = vacuumed.obstacles() {
        let exit = if vacuumed.forbidden.is_empty() { Exit::Failed } else { Exit::Auth };
        return Err(Failure::new(exit, anyhow!(words)));
    }
    let mut tx = begin(&database.pool).await?;
    let now = SystemClock.now();
    let campaigns = erasures::record_vacuum(&mut tx, began, tables.full, now).await?;
    commit(tx).await?;
    context.output.print_data(&json!({ "full": tables.full, "campaigns": campaigns }), || {
        let erasures = count(campaigns.len(), "erasure", "erasures");
        format!("all tables are vacuumed; noted in the receipts of {erasures}")
    });
    Ok(Exit::Ok)
}
