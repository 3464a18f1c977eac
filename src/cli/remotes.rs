//! `dalsegno remote`: named servers, and the one that commands are sent to.

use std::{
    collections::BTreeMap,
    fs,
    io::{
        ErrorKind::{NotADirectory, NotFound, PermissionDenied},
        Write as _,
    },
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, anyhow};
use clap::Subcommand;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    Context, Exit, Failure,
    output::format_table,
    target::{RemoteFlags, Target, read_key_file, server_url},
};
use crate::settings::Environment;

/// Name of the database.
const LOCAL: &str = "local";

#[derive(Debug, Subcommand)]
pub(super) enum RemoteCommand {
    /// Adds or changes a stored server; --key or --key-file set its key.
    Add {
        /// Name of the server, for example prod.
        name: String,
        // Not a doc comment, in which rustdoc would make a link of the address.
        #[arg(help = "URL of the server, for example https://dalsegno.example.com")]
        url: String,
    },
    /// Lists the stored servers; a star marks the one that gets the commands.
    Ls,
    /// Sends commands to this server from now on; `local` selects the database.
    Use {
        /// Name of the server: `dalsegno remote ls` lists it. `local` is the database.
        name: String,
    },
    /// Removes a stored server.
    Rm {
        /// Name of the server: `dalsegno remote ls` lists it.
        name: String,
    },
}

/// The stored servers of one user.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Remotes {
    current: Option<String>,
    #[serde(default)]
    remotes: BTreeMap<String, Remote>,
}

/// One stored server.
#[derive(Debug, Serialize, Deserialize)]
struct Remote {
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_file: Option<PathBuf>,
}

pub(super) fn run(command: &RemoteCommand, context: &Context) -> Result<Exit, Failure> {
    let path = path(&context.environment).ok_or_else(|| {
        usage("servers are stored below $XDG_CONFIG_HOME or $HOME: set one of them".to_owned())
    })?;
    let (mut remotes, output) = (Remotes::read(&path)?, context.output);
    match command {
        RemoteCommand::Add { name, url } => {
            remotes.add(name, url, &context.remote)?;
            remotes.write(&path)?;
            output.print_data(&json!({ "name": name, "url": url }), || {
                format!("`{name}` is {url}; `dalsegno remote use {name}` sends commands to it")
            });
        }
        RemoteCommand::Ls => output.print_data(&remotes.to_json(), || remotes.format_remotes()),
        RemoteCommand::Use { name } => {
            remotes.current = remotes.select(Some(name))?.map(|(name, _)| name.to_owned());
            remotes.write(&path)?;
            output.print_data(&json!({ "current": remotes.current }), || match &remotes.current {
                Some(name) => format!("commands are sent to {name}, {}", remotes.remotes[name].url),
                None => "commands work on the database".to_owned(),
            });
        }
        RemoteCommand::Rm { name } => {
            remotes.remotes.remove(name).ok_or_else(|| remotes.unknown(name))?;
            let was_current = remotes.is_current(name);
            remotes.current = remotes.current.take().filter(|current| current != name);
            remotes.write(&path)?;
            output.print_data(&json!({ "removed": name }), || match was_current {
                true => format!("`{name}` is removed: commands work on the database again"),
                false => format!("`{name}` is removed"),
            });
        }
    }
    Ok(Exit::Ok)
}

/// Returns the server called `name`, or the one in use. `None`: the database.
pub(super) fn target(
    name: Option<&str>,
    environment: &Environment,
) -> Result<Option<Target>, Failure> {
    let remotes = match path(environment) {
        // A command on the database works even if the list is unreadable.
        Some(path) if name != Some(LOCAL) => Remotes::read(&path)?,
        _ => Remotes::default(),
    };
    let Some((name, remote)) = remotes.select(name)? else { return Ok(None) };
    let key = match &remote.key_file {
        Some(file) => Some(read_key_file(file)?),
        None => remote.key.clone(),
    };
    Ok(Some(Target::new(Some(name.to_owned()), server_url(&remote.url)?, key)))
}

