//! Folders of one session on this host, which only the service can read and no other session shares.

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
        Kind, output, removal,
        transcript::{project_dir, write_private},
    },
};

/// Folders of a call while it runs. Files that only the call needs are removed with it.
///
/// The transcript belongs to the session. Prompts, tokens and temporary files belong to the call. So a call that was given up and ends late
/// does not remove the files of its successor.
#[derive(Debug)]
pub(in crate::providers::claude) struct CallFolder {
    folder: PathBuf,
    /// Canonical path, because the CLI names the transcript's folder after it.
    cwd: PathBuf,
    call: Uuid,
    claim: Claim,
    is_kept: bool,
    is_handed_over: bool,
    /// Digest of the files that a process reads at its start: the system prompt and the tool servers.
    digest: [u8; 32],
}

/// Files that a process reads at its start.
#[derive(Debug)]
pub(in crate::providers::claude) struct CallFiles {
    pub system_prompt: PathBuf,
    pub mcp_config: PathBuf,
}

impl CallFiles {
    /// Returns the files that the next call of a session will have, without creating them. The id of the call is not known: it is all
    /// zeros.
    pub(in crate::providers::claude) fn of_next_call(sessions: &Path, session: Uuid) -> Self {
        let folder = sessions.join(session.to_string());
        Self::within(&run_folder(&folder.canonicalize().unwrap_or(folder), Uuid::nil()))
    }

    fn within(run: &Path) -> Self {
        Self { system_prompt: run.join("system.md"), mcp_config: run.join("mcp.json") }
    }
}

/// Input of [`CallFolder::prepare`].
#[derive(Debug)]
pub(in crate::providers::claude) struct Plan<'a> {
    pub session: Uuid,
    /// Call of a process that was started ahead, if it is to be used.
    pub call: Option<Uuid>,
    /// True if the folder stays after the call has ended.
    pub is_kept: bool,
    pub system: &'a str,
    /// Name of the turn whose output files are kept, if any are. Another attempt at it finds what it has written.
    pub output_of: Option<&'a str>,
    pub grants: &'a Grants,
}

impl CallFolder {
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
            lock::end_running_call(&folder.join(LOCK))?;
        }
        let servers = json!({ "mcpServers": without_credential(plan.grants.mcp_servers.clone()) });
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
        if let Some(turn) = plan.output_of {
            output::begin(&ground.folder, &ground.output(), turn)?;
        }
        let files = ground.files();
        write_private(&files.system_prompt, plan.system.as_bytes())?;
        write_private(&files.mcp_config, servers.as_bytes())?;
        Ok(ground)
    }

    /// Ends what runs in the folder of a session, or waits there for its prompt, regardless of which process of this host has started it.
    pub(in crate::providers::claude) fn end_call_in(folder: &Path) -> io::Result<()> {
        let file = folder.join(LOCK);
        // An agent may have replaced its lock: then nothing tells which process runs.
        if !fs::symlink_metadata(&file).is_ok_and(|metadata| metadata.is_file()) {
            return Ok(());
        }
        match lock::end_running_call(&file) {
            Err(error) if removal::is_gone_or_closed(error.kind()) => Ok(()),
            ended => ended,
        }
    }

    /// Returns the digest of the files that a process reads at its start.
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

    /// Returns the same folders for a new owner, which removes the files from now on.
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

    /// Removes the files that only the call needed.
    pub(in crate::providers::claude) async fn clear(mut self) {
        if let Some(clear) = self.clearing() {
            // After a failure, the next call of the session removes the rest.
            let _ = tokio::task::spawn_blocking(clear).await;
        }
    }

    /// Returns the removal of the files, unless it was done or handed over.
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
                remove(&folder);
            }
        })
    }

    /// Leaves the removal of the files to another owner of the same session.
    pub(in crate::providers::claude) fn hand_over(&mut self) {
        self.is_handed_over = true;
    }

    /// Returns the folder of a session's transcript, without creating it.
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

    /// Returns the folder of files for the readers of the task.
    pub(in crate::providers::claude) fn output(&self) -> PathBuf {
        self.cwd.join(output::FOLDER)
    }

    pub(super) fn config(&self) -> PathBuf {
        self.folder.join("config")
    }

    pub(super) fn temporary(&self) -> PathBuf {
        self.folder.join("tmp").join(self.call.to_string())
    }

    pub(in crate::providers::claude) fn files(&self) -> CallFiles {
        CallFiles::within(&self.run())
    }

    fn run(&self) -> PathBuf {
        run_folder(&self.folder, self.call)
    }

    /// Removes prompts and tokens of calls whose worker was killed. A file that cannot be removed does not stop the call.
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
                    remove(&path);
                }
            }
        }
        Ok(())
    }
}

fn run_folder(folder: &Path, call: Uuid) -> PathBuf {
    folder.join("run").join(call.to_string())
}

/// Name of the lock file in a session's folder.
const LOCK: &str = "lock";

fn make_private(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn remove(folder: &Path) {
    if let Err(error) = removal::remove(folder) {
        tracing::warn!(folder = %folder.display(), %error, "cannot remove the folder of a turn");
    }
}

/// Hides credentials from tool servers, to which the CLI passes its whole environment. A server gets one only if its own `env` says so.
fn without_credential(mut servers: BTreeMap<String, Value>) -> BTreeMap<String, Value> {
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

impl Drop for CallFolder {
    /// Removes the files of a call that was given up. It runs in the background, because it may take time.
    fn drop(&mut self) {
        if let Some(clear) = self.clearing() {
            match tokio::runtime::Handle::try_current() {
                Ok(runtime) => drop(runtime.spawn_blocking(clear)),
                Err(_) => clear(),
            }
        }
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::claude::removal::tests::{open_folder, set_mode, without_root};

    #[test]
    fn what_an_earlier_call_has_left_does_not_stop_the_next_one() {
        let sessions = open_folder();
        let (session, grants) = (Uuid::new_v4(), Grants::default());
        let plan = Plan {
            session,
            call: None,
            is_kept: true,
            system: "You write.",
            output_of: None,
            grants: &grants,
        };
        let prepare = || CallFolder::prepare(sessions.path(), &plan).unwrap();
        let all = sessions.path().join(session.to_string()).join("tmp");
        let (cache, foreign) = (all.join("first/cache"), all.join("foreign"));
        without_root(|| {
            drop(prepare());
            fs::create_dir_all(&cache).unwrap();
            fs::write(cache.join("module"), "text").unwrap();
            set_mode(&cache, 0o555);
        });
        // Of another account, if the test may create such a folder.
        fs::create_dir(&foreign).unwrap();
        fs::write(foreign.join("file"), "text").unwrap();
        without_root(|| drop(prepare()));
        assert!(!cache.exists());
        assert_eq!(foreign.exists(), rustix::process::geteuid().is_root());
    }
}
