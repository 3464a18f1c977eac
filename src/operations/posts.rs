//! Reading the board of a campaign.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Call, Listing, Operation, Refusal, Spec, page_limit};
use crate::domain::{
    campaigns,
    posts::{self, Along, Error, Post, Viewer},
};

/// Lists the posts of a campaign, the newest first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListPosts {
    pub id: Uuid,
    /// Only what this agent sees: its name; `curator_2` and `curator/2` are another instance of `curator`.
    pub viewer: Option<String>,
    /// The newest first, unless this says otherwise.
    #[schema(inline)]
    pub order: Option<PostOrder>,
    /// The `seq` of the last post that was read.
    #[schema(minimum = 0)]
    pub cursor: Option<i64>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PostOrder {
    #[default]
    Newest,
    Oldest,
}

impl Operation for ListPosts {
    const SPEC: Spec = Spec::read("list_posts", "/v1/campaigns/{id}/posts", "board history")
        .tag("board")
        .refuses(&[campaigns::Error::UNKNOWN, Error::UNKNOWN_NAMES]);
    type Output = Listing<Post>;

    async fn run(self, call: &Call) -> Result<Listing<Post>, Refusal> {
        let limit = page_limit(self.limit)?;
        let catalogue = call.catalogue()?;
        let lead = catalogue.lead().map(|lead| lead.name.as_str());
        let is_agent = |name: &str| catalogue.has_agent(name);
        let named = self.viewer.map(|written| posts::reader_named(&catalogue, &written));
        let viewer = Viewer::named(named.as_deref(), lead, is_agent)?;
        let along = match self.order.unwrap_or_default() {
            PostOrder::Newest => Along::Before(self.cursor.unwrap_or(i64::MAX)),
            PostOrder::Oldest => Along::After(self.cursor.unwrap_or(0)),
        };
        campaigns::get(&call.pool, self.id).await?;
        let posts = posts::along(&call.pool, self.id, viewer, along, limit + 1).await?;
        Ok(Listing::of(posts, limit, |post| post.seq))
    }
}
