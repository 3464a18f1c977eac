//! The client behind trusted proxies, as `Forwarded` (RFC 7239) or `X-Forwarded-For` names it.
//!
//! Each proxy appends the address that it was reached from. So the list is read from its right end, and an entry is believed only if
//! a trusted proxy has reported it. The rightmost address that is not trusted is the client; what stands to its left came with
//! the client's request and may be forged. The headers of any other peer are ignored.

use std::{
    iter,
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::FORWARDED};

use crate::http::Problem;

const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// An address, or a network in CIDR notation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) struct Network {
    address: IpAddr,
    prefix_bits: u32,
}

#[derive(Debug)]
pub(super) struct TrustedProxies(Vec<Network>);

/// One entry of a list: the address that a proxy was reached from, if the entry names one.
type Hop = Option<IpAddr>;

impl TrustedProxies {
    pub(super) fn new(networks: impl Iterator<Item = Network>) -> Self {
        Self(networks.collect())
    }

    /// Returns the address of the client. An entry that names no address (`unknown`, or malformed) stands for the proxy
    /// that reported it.
    pub(super) fn client(
        &self,
        peer: Option<IpAddr>,
        headers: &HeaderMap,
    ) -> Result<Option<IpAddr>, Problem> {
        let Some(peer) = peer.filter(|peer| self.trusts(*peer)) else { return Ok(peer) };
        let by_standard = self.walk(peer, hops(headers, &FORWARDED, of_forwarded));
        let by_custom = self.walk(peer, hops(headers, &X_FORWARDED_FOR, of_x_forwarded_for));
        match (headers.contains_key(FORWARDED), headers.contains_key(X_FORWARDED_FOR)) {
            (true, true) if by_standard != by_custom => Err(contradiction()),
            (true, _) => Ok(Some(by_standard)),
            (false, _) => Ok(Some(by_custom)),
        }
    }

    /// Returns true if the peer is a trusted proxy that a browser has reached over TLS.
    pub(super) fn is_https(&self, peer: Option<IpAddr>, headers: &HeaderMap) -> bool {
        let last = |name: HeaderName| {
            let line = headers.get_all(name).iter().next_back()?.to_str().ok()?;
            Some(line.rsplit(',').next().unwrap_or_default().trim().to_ascii_lowercase())
        };
        let by_standard = last(FORWARDED).is_some_and(|element| {
            element.split(';').any(|pair| matches!(pair.trim(), "proto=https" | "proto=\"https\""))
        });
        let by_custom = last(X_FORWARDED_PROTO).is_some_and(|proto| proto == "https");
        peer.is_some_and(|peer| self.trusts(peer)) && (by_standard || by_custom)
    }

    /// Walks from the peer over `hops`, which begin at the right end of the list.
    fn walk(&self, peer: IpAddr, hops: impl Iterator<Item = Hop>) -> IpAddr {
        let mut nearest = peer;
        for hop in hops {
            let Some(hop) = hop else { return nearest };
            nearest = hop;
            if !self.trusts(hop) {
                return hop;
            }
        }
        nearest
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }
}

impl Network {
    fn contains(self, address: IpAddr) -> bool {
        let (own, other) = (self.address, address.to_canonical());
        let differing = match (own, other) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits() ^ other.to_bits()).leading_zeros()
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits()).leading_zeros()
            }
            _ => return false,
        };
        differing >= self.prefix_bits
    }
}

impl FromStr for Network {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address = address.parse::<IpAddr>().map_err(|_| ())?.to_canonical();
        let most_bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = bits.map_or(Ok(most_bits), str::parse).map_err(|_| ())?;
        (prefix_bits <= most_bits).then_some(Self { address, prefix_bits }).ok_or(())
    }
}

/// Returns the entries of all headers of this name, the last one first. A line is parsed only when the lines to its
/// right are used up.
fn hops(
    headers: &HeaderMap,
    name: &HeaderName,
    read: fn(&str) -> Vec<Hop>,
) -> impl Iterator<Item = Hop> {
    let lines: Vec<&HeaderValue> = headers.get_all(name).iter().collect();
    let read = move |line: &HeaderValue| line.to_str().map_or_else(|_| vec![None], read);
    lines.into_iter().rev().flat_map(move |line| read(line).into_iter().rev())
}

fn of_x_forwarded_for(line: &str) -> Vec<Hop> {
    line.split(',').map(node).collect()
}

fn of_forwarded(line: &str) -> Vec<Hop> {
    // With an unclosed quotation mark, the client could pull what a proxy appends into a value of its own.
    let Some(elements) = split(line, ',') else { return vec![None] };
    elements.into_iter().map(|element| node(&value_of_for(element)?)).collect()
}

fn value_of_for(element: &str) -> Option<String> {
    let pairs = split(element, ';')?;
    let mut values = pairs.into_iter().filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then_some(value.trim())
    });
    let (value, another) = (values.next()?, values.next());
    let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    another.is_none().then(|| quoted.unwrap_or(value).replace('\\', ""))
}

/// Splits a text at separators outside of quotation marks. `None`: a quotation mark is not closed.
fn split(text: &str, separator: char) -> Option<Vec<&str>> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let mut ends = Vec::new();
    for (place, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            c if c == separator && !is_quoted => ends.push(place),
            _ => {}
        }
    }
    if is_quoted {
        return None;
    }
    let begins = iter::once(0).chain(ends.iter().map(|end| end + 1));
    let ends = ends.iter().copied().chain(iter::once(text.len()));
    Some(begins.zip(ends).map(|(begin, end)| &text[begin..end]).collect())
}

/// Parses `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:4711`.
fn node(text: &str) -> Hop {
    let text = text.trim();
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse::<IpAddr>().ok().or_else(with_port)?;
    Some(address.to_canonical())
}

