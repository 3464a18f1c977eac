//! Errors of the queue, with the hints that the schema's functions raise.

use sqlx::postgres::PgDatabaseError;

/// A failed call of the queue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An argument is out of its range.
    #[error("{message}. {hint}")]
    BadArgument {
        /// Description of the error.
        message: String,
        /// Hint at a valid value.
        hint: String,
    },
    /// There is no such job.
    #[error("{message}. {hint}")]
    NotFound {
        /// Message that names the missing job.
        message: String,
        /// Hint at other places to look.
        hint: String,
    },
    /// There is no such lane.
    #[error("{message}. {hint}")]
    UnknownLane {
        /// Message that names the missing lane.
        message: String,
        /// Hint at other places to look.
        hint: String,
    },
    /// There is no such queue.
    #[error(
        "there is no queue `{0}`: it has no job, no worker and no pause; `dalsegno queue ls` lists the queues"
    )]
    UnknownQueue(String),
    /// The state of things does not allow it.
    #[error("{message}. {hint}")]
    Conflict {
        /// Description of the conflict.
        message: String,
        /// Hint at the next step.
        hint: String,
    },
    /// The payload is over the limit.
    #[error("{message}. {hint}")]
    TooLarge {
        /// Message with the size and the limit.
        message: String,
        /// Hint at the next step.
        hint: String,
    },
    /// The payload has no JSON form.
    #[error("cannot write the payload of a `{kind}` job as JSON")]
    EncodePayload {
        /// The kind of the job.
        kind: &'static str,
        /// Error of the serializer.
        #[source]
        source: serde_json::Error,
    },
    /// The database did not answer, or not as expected.
    #[error("the database could not {action}")]
    Database {
        /// Action that the database was asked for.
        action: &'static str,
        /// Error of the connection or the database.
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
                            "cannot {action}: a text contains the character U+0000 or invalid UTF-8"
                        ),
                        hint: "Remove it, or encode the data, for example as base64".to_owned(),
                    },
                    _ => Self::Database { action, source },
                },
                None => Self::Database { action, source },
            }
        }
    }
}
