//! Conversations that their provider keeps itself: the login they run on, what the provider is told before a call, and
//! what of its answer is stored.
//!
//! What the provider holds is a cache of what is stored here. Where its head is of another view than the one that is
//! shown now, or its transcript is gone, it writes a new one from the messages that every call carries.

use std::{io, path::PathBuf};

use chrono::{DateTime, TimeDelta, Utc};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use sqlx::PgConnection;
use tokio::fs::DirBuilder;
use uuid::Uuid;

use super::{
    Error, Refused,
    assignment::Assignment,
    begin::{Bound, Opened},
    budget::Watch,
    call::{self, Called},
    progress::Progress,
};
use crate::{
    context::{Calibration, Checkpoint},
    domain::{
        Amount, agents, campaigns,
        logins::{self, Resting},
        sessions::Live,
        text,
        transcripts::{self, Added},
        turn_phases::Begun,
        turn_tokens::{self, Bearer},
    },
    jobs::Services,
    providers::{
        self, Began, Class, Continued, Conversation, Flag, Grants, PermissionMode, Request, Scope,
        TranscriptFile,
    },
    queue::Run,
    tools,
};

/// The last place of the transcript that the provider has heard of what is shown now.
pub(super) fn heard_to_seq(session: &Live) -> Option<i64> {
    session.head_seq.filter(|_| session.head_generation == Some(session.generation))
}

/// What the conversation is called, and its login: the one that it began on while that is configured, else the first that
/// does not rest. `None`: the provider keeps nothing.
pub(super) async fn bind(
    conn: &mut PgConnection,
    services: &Services,
    assignment: &Assignment<'_>,
    session: &Live,
) -> Result<Option<Bound>, Error> {
    let route = &assignment.route;
    if !route.keeps_conversation {
        return Ok(None);
    }
    let now = services.clock.now();
    let resting = logins::resting(conn, &route.provider_name, now).await?;
    let configured: Vec<&str> = services.providers.claude().logins().collect();
    let login = choose(&configured, session.login.as_deref(), &resting)
        .map_err(|why| Error::Refused(why.into_refused(now)))?;
    let external_id = session.external_session_id.as_deref().and_then(|id| id.parse().ok());
    Ok(Some(Bound {
        external_id: external_id.unwrap_or_else(Uuid::new_v4),
        login: login.to_owned(),
    }))
}

/// What the provider has to know of the conversation. No transaction is open: its files are looked at.
pub(super) async fn conversation(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    opened: &mut Opened,
) -> Result<Option<Conversation>, providers::Error> {
    let Some(bound) = &opened.bound else { return Ok(None) };
    let session = &opened.session;
    let head = session.head.filter(|_| heard_to_seq(session).is_some());
    let transcript = match head {
        Some(_) => files(run, session.id).await?,
        None => Vec::new(),
    };
    let mut conversation = Conversation {
        external_id: bound.external_id,
        head: head.filter(|_| !transcript.is_empty()),
        transcript,
        unheard: opened.unheard.take(),
        meter: session
            .meter
            .clone()
            .and_then(|m| serde_json::from_value(m).ok())
            .unwrap_or_default(),
        credential: Some(bound.login.clone()),
        grants: grants(
            run,
            services,
            assignment,
            &opened.begun,
            left_micros(run, assignment, opened.begun.reserved).await?,
        )
        .await?,
        is_warm: assignment.agent.warm,
        is_temporary: opened.begun.ephemeral,
    };
    let lacks = services.providers.claude().lacks_transcript(&conversation).await;
    if lacks.map_err(|error| providers::Error::new(error.code(), error.class(), error))? {
        fetch(run, session.id, &mut conversation).await?;
    }
    Ok(Some(conversation))
}

/// The call, within the budget.
pub(super) async fn call(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    opened: &mut Opened,
    request: Request,
) -> Called {
    let so_far = request.conversation.as_ref().map(|it| it.meter.clone()).unwrap_or_default();
    let mut budget = Watch::of(run, services, assignment, opened.begun, so_far);
    let called = call_again(run, services, assignment, opened, request, &mut budget).await;
    budget.end(opened, called).await
}

