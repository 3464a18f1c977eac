//! Allowed addresses of webhooks. Otherwise, a webhook could make the service send requests into its own network, or to the metadata
//! service of its cloud.
//!
//! An address is checked twice: as it is written, here; and each time after its name is resolved, before connecting, because the owner of
//! a name can change its address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

/// The reason why an address is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RefusalReason {
    #[error("invalid URL of a webhook ({0}): use for example https://example.com/hooks")]
    NotAUrl(String),
    #[error(
        "the URL of the webhook has {n_chars} characters, at most {limit} are allowed: use a shorter one"
    )]
    TooLong { n_chars: usize, limit: usize },
    #[error(
        "the URL of a webhook must begin with https://, not with {0}://; webhooks.allow_private = true allows http:// and private addresses"
    )]
    Scheme(String),
    #[error(
        "the URL of a webhook must not contain a user or a password, because lists show the URL: deliveries are signed instead"
    )]
    Credentials,
    #[error(
        "{0} is an address of this machine, of a private network or a reserved one; webhooks.allow_private = true allows such addresses"
    )]
    Private(String),
}

pub(super) const MAX_CHARS: usize = 2000;

/// Checks an address without resolving its name.
pub fn check(text: &str, allow_private: bool) -> Result<Url, RefusalReason> {
    let url = Url::parse(text.trim()).map_err(|error| RefusalReason::NotAUrl(error.to_string()))?;
    let n_chars = url.as_str().chars().count();
    if n_chars > MAX_CHARS {
        return Err(RefusalReason::TooLong { n_chars, limit: MAX_CHARS });
    }
    match url.scheme() {
        "https" => {}
        "http" if allow_private => {}
        scheme => return Err(RefusalReason::Scheme(scheme.to_owned())),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(RefusalReason::Credentials);
    }
    let host = url.host_str().unwrap_or_default();
    match literal(host) {
        Some(address) if !allow_private && !is_public(address) => {
            Err(RefusalReason::Private(host.to_owned()))
        }
        _ => Ok(url),
    }
}

/// Returns true if an address is reachable on the public internet. Special-purpose ranges are not public.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Returns the IP address of a host that is not a name. Parsing the URL has normalized its notation.
fn literal(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        // The metadata services of most clouds are here.
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        // "This network", shared address space (CGNAT), protocol assignments, benchmarks, reserved.
        || a == 0
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19))
        || a >= 240
        // Azure's platform, in the middle of public space.
        || address == Ipv4Addr::new(168, 63, 129, 16);
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    // Only 2000::/3 is allocated at all. Within it, tunnels to IPv4 and documentation ranges are not public.
    let is_global_unicast = first & 0xe000 == 0x2000;
    let special = (first == 0x2001 && (second < 0x0200 || second == 0x0db8))
        || first == 0x2002
        || first == 0x3fff && second < 0x1000;
    is_global_unicast && !special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_purpose_addresses_are_not_public() {
        let private = [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.1.2.3",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ];
        for address in private {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        let public = [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "193.99.144.80",
            "2606:4700::1111",
            "2a02:2e0:3fe::1",
            "2001:4860:4860::8888",
        ];
        for address in public {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn private_addresses_are_recognised_in_every_notation() {
        let written = [
            "https://127.0.0.1/",
            "https://0x7f.1/",
            "https://2130706433/",
            "https://0177.0.0.1/",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]:8443/x",
            "https://169.254.169.254/latest/meta-data/",
            "https://１２７.0.0.1/",
        ];
        for url in written {
            assert!(
                matches!(check(url, false), Err(RefusalReason::Private(_))),
                "{url}: {:?}",
                check(url, false)
            );
            assert!(check(url, true).is_ok(), "{url}");
        }
        // A name is checked when it is resolved.
        assert!(check("https://localhost/", false).is_ok());
    }

    #[test]
    fn an_invalid_webhook_address_is_refused_with_a_reason() {
        assert!(matches!(check("example.com/hook", false), Err(RefusalReason::NotAUrl(_))));
        assert_eq!(
            check("http://example.com/", false),
            Err(RefusalReason::Scheme("http".to_owned()))
        );
        assert!(check("http://example.com/", true).is_ok());
        assert_eq!(
            check("file:///etc/passwd", true),
            Err(RefusalReason::Scheme("file".to_owned()))
        );
        assert_eq!(check("https://me:pw@example.com/", false), Err(RefusalReason::Credentials));
        let long = format!("https://example.com/{}", "x".repeat(2000));
        assert!(matches!(check(&long, false), Err(RefusalReason::TooLong { .. })));
        let url = check(" https://example.com/hook?team=1 ", false).unwrap();
        assert_eq!(url.as_str(), "https://example.com/hook?team=1");
    }
}
