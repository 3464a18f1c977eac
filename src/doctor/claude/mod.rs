//! Checks of Claude: the CLI, its credentials and its folders. Without agents or credentials for it there are no
//! findings.

mod budgets;
mod folder;
mod paused;
mod smoke;

use std::{
    io::ErrorKind,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
};

use super::Finding;
use crate::{
    causes::causes,
    config::Config,
    domain::agents::{Agent, Catalogue, PermissionMode},
    providers::claude::{self, CredentialConfig, CredentialError, TESTED},
};

pub(super) use self::{budgets::budgets, paused::paused, smoke::smoke};

const WHY_PROGRAM: &str = "the Claude Code CLI runs the turns on Claude";
const WHY_VERSION: &str =
    "the service relies on measured behaviour of this version, and other versions may differ";
const WHY_CREDENTIAL: &str = "without a readable credential, no turn on Claude starts";
const WHY_OPEN: &str = "everyone who can read the file can call the provider at your expense";
const WHY_GRANTS: &str = "every turn fails if the CLI refuses its options";
const WHY_EXPOSED: &str = "a command of an agent can print its environment";
const WHY_LIMITS: &str = "a limit has no effect unless the system enforces it";
const WHY_LEFTOVERS: &str =
    "a command that outlives its turn has no budget, and its output is lost";

pub(super) async fn examine(config: &Config) -> Vec<Finding> {
    let catalogue = Catalogue::load(&config.agents).unwrap_or_default();
    let users: Vec<&Agent> =
        catalogue.agents().map(AsRef::as_ref).filter(|agent| uses(config, agent)).collect();
    if users.is_empty() && config.claude.credentials.is_empty() {
        return Vec::new();
    }
    let mut findings = program(&config.claude).await;
    findings.extend(credentials(config));
    findings.extend(folder::examine(config, &users));
    findings.extend(check_exposed_tokens(config, &users));
    findings.extend(grants(config, &users));
    findings.extend(limits(&config.claude));
    findings.push(leftovers(&config.claude));
    findings
}

/// Returns true if Claude is in the agent's chain.
fn uses(config: &Config, agent: &Agent) -> bool {
    agent.models(&config.agents).any(|(provider, _)| provider.as_str() == claude::NAME)
}

/// Lists the models of Claude that the agent may call.
fn models<'a>(config: &'a Config, agent: &'a Agent) -> impl Iterator<Item = &'a str> {
    let models = agent.models(&config.agents);
    models.filter(|(provider, _)| provider.as_str() == claude::NAME).filter_map(|(_, model)| model)
}

async fn program(config: &claude::Config) -> Vec<Finding> {
    const INSTALL: &str = "npm install -g @anthropic-ai/claude-code, or name the program with its folder in claude.program";
    let program = match config.find_program() {
        Ok(program) => program,
        Err(error) => {
            let missing = Finding::fail("claude", error.to_string(), WHY_PROGRAM, INSTALL);
            let skipped = Finding::skipped("claude version", "the CLI is missing", WHY_VERSION);
            return vec![missing, skipped];
        }
    };
    let found = Finding::ok("claude", program.display().to_string(), WHY_PROGRAM);
    const CHECK: &str = "claude version";
    let version = match config.version_of(program).await {
        Ok(version) if version.is_tested() => {
            Finding::ok(CHECK, format!("{version}; tested with {TESTED}"), WHY_VERSION)
        }
        Ok(version) => {
            let fix = format!("npm install -g @anthropic-ai/claude-code@{TESTED}");
            let what = format!("{version}, but only {TESTED} and its patch releases are tested");
            Finding::warn(CHECK, what, WHY_VERSION, fix)
        }
        Err(error) => Finding::fail(CHECK, causes(&error), WHY_VERSION, INSTALL),
    };
    vec![found, version]
}

/// Reads each credential, and shows none.
fn credentials(config: &Config) -> Vec<Finding> {
    const CHECK: &str = "claude credential";
    let credentials = &config.claude.credentials;
    if credentials.is_empty() {
        let fix = "add one to claude.credentials; `dalsegno config template` shows how";
        return vec![Finding::fail(CHECK, "none is configured", WHY_CREDENTIAL, fix)];
    }
    let own = |name: &str| config.environment.get(name).map(str::to_owned);
    let finding = |credential: &CredentialConfig| match credential.resolve(own) {
        Err(error) if is_of_this_shell(&error) => {
            let fix = "run `dalsegno doctor` as the user and in the environment of the service; if it fails there, too, do what the message says";
            let what = format!("{}; the service may be able to", causes(&error));
            Finding::warn(CHECK, what, WHY_CREDENTIAL, fix)
        }
        Err(error) => {
            let fix = "do what the message says, or remove the credential";
            Finding::fail(CHECK, causes(&error), WHY_CREDENTIAL, fix)
        }
        Ok(_) => match other_readers(credential) {
            Some(readers) => {
                let (name, file) = (&credential.name, credential.file.display());
                let what = format!("{name} is in {file}, which {readers} can read");
                Finding::warn(CHECK, what, WHY_OPEN, format!("chmod 600 {file}"))
            }
            None => Finding::ok(CHECK, format!("{} is readable", credential.name), WHY_CREDENTIAL),
        },
    };
    credentials.iter().map(finding).collect()
}

