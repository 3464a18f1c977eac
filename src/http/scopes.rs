//! Scopes of the routes, by method and path. Operations name theirs in their `Spec`.
//!
//! A route without a line needs `admin`, so that a forgotten line gives access to no other key. A test compares the
//! table with the routes of the router.

use axum::http::Method;

use crate::{domain::keys::Scope, operations};

/// The scopes of which a caller needs one; a scope can also be implied by another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequiredScope {
    /// No key is needed, because the answer is not confidential.
    Nothing,
    Any(&'static [Scope]),
}

const NOTHING: RequiredScope = RequiredScope::Nothing;
const READ: RequiredScope = RequiredScope::Any(&[Scope::Read]);
const ADMIN: RequiredScope = RequiredScope::Any(&[Scope::Admin]);
const MCP: RequiredScope = RequiredScope::Any(&[Scope::Mcp]);
/// Path of the Model Context Protocol for operators.
const OF_OPERATORS: &str = "/mcp/{id}";

/// Scopes of the routes besides operations.
const NEEDS: &[(&str, &str, RequiredScope)] = &[
    ("GET", "/livez", NOTHING),
    ("GET", "/readyz", NOTHING),
    ("GET", "/metrics", READ),
    ("POST", OF_OPERATORS, MCP),
    ("GET", "/v1/openapi.json", READ),
];

/// Returns method, path and need of each route.
pub fn needs() -> impl Iterator<Item = (&'static str, &'static str, RequiredScope)> {
    let operations = operations::ALL.iter().map(|entry| &entry.spec);
    let operations =
        operations.map(|spec| (spec.method.as_str(), spec.path, RequiredScope::Any(spec.scopes)));
    NEEDS.iter().copied().chain(operations)
}

/// Returns the need of a route, or `None` for a route without a line.
pub fn need(method: &str, path: &str) -> Option<RequiredScope> {
    // HEAD answers like GET, without the body.
    let method = if method == Method::HEAD.as_str() { Method::GET.as_str() } else { method };
    needs().find(|(m, p, _)| *m == method && *p == path).map(|(_, _, need)| need)
}

/// Returns the need of a request. `path` is that of the route; a request without a route needs any valid key.
pub(super) fn of_request(method: &Method, path: Option<&str>) -> RequiredScope {
    match path {
        // Clients of the protocol try GET and DELETE, and rely on a 405. A 403 would tell them that they need another
        // key.
        Some(OF_OPERATORS) => MCP,
        Some(path) => need(method.as_str(), path).unwrap_or(ADMIN),
        None => RequiredScope::Any(&Scope::ALL),
    }
}

impl RequiredScope {
    pub(super) fn is_met_by(self, scopes: &[Scope]) -> bool {
        match self {
            Self::Nothing => true,
            Self::Any(any) => {
                any.iter().any(|needed| scopes.iter().any(|has| has.implies(*needed)))
            }
        }
    }

    /// Returns the first scope that is sufficient.
    pub(super) fn scope(self) -> &'static str {
        match self {
            Self::Any([first, ..]) => first.as_str(),
            Self::Nothing | Self::Any([]) => "",
        }
    }
}
