//! Sign-ins to the console.

use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Call, Change, ChangeOutput, ChangeResult, Listing, Operation, Refusal, Spec, page_limit,
};
use crate::domain::{
    Page,
    audit::Action,
    keys::Scope,
    sign_ins::{self, Error, SignIn},
};

const TAG: &str = "keys";
const ADMIN: &[Scope] = &[Scope::Admin];

/// Lists the sign-ins to the console, the newest first.
///
/// Those that have ended or expired are listed for 30 days.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListSignIns {
    pub cursor: Option<Uuid>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Ends a sign-in: the browser has to sign in again with a key.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EndSignIn {
    pub id: Uuid,
}

impl Operation for ListSignIns {
    const SPEC: Spec =
        Spec::read("list_sign_ins", "/v1/sign-ins", "sign-in ls").tag(TAG).needs(ADMIN);
    type Output = Listing<SignIn>;

    async fn run(self, call: &Call) -> Result<Listing<SignIn>, Refusal> {
        let limit = page_limit(self.limit)?;
        let page = Page { after: self.cursor, limit: limit + 1 };
        Ok(Listing::of(sign_ins::list(&call.pool, page).await?, limit, |sign_in| sign_in.id))
    }
}

impl Change for EndSignIn {
    const SPEC: Spec = Spec::change("end_sign_in", "/v1/sign-ins/{id}/end", "sign-in end")
        .tag(TAG)
        .needs(ADMIN)
        .refuses(&[Error::UNKNOWN]);
    const ACTION: Action = Action::SignInEnd;
    type Output = SignIn;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<SignIn> {
        let (sign_in, is_news) = sign_ins::end(conn, self.id, call.now).await?;
        Ok(match is_news {
            true => ChangeOutput::of(self.id, sign_in, json!({})),
            false => ChangeOutput::nothing(self.id, sign_in),
        })
    }
}
