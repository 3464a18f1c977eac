//! Search over the texts of all campaigns.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Call, Listing, Operation, Refusal, Spec, page_limit};
use crate::domain::{
    class::{Kind, NUL_IN_TEXT},
    text,
    text_query::{TextHit, TextKind, TextPlace, TextQuery},
    text_search, timestamp,
};

/// After every moment at which something was written.
const FUTURE: TimeDelta = TimeDelta::weeks(520);

/// Searches the texts of all campaigns, the newest first: prompts and results of tasks, posts, valid items of the memory, results of tools,
/// answers before a tool and interrupted ones, summaries of compactions, current briefs with client contexts, current blackboards, and valid
/// facts about users. Other answers are found as the results of their tasks. Keys that are bound to campaigns find no facts.
///
/// Words of four letters or more also find longer words that begin with them. Of a text, the first 65,536 characters are searched; of open
/// tasks the newest 1,000, and as many of the tasks that ended in the last minutes and are not in the index yet. If more than 10,000 texts
/// of a kind and of a span of weeks match, some of them are left out.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchTexts {
    /// Words; `"in this order"`, `or` and `-without` mean what they do elsewhere.
    pub q: String,
    pub campaign_id: Option<Uuid>,
    /// Only texts of this agent with all its instances, or of one instance of it: `curator_2`, `curator/eu`.
    pub agent: Option<String>,
    #[schema(inline)]
    pub kind: Option<TextKind>,
    /// Only those that were written at this moment or later.
    #[serde(default, deserialize_with = "timestamp::optional")]
    pub created_after: Option<DateTime<Utc>>,
    /// Only those that were written earlier.
    #[serde(default, deserialize_with = "timestamp::optional")]
    pub created_before: Option<DateTime<Utc>>,
    pub cursor: Option<String>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

impl Operation for SearchTexts {
    const SPEC: Spec = Spec::read("search_texts", "/v1/search", "search")
        .tag("campaigns")
        .for_bound_keys()
        .refuses(&[text::Error::TOO_LONG, text::Error::EMPTY, text::Error::NO_WORDS, NUL_IN_TEXT]);
    type Output = Listing<TextHit>;

    async fn run(self, call: &Call) -> Result<Listing<TextHit>, Refusal> {
        let limit = page_limit(self.limit)?;
        let catalogue = call.catalogue()?;
        let agent = self.agent.as_deref().map(|written| catalogue.parse_filter(written, None));
        let (agent, instance) = match agent.transpose().map_err(|error| bad(error.to_string()))? {
            Some((agent, instance)) => (Some(agent), instance),
            None => (None, None),
        };
        let query = TextQuery {
            words: &self.q,
            campaign_id: self.campaign_id,
            within: call.reach.campaigns(),
            agent,
            instance,
            since: self.created_after,
            before: self.begin(call.now)?,
            limit: limit + 1,
        };
        let mut transaction = call.begin_search().await?;
        let hits = text_search::search(&mut transaction, &query, self.kind, call.now).await?;
        Ok(Listing::of(hits, limit, TextHit::place))
    }
}

impl SearchTexts {
    /// Returns the place at which the page begins.
    fn begin(&self, now: DateTime<Utc>) -> Result<TextPlace, Refusal> {
        let end = TextPlace::start_of(self.created_before.unwrap_or(now + FUTURE));
        let Some(cursor) = &self.cursor else { return Ok(end) };
        let unread =
            || bad(format!("`{cursor}` is not a cursor: use the `next` of the page before"));
        let place: TextPlace = cursor.parse().map_err(|()| unread())?;
        Ok(if place.at < end.at { place } else { end })
    }
}

fn bad(detail: String) -> Refusal {
    Refusal::new(Kind::Malformed, "bad_query", detail)
}
