//! The server that a command is sent to: chosen by flags, variables and the stored servers.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use reqwest::Url;
use secrecy::SecretString;

use super::{Exit, Failure, remotes};
use crate::settings::Environment;

#[derive(Debug, Default, Args)]
pub(super) struct RemoteFlags {
    // Not a doc comment: rustdoc would turn the address into a link.
    #[arg(
        id = "server_url",
        long = "url",
        global = true,
        value_name = "URL",
        help = "Sends the command to this server",
        long_help = "Sends the command to this server, for example https://dalsegno.example.com, instead of the database. DALSEGNO_URL sets it, too"
    )]
    url: Option<String>,
    /// Sends the command to this stored server.
    ///
    /// `dalsegno remote` stores servers; `local` is the database. DALSEGNO_REMOTE sets it, too.
    #[arg(
        id = "server_name",
        long = "remote",
        global = true,
        value_name = "NAME",
        conflicts_with = "server_url"
    )]
    remote: Option<String>,
    /// API key for the server.
    ///
    /// DALSEGNO_KEY sets it, too, for the server of --url or DALSEGNO_URL, and keeps it out of the list of processes.
    #[arg(id = "server_key", long = "key", global = true, value_name = "KEY")]
    key: Option<String>,
    /// File with the API key for the server.
    #[arg(
        id = "server_key_file",
        long = "key-file",
        global = true,
        value_name = "FILE",
        conflicts_with = "server_key"
    )]
    key_file: Option<PathBuf>,
}

/// The server that a command is sent to.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// Name of the stored server. `None`: the server was given by its URL.
    pub(super) name: Option<String>,
    pub(super) url: Url,
    pub(super) key: Option<SecretString>,
}

impl RemoteFlags {
    pub(super) fn is_given(&self) -> bool {
        self.url.is_some() || self.remote.is_some() || self.has_key()
    }

    /// Returns the key, or the file with the key, from the command line.
    pub(super) fn own_key(&self) -> (Option<&str>, Option<&Path>) {
        (self.key.as_deref(), self.key_file.as_deref())
    }

    /// Selects the server: flags first, then variables, then the stored server in use. `None`: the command works on the
    /// database.
    pub(super) fn target(&self, environment: &Environment) -> Result<Option<Target>, Failure> {
        let variable = |name| environment.get(name).filter(|_| !self.names_server());
        let target = match self.url.as_deref().or_else(|| variable("DALSEGNO_URL")) {
            Some(url) => {
                // DALSEGNO_KEY is only sent to the server of DALSEGNO_URL.
                let is_its_server = environment.get("DALSEGNO_URL").is_none_or(|its| its == url);
                let key = environment.get("DALSEGNO_KEY").filter(|_| is_its_server);
                Some(Target::new(None, server_url(url)?, key.map(str::to_owned)))
            }
            None => {
                let name = self.remote.as_deref().or_else(|| variable("DALSEGNO_REMOTE"));
                remotes::target(name, environment)?
            }
        };
        let key = match self.own_key() {
            (Some(key), _) => Some(key.to_owned()),
            (None, Some(file)) => Some(read_key_file(file)?),
            (None, None) => None,
        };
        match (target, key) {
            (Some(target), Some(key)) => Ok(Some(Target::new(target.name, target.url, Some(key)))),
            (None, Some(_)) => {
                Err(usage("a key needs a server: name it with --url or --remote".to_owned()))
            }
            (target, None) => Ok(target),
        }
    }

    pub(super) fn names_server(&self) -> bool {
        self.url.is_some() || self.remote.is_some()
    }

    pub(super) fn has_key(&self) -> bool {
        self.key.is_some() || self.key_file.is_some()
    }
}

impl Target {
    /// Creates a target. Whitespace around the key, for example from a file, is removed.
    pub(super) fn new(name: Option<String>, url: Url, key: Option<String>) -> Self {
        Self { name, url, key: key.map(|key| SecretString::from(key.trim())) }
    }

    /// Returns a note that names a stored server, because the command line does not show it.
    pub(super) fn describe(&self) -> Option<String> {
        self.name.as_ref().map(|name| format!("on {name}, {}", self.url))
    }
}

pub(super) fn server_url(text: &str) -> Result<Url, Failure> {
    // Credentials in the URL would be printed with it.
    let is_plain = |url: &Url| {
        let has_more = url.query().is_some() || url.fragment().is_some();
        let has_user = !url.username().is_empty() || url.password().is_some();
        ["http", "https"].contains(&url.scheme()) && !has_more && !has_user
    };
    let url = Url::parse(text).ok().filter(is_plain);
    match url {
        Some(url) if url.path().trim_end_matches('/').ends_with("/v1") => {
            Err(usage(format!("invalid URL `{text}`: leave out `/v1`, commands add it themselves")))
        }
        Some(url) => Ok(url),
        None => Err(usage(format!(
            "invalid URL `{text}`: use for example https://dalsegno.example.com"
        ))),
    }
}

pub(super) fn read_key_file(file: &Path) -> Result<String, Failure> {
    let key = std::fs::read_to_string(file);
    key.map_err(|error| usage(format!("cannot read {}: {error}", file.display())))
}

pub(super) fn usage(words: String) -> Failure {
    Failure::new(Exit::Usage, anyhow!(words))
}
