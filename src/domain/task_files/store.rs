//! Storing the files of a turn, in the transaction that ends it.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sha2::{Digest as _, Sha256};
use sqlx::PgExecutor;
use uuid::Uuid;

use super::{media_type, name};
use crate::domain::{StatementError, text};

/// Files of a turn, by their names, and the files that cannot be stored, with the reason.
#[derive(Debug, Default)]
pub struct NewFiles<'a> {
    files: BTreeMap<String, NewFile<'a>>,
    problems: BTreeMap<String, String>,
}

struct NewFile<'a> {
    sha256: [u8; 32],
    content: &'a [u8],
}

impl<'a> NewFiles<'a> {
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.problems.is_empty()
    }

    pub fn n_files(&self) -> usize {
        self.files.len()
    }

    /// Adds a file, whose name is [checked](name::check).
    pub fn add(&mut self, name: &str, content: &'a [u8]) {
        let file = NewFile { sha256: Sha256::digest(content).into(), content };
        self.problems.remove(name);
        self.files.insert(name.to_owned(), file);
    }

    /// Adds a file that is not stored. A stored file of the same name counts more.
    pub fn add_problem(&mut self, name: &[u8], reason: String) {
        let name = name::printable(name);
        if !self.files.contains_key(&name) {
            self.problems.insert(name, text::make_storable(reason));
        }
    }

    /// Lists the names and reasons of files that are not stored.
    pub fn problems(&self) -> impl Iterator<Item = (&str, &str)> {
        self.problems.iter().map(|(name, reason)| (name.as_str(), reason.as_str()))
    }
}

/// Stores contents that are not stored yet. Comes before the turn locks other rows, because it takes as long as the contents are.
///
/// The rows stay locked, so that a cleanup does not remove a content that the turn is about to use. They are locked in the order of their
/// digests, so that two turns with the same contents do not deadlock.
pub async fn store_contents(
    executor: impl PgExecutor<'_>,
    new: &NewFiles<'_>,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    let by_digest: BTreeMap<_, _> =
        new.files.values().map(|file| (file.sha256, file.content)).collect();
    if by_digest.is_empty() {
        return Ok(());
    }
    let digests: Vec<&[u8]> = by_digest.keys().map(<[u8; 32]>::as_slice).collect();
    let types: Vec<&str> =
        by_digest.values().map(|content| media_type::of_content(content)).collect();
    let contents: Vec<&[u8]> = by_digest.values().copied().collect();
    sqlx::query!(
        "insert into dalsegno.file_contents as c (stored_at, n_bytes, sha256, media_type, content)
         select $4, octet_length(n.content), n.sha256, n.media_type, n.content
           from unnest($1::bytea[], $2::text[], $3::bytea[]) as n (sha256, media_type, content)
          order by n.sha256
             on conflict (sha256) do update set stored_at = greatest(c.stored_at, excluded.stored_at)",
        &digests as _,
        &types as _,
        &contents as _,
        now,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("store the contents of files"))
}

/// Stores the files of a turn with its task. A file of an earlier turn with the same name is replaced.
pub async fn record(
    executor: impl PgExecutor<'_>,
    (task_id, turn): (Uuid, i32),
    new: &NewFiles<'_>,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    let names: Vec<&str> =
        new.files.keys().chain(new.problems.keys()).map(String::as_str).collect();
    let digests = new.files.values().map(|file| Some(file.sha256.as_slice()));
    let digests: Vec<Option<&[u8]>> = digests.chain(new.problems.keys().map(|_| None)).collect();
    let problems = new.problems.values().map(|reason| Some(reason.as_str()));
    let problems: Vec<Option<&str>> = new.files.keys().map(|_| None).chain(problems).collect();
    sqlx::query!(
        "insert into dalsegno.task_files as f (stored_at, turn, task_id, name, sha256, problem)
         select $5, $2, $1, n.name, n.sha256, n.problem
           from unnest($3::text[], $4::bytea[], $6::text[]) as n (name, sha256, problem)
             on conflict (task_id, name)
             do update set stored_at = excluded.stored_at, turn = excluded.turn, sha256 = excluded.sha256, problem = excluded.problem",
        task_id,
        turn,
        &names as _,
        &digests as _,
        now,
        &problems as _,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("store the files of a task"))
}

impl std::fmt::Debug for NewFile<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.content.len())
    }
}
