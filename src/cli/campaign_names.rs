//! Names of campaigns, for lists of several campaigns.

use std::collections::HashMap;

use uuid::Uuid;

use super::{
    output::{Output, short_id},
    server::Server,
};
use crate::operations::ListCampaigns;

/// Head of the column.
pub(super) const CAMPAIGN: &str = "CAMPAIGN";
/// Most campaigns whose names are read, the newest first.
const MAX_READ: i64 = 200;

/// The names of the newest campaigns.
#[derive(Debug, Default)]
pub(super) struct CampaignNames(HashMap<Uuid, String>);

impl CampaignNames {
    /// Reads the names for a list. `None`: its items belong to this one campaign.
    pub(super) async fn of_list<T>(
        campaign_id: Option<Uuid>,
        items: &[T],
        output: Output,
        server: &Server,
    ) -> Option<Self> {
        match campaign_id {
            Some(_) => None,
            // A program gets ids, and the head of an empty list needs no names.
            None if output.is_structured() || items.is_empty() => Some(Self::default()),
            None => Some(Self::read(server).await),
        }
    }

    /// Reads the names. Without the right to list campaigns, or without the server, ids stand for them.
    async fn read(server: &Server) -> Self {
        let page = |cursor: Option<String>, limit| ListCampaigns {
            tags: None,
            metadata: None,
            cursor: cursor.and_then(|cursor| cursor.parse().ok()),
            limit: Some(limit),
        };
        let campaigns = server.items(MAX_READ, page).await.unwrap_or_default();
        Self(campaigns.into_iter().map(|campaign| (campaign.id, campaign.name)).collect())
    }

    /// Returns the name of a campaign, or else its id.
    pub(super) fn cell(&self, id: Uuid) -> String {
        self.0.get(&id).cloned().unwrap_or_else(|| short_id(id))
    }
}
