//! What the functions of the schema refuse, as an error with a hint.

use sqlx::postgres::PgDatabaseError;

/// Why the queue did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An argument is out of its range.
    #[error("{message}. {hint}")]
    BadArgument {
        /// What is wrong.
        message: String,
        /// What would be right.
        hint: String,
    },
    /// There is no such job.
    #[error("{message}. {hint}")]
    NotFound {
        /// What was looked for.
        message: String,
        /// Where else to look.
        hint: String,
    },
    /// There is no such lane.
    #[error("{message}. {hint}")]
    UnknownLane {
        /// What was looked for.
        message: String,
        /// Where else to look.
        hint: String,
    },
    /// There is no such queue.
    #[error(
        "there is no queue `{0}`: it has no job, no worker and no pause; `dalsegno queue ls` lists those that have"
    )]
    UnknownQueue(String),
    /// The state of things does not allow it.
    #[error("{message}. {hint}")]
    Conflict {
        /// What is in the way.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// The payload is over the limit.
    #[error("{message}. {hint}")]
    TooLarge {
        /// How large it is.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// The payload has no JSON form.
    #[error("writing the payload of a `{kind}` as JSON")]
    EncodePayload {
        /// The kind of the job.
        kind: &'static str,
        /// Why not.
        #[source]
        source: serde_json::Error,
    },
    /// The database did not answer, or not as expected.
    #[error("asking the database to {action}")]
    Database {
        /// What it was asked.
        action: &'static str,
        /// What it said.
        #[source]
        source: sqlx::Error,
    },
}

impl Error {
    /// Sorts an error of a statement by the code that the schema's functions raise.
    pub fn of(action: &'static str) -> impl FnOnce(sqlx::Error) -> Self {
        move |source| {
            let refused = source
                .as_database_error()
                .and_then(|error| error.try_downcast_ref::<PgDatabaseError>())
                .map(|error| {
                    let hint = error.hint().unwrap_or_default().to_owned();
                    (error.code().to_owned(), error.message().to_owned(), hint)
                });
            match refused {
                Some((code, message, hint)) => match code.as_str() {
                    "DS400" => Self::BadArgument { message, hint },
                    "DS404" => Self::NotFound { message, hint },
                    "DS409" => Self::Conflict { message, hint },
                    "DS413" => Self::TooLarge { message, hint },
                    // What Postgres says about it names neither the character nor a way out.
                    "22021" | "22P05" => Self::BadArgument {
                        message: format!(
                            "cannot {action}: a text in it holds the character U+0000, or none that UTF-8 knows"
                        ),
                        hint: "Remove it, or encode the data, for instance as base64".to_owned(),
                    },
                    _ => Self::Database { action, source },
                },
                None => Self::Database { action, source },
            }
        }
    }
}
