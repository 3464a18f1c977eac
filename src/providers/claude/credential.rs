//! Credentials: their sources, and how the CLI gets them without other programs reading them.

use std::{collections::HashSet, io, path::PathBuf};

use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use crate::providers::Problem;

/// A credential as the configuration names it, without the secret itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CredentialConfig {
    /// Name of the credential for sessions and operators.
    pub name: String,
    pub kind: Kind,
    /// Environment variable with the secret. Exactly one of `variable` and `file` is required.
    #[serde(default)]
    pub variable: String,
    /// File with the secret. Exactly one of `variable` and `file` is required.
    #[serde(default)]
    pub file: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A key from the API's console.
    ApiKey,
    /// A bearer token for a gateway.
    AuthToken,
    /// A token of a subscription, from `claude setup-token`.
    OauthToken,
}

/// Channel through which the CLI gets a credential.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(Debug))]
pub(super) enum CredentialChannel<'a> {
    Variable {
        variable: &'static str,
        secret: &'a str,
    },
    /// A pipe that is empty once the CLI has read it. The variable holds its number.
    Pipe {
        variable: &'static str,
        secret: &'a str,
    },
}

/// A credential with its secret.
#[derive(Debug, Clone)]
pub struct Credential {
    pub name: String,
    pub kind: Kind,
    pub secret: SecretString,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::ApiKey, Self::AuthToken, Self::OauthToken];

    /// Returns the variable from which the CLI takes the secret.
    pub(super) fn variable(self) -> &'static str {
        match self {
            Self::ApiKey => "ANTHROPIC_API_KEY",
            Self::AuthToken => "ANTHROPIC_AUTH_TOKEN",
            Self::OauthToken => "CLAUDE_CODE_OAUTH_TOKEN",
        }
    }

    /// Returns the variable for the number of a pipe with the secret. The CLI reads it outside of its bare mode only.
    pub(super) fn pipe_variable(self) -> Option<&'static str> {
        match self {
            Self::ApiKey => Some("CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR"),
            Self::OauthToken => Some("CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR"),
            Self::AuthToken => None,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("credential {name}: the variable {variable} is not set; set it, or use a file")]
    NoVariable { name: String, variable: String },
    #[error("credential {name}: cannot read {}; make it readable for the service only", file.display())]
    NoFile {
        name: String,
        file: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("credential {0} is empty; write the key or token into its variable or file")]
    Empty(String),
}

impl CredentialConfig {
    /// Reads the secret. `variable` looks up an environment variable.
    pub fn resolve(&self, variable: impl Fn(&str) -> Option<String>) -> Result<Credential, Error> {
        let name = self.name.clone();
        let secret = if self.variable.is_empty() {
            let source = std::fs::read_to_string(&self.file);
            source.map_err(|source| Error::NoFile {
                name: name.clone(),
                file: self.file.clone(),
                source,
            })?
        } else {
            let missing =
                || Error::NoVariable { name: name.clone(), variable: self.variable.clone() };
            variable(&self.variable).ok_or_else(missing)?
        };
        let secret = secret.trim();
        if secret.is_empty() {
            return Err(Error::Empty(name));
        }
        Ok(Credential { name, kind: self.kind, secret: secret.into() })
    }

    pub(super) fn check_all(all: &[Self]) -> Vec<Problem> {
        let (mut names, mut problems) = (HashSet::new(), Vec::new());
        for (at, credential) in all.iter().enumerate() {
            let key = format!("credentials[{at}]");
            if credential.name.is_empty() || !names.insert(&credential.name) {
                let message = "has no name, or the name of another one";
                problems.push(Problem::new(&format!("{key}.name"), message, "main"));
            }
            if credential.variable.is_empty() == credential.file.as_os_str().is_empty() {
                let message = "must come from either a variable or a file";
                problems.push(Problem::new(&key, message, "variable = \"ANTHROPIC_API_KEY\""));
            }
        }
        problems
    }
}

impl Credential {
    /// Returns the channel for the secret. If `is_hidden`, it is a pipe where possible: programs and tools of the CLI cannot read that.
    pub(super) fn secret_channel(&self, is_hidden: bool) -> CredentialChannel<'_> {
        let secret = self.secret.expose_secret();
        match self.kind.pipe_variable().filter(|_| is_hidden) {
            Some(variable) => CredentialChannel::Pipe { variable, secret },
            None => CredentialChannel::Variable { variable: self.kind.variable(), secret },
        }
    }

    /// Returns true if the CLI accepts the credential in its bare mode.
    pub(super) fn works_bare(&self) -> bool {
        self.kind != Kind::OauthToken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(variable: &str, file: &str) -> CredentialConfig {
        CredentialConfig {
            name: "main".to_owned(),
            kind: Kind::ApiKey,
            variable: variable.to_owned(),
            file: file.into(),
        }
    }

    #[test]
    fn a_secret_has_one_source_and_is_never_printed() {
        let credential =
            config("KEY", "").resolve(|name| Some(format!("secret-of-{name}\n"))).unwrap();
        let (variable, secret) = ("ANTHROPIC_API_KEY", "secret-of-KEY");
        assert_eq!(
            credential.secret_channel(false),
            CredentialChannel::Variable { variable, secret }
        );
        let variable = "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR";
        assert_eq!(credential.secret_channel(true), CredentialChannel::Pipe { variable, secret });
        assert!(!format!("{credential:?}").contains("secret-of"));
        let missing = config("KEY", "").resolve(|_| None).unwrap_err();
        assert!(missing.to_string().contains("KEY"));
        assert!(matches!(config("", "/no/such/file").resolve(|_| None), Err(Error::NoFile { .. })));
        assert!(matches!(
            config("KEY", "").resolve(|_| Some(" ".to_owned())),
            Err(Error::Empty(_))
        ));
    }

    #[test]
    fn credential_names_and_sources_are_checked() {
        assert_eq!(CredentialConfig::check_all(&[config("A", "")]), []);
        let problems =
            CredentialConfig::check_all(&[config("A", ""), config("A", "f"), config("", "")]);
        let keys: Vec<_> = problems.iter().map(|problem| problem.key.as_str()).collect();
        assert_eq!(
            keys,
            ["credentials[1].name", "credentials[1]", "credentials[2].name", "credentials[2]"]
        );
    }
}