fn contradiction() -> Problem {
    let detail = "Forwarded and X-Forwarded-For name different clients: let the proxy in front set one of them and remove the other";
    Problem::new(StatusCode::BAD_REQUEST, "bad_forwarding", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, lines: &[(&'static str, &str)]) -> Result<String, Problem> {
        let networks = ["10.0.0.0/8", "2001:db8:1::/48", "192.0.2.7"];
        let proxies = TrustedProxies::new(networks.iter().map(|text| text.parse().unwrap()));
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let client = proxies.client(Some(peer.parse().unwrap()), &headers)?;
        Ok(client.unwrap().to_string())
    }

    #[test]
    fn the_rightmost_untrusted_address_is_the_client() {
        for (peer, line, expected) in [
            ("10.0.0.1", "203.0.113.9", "203.0.113.9"),
            ("::ffff:10.0.0.1", "203.0.113.9:1234", "203.0.113.9"),
            // The client's own entries stand to the left.
            ("10.0.0.1", "198.51.100.1, 203.0.113.9", "203.0.113.9"),
            ("10.0.0.1", "198.51.100.1, 203.0.113.9, 10.2.3.4, 192.0.2.7", "203.0.113.9"),
            ("10.0.0.1", "127.0.0.1, 10.9.9.9, 203.0.113.9", "203.0.113.9"),
            ("2001:db8:1::5", "2001:db8:2::1, 10.1.1.1", "2001:db8:2::1"),
            // Each entry is trusted.
            ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
            // An entry without an address counts as the proxy that reported it.
            ("10.0.0.1", "203.0.113.9, unknown", "10.0.0.1"),
            ("10.0.0.1", "203.0.113.9, x, 10.0.0.2", "10.0.0.2"),
            ("10.0.0.1", "", "10.0.0.1"),
            // The peer is not trusted.
            ("203.0.113.1", "198.51.100.1", "203.0.113.1"),
            ("192.0.2.8", "198.51.100.1", "192.0.2.8"),
        ] {
            let found = client(peer, &[("x-forwarded-for", line)]).unwrap();
            assert_eq!(found, expected, "{peer}: {line}");
        }
    }

    #[test]
    fn the_standard_header_is_parsed_with_its_quotes() {
        for (line, expected) in [
            ("for=203.0.113.9;proto=https;by=10.0.0.1", "203.0.113.9"),
            ("For=\"203.0.113.9:4711\"", "203.0.113.9"),
            ("for=198.51.100.1, for=\"[2001:db8:2::9]:80\";host=x", "2001:db8:2::9"),
            ("for=198.51.100.1, for=203.0.113.9;by=\"a, for=1.2.3.4\"", "203.0.113.9"),
            ("for=203.0.113.9, for=_hidden", "10.0.0.1"),
            ("proto=https", "10.0.0.1"),
            ("for=203.0.113.9;for=198.51.100.1", "10.0.0.1"),
            // An unclosed quotation mark of the client swallows what the proxy appends.
            ("for=198.51.100.1;x=\", for=203.0.113.9", "10.0.0.1"),
            ("for=198.51.100.1;x=\", for=\"[2001:db8:2::9]\"", "10.0.0.1"),
        ] {
            assert_eq!(client("10.0.0.1", &[("forwarded", line)]).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn several_header_lines_are_one_list_and_contradictions_are_refused() {
        let forged = ("x-forwarded-for", "198.51.100.1");
        let own = ("x-forwarded-for", "203.0.113.9");
        assert_eq!(client("10.0.0.1", &[forged, own]).unwrap(), "203.0.113.9");
        // A proxy that sets one of the headers passes the other on as the client has sent it.
        let refused = client("10.0.0.1", &[("forwarded", "for=198.51.100.1"), own]).unwrap_err();
        assert_eq!(refused.code, "bad_forwarding");
        let same = client("10.0.0.1", &[("forwarded", "for=203.0.113.9"), own]).unwrap();
        assert_eq!(same, "203.0.113.9");
        // Both headers of an untrusted peer are ignored.
        let ignored = client("203.0.113.1", &[("forwarded", "for=198.51.100.1"), own]).unwrap();
        assert_eq!(ignored, "203.0.113.1");
    }

    #[test]
    fn only_a_trusted_proxy_says_that_a_browser_uses_tls() {
        let proxies = TrustedProxies::new(["10.0.0.0/8".parse().unwrap()].into_iter());
        let is_https = |peer: &str, name: &'static str, line: &str| {
            let mut headers = HeaderMap::new();
            headers.append(name, HeaderValue::from_str(line).unwrap());
            proxies.is_https(Some(peer.parse().unwrap()), &headers)
        };
        assert!(is_https("10.0.0.1", "x-forwarded-proto", "https"));
        assert!(is_https("10.0.0.1", "forwarded", "for=203.0.113.9;proto=https"));
        assert!(!is_https("10.0.0.1", "x-forwarded-proto", "https, http"));
        assert!(!is_https("10.0.0.1", "forwarded", "for=203.0.113.9;proto=http"));
        assert!(!is_https("203.0.113.1", "x-forwarded-proto", "https"));
    }

    #[test]
    fn networks_are_parsed_strictly() {
        for wrong in ["", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0/8", "proxy", "::1/129", "10.0.0.1/"]
        {
            assert_eq!(wrong.parse::<Network>(), Err(()), "{wrong}");
        }
        let everywhere: Network = "0.0.0.0/0".parse().unwrap();
        assert!(everywhere.contains("203.0.113.9".parse().unwrap()));
        assert!(!everywhere.contains("::1".parse().unwrap()));
    }
}
