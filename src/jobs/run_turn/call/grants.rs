//! The grants of the agent's file for the provider's program, for one turn.

use std::{io, path::PathBuf};

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use tokio::fs::DirBuilder;
use uuid::Uuid;

use crate::{
    domain::{
        agents,
        turn_phases::StartedTurn,
        turn_tokens::{self, Bearer},
    },
    jobs::{Services, run_turn::load::assignment::Assignment},
    providers::{self, Class, Grants, Origin, PermissionMode},
    queue::Run,
    tools,
};

/// Builds the grants from the agent's file as it is now, with the limit of the turn's cost.
pub async fn build_grants(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    begun: &StartedTurn,
    left_micros: Option<i64>,
) -> Result<Grants, providers::Error> {
    let Assignment { agent, task, .. } = assignment;
    let granted = &agent.grants;
    let left = left_micros.map(|left| left.max(1));
    let variable = |name: &str| services.environment.get(name).map(str::to_owned);
    let servers = granted.mcp_servers.resolve(variable);
    let mut servers =
        servers.map_err(|error| providers::Error::new("agent.servers", Class::Fail, error))?;
    let (mut required_servers, mut secrets) = (Vec::new(), Vec::new());
    if tools::are_granted(granted) {
        required_servers.push(tools::SERVER.to_owned());
        let token = mint(run, services, begun).await?;
        servers.insert(tools::SERVER.to_owned(), own_server(services, &token)?);
        secrets.push(token);
    }
    let mut folders = Vec::new();
    if granted.workspace {
        folders.push(workspace(services, task.campaign_id).await?);
    }
    Ok(Grants {
        max_cost_micros: left.and_then(|left| u64::try_from(left).ok()),
        max_rounds: granted.max_turns,
        built_in: granted.built_in_tools(),
        allowed: granted.allowed_rules(),
        denied: granted.disallowed_tools.clone(),
        permission_mode: match granted.permission_mode {
            agents::PermissionMode::DontAsk => PermissionMode::DontAsk,
            agents::PermissionMode::AcceptEdits => PermissionMode::AcceptEdits,
            agents::PermissionMode::Plan => PermissionMode::Plan,
            agents::PermissionMode::BypassPermissions => PermissionMode::BypassPermissions,
        },
        mcp_servers: servers,
        required_servers,
        secrets,
        folders,
    })
}

/// Issues the token by which the CLI authenticates as this turn.
async fn mint(
    run: &Run,
    services: &Services,
    begun: &StartedTurn,
) -> Result<SecretString, providers::Error> {
    let bearer = Bearer { session_id: begun.session_id, turn: begun.turn };
    let retry = Class::Retry { after: None };
    match turn_tokens::mint(run.pool(), &bearer, services.clock.now()).await {
        Ok(Some(token)) => Ok(token),
        Ok(None) => Err(providers::Error::new("turn.overtaken", retry, LostLease)),
        Err(error) => Err(providers::Error::new("turn.no_token", retry, error)),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("a later turn of the session has started, so this one may call no tools")]
struct LostLease;

/// Builds the entry of the service's own tools among the CLI's servers.
fn own_server(services: &Services, token: &SecretString) -> Result<Value, providers::Error> {
    let url = services.endpoint.url();
    let url = url.ok_or_else(|| providers::Error::new("turn.no_tools", Class::Fail, NoEndpoint))?;
    let authorization = format!("Bearer {}", token.expose_secret());
    Ok(json!({ "type": "http", "url": url, "headers": { "Authorization": authorization } }))
}

#[derive(Debug, thiserror::Error)]
#[error(
    "the agent's file grants tools, but this process serves none; run its turns in `dalsegno serve` or `dalsegno worker turns`"
)]
struct NoEndpoint;

/// Creates the campaign's folder on this host, closed to other users.
async fn workspace(services: &Services, campaign_id: Uuid) -> Result<PathBuf, providers::Error> {
    let folder = services.workspaces.join(campaign_id.to_string());
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder).await;
    match made {
        Ok(()) => Ok(folder),
        Err(source) if providers::claude::is_full(&source) => {
            Err(providers::claude::Error::NoSpace { folder, source }.into())
        }
        Err(source) => {
            let retry = Class::Retry { after: None };
            let error = NoWorkspace { folder, source };
            Err(providers::Error::new("workspace", retry, error).of(Origin::Host))
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("cannot create the workspace {}; check its free space and permissions", folder.display())]
struct NoWorkspace {
    folder: PathBuf,
    #[source]
    source: io::Error,
}