/// Returns true if the cause may be this shell: the service may have the variable or the permission that is missing
/// here.
fn is_of_this_shell(error: &CredentialError) -> bool {
    match error {
        CredentialError::NoVariable { .. } => true,
        CredentialError::NoFile { source, .. } => source.kind() == ErrorKind::PermissionDenied,
        CredentialError::Empty(_) => false,
    }
}

/// Names other users who can read the file of a credential.
fn other_readers(credential: &CredentialConfig) -> Option<String> {
    let metadata =
        std::fs::metadata(&credential.file).ok().filter(|_| credential.variable.is_empty())?;
    match metadata.permissions().mode() {
        mode if mode & 0o004 != 0 => Some("every user of this machine".to_owned()),
        mode if mode & 0o040 != 0 => Some(format!("the group {}", metadata.gid())),
        _ => None,
    }
}

/// Finds agents whose commands can read a gateway token. Measured: the CLI takes such a token from its environment
/// only.
fn check_exposed_tokens(config: &Config, users: &[&Agent]) -> Option<Finding> {
    let is_token = |credential: &CredentialConfig| credential.kind == claude::Kind::AuthToken;
    let has_tools = |agent: &&&Agent| !agent.grants.built_in_tools().is_empty();
    if !config.claude.credentials.iter().any(is_token) {
        return None;
    }
    let names: Vec<&str> =
        users.iter().filter(has_tools).map(|agent| agent.name.as_str()).collect();
    let what =
        format!("commands of {} can read credentials of the kind auth_token", names.join(", "));
    let fix = "use an api_key or an oauth_token for them, or run them without tools of Claude Code";
    (!names.is_empty()).then(|| Finding::warn("claude exposed", what, WHY_EXPOSED, fix))
}

fn grants(config: &Config, users: &[&Agent]) -> Option<Finding> {
    let variable = |name: &str| config.environment.get(name).map(str::to_owned);
    if !config.claude.refuses_bypass(variable) {
        return None;
    }
    let refused = users
        .iter()
        .filter(|agent| agent.grants.permission_mode == PermissionMode::BypassPermissions);
    let names: Vec<&str> = refused.map(|agent| agent.name.as_str()).collect();
    let what = format!("agents {}: {}", names.join(", "), claude::ROOT_REFUSED);
    let fix = "run the service as another user, or name tools instead";
    (!names.is_empty()).then(|| Finding::warn("claude grants", what, WHY_GRANTS, fix))
}

fn limits(config: &claude::Config) -> Option<Finding> {
    const CHECK: &str = "claude limits";
    if config.cgroup.as_os_str().is_empty() {
        let is_idle = config.processes_max > 0 && rustix::process::geteuid().is_root();
        let what = "claude.processes_max has no effect for root";
        let fix = "name a delegated folder in claude.cgroup, or run the service as another user";
        return is_idle.then(|| Finding::warn(CHECK, what, WHY_LIMITS, fix));
    }
    let folder = &config.cgroup;
    let enabled = std::fs::read_to_string(folder.join("cgroup.subtree_control"));
    let enabled = enabled.unwrap_or_default();
    let has = |name: &str| enabled.split_whitespace().any(|enabled| enabled == name);
    let is_writable = rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok();
    Some(match has("memory") && has("pids") && is_writable {
        true => Finding::ok(
            CHECK,
            format!("the groups of turns are created in {}", folder.display()),
            WHY_LIMITS,
        ),
        false => {
            let what = format!(
                "{} lacks the controllers memory and pids, or the service cannot write to it",
                folder.display()
            );
            let fix = "delegate it to the service, and write +memory +pids into its cgroup.subtree_control";
            Finding::fail(CHECK, what, WHY_LIMITS, fix)
        }
    })
}

/// Names the means by which this host ends processes that a turn leaves behind.
fn leftovers(config: &claude::Config) -> Finding {
    const CHECK: &str = "claude processes";
    if !cfg!(target_os = "linux") {
        let what = "only the process group of a turn is stopped on this system; a command that leaves its group outlives the turn";
        return Finding::warn(CHECK, what, WHY_LEFTOVERS, "run turns with tools on Linux");
    }
    let means = match rustix::fs::access(&config.cgroup, rustix::fs::Access::WRITE_OK) {
        Ok(()) => {
            "the guard of a turn stops its remaining processes; if the guard was killed, the worker and the turn's cgroup do"
        }
        Err(_) => {
            "the guard of a turn stops its remaining processes; if the guard was killed, the worker does"
        }
    };
    let exception = match rustix::process::geteuid().is_root() {
        true => {
            "a command that kills the worker and the guard at once, or that raises its own limits as root"
        }
        false => "a command that kills the worker and the guard at once",
    };
    Finding::ok(CHECK, format!("{means}; not covered: {exception}"), WHY_LEFTOVERS)
}
