//! The grants of the agent's file for the provider's program, for one turn.

use std::{
    io,
    path::{Path, PathBuf},
};

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use tokio::fs::DirBuilder;

use crate::{
    domain::{
        agents, task_files,
        turn_phases::StartedTurn,
        turn_tokens::{self, Bearer},
    },
    jobs::{
        Services,
        run_turn::{error::database_error, load::assignment::Assignment},
    },
    providers::{self, Class, Grants, Origin, OutputLimits, PermissionMode},
    queue::Run,
    tools,
};

/// Builds the grants with a token for the service's own tools, and creates the folders.
pub async fn build_grants(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    begun: &StartedTurn,
    left_micros: Option<i64>,
) -> Result<Grants, providers::Error> {
    let mut grants = grants_of_file(services, assignment, left_micros)?;
    if tools::are_granted(&assignment.agent.grants) {
        let token = mint(run, services, begun).await?;
        grants.mcp_servers.insert(tools::SERVER.to_owned(), own_server(services, &token)?);
        grants.secrets.push(token);
    }
    for folder in &grants.folders {
        create_workspace(folder).await?;
    }
    Ok(grants)
}

/// Builds the grants from the agent's file as it is now, with the limit of the turn's cost. The entry of the service's own tools is
/// missing, because it contains a secret.
pub fn grants_of_file(
    services: &Services,
    assignment: &Assignment<'_>,
    left_micros: Option<i64>,
) -> Result<Grants, providers::Error> {
    let Assignment { agent, task, .. } = assignment;
    let granted = &agent.grants;
    let left = left_micros.map(|left| left.max(1));
    let variable = |name: &str| services.environment.get(name).map(str::to_owned);
    let servers = granted.mcp_servers.resolve(variable);
    let servers =
        servers.map_err(|error| providers::Error::new("agent.servers", Class::Fail, error))?;
    let required = tools::are_granted(granted).then(|| tools::SERVER.to_owned());
    let workspace = || services.workspaces.join(task.campaign_id.to_string());
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
        required_servers: required.into_iter().collect(),
        secrets: Vec::new(),
        folders: granted.workspace.then(workspace).into_iter().collect(),
        output: granted.can_write_files().then(|| output_limits(&services.output_files)),
    })
}

/// Builds the limits of output files as providers are told.
pub fn output_limits(config: &task_files::Config) -> OutputLimits {
    let task_files::Config { max_files, max_file_bytes, max_turn_bytes } = *config;
    OutputLimits { max_files, max_file_bytes, max_turn_bytes }
}

/// Issues the token by which the CLI authenticates as this turn.
async fn mint(
    run: &Run,
    services: &Services,
    begun: &StartedTurn,
) -> Result<SecretString, providers::Error> {
    let bearer = Bearer { session_id: begun.session_id, turn: begun.turn };
    match turn_tokens::mint(run.pool(), &bearer, services.clock.now()).await {
        Ok(Some(token)) => Ok(token),
        Ok(None) => {
            let retry = Class::Retry { after: None };
            Err(providers::Error::new("turn.overtaken", retry, LostLease))
        }
        Err(error) => Err(database_error("turn.no_token", error)),
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
async fn create_workspace(folder: &Path) -> Result<(), providers::Error> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder).await;
    let folder = folder.to_owned();
    match made {
        Ok(()) => Ok(()),
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