/// Where files are gone that were there when they were looked at, the call is made again with their bytes: what is lost here is not
/// lost everywhere.
async fn call_again(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    opened: &Opened,
    request: Request,
    budget: &mut Watch<'_>,
) -> Called {
    let has_no_bytes = |conversation: &Conversation| {
        conversation.head.is_some()
            && conversation.transcript.iter().all(|file| file.bytes.is_none())
    };
    let again = request.conversation.as_ref().is_some_and(has_no_bytes).then(|| request.clone());
    let mut progress = Progress::new(run.pool(), services, opened.begun);
    let called =
        call::call(run, services, assignment, request, &mut progress, Some(&mut *budget)).await;
    let is_lost = called.result.as_ref().is_err_and(|error| error.code == LOST_HERE);
    let (true, Some(mut request)) = (is_lost, again) else {
        progress.end().await;
        return called;
    };
    if let Some(conversation) = &mut request.conversation
        && let Err(error) = fetch(run, opened.session.id, conversation).await
    {
        return Called::not_made(error, called.called_at);
    }
    let called = call::call(run, services, assignment, request, &mut progress, Some(budget)).await;
    progress.end().await;
    called
}

/// Before anybody was asked: files of the conversation were not there.
const LOST_HERE: &str = "claude.transcript_lost";

async fn fetch(
    run: &Run,
    session_id: Uuid,
    conversation: &mut Conversation,
) -> Result<(), providers::Error> {
    for file in &mut conversation.transcript {
        let bytes = transcripts::bytes(run.pool(), session_id, &file.name).await;
        file.bytes = Some(bytes.map_err(not_read)?);
    }
    Ok(())
}

/// What the model is offered is in every count, and nobody here knows its size. Counts of calls that were offered something
/// else say nothing about this one: the provider would seem to have lost as much as was taken away.
pub(super) fn forget_other_counts(session: &mut Live, assignment: &Assignment<'_>) {
    let counted = session.checkpoint.as_ref().map(|counted| counted[OFFERED].as_str());
    let offered = offered(assignment);
    if counted.is_some_and(|counted| counted.unwrap_or_default() != offered) {
        session.checkpoint = None;
        session.calibration = serde_json::to_value(Calibration::cold()).ok();
    }
}

/// A count as it is stored.
pub(super) fn checkpoint(counted: Checkpoint, assignment: &Assignment<'_>) -> Option<Value> {
    let mut stored = serde_json::to_value(counted).ok()?;
    stored[OFFERED] = offered(assignment).into();
    Some(stored)
}

const OFFERED: &str = "offered";

/// A name for all that the agent's file offers to the model; empty where that is nothing.
fn offered(assignment: &Assignment<'_>) -> String {
    let granted = &assignment.agent.grants;
    let mut all = granted.built_in_tools();
    all.extend(granted.mcp_servers.names().map(|name| format!("mcp__{name}")));
    let own = tools::offered_to_agent(&assignment.agent, &assignment.task.instance);
    all.extend(own.iter().map(|tool| format!("mcp__{}__{}", tools::SERVER, tool.name)));
    if all.is_empty() || !assignment.route.keeps_conversation {
        return String::new();
    }
    all.sort();
    all.extend([format!("{:?}", granted.disallowed_tools), granted.workspace.to_string()]);
    let digest = Sha256::digest(all.join("\n").as_bytes());
    hex::encode(&digest[..8])
}

/// The files as they are stored.
pub(super) fn added(continued: &Continued) -> Vec<Added<'_>> {
    let files = continued.grown.iter().map(|grown| Added {
        name: &grown.name,
        from_byte: i64::try_from(grown.from).unwrap_or(i64::MAX),
        bytes: &grown.bytes,
        sha256: &grown.sha256,
    });
    files.collect()
}

/// Whether what was stored of the files is no part of them any more.
pub(super) fn is_rewritten(continued: &Continued) -> bool {
    matches!(continued.began, Began::New | Began::Rewritten)
}

