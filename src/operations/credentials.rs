//! Credentials of providers, and the pauses of those that hit their limit.

use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;

use super::{Call, Change, ChangeOutput, ChangeResult, Operation, Refusal, Spec};
use crate::domain::{
    audit::Action,
    class::{BAD_VALUE, NUL_IN_TEXT},
    credentials::{self, CredentialStatus, Error},
};

const TAG: &str = "credentials";

/// Lists the credentials of providers, and their pauses.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListCredentials {}

/// All credentials, in one page: an installation has a handful.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Credentials {
    pub items: Vec<CredentialStatus>,
}

/// Ends the pause of a credential early, and wakes the tasks that wait for it.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeCredential {
    pub name: String,
    /// Its provider. Required if credentials of several providers with this name are paused.
    pub provider: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ResumedCredential {
    pub name: String,
    pub woken_tasks: i64,
}

impl Operation for ListCredentials {
    const SPEC: Spec = Spec::read("list_credentials", "/v1/credentials", "credential ls").tag(TAG);
    type Output = Credentials;

    async fn run(self, call: &Call) -> Result<Credentials, Refusal> {
        let configured = call.config.credentials.iter();
        let configured: Vec<_> =
            configured.map(|(on, name)| (on.as_str(), name.as_str())).collect();
        let mut transaction = call.begin_read().await?;
        Ok(Credentials { items: credentials::list(&mut transaction, &configured, call.now).await? })
    }
}

impl Change for ResumeCredential {
    const SPEC: Spec =
        Spec::change("resume_credential", "/v1/credentials/{name}/resume", "credential resume")
            .tag(TAG)
            .refuses(&[Error::NOT_PAUSED, Error::AMBIGUOUS, NUL_IN_TEXT, BAD_VALUE]);
    const ACTION: Action = Action::CredentialResume;
    type Output = ResumedCredential;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<ResumedCredential> {
        let credential = (self.provider.as_deref(), self.name.as_str());
        let (provider, woken_tasks) = credentials::resume(conn, credential, call.now).await?;
        let data = json!({ "provider": provider, "woken_tasks": woken_tasks });
        let output = ResumedCredential { name: self.name.clone(), woken_tasks };
        Ok(ChangeOutput::of(self.name, output, data))
    }
}
