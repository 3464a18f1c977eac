//! Idempotent posting: a repeated request with the same key gets the post of the first and its result.
//!
//! The key is looked up before anything else. A repeated request therefore gets its answer even if the agent is gone or the campaign is
//! closed by then.
//!
//! Race: two identical requests at once. The second waits until the first has committed, and finds its post.

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use sqlx::PgConnection;

use super::{CalledAgent, Error, NewPost, PostResult, UnknownName};
use crate::domain::{
    StatementError,
    posts::{self, Key},
};

/// The same maximum as for keys of tasks.
const MAX_KEY_CHARS: usize = 195;

/// The result of looking up a key. Other requests with this key wait until the transaction ends.
pub(super) enum UnderKey<'a> {
    Existing(Box<PostResult>),
    Unused(Key<'a>),
}

#[derive(Serialize, Deserialize)]
struct CameOfIt {
    tasks: Vec<CalledAgent>,
    unknown: Vec<UnknownName>,
    notes: Vec<String>,
}

/// Finds the post that was made under the key.
pub(super) async fn find_by_key<'a>(
    conn: &mut PgConnection,
    new: &NewPost<'a>,
    key: &'a str,
) -> Result<UnderKey<'a>, Error> {
    let n_chars = key.chars().count();
    if !(1..=MAX_KEY_CHARS).contains(&n_chars) || key.contains('\0') {
        return Err(Error::Key { n_chars });
    }
    let key = Key { campaign_id: new.campaign_id, key, question: digest(new) };
    posts::lock_key(&mut *conn, key).await?;
    let Some(found) = posts::find_by_key(conn, key).await? else {
        return Ok(UnderKey::Unused(key));
    };
    if !found.is_same {
        return Err(Error::KeyTaken(key.key.to_owned()));
    }
    let CameOfIt { tasks, unknown, notes } = serde_json::from_value(found.came_of_it)
        .map_err(|error| sqlx::Error::Decode(error.into()))
        .map_err(StatementError::to("read the results of a post"))?;
    let existing = PostResult { post: found.post, created: false, tasks, unknown, notes };
    Ok(UnderKey::Existing(Box::new(existing)))
}

/// Stores the key and the result of a post, in the transaction that adds it.
pub(super) async fn store_result(
    conn: &mut PgConnection,
    key: Key<'_>,
    posted: &PostResult,
) -> Result<(), StatementError> {
    let PostResult { post, tasks, unknown, notes, .. } = posted;
    let came_of_it = json!({ "tasks": tasks, "unknown": unknown, "notes": notes });
    posts::keep_key(conn, key, post.id, &came_of_it).await
}

/// Hashes the request as it was written.
fn digest(new: &NewPost<'_>) -> [u8; 32] {
    let asked = json!({ "text": new.text, "to": new.to, "reply_to": new.reply_to });
    Sha256::digest(asked.to_string().as_bytes()).into()
}