pub(super) fn meter(continued: &Continued) -> Result<Value, Error> {
    serde_json::to_value(&continued.meter).map_err(Error::undone)
}

/// The login of the call, if it may not be used for a while.
pub(super) fn rests(
    opened: &Opened,
    error: &providers::Error,
    why: &str,
    now: DateTime<Utc>,
) -> Option<Resting> {
    let Class::Snooze { after, scope: Scope::Credential } = error.class else { return None };
    let login = opened.bound.as_ref()?.login.clone();
    let until = now + TimeDelta::from_std(after).unwrap_or(TimeDelta::MAX);
    Some(Resting { login, until, why: why.to_owned() })
}

/// How a turn's flags call it.
pub(super) fn flag(flag: &Flag) -> String {
    text::storable(match flag {
        Flag::Compacted => "compacted_by_provider".to_owned(),
        Flag::ServerMissing(server) => format!("tool_server_missing: {server}"),
        Flag::ToolMissing(tool) => format!("tool_missing: {tool}"),
        Flag::Denied(tool) => format!("tool_denied: {tool}"),
        Flag::NotStored { files, bytes } => {
            format!("side_files_not_stored: {files} with {bytes} bytes")
        }
        Flag::Hung => "did_not_end_by_itself".to_owned(),
        Flag::CostUnknown => "cost_unknown".to_owned(),
    })
}

/// Why there is no login.
#[derive(Debug)]
enum NoLogin<'a> {
    NoneConfigured,
    Rests(&'a Resting),
}

fn choose<'a>(
    configured: &[&'a str],
    own: Option<&str>,
    resting: &'a [Resting],
) -> Result<&'a str, NoLogin<'a>> {
    let rests = |login: &str| resting.iter().find(|resting| resting.login == login);
    let candidates: Vec<&str> = match configured.iter().find(|login| Some(**login) == own) {
        Some(own) => vec![own],
        None => configured.to_vec(),
    };
    match candidates.iter().find(|login| rests(login).is_none()) {
        Some(login) => Ok(login),
        None => Err(candidates
            .iter()
            .filter_map(|login| rests(login))
            .min_by_key(|resting| resting.until)
            .map_or(NoLogin::NoneConfigured, NoLogin::Rests)),
    }
}

impl NoLogin<'_> {
    fn into_refused(self, now: DateTime<Utc>) -> Refused {
        match self {
            Self::NoneConfigured => Refused::for_good(
                "no login is configured for Claude: add one to claude.credentials, or name another provider in the agent's file",
            ),
            Self::Rests(Resting { login, until, why }) => {
                let until_when = until.format("%Y-%m-%d %H:%M:%S UTC");
                let why = format!("the login {login} rests until {until_when}, because {why}");
                let after = (*until - now).to_std().unwrap_or_default();
                Refused::busy(why, after, 0)
            }
        }
    }
}

async fn files(run: &Run, session_id: Uuid) -> Result<Vec<TranscriptFile>, providers::Error> {
    let stored = transcripts::files(run.pool(), session_id).await.map_err(not_read)?;
    let file = |file: transcripts::File| {
        Some(TranscriptFile {
            name: file.name,
            n_bytes: u64::try_from(file.n_bytes).ok()?,
            sha256: file.sha256.try_into().ok()?,
            bytes: None,
        })
    };
    Ok(stored.into_iter().filter_map(file).collect())
}

fn not_read(error: crate::domain::Failed) -> providers::Error {
    providers::Error::new("transcript.not_read", Class::Retry { after: None }, error)
}

