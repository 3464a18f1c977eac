//! The folders of one session on this host: closed to everybody else, and never shared with another session.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use uuid::Uuid;

use crate::providers::{
    Grants,
    claude::{
        Kind,
        transcript::{project_dir, write_private},
    },
};

/// Exists as long as a call runs; what only the call needs goes with it.
#[derive(Debug)]
pub(in crate::providers::claude) struct Ground {
    folder: PathBuf,
    /// Resolved, because the CLI names the transcript's folder after where it really is.
    cwd: PathBuf,
    is_kept: bool,
    is_handed_over: bool,
}

impl Ground {
    pub(in crate::providers::claude) fn prepare(
        sessions: &Path,
        session: Uuid,
        is_kept: bool,
        system: &str,
        grants: &Grants,
    ) -> io::Result<Self> {
        let folder = sessions.join(session.to_string());
        for name in ["config", "work", "run", "tmp"] {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder.join(name))?;
        }
        let folder = folder.canonicalize()?;
        let ground = Self { cwd: folder.join("work"), folder, is_kept, is_handed_over: false };
        write_private(&ground.system_prompt(), system.as_bytes())?;
        let servers = json!({ "mcpServers": without_login(grants.mcp_servers.clone()) });
        write_private(&ground.mcp_config(), servers.to_string().as_bytes())?;
        Ok(ground)
    }

    /// What a process reads when it starts: the system prompt and the tool servers.
    pub(in crate::providers::claude) fn files(&self) -> io::Result<[Vec<u8>; 2]> {
        Ok([fs::read(self.system_prompt())?, fs::read(self.mcp_config())?])
    }

    /// The same ground for somebody who goes on with it.
    pub(in crate::providers::claude) fn take_over(&mut self) -> Self {
        self.hand_over();
        Self {
            folder: self.folder.clone(),
            cwd: self.cwd.clone(),
            is_kept: self.is_kept,
            is_handed_over: false,
        }
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
        self.folder.join("tmp")
    }

    pub(super) fn system_prompt(&self) -> PathBuf {
        self.run().join("system.md")
    }

    pub(super) fn mcp_config(&self) -> PathBuf {
        self.run().join("mcp.json")
    }

    fn run(&self) -> PathBuf {
        self.folder.join("run")
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
    /// Blocking, but a handful of small files. A fault leaves what the next call overwrites.
    fn drop(&mut self) {
        if self.is_handed_over {
            return;
        }
        let gone = match self.is_kept {
            // The prompts and tokens of this call.
            true => vec![self.run(), self.temporary()],
            false => vec![self.folder.clone()],
        };
        for folder in gone {
            if let Err(error) = fs::remove_dir_all(&folder) {
                tracing::warn!(folder = %folder.display(), %error, "not removed");
            }
        }
    }
}