impl Remotes {
    fn read(path: &Path) -> Result<Self, Failure> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            // A missing folder, or one of another user, means that no server is stored.
            Err(error) if [NotFound, NotADirectory, PermissionDenied].contains(&error.kind()) => {
                return Ok(Self::default());
            }
            Err(error) => return Err(usage(format!("cannot read {}: {error}", path.display()))),
        };
        serde_json::from_str(&text).map_err(|error| {
            usage(format!(
                "{} is not a valid list of servers: {error}; correct or delete it",
                path.display()
            ))
        })
    }

    /// Writes the list with mode 0600, because it can hold keys. A new file is written and renamed, so that an
    /// interrupted write loses nothing.
    fn write(&self, path: &Path) -> Result<(), Failure> {
        let write = || {
            let folder = path.parent().unwrap_or(path);
            fs::create_dir_all(folder)?;
            let new = path.with_extension("new");
            let text = serde_json::to_string_pretty(self)?;
            let mut options = fs::OpenOptions::new();
            let mut file =
                options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(new, path)
        };
        let written: std::io::Result<()> = write();
        let words = || format!("cannot write to {}", path.display());
        written.with_context(words).map_err(Failure::failed)
    }

    fn add(&mut self, name: &str, url: &str, flags: &RemoteFlags) -> Result<(), Failure> {
        let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if name.is_empty() || name == LOCAL || !is_plain {
            let words = format!(
                "`{name}` cannot name a server: use letters, digits, `-`, `_` and `.`, and not `{LOCAL}`, which means the database"
            );
            return Err(usage(words));
        }
        server_url(url)?;
        let (key, key_file) = flags.own_key();
        // Absolute, because a later command may run in another folder.
        let key_file = key_file.map(std::path::absolute).transpose();
        let key_file = key_file.map_err(|error| Failure::failed(error.into()))?;
        let remote = Remote { url: url.to_owned(), key: key.map(str::to_owned), key_file };
        self.remotes.insert(name.to_owned(), remote);
        Ok(())
    }

    fn select(&self, name: Option<&str>) -> Result<Option<(&str, &Remote)>, Failure> {
        match name.or(self.current.as_deref()) {
            None | Some(LOCAL) => Ok(None),
            Some(name) => match self.remotes.get_key_value(name) {
                Some((name, remote)) => Ok(Some((name, remote))),
                None => Err(self.unknown(name)),
            },
        }
    }

    fn unknown(&self, name: &str) -> Failure {
        let known: Vec<&str> = self.remotes.keys().map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        usage(format!(
            "there is no server `{name}` (known: {known}): `dalsegno remote add {name} URL` stores one"
        ))
    }

    fn is_current(&self, name: &str) -> bool {
        self.current.as_deref() == Some(name)
    }

    /// Returns the list without keys.
    fn to_json(&self) -> serde_json::Value {
        let each = self.remotes.iter().map(|(name, remote)| {
            json!({ "name": name, "url": remote.url, "has_key": remote.has_key(), "is_current": self.is_current(name) })
        });
        each.collect()
    }

    fn format_remotes(&self) -> String {
        let rows = self.remotes.iter().map(|(name, remote)| {
            let star = if self.is_current(name) { "*" } else { "" };
            let key = if remote.has_key() { "yes" } else { "no" };
            [star.to_owned(), name.clone(), remote.url.clone(), key.to_owned()]
        });
        format_table(&["", "NAME", "URL", "KEY"], rows)
    }
}

impl Remote {
    fn has_key(&self) -> bool {
        self.key.is_some() || self.key_file.is_some()
    }
}

fn path(environment: &Environment) -> Option<PathBuf> {
    let set = |name| environment.get(name).filter(|text| !text.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(folder.join("dalsegno/remotes.json"))
}

fn usage(words: String) -> Failure {
    Failure::new(Exit::Usage, anyhow!(words))
}