/// What is left in money, of the task's budget or of the campaign's, whichever is less. What other turns have set aside is
/// theirs.
async fn left_micros(
    run: &Run,
    assignment: &Assignment<'_>,
    reserved: Amount,
) -> Result<Option<i64>, providers::Error> {
    let task = &assignment.task;
    let own = task.budget_micros.map(|budget| budget.saturating_sub(task.spent_micros));
    if !assignment.is_limited {
        return Ok(own);
    }
    let budget = campaigns::budget(run.pool(), task.campaign_id).await.map_err(not_read)?;
    let shared = budget.and_then(|budget| {
        let limit = budget.limit.micros?;
        let of_others = budget.reserved.micros.saturating_sub(reserved.micros);
        Some(limit.saturating_sub(budget.spent.micros).saturating_sub(of_others))
    });
    Ok(own.into_iter().chain(shared).min())
}

/// What the agent's file grants now, and what a turn may cost.
async fn grants(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    begun: &Begun,
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

/// By what the CLI shows that it is this turn.
async fn mint(
    run: &Run,
    services: &Services,
    begun: &Begun,
) -> Result<SecretString, providers::Error> {
    let bearer = Bearer { session_id: begun.session_id, turn: begun.turn };
    let retry = Class::Retry { after: None };
    match turn_tokens::mint(run.pool(), &bearer, services.clock.now()).await {
        Ok(Some(token)) => Ok(token),
        Ok(None) => Err(providers::Error::new("turn.overtaken", retry, Overtaken)),
        Err(error) => Err(providers::Error::new("turn.no_token", retry, error)),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("a later turn of the session has begun: this one has no tools any more")]
struct Overtaken;

/// The service's own tools, as the CLI is told of a server.
fn own_server(services: &Services, token: &SecretString) -> Result<Value, providers::Error> {
    let url = services.endpoint.url();
    let url = url.ok_or_else(|| providers::Error::new("turn.no_tools", Class::Fail, NoEndpoint))?;
    let authorization = format!("Bearer {}", token.expose_secret());
    Ok(json!({ "type": "http", "url": url, "headers": { "Authorization": authorization } }))
}

#[derive(Debug, thiserror::Error)]
#[error(
    "this process serves no tools, which the agent's file grants; run its turns in `dalsegno serve` or `dalsegno worker turns`"
)]
struct NoEndpoint;

/// The campaign's folder on this host, closed to everybody else.
async fn workspace(services: &Services, campaign_id: Uuid) -> Result<PathBuf, providers::Error> {
    let folder = services.workspaces.join(campaign_id.to_string());
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder).await;
    match made {
        Ok(()) => Ok(folder),
        Err(source) if providers::claude::is_full(&source) => {
            let error = providers::claude::Error::NoSpace { folder, source };
            Err(providers::Error::new(error.code(), error.class(), error))
        }
        Err(source) => {
            let retry = Class::Retry { after: None };
            Err(providers::Error::new("workspace", retry, NoWorkspace { folder, source }))
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("could not make the workspace {}; make room there, and make it writable", folder.display())]
struct NoWorkspace {
    folder: PathBuf,
    #[source]
    source: io::Error,
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone as _;

    use super::*;

    fn resting(login: &str, minute: u32) -> Resting {
        let until = Utc.with_ymd_and_hms(2026, 11, 20, 12, minute, 0).unwrap();
        Resting { login: login.to_owned(), until, why: "used up".to_owned() }
    }

    #[test]
    fn a_session_stays_on_its_login_and_a_new_one_takes_the_first_that_does_not_rest() {
        let (both, tired) = (["one", "two"], [resting("one", 30)]);
        assert_eq!(choose(&both, None, &[]).unwrap(), "one");
        assert_eq!(choose(&both, None, &tired).unwrap(), "two");
        assert_eq!(choose(&both, Some("two"), &[]).unwrap(), "two");
        assert!(matches!(choose(&both, Some("one"), &tired), Err(NoLogin::Rests(_))));
        // Its own is not configured any more.
        assert_eq!(choose(&both, Some("gone"), &tired).unwrap(), "two");
        assert!(matches!(choose(&[], None, &[]), Err(NoLogin::NoneConfigured)));
        let all = [resting("one", 30), resting("two", 10)];
        let Err(NoLogin::Rests(first)) = choose(&both, None, &all) else { panic!() };
        assert_eq!(first.login, "two");
    }
}
