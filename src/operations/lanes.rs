//! Lanes: serial sequences of jobs. Names of lanes contain slashes, which are written as `%2F` in a path.

use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;

use super::{
    Call, Change, ChangeOutput, ChangeResult, Listing, Operation, Refusal, Spec, by_request,
    page_limit,
};
use crate::{
    domain::{
        audit::Action,
        class::{BAD_ARGUMENT, NUL_IN_TEXT, UNKNOWN_LANE},
    },
    queue::admin::{self, LaneView},
};

const TAG: &str = "queue";

/// Lists the names of the lanes that have jobs, the oldest lane first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListLanes {
    /// Only lanes that are held.
    #[serde(default)]
    pub held: bool,
    pub cursor: Option<String>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LaneName(pub String);

/// Shows a lane with its first jobs, in order.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowLane {
    pub name: String,
}

/// Stops a lane after its running job.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HoldLane {
    pub name: String,
    /// Shown with the lane while it is held.
    #[serde(default = "by_request")]
    #[schema(min_length = 1)]
    pub reason: String,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HeldLane {
    pub held: String,
}

/// Releases a held lane; a failed head that held it becomes a dead letter.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseLane {
    pub name: String,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ReleasedLane {
    pub released: String,
}

impl Operation for ListLanes {
    const SPEC: Spec =
        Spec::read("list_lanes", "/v1/lanes", "lane ls").tag(TAG).refuses(&[UNKNOWN_LANE]);
    type Output = Listing<LaneName>;

    async fn run(self, call: &Call) -> Result<Listing<LaneName>, Refusal> {
        let limit = page_limit(self.limit)?;
        let after = self.cursor.unwrap_or_default();
        let mut transaction = call.begin_read().await?;
        let names = admin::list_lanes(&mut transaction, self.held, &after, limit + 1).await?;
        let names = names.into_iter().map(LaneName).collect();
        Ok(Listing::of(names, limit, |LaneName(name)| name.clone()))
    }
}

impl Operation for ShowLane {
    const SPEC: Spec =
        Spec::read("show_lane", "/v1/lanes/{name}", "lane show").tag(TAG).refuses(&[UNKNOWN_LANE]);
    type Output = LaneView;

    async fn run(self, call: &Call) -> Result<LaneView, Refusal> {
        let mut transaction = call.begin_read().await?;
        Ok(admin::find_lane(&mut transaction, &self.name).await?)
    }
}

impl Change for HoldLane {
    const SPEC: Spec = Spec::change("hold_lane", "/v1/lanes/{name}/hold", "lane hold")
        .tag(TAG)
        .refuses(&[UNKNOWN_LANE, BAD_ARGUMENT, NUL_IN_TEXT]);
    const ACTION: Action = Action::LaneHold;
    type Output = HeldLane;

    async fn change(self, conn: &mut PgConnection, _: &Call) -> ChangeResult<HeldLane> {
        admin::hold_lane(conn, &self.name, &self.reason).await?;
        let output = HeldLane { held: self.name.clone() };
        Ok(ChangeOutput::of(self.name, output, json!({ "reason": self.reason })))
    }
}

impl Change for ReleaseLane {
    const SPEC: Spec = Spec::change("release_lane", "/v1/lanes/{name}/release", "lane release")
        .tag(TAG)
        .refuses(&[UNKNOWN_LANE]);
    const ACTION: Action = Action::LaneRelease;
    type Output = ReleasedLane;

    async fn change(self, conn: &mut PgConnection, _: &Call) -> ChangeResult<ReleasedLane> {
        admin::release_lane(conn, &self.name).await?;
        let output = ReleasedLane { released: self.name.clone() };
        Ok(ChangeOutput::of(self.name, output, json!({})))
    }
}
