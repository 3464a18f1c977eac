//! Fidelity of conversations: proofs that models saw what they should have seen.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Call, Listing, Operation, Refusal, Spec, page_limit};
use crate::domain::{
    campaigns,
    fidelity::{self, CheckedTurn, FidelityReport, TurnCursor},
    turns::HistoryCheck,
};

const TAG: &str = "sessions";

/// Reports how exactly the conversations of a campaign were continued.
///
/// It counts the turns whose token counts prove that the model saw the history, compares estimates with counts, and
/// lists the rejected summaries. It is about the newest 10,000 ended turns (`is_limited`).
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportFidelity {
    /// The campaign.
    pub id: Uuid,
}

/// Lists the ended turns of a campaign, each with the proof that the model saw the history.
///
/// The newest session comes first, and its last turn first. With `history`, a page checks at most 10,000 turns: it may have fewer items than
/// `limit`, or none, and a `next`.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListCheckedTurns {
    /// The campaign.
    pub id: Uuid,
    /// Only the turns with this proof.
    pub history: Option<HistoryCheck>,
    #[schema(value_type = Option<String>)]
    pub cursor: Option<TurnCursor>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

impl Operation for ReportFidelity {
    const SPEC: Spec =
        Spec::read("report_fidelity", "/v1/campaigns/{id}/fidelity", "fidelity report")
            .tag(TAG)
            .refuses(&[campaigns::Error::UNKNOWN]);
    type Output = FidelityReport;

    async fn run(self, call: &Call) -> Result<FidelityReport, Refusal> {
        let mut transaction = call.begin_read().await?;
        Ok(fidelity::report(&mut transaction, self.id).await?)
    }
}

impl Operation for ListCheckedTurns {
    const SPEC: Spec =
        Spec::read("list_checked_turns", "/v1/campaigns/{id}/fidelity/turns", "fidelity turns")
            .tag(TAG)
            .refuses(&[campaigns::Error::UNKNOWN]);
    type Output = Listing<CheckedTurn>;

    async fn run(self, call: &Call) -> Result<Listing<CheckedTurn>, Refusal> {
        let limit = page_limit(self.limit)?;
        let mut transaction = call.begin_read().await?;
        let page = fidelity::list(&mut transaction, self.id, self.history, self.cursor, limit + 1);
        let page = page.await?;
        let listing = Listing::of(page.turns, limit, CheckedTurn::cursor);
        let next = listing.next.or(page.looked_up_to.map(|place| place.to_string()));
        Ok(Listing { next, ..listing })
    }
}
