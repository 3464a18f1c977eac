//! The scope that each route needs: one line per method and path, and no route without one. Operations name theirs themselves.
//!
//! A route that has no line here needs `admin`, so a forgotten line shuts somebody out and lets nobody in. A test walks the
//! routes of the router and finds it.

use axum::http::Method;

use crate::{domain::keys::Scope, operations};

/// Who may use a route: whoever has one of these scopes, or one that implies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// No key at all: it says nothing that is worth protecting.
    Nothing,
    Any(&'static [Scope]),
}

const NOTHING: Need = Need::Nothing;
const READ: Need = Need::Any(&[Scope::Read]);
const ADMIN: Need = Need::Any(&[Scope::Admin]);
const MCP: Need = Need::Any(&[Scope::Mcp]);
/// Where operators speak the Model Context Protocol.
const OF_OPERATORS: &str = "/mcp/{id}";

/// Of the routes that are no operations.
const NEEDS: &[(&str, &str, Need)] = &[
    ("GET", "/livez", NOTHING),
    ("GET", "/readyz", NOTHING),
    ("GET", "/metrics", READ),
    ("POST", OF_OPERATORS, MCP),
    ("GET", "/v1/openapi.json", READ),
];

/// Method, path and need of each route.
pub fn needs() -> impl Iterator<Item = (&'static str, &'static str, Need)> {
    let operations = operations::ALL.iter().map(|entry| &entry.spec);
    let operations =
        operations.map(|spec| (spec.method.as_str(), spec.path, Need::Any(spec.scopes)));
    NEEDS.iter().copied().chain(operations)
}

/// What a route needs; `None` for one that has no line.
pub fn need(method: &str, path: &str) -> Option<Need> {
    // An answer to HEAD is that to GET without its body.
    let method = if method == Method::HEAD.as_str() { Method::GET.as_str() } else { method };
    needs().find(|(m, p, _)| *m == method && *p == path).map(|(_, _, need)| need)
}

/// What a request needs. `path` is that of the route; a request that leads to none only needs somebody who may ask at all.
pub(super) fn of_request(method: &Method, path: Option<&str>) -> Need {
    match path {
        // Clients of the protocol try GET and DELETE, and go by the 405 that they get; of a 403 they would think that they
        // need another key.
        Some(OF_OPERATORS) => MCP,
        Some(path) => need(method.as_str(), path).unwrap_or(ADMIN),
        None => Need::Any(&Scope::ALL),
    }
}

impl Need {
    pub(super) fn is_met_by(self, scopes: &[Scope]) -> bool {
        match self {
            Self::Nothing => true,
            Self::Any(any) => {
                any.iter().any(|needed| scopes.iter().any(|has| has.implies(*needed)))
            }
        }
    }

    /// The least that would do.
    pub(super) fn scope(self) -> &'static str {
        match self {
            Self::Any([first, ..]) => first.as_str(),
            Self::Nothing | Self::Any([]) => "",
        }
    }
}
