//! The folders of one session on this host: closed to everybody else, and never shared with another session.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::lock::{self, Claim};
use crate::providers::{
    Grants,
    claude::{
        Kind,
        transcript::{project_dir, write_private},
    },
};

/// Exists as long as a call runs; what only the call needs goes with it.
///
/// The transcript is the session's. Prompts, tokens and temporary files are the call's: a call that was given up long ago and
/// ends late takes nothing away from the one that came after it.
#[derive(Debug)]
pub(in crate::providers::claude) struct Ground {
    folder: PathBuf,
    /// Resolved, because the CLI names the transcript's folder after where it really is.
    cwd: PathBuf,
    call: Uuid,
    claim: Claim,
    is_kept: bool,
    is_handed_over: bool,
    /// Of what a process reads when it starts: the system prompt and the tool servers.
    digest: [u8; 32],
}

/// What a ground is prepared for.
#[derive(Debug)]
pub(in crate::providers::claude) struct Plan<'a> {
    pub session: Uuid,
    /// That of a process which was started ahead, if it is to be used.
    pub call: Option<Uuid>,
    /// Whether the folder stays when the call has ended.
    pub is_kept: bool,
    pub system: &'a str,
    pub grants: &'a Grants,
}

impl Ground {
    pub(in crate::providers::claude) fn prepare(
        sessions: &Path,
        plan: &Plan<'_>,
    ) -> io::Result<Self> {
        let folder = sessions.join(plan.session.to_string());
        make_private(&folder)?;
        let folder = folder.canonicalize()?;
        let call = plan.call.unwrap_or_else(Uuid::new_v4);
        let claim = Claim::take(&folder, call)?;
        if plan.call.is_none() {
            lock::oust(&folder.join(LOCK))?;
        }
        let servers = json!({ "mcpServers": without_login(plan.grants.mcp_servers.clone()) });
        let servers = servers.to_string();
        let ground = Self {
            cwd: folder.join("work"),
            folder,
            call,
            claim,
            is_kept: plan.is_kept,
            is_handed_over: false,
            digest: Sha256::new()
                .chain_update(plan.system)
                .chain_update([0])
                .chain_update(&servers)
                .finalize()
                .into(),
        };
        ground.remove_others()?;
        for folder in [ground.config(), ground.cwd.clone(), ground.run(), ground.temporary()] {
            make_private(&folder)?;
        }
        write_private(&ground.system_prompt(), plan.system.as_bytes())?;
        write_private(&ground.mcp_config(), servers.as_bytes())?;
        Ok(ground)
    }

    /// Of what a process reads when it starts.
    pub(in crate::providers::claude) fn digest(&self) -> [u8; 32] {
        self.digest
    }

    pub(in crate::providers::claude) fn call(&self) -> Uuid {
        self.call
    }

    pub(in crate::providers::claude) fn claim(&self) -> Claim {
        self.claim.clone()
    }

    pub(in crate::providers::claude) fn lock(&self) -> PathBuf {
        self.folder.join(LOCK)
    }

    /// The same ground for somebody who goes on with it.
    pub(in crate::providers::claude) fn take_over(&mut self) -> Self {
        self.hand_over();
        Self {
            folder: self.folder.clone(),
            cwd: self.cwd.clone(),
            call: self.call,
            claim: self.claim.clone(),
            digest: self.digest,
            is_kept: self.is_kept,
            is_handed_over: false,
        }
    }

    /// Removes what only the call needed.
    pub(in crate::providers::claude) async fn clear(mut self) {
        if let Some(clear) = self.clearing() {
            // A fault leaves what the next call of the session removes.
            let _ = tokio::task::spawn_blocking(clear).await;
        }
    }

    /// How that is done, if nobody has done it.
    fn clearing(&mut self) -> Option<impl FnOnce() + Send + use<>> {
        if std::mem::replace(&mut self.is_handed_over, true) {
            return None;
        }
        let gone = match self.is_kept {
            // The prompts and tokens of this call.
            true => vec![self.run(), self.temporary()],
            false => vec![self.folder.clone()],
        };
        let claim = (!self.is_kept).then(|| self.claim());
        Some(move || {
            if claim.is_some_and(|claim| claim.check().is_err()) {
                return;
            }
            for folder in gone {
                if let Err(error) = remove(&folder) {
                    tracing::warn!(folder = %folder.display(), %error, "not removed");
                }
            }
        })
    }

    /// Another ground of the same session has the files now.
    pub(in crate::providers::claude) fn hand_over(&mut self) {
        self.is_handed_over = true;
    }

    /// Where the transcript of a session is or would be. Makes nothing.
    pub(in crate::providers::claude) fn project_of(sessions: &Path, session: Uuid) -> PathBuf {
        let folder = sessions.join(session.to_string());
        let folder = folder.canonicalize().unwrap_or(folder);
        project_dir(&folder.join("config"), &folder.join("work"))
    }

    pub(in crate::providers::claude) fn project(&self) -> PathBuf {
        project_dir(&self.config(), &self.cwd)
    }

    pub(in crate::providers::claude) fn cwd(&self) -> &Path {
        &self.cwd
    }

    pub(super) fn config(&self) -> PathBuf {
        self.folder.join("config")
    }

    pub(super) fn temporary(&self) -> PathBuf {
        self.folder.join("tmp").join(self.call.to_string())
    }

    pub(super) fn system_prompt(&self) -> PathBuf {
        self.run().join("system.md")
    }

    pub(super) fn mcp_config(&self) -> PathBuf {
        self.run().join("mcp.json")
    }

    fn run(&self) -> PathBuf {
        self.folder.join("run").join(self.call.to_string())
    }

    /// What calls have left whose worker was killed: their prompts and tokens.
    fn remove_others(&self) -> io::Result<()> {
        for own in [self.run(), self.temporary()] {
            let Some(all) = own.parent() else { continue };
            let entries = match fs::read_dir(all) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries?,
            };
            for entry in entries {
                let path = entry?.path();
                if path != own {
                    remove(&path)?;
                }
            }
        }
        Ok(())
    }
}

/// In a session's folder.
const LOCK: &str = "lock";

fn make_private(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// A folder, or a file, that may be gone already.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The CLI hands its whole environment on to what it starts. A tool server gets the login only if its own `env` says so.
fn without_login(mut servers: BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let programs = servers.values_mut().filter(|server| server.get("command").is_some());
    for server in programs.filter_map(Value::as_object_mut) {
        let env = server.entry("env").or_insert_with(|| json!({}));
        if let Value::Object(env) = env {
            for name in Kind::ALL.map(Kind::variable) {
                env.entry(name).or_insert_with(|| "".into());
            }
        }
    }
    servers
}

impl Drop for Ground {
    /// Where a call was given up: in the background, because files may take their time.
    fn drop(&mut self) {
        if let Some(clear) = self.clearing() {
            match tokio::runtime::Handle::try_current() {
                Ok(runtime) => drop(runtime.spawn_blocking(clear)),
                Err(_) => clear(),
            }
        }
    }
}
