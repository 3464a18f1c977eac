//! The address that a request comes from.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address, and the network that its requests are counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::http) struct Peer {
    address: Option<IpAddr>,
    counted: IpAddr,
}

impl Peer {
    pub(super) fn of(address: Option<IpAddr>) -> Self {
        let address = address.map(|address| address.to_canonical());
        let counted = match address {
            Some(IpAddr::V6(address)) => network(address).into(),
            Some(address) => address,
            None => Ipv4Addr::UNSPECIFIED.into(),
        };
        Self { address, counted }
    }

    pub(super) fn address(self) -> Option<IpAddr> {
        self.address
    }

    /// Returns the peer without its address, for counting.
    pub(super) fn without_address(self) -> Self {
        Self { address: None, ..self }
    }
}

/// Returns the /64 network of an IPv6 address: one client usually has all of its addresses.
fn network(address: Ipv6Addr) -> Ipv6Addr {
    let [a, b, c, d, ..] = address.segments();
    Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_counted_by_their_owner() {
        let counted = |text: &str| Peer::of(Some(text.parse().unwrap())).without_address();
        assert_eq!(counted("2001:db8:1:2::1"), counted("2001:db8:1:2:ffff::9"));
        assert_ne!(counted("2001:db8:1:2::1"), counted("2001:db8:1:3::1"));
        assert_eq!(counted("::ffff:10.1.2.3"), counted("10.1.2.3"));
        assert_ne!(counted("10.1.2.3"), counted("10.1.2.4"));
    }
}
