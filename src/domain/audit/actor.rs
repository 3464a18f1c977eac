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

/// Returns the name in the label of an actor, without its kind and host.
pub fn name_of_label(label: &str) -> &str {
    match label.split_once(':') {
        Some(("cli", name)) => name.rsplit_once('@').map_or(name, |(user, _)| user),
        Some(("key", name)) => name.rsplit_once(':').map_or(name, |(name, _)| name),
        Some((_, name)) if !name.is_empty() => name,
        _ => label,
    }
}

/// Describes the label of an actor in words. Other texts, such as the name of an agent, stay as they are.
pub fn describe_label(label: &str) -> String {
    match label.split_once(':').unwrap_or((label, "")) {
        ("cli", name) if !name.is_empty() => match name.rsplit_once('@') {
            Some((user, host)) if user.bytes().all(|byte| byte.is_ascii_digit()) => {
                format!("user {user} on the command line of {host}")
            }
            Some((user, host)) => format!("{user} on the command line of {host}"),
            None => format!("{name} on the command line"),
        },
        ("key", name) if !name.is_empty() => format!("the API key {}", name_of_label(label)),
        ("agent", name) if !name.is_empty() => format!("the agent {name}"),
        ("admin_key", "") => "the key of the configuration".to_owned(),
        ("anonymous", "") => "a caller without a key".to_owned(),
        ("system", "") => "the service".to_owned(),
        _ => label.to_owned(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_a_name() {
        let labels = ["cli:a@b@vm", "key:ops@example.com:3f0c2a9be1d4", "agent:planner", "system"];
        assert_eq!(labels.map(name_of_label), ["a@b", "ops@example.com", "planner", "system"]);
    }

    #[test]
    fn each_label_is_put_into_words() {
        let cli = Actor::cli("ann", "vm").label();
        let key = Actor::key(Uuid::nil(), "ci", "3f0c2a9be1d4", None).label();
        for (label, words) in [
            (cli.as_str(), "ann on the command line of vm"),
            ("cli:0@vm", "user 0 on the command line of vm"),
            (key.as_str(), "the API key ci"),
            (Actor::admin_key(None).label().as_str(), "the key of the configuration"),
            (Actor::anonymous(None).label().as_str(), "a caller without a key"),
            (Actor::agent("planner").label().as_str(), "the agent planner"),
            ("planner", "planner"),
        ] {
            assert_eq!(describe_label(label), words);
        }
    }
}
