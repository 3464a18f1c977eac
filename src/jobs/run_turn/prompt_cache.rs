//! The prompt cache that a turn would read from.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use sqlx::PgConnection;

use super::{
    preview::undone,
    sketch::{Sketch, is_in_front},
};
use crate::{
    context::{Digest, Manifest, manifest::Kind},
    domain::{
        context_previews::Error,
        estimates::{PromptCache, PromptCacheState},
        manifests, sessions,
    },
    providers::Provider,
};

/// Returns the cache of a session that is not open yet.
pub(super) fn of_new_session(provider: &dyn Provider) -> PromptCache {
    let state = match provider.prompt_cache() {
        Some(_) => PromptCacheState::Empty,
        None => PromptCacheState::None,
    };
    PromptCache { state, tokens: 0, until: None }
}

/// Returns the cache of a session that the turn continues. `last_output_tokens` were written by the last turn: they are not cached yet.
pub(super) async fn of_session(
    conn: &mut PgConnection,
    provider: &dyn Provider,
    sketch: &Sketch,
    last_output_tokens: i64,
    now: DateTime<Utc>,
) -> Result<PromptCache, Error> {
    let new = of_new_session(provider);
    let Some(lifetime) = provider.prompt_cache() else { return Ok(new) };
    let session = &sketch.session;
    let is_new = provider.holds_session() && session.head.is_none();
    if is_new || session.context_tokens == 0 {
        return Ok(new);
    }
    let used_at = sessions::get(&mut *conn, session.id).await.map_err(undone)?.used_at;
    let until = used_at + TimeDelta::from_std(lifetime).unwrap_or(TimeDelta::MAX);
    let of = |state, tokens| PromptCache { state, tokens, until: Some(until) };
    if until <= now {
        return Ok(of(PromptCacheState::Expired, 0));
    }
    let stored = manifests::stored_of_turn(conn, session.id, session.turn_count).await;
    let stored = stored.map_err(undone)?;
    let last = stored.last().and_then(|last| front_of_stored(&last.manifest));
    if last != Some(front(&sketch.manifest)) {
        return Ok(of(PromptCacheState::Changed, 0));
    }
    let cached = (session.context_tokens - last_output_tokens).max(0);
    Ok(of(PromptCacheState::Valid, cached.min(sketch.size.first_tokens)))
}

type Front = Vec<(Kind, Option<Digest>)>;

/// Lists the digests of the parts in front of the conversation.
fn front(manifest: &Manifest) -> Front {
    let sent = manifest.parts.iter().filter(|part| part.sent && is_in_front(part.kind));
    sent.map(|part| (part.kind, part.sha256)).collect()
}

/// Returns `None` for a manifest of a newer version.
fn front_of_stored(stored: &Value) -> Option<Front> {
    serde_json::from_value(stored.clone()).ok().map(|stored| front(&stored))
}
