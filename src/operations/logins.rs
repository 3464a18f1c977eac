//! Credentials of providers, and the pauses of those that hit their limit.

use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;

use super::{Call, Change, ChangeOutput, ChangeResult, Operation, Refusal, Spec};
use crate::domain::{
    audit::Action,
    class::BAD_VALUE,
    logins::{self, Error, Login},
};

const TAG: &str = "logins";

/// Lists logins of providers, and which of them rest.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListLogins {}

/// All logins: there are a handful.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Logins {
    pub items: Vec<Login>,
}

/// Ends a login's rest before its time.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeLogin {
    pub name: String,
    /// Its provider. Needed where logins of several providers have this name and rest.
    pub provider: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ResumedLogin {
    pub login: String,
    pub woken_tasks: i64,
}

impl Operation for ListLogins {
    const SPEC: Spec = Spec::read("list_logins", "/v1/logins", "login ls").tag(TAG);
    type Output = Logins;

    async fn run(self, call: &Call) -> Result<Logins, Refusal> {
        let configured = call.config.logins.iter();
        let configured: Vec<_> =
            configured.map(|(on, name)| (on.as_str(), name.as_str())).collect();
        let mut transaction = call.begin_read().await?;
        Ok(Logins { items: logins::list(&mut transaction, &configured, call.now).await? })
    }
}

impl Change for ResumeLogin {
    const SPEC: Spec = Spec::change("resume_login", "/v1/logins/{name}/resume", "login resume")
        .tag(TAG)
        .refuses(&[Error::NOT_RESTING, Error::AMBIGUOUS, BAD_VALUE]);
    const ACTION: Action = Action::LoginResume;
    type Output = ResumedLogin;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<ResumedLogin> {
        let login = (self.provider.as_deref(), self.name.as_str());
        let (provider, woken_tasks) = logins::resume(conn, login, call.now).await?;
        let data = json!({ "provider": provider, "woken_tasks": woken_tasks });
        let output = ResumedLogin { login: self.name.clone(), woken_tasks };
        Ok(ChangeOutput::of(self.name, output, data))
    }
}
