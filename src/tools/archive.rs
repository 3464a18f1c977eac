//! Tool that searches the agent's own conversation, including messages that a compaction has replaced.

use futures_util::FutureExt as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Caller, Refusal,
    arguments::{bad_cursor, schema},
    pages::ToolAnswer,
    tool::{Access, Call, DEFAULT_TIMEOUT, Tool},
};
use crate::domain::{
    messages::{self, MessageHit, Search},
    sessions, transaction,
};

pub(super) const TOOLS: &[Tool] = &[Tool {
    name: "search_transcript",
    description: "Searches everything that was said in your own conversation in this campaign, word for word, including what you only have a summary \
                  of. The newest first.",
    who: Access::Agents,
    in_pages: true,
    timeout: DEFAULT_TIMEOUT,
    schema: |_| schema::<SearchArgs>(),
    run: |call| search(call).boxed(),
}];

const MATCH_LIMIT: i64 = 20;
/// Characters of a message that are shown around a match.
const SHOWN_CHARS: i32 = 1_000;
const MOST_WORDS_CHARS: usize = 200;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchArgs {
    /// Part of what was said, word for word. Upper and lower case are the same.
    words: String,
}

async fn search(call: Call<'_>) -> Result<ToolAnswer, Refusal> {
    let SearchArgs { words } = call.read()?;
    let Caller::Turn(turn) = call.caller else {
        return Err(Refusal::of_text("an operator has no conversation"));
    };
    if words.trim().is_empty() || words.chars().count() > MOST_WORDS_CHARS {
        return Err(Refusal::of_text(format!(
            "`words` must have 1 to {MOST_WORDS_CHARS} characters: give a few words that you remember"
        )));
    }
    let offset = match &call.place {
        Some(place) => {
            let offset = place.parse::<u32>();
            i64::from(offset.map_err(|_| bad_cursor())?)
        }
        None => 0,
    };
    let mut tx = call.begin().await?;
    let sessions = sessions::lineage(&mut *tx, turn.session_id).await?;
    let ids: Vec<_> = sessions.iter().map(|(id, _)| *id).collect();
    let rejected = sessions::rejected_turns(&mut *tx, &ids).await?;
    let search = Search {
        sessions: &sessions,
        without_turns: &rejected,
        words: words.trim(),
        around_chars: SHOWN_CHARS,
        offset,
        limit: MATCH_LIMIT + 1,
    };
    let mut found = messages::search(&mut *tx, &search).await?;
    transaction::commit(tx).await?;
    let goes_on = i64::try_from(found.len()).unwrap_or(i64::MAX) > MATCH_LIMIT;
    found.truncate(usize::try_from(MATCH_LIMIT).unwrap_or(usize::MAX));
    let next = goes_on.then(|| (offset + MATCH_LIMIT).to_string());
    let lines: Vec<Value> = found.iter().map(line).collect();
    let list = match lines.is_empty() {
        true => json!({ "found": [], "next": "No match: try fewer or other words." }),
        false => json!({ "found": lines }),
    };
    ToolAnswer::list(&list, next)
}

fn line(found: &MessageHit) -> Value {
    json!({ "said_at": found.said_at, "turn": found.turn, "by": found.role, "text": found.excerpt })
}
