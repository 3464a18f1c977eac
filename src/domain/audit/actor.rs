//! The actor of a change: an API key, a person at the command line, an agent, or the service.

use std::net::IpAddr;

use uuid::Uuid;

/// Longer than any name of a key. Names of users with their hosts are cut at this length.
const NAME_MAX_CHARS: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    pub kind: ActorKind,
    /// Empty for an actor without a name.
    pub name: String,
    /// The API key of the request.
    pub key_id: Option<Uuid>,
    /// The address that the request came from.
    pub peer: Option<IpAddr>,
    /// The handle of the key, which tells keys of one name apart.
    handle: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActorKind {
    Key,
    /// The key of the configuration.
    AdminKey,
    Cli,
    /// A turn of an agent, by a tool.
    Agent,
    System,
    /// The request needed no key.
    Anonymous,
}

impl Actor {
    /// An API key, by its id, name and handle.
    pub fn key(id: Uuid, name: &str, handle: &str, peer: Option<IpAddr>) -> Self {
        let (key_id, handle) = (Some(id), Some(handle.to_owned()));
        Self { kind: ActorKind::Key, name: name.to_owned(), key_id, peer, handle }
    }

    pub fn admin_key(peer: Option<IpAddr>) -> Self {
        Self::unnamed(ActorKind::AdminKey, peer)
    }

    pub fn anonymous(peer: Option<IpAddr>) -> Self {
        Self::unnamed(ActorKind::Anonymous, peer)
    }

    /// A person at the command line.
    pub fn cli(user: &str, host: &str) -> Self {
        let name = format!("{user}@{host}").replace('\0', "");
        let name = name.chars().take(NAME_MAX_CHARS).collect();
        Self { name, ..Self::unnamed(ActorKind::Cli, None) }
    }

    /// An agent, by its name on the board.
    pub fn agent(reader: &str) -> Self {
        Self { name: reader.to_owned(), ..Self::unnamed(ActorKind::Agent, None) }
    }

    /// Formats kind, name and handle as one text: `key:ci:3f0c2a9be1d4`, `cli:ann@host`, `anonymous`.
    pub fn label(&self) -> String {
        let parts = [Some(self.kind.as_str()), Some(self.name.as_str()), self.handle.as_deref()];
        let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(":")
    }

    fn unnamed(kind: ActorKind, peer: Option<IpAddr>) -> Self {
        Self { kind, name: String::new(), key_id: None, peer, handle: None }
    }
}

impl ActorKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::AdminKey => "admin_key",
            Self::Cli => "cli",
            Self::Agent => "agent",
            Self::System => "system",
            Self::Anonymous => "anonymous",
        }
    }
}
