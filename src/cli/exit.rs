//! Exit codes, and the mapping of errors to them. The table is part of the contract of the command line.

use std::process::ExitCode;

use anyhow::anyhow;

use crate::{
    db,
    domain::class::{Classify, Kind},
    http, jobs,
    operations::{FieldError, Refusal},
    serve,
    settings::Problems,
    telemetry, worker,
};

pub(super) const HELP: &str = "Exit codes: 0 ok, 1 failed, 2 usage or configuration, 3 not found, \
4 authentication, 5 conflict, 6 wait timed out, 7 unavailable (try again), 8 doctor, eval, context or another check found problems, \
9 the task that was waited for was cancelled, 130 interrupted";

const CHECK_SERVER: &str =
    "start the database server, or correct the address; `dalsegno doctor` checks more";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    Ok = 0,
    Failed = 1,
    Usage = 2,
    NotFound = 3,
    Auth = 4,
    Conflict = 5,
    TimedOut = 6,
    Unavailable = 7,
    ProblemsFound = 8,
    Cancelled = 9,
    Interrupted = 130,
}

/// An error that ends a command, with its exit code.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    pub error: anyhow::Error,
    /// The next step, where the error's text does not name it.
    pub advice: Option<&'static str>,
    /// The invalid parts of the input, where they are known.
    pub wrong: Vec<FieldError>,
}

impl Exit {
    /// Returns the name of the code in `--json` errors.
    pub fn code(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::NotFound => "not_found",
            Self::Auth => "auth",
            Self::Conflict => "conflict",
            Self::TimedOut => "timed_out",
            Self::Unavailable => "unavailable",
            Self::ProblemsFound => "problems_found",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }

    pub(super) fn of(kind: Kind) -> Self {
        match kind {
            Kind::Malformed | Kind::Invalid | Kind::TooLarge => Self::Usage,
            Kind::Forbidden => Self::Auth,
            Kind::NotFound => Self::NotFound,
            Kind::Conflict => Self::Conflict,
            Kind::TooMany | Kind::Unavailable => Self::Unavailable,
            Kind::Internal => Self::Failed,
        }
    }

    pub fn is_retryable(self) -> bool {
        matches!(self, Self::TimedOut | Self::Unavailable)
    }
}

impl Failure {
    pub fn new(exit: Exit, error: anyhow::Error) -> Self {
        Self { exit, error, advice: None, wrong: Vec::new() }
    }

    pub fn failed(error: anyhow::Error) -> Self {
        Self::new(Exit::Failed, error)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Self::new(Exit::Usage, problems.into())
    }
}

impl From<telemetry::Error> for Failure {
    fn from(error: telemetry::Error) -> Self {
        Self::failed(error.into())
    }
}

impl From<serve::Error> for Failure {
    fn from(error: serve::Error) -> Self {
        match error {
            serve::Error::Database(error) => error.into(),
            serve::Error::Worker(error) => error.into(),
            serve::Error::Services(error) => error.into(),
            serve::Error::Http(error @ http::Error::InUse { .. }) => {
                Self::new(Exit::Conflict, error.into())
            }
            serve::Error::Http(http::Error::Keys(error)) => error.into(),
            serve::Error::Http(error @ http::Error::NoKey { .. }) => {
                Self::new(Exit::Usage, error.into())
            }
            error => Self::failed(error.into()),
        }
    }
}

impl<E: Classify> From<E> for Failure {
    fn from(error: E) -> Self {
        Refusal::from(error).into()
    }
}

/// Maps each refusal to its exit code.
impl From<Refusal> for Failure {
    fn from(Refusal { kind, detail, advice, source, wrong, .. }: Refusal) -> Self {
        let error = source.map_or_else(|| anyhow!(detail), anyhow::Error::from_boxed);
        Self { advice, wrong, ..Self::new(Exit::of(kind), error) }
    }
}

impl From<worker::Error> for Failure {
    fn from(error: worker::Error) -> Self {
        match error {
            worker::Error::Database(error) => error.into(),
            worker::Error::Services(error) => error.into(),
            error => Self::failed(error.into()),
        }
    }
}

impl From<jobs::Error> for Failure {
    fn from(error: jobs::Error) -> Self {
        match error {
            jobs::Error::Agents(_) => Self::new(Exit::Usage, error.into()),
            error => Self::failed(error.into()),
        }
    }
}

impl From<db::Error> for Failure {
    fn from(error: db::Error) -> Self {
        let exit = match &error {
            db::Error::Connect { .. } | db::Error::MigrationState(_) => Exit::Unavailable,
            db::Error::Refused { .. } | db::Error::MayNotMigrate(_) => Exit::Auth,
            db::Error::ParseUrl { .. }
            | db::Error::PoolerNotSet
            | db::Error::PoolerNotSupported
            | db::Error::DirectElsewhere
            | db::Error::DirectPooled
            | db::Error::MigrateNeedsSession { .. } => Exit::Usage,
            db::Error::Stopped => Exit::Interrupted,
            db::Error::NoService { .. } | db::Error::NoDatabase { .. } => Exit::Unavailable,
            db::Error::Embedded(error) if error.is_in_use() => Exit::Conflict,
            _ => Exit::Failed,
        };
        let advice = matches!(error, db::Error::Connect { .. }).then_some(CHECK_SERVER);
        Self { advice, ..Self::new(exit, error.into()) }
    }
}
