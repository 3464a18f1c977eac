//! Read access to the turns of sessions.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Call, Listing, Operation, Refusal, Spec, page_limit};
use crate::domain::{
    sessions,
    turns::{self, Detail, Error, ListedTurn},
};

const TAG: &str = "sessions";

/// Lists the turns of a session, the newest first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListTurns {
    pub id: Uuid,
    /// The number of a turn.
    pub cursor: Option<i32>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Shows a turn with its calls, and the parts of the context that each of them was sent.
///
/// A part that was left out states the reason.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowTurn {
    /// The session. Another one of the same conversation is searched for the turn, too: the numbers continue from session to session.
    pub id: Uuid,
    pub number: i32,
}

impl Operation for ListTurns {
    const SPEC: Spec = Spec::read("list_turns", "/v1/sessions/{id}/turns", "turn ls")
        .tag(TAG)
        .refuses(&[sessions::Error::UNKNOWN]);
    type Output = Listing<ListedTurn>;

    async fn run(self, call: &Call) -> Result<Listing<ListedTurn>, Refusal> {
        let limit = page_limit(self.limit)?;
        let mut transaction = call.begin_read().await?;
        let turns = turns::list(&mut transaction, self.id, self.cursor, limit + 1).await?;
        Ok(Listing::of(turns, limit, |listed| listed.turn.number))
    }
}

impl Operation for ShowTurn {
    const SPEC: Spec = Spec::read("show_turn", "/v1/sessions/{id}/turns/{number}", "turn show")
        .tag(TAG)
        .refuses(&[sessions::Error::UNKNOWN, Error::UNKNOWN]);
    type Output = Detail;

    async fn run(self, call: &Call) -> Result<Detail, Refusal> {
        let mut transaction = call.begin_read().await?;
        let id = turns::find_session(&mut transaction, self.id, self.number).await?;
        let catalogue = call.catalogue()?;
        let lead = catalogue.lead().map(AsRef::as_ref);
        Ok(turns::detail(&mut transaction, id, self.number, lead).await?)
    }
}
