//! Import of many items at once: all of them or none.

use std::{collections::BTreeSet, fmt};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Config, Document, Error, Kind, MemoryCaller, New,
    publish::{Outcome, lock_memory, predict_outcome, write},
    vectors::request_embeddings,
};

/// Keeps the import's transaction short.
pub(super) const MAX_ENTRIES: usize = 2_000;

/// An item and its position in the input: a file name or a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub at: String,
    pub document: Document,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = MemoryImported)]
pub struct ImportResult {
    pub created: i64,
    /// Number of items that got a new version.
    pub replaced: i64,
    /// Number of items that were identical already.
    pub unchanged: i64,
    /// Limits that are nearly used up.
    pub warnings: Vec<String>,
}

/// The reason why one item cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mistake {
    pub at: String,
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.at, self.message)
    }
}

/// Imports all items, or returns all problems; then the caller must roll back. Without `replaces`, an existing item with a different text
/// is a problem.
pub async fn import(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    entries: &[Entry],
    replaces: bool,
    by: &MemoryCaller<'_>,
    config: &Config,
    now: DateTime<Utc>,
) -> Result<ImportResult, Error> {
    if entries.len() > MAX_ENTRIES {
        let message = format!("{} items at once, at most {MAX_ENTRIES} are allowed", entries.len());
        return Err(Error::Import(vec![Mistake { at: "all".to_owned(), message }]));
    }
    lock_memory(&mut *conn, campaign_id, by).await?;
    let (mut mistakes, mut seen) = (Vec::new(), BTreeSet::<(Kind, Option<&str>, &str)>::new());
    let mut imported = ImportResult::default();
    for Entry { at, document } in entries {
        let mistake = |message: String| Mistake { at: at.clone(), message };
        let named = (document.kind, document.owner.as_deref(), document.name.as_str());
        if !seen.insert(named) {
            mistakes.push(mistake("another of them has the same kind, owner and name".to_owned()));
            continue;
        }
        let outcome =
            match predict_outcome(&mut *conn, campaign_id, &new(document), by, config, now).await {
                Err(error @ (Error::Database(_) | Error::Campaign(_))) => return Err(error),
                Err(error) => {
                    mistakes.push(mistake(error.to_string()));
                    continue;
                }
                Ok(outcome) => outcome,
            };
        match outcome {
            Outcome::Same => imported.unchanged += 1,
            Outcome::Next if !replaces => {
                let (kind, name) = (document.kind.as_str(), &document.name);
                mistakes.push(mistake(format!(
                    "{kind} `{name}` exists with other content, or was revoked or has expired: use --replace, or leave it out"
                )));
            }
            Outcome::Next => imported.replaced += 1,
            Outcome::First => imported.created += 1,
        }
    }
    if !mistakes.is_empty() {
        return Err(Error::Import(mistakes));
    }
    for Entry { at, document } in entries {
        // Only limits that depend on the other items can still be exceeded, such as the number of edicts.
        match write(&mut *conn, campaign_id, &new(document), by, config, now).await {
            Ok(written) => {
                imported.warnings.extend(written.warning.map(|it| format!("{at}: {it}")))
            }
            Err(error @ (Error::Database(_) | Error::Campaign(_))) => return Err(error),
            Err(error) => {
                return Err(Error::Import(vec![Mistake {
                    at: at.clone(),
                    message: error.to_string(),
                }]));
            }
        }
    }
    // Last, because from here on other requests for vectors wait for this transaction.
    if imported.created + imported.replaced > 0 {
        request_embeddings(conn, config).await?;
    }
    Ok(imported)
}

fn new(document: &Document) -> New<'_> {
    New {
        kind: document.kind,
        owner: document.owner.as_deref(),
        name: Some(&document.name),
        title: &document.title,
        body: &document.body,
        expires_at: document.expires_at,
        expected_version: None,
        is_imported: true,
    }
}
