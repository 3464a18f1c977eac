//! Names of providers.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::domain::files::{Fields, is_name, nearest};

/// Name of a provider, as agents' files, sessions and settings have it.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String)]
pub struct Provider(Arc<str>);

/// Error: a text cannot name a provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a name of a provider: use small letters, digits, - and _")]
pub struct NoProviderName(String);

impl Provider {
    /// Reads a name, which need not be that of a configured provider.
    pub fn parse(name: &str) -> Result<Self, NoProviderName> {
        match is_name(name) {
            true => Ok(Self(name.into())),
            false => Err(NoProviderName(name.to_owned())),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Provider {
    type Error = NoProviderName;

    fn try_from(name: String) -> Result<Self, NoProviderName> {
        Self::parse(&name)
    }
}

impl From<Provider> for String {
    fn from(provider: Provider) -> Self {
        provider.0.as_ref().to_owned()
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads the key with the name of a configured provider.
pub(super) fn read(
    fields: &mut Fields<'_>,
    key: &'static str,
    known: &[Provider],
) -> Option<Provider> {
    let text = fields.text(key)?;
    match find_known(&text, known) {
        Ok(provider) => Some(provider),
        Err(names) => {
            fields.fail(key, format!("is `{text}`"), format!("{key}: {names}"));
            None
        }
    }
}

/// Finds a configured provider. The error names the closest match, or all of them.
pub(super) fn find_known(name: &str, known: &[Provider]) -> Result<Provider, String> {
    if let Some(provider) = known.iter().find(|provider| provider.as_str() == name) {
        return Ok(provider.clone());
    }
    Err(match nearest(name, known.iter().map(Provider::as_str)) {
        Some(near) => format!("{near} (the closest match)"),
        None => list(known),
    })
}

/// Lists names with commas between them.
pub(super) fn list(known: &[Provider]) -> String {
    known.iter().map(Provider::as_str).collect::<Vec<_>>().join(", ")
}
