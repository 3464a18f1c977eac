//! A DNS resolver that returns public addresses only. The client connects to the address that was checked.

use std::{io, net::SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::domain::webhooks::is_public;

#[derive(Debug, Clone, Copy)]
pub(super) struct Resolver {
    pub(super) allow_private: bool,
}

/// Error of a name that resolves to private addresses only.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error(
    "its host name resolves to an address of a private network or of this machine; webhooks.allow_private = true allows such addresses"
)]
pub(super) struct Private;

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_private = self.allow_private;
        Box::pin(async move {
            // The client sets the port.
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            let allowed: Vec<SocketAddr> = found
                .iter()
                .copied()
                .filter(|address| allow_private || is_public(address.ip()))
                .collect();
            match (allowed.is_empty(), found.is_empty()) {
                (false, _) => Ok(Box::new(allowed.into_iter()) as Addrs),
                (true, false) => Err(Private.into()),
                (true, true) => Err(io::Error::from(io::ErrorKind::NotFound).into()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn resolve(allow_private: bool) -> Result<usize, String> {
        let resolver = Resolver { allow_private };
        let found = resolver.resolve("localhost".parse().unwrap()).await;
        found.map(Iterator::count).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_name_of_this_machine_is_refused_unless_private_addresses_are_allowed() {
        assert!(resolve(true).await.unwrap() > 0);
        let refused = resolve(false).await.unwrap_err();
        assert!(refused.contains("webhooks.allow_private"), "{refused}");
    }
}
