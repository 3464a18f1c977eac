//! The board of a campaign.

use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Call, Change, ChangeOutput, ChangeResult, Listing, Operation, Refusal, Spec, Success,
    page_limit,
};
use crate::domain::{
    amount,
    audit::Action,
    campaigns,
    class::NUL_IN_TEXT,
    mentions::{self, PostResult},
    posts::{self, Archive, Error, ListDirection, Post, Viewer},
    text,
};

const PATH: &str = "/v1/campaigns/{id}/posts";

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

/// Shows the summary of the archived posts of a campaign: their senders, numbers and times.
///
/// The nightly cleanup archives posts by age and number (`board.keep_days`, `board.keep_posts`). `list_posts` still lists them; turns no longer
/// show them.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowBoardArchive {
    /// The campaign.
    pub id: Uuid,
    /// Only what this agent sees: its name; `curator_2` and `curator/2` are another instance of `curator`.
    pub viewer: Option<String>,
}

/// Posts as the operator.
///
/// Each agent that the text mentions as `@name` gets a task, `@all` means all of them; its answer is a post that answers. The agents
/// that a post is addressed to see it with their next turn; the operator and the lead see everything. The same Idempotency-Key and
/// question give the same post again, with 200, as long as the campaign exists; another question under the key is a conflict.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewPost, example = json!({ "audience": ["copywriter"], "text": "Mind the tides." }))]
pub struct AddPost {
    /// The campaign.
    pub id: Uuid,
    #[schema(min_length = 1)]
    pub text: String,
    /// Its readers beside those that the text mentions: agents, their other instances as `curator_2` or `curator/2`, `operator`, or
    /// `all`. Without it and without a mention, the lead is asked.
    #[schema(max_items = 200)]
    pub audience: Option<Vec<String>>,
    /// The post that it answers.
    pub reply_to: Option<Uuid>,
}

impl Operation for ListPosts {
    const SPEC: Spec = Spec::read("list_posts", PATH, "board history")
        .tag("board")
        .refuses(&[campaigns::Error::UNKNOWN, Error::UNKNOWN_NAMES]);
    type Output = Listing<Post>;

    async fn run(self, call: &Call) -> Result<Listing<Post>, Refusal> {
        let limit = page_limit(self.limit)?;
        let catalogue = call.catalogue()?;
        let lead = catalogue.lead().map(|lead| lead.name.as_str());
        let is_agent = |name: &str| catalogue.has_agent(name);
        let named = self.viewer.map(|written| posts::reader_named(&catalogue, &written));
        let viewer = Viewer::resolve(named.as_deref(), lead, is_agent)?;
        let along = match self.order.unwrap_or_default() {
            PostOrder::Newest => ListDirection::Before(self.cursor.unwrap_or(i64::MAX)),
            PostOrder::Oldest => ListDirection::After(self.cursor.unwrap_or(0)),
        };
        campaigns::get(&call.pool, self.id).await?;
        let posts = posts::list_page(&call.pool, self.id, viewer, along, limit + 1).await?;
        Ok(Listing::of(posts, limit, |post| post.seq))
    }
}

impl Operation for ShowBoardArchive {
    const SPEC: Spec =
        Spec::read("show_board_archive", "/v1/campaigns/{id}/posts/archive", "board archive")
            .tag("board")
            .refuses(&[campaigns::Error::UNKNOWN, Error::UNKNOWN_NAMES]);
    type Output = Archive;

    async fn run(self, call: &Call) -> Result<Archive, Refusal> {
        let catalogue = call.catalogue()?;
        let lead = catalogue.lead().map(|lead| lead.name.as_str());
        let named = self.viewer.map(|written| posts::reader_named(&catalogue, &written));
        let viewer = Viewer::resolve(named.as_deref(), lead, |name| catalogue.has_agent(name))?;
        let mut transaction = call.begin_read().await?;
        campaigns::get(&mut *transaction, self.id).await?;
        Ok(posts::archive_of(&mut transaction, self.id, viewer).await?)
    }
}

impl Change for AddPost {
    const SPEC: Spec = Spec::change("add_post", PATH, "board post")
        .tag("board")
        .answers(Success::Created)
        .keyed(195)
        .refuses(&[
            campaigns::Error::UNKNOWN,
            Error::UNKNOWN_POST,
            campaigns::Error::CLOSED,
            amount::Refusal::CLASS,
            mentions::Error::KEY_TAKEN,
            text::Error::TOO_LONG,
            Error::TOO_MANY_NAMES,
            text::Error::EMPTY,
            NUL_IN_TEXT,
            Error::UNKNOWN_NAMES,
            Error::NO_AUDIENCE,
            mentions::Error::BAD_KEY,
        ]);
    const ACTION: Action = Action::PostAdd;
    type Output = PostResult;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<PostResult> {
        let (catalogue, added_by) = (call.catalogue()?, call.actor.label());
        let new = mentions::NewPost {
            campaign_id: self.id,
            text: &self.text,
            to: self.audience.as_deref(),
            reply_to: self.reply_to,
            idempotency_key: call.idempotency_key.as_deref(),
            added_by: &added_by,
        };
        let limits = (&call.config.mentions, &call.config.tasks);
        let output = mentions::post(conn, &catalogue, limits, &new, call.now).await?;
        if !output.created {
            return Ok(ChangeOutput::nothing(self.id, output));
        }
        let post = &output.post;
        let data = json!({ "post_id": post.id, "seq": post.seq, "audience": post.audience });
        Ok(ChangeOutput::of(self.id, output, data))
    }

    fn is_replay(output: &PostResult) -> bool {
        !output.created
    }
}
