//! Errors of campaign files, and their classes.

use std::io;

use uuid::Uuid;

use crate::{
    db,
    domain::{
        StatementError, campaigns,
        class::{Class, Classify, Kind, of_cause},
        tasks,
    },
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("campaign {0} is erased: there is nothing to export")]
    Erased(Uuid),
    #[error(
        "campaign {id} cannot be exported while something of it runs ({running}): pause it (`dalsegno campaign pause {id}`), wait until that has ended, and repeat the export"
    )]
    Running { id: Uuid, running: String },
    #[error(
        "campaign {id} has waiting tasks ({n_open}) that may begin at any moment: pause it (`dalsegno campaign pause {id}`), and repeat the export"
    )]
    NotPaused { id: Uuid, n_open: i64 },
    #[error(
        "the database has a newer schema than this binary, which does not know all of its tables: use the newer binary"
    )]
    NewerDatabase,
    #[error("{n_pending} migrations are missing in the database: run `dalsegno migrate up`")]
    Pending { n_pending: usize },
    #[error(
        "campaign {id} is already here (`{name}`, {status}): a file is imported once, into an installation that does not have its campaign"
    )]
    Exists { id: Uuid, name: String, status: &'static str },
    #[error(
        "this is not a campaign file: its first line is not the header that `dalsegno campaign export` writes"
    )]
    NotCampaignFile,
    #[error(
        "the file has version {found} of the format, and this binary reads versions up to {known}: upgrade this installation to the version that wrote the file, or a newer one"
    )]
    NewerFormat { found: u32, known: u32 },
    #[error(
        "the file was written with schema {found}, and this installation has schema {here}: upgrade this installation to the version that wrote the file, or a newer one"
    )]
    NewerSchema { found: i64, here: i64 },
    #[error("line {line} of the file is not valid: {reason}")]
    Line { line: u64, reason: String },
    #[error("line {line} of the file is longer than {max} bytes")]
    LongLine { line: u64, max: u64 },
    #[error(
        "the file ends after line {line}, without its last line: it was cut; copy or export it again"
    )]
    Cut { line: u64 },
    #[error(
        "the content of the file does not match the digest in its last line: it was changed or damaged; copy or export it again"
    )]
    Digest,
    #[error("the file has {found} rows of table {table}, but its last line counts {expected}")]
    Count { table: String, found: u64, expected: u64 },
    #[error(
        "{n_refused} rows of table {table} before line {line} refer to things that are not in the file, or do not match their digest"
    )]
    Refused { table: &'static str, line: u64, n_refused: u64 },
    #[error("rows of table {table} before line {line} cannot be stored")]
    Rows { table: &'static str, line: u64, source: sqlx::Error },
    #[error("cannot read the campaign file")]
    Read(#[source] io::Error),
    #[error("cannot write the campaign file")]
    Write(#[source] io::Error),
    #[error("cannot write the header of the campaign file")]
    Json(#[from] serde_json::Error),
    #[error("a waiting task cannot be put on the queue")]
    Task(#[source] tasks::Error),
    #[error(transparent)]
    Migrations(db::Error),
    #[error(transparent)]
    Campaign(#[from] campaigns::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Classify for Error {
    fn class(&self) -> Class {
        let bad_file = Class::of(Kind::Invalid, "bad_campaign_file");
        match self {
            Self::Erased(_) => Class::of(Kind::Conflict, "campaign_erased"),
            Self::Running { .. } | Self::NotPaused { .. } => {
                Class::of(Kind::Conflict, "campaign_not_idle")
            }
            Self::NewerDatabase | Self::Pending { .. } => {
                Class::of(Kind::Conflict, "schema_differs")
            }
            Self::Exists { .. } => Class::of(Kind::Conflict, "campaign_exists"),
            Self::NewerFormat { .. } | Self::NewerSchema { .. } => {
                Class::of(Kind::Conflict, "newer_campaign_file")
            }
            Self::NotCampaignFile
            | Self::Line { .. }
            | Self::LongLine { .. }
            | Self::Cut { .. }
            | Self::Digest
            | Self::Count { .. }
            | Self::Refused { .. } => bad_file,
            Self::Rows { source, .. } if is_bad_data(source) => bad_file,
            Self::Rows { source, .. } => of_cause(source),
            Self::Read(_) | Self::Write(_) => Class::of(Kind::Invalid, "campaign_file_unusable"),
            Self::Json(_) => Class::of(Kind::Internal, "internal"),
            Self::Task(error) => error.class(),
            Self::Migrations(error) => of_cause(error),
            Self::Campaign(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

/// Returns true if the database refuses the data itself: SQLSTATE classes 22 and 23.
fn is_bad_data(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| code.starts_with("22") || code.starts_with("23"))
}
