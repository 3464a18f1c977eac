//! A reader of the campaign's feed that misses no event.

use sqlx::PgPool;
use uuid::Uuid;

use crate::domain::{
    StatementError,
    feed::{self, Event, Filter, Horizon},
};

/// Events per poll.
const PAGE: i64 = 500;

#[derive(Debug)]
pub(super) struct Watch {
    campaign_id: Uuid,
    horizon: Horizon,
    told: i64,
}

impl Watch {
    pub(super) fn of(campaign_id: Uuid) -> Self {
        Self { campaign_id, horizon: Horizon::at(0), told: 0 }
    }

    /// Returns the events since the last call.
    pub(super) async fn next_events(
        &mut self,
        pool: &PgPool,
    ) -> Result<Vec<Event>, StatementError> {
        let sight = feed::read_ahead(pool, &self.horizon, PAGE).await?;
        self.horizon.advance(&sight);
        let filter = Filter {
            campaign_id: Some(self.campaign_id),
            after: self.told,
            up_to: self.horizon.settled(),
            limit: PAGE,
        };
        let events = feed::list(pool, filter).await?;
        self.told = events.last().map_or(self.told, |last| last.id);
        Ok(events)
    }
}
