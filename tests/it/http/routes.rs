//! The routes of the router, for tests of all of them.

use std::collections::{BTreeMap, BTreeSet};

use axum::Router;

const METHODS: [(&str, &str); 5] =
    [("get", "GET"), ("post", "POST"), ("put", "PUT"), ("patch", "PATCH"), ("delete", "DELETE")];

/// Returns method and path of each route. The router exposes them in its `Debug` text only.
pub fn registered(router: &Router) -> BTreeSet<(&'static str, String)> {
    let text = format!("{router:?}");
    let (text, _fallbacks) = text.split_once("fallback_router").unwrap();
    let (routes, paths) = text.split_once("node: Node").unwrap();
    let entries = |text: &str| -> BTreeMap<u32, String> {
        let entries = text.split("RouteId(").skip(1).filter_map(|entry| entry.split_once("): "));
        entries.filter_map(|(id, rest)| Some((id.parse().ok()?, rest.to_owned()))).collect()
    };
    let paths = entries(paths);
    let of_route = |(id, route): (&u32, &String)| {
        let path = paths[id].split('"').nth(1).unwrap().to_owned();
        let methods = METHODS.into_iter().filter(|(field, _)| {
            [" ", "{"].iter().any(|before| route.contains(&format!("{before}{field}: Route")))
        });
        methods.map(|(_, method)| (method, path.clone())).collect::<Vec<_>>()
    };
    let found: BTreeSet<_> = entries(routes).iter().flat_map(of_route).collect();
    assert!(found.len() >= 30, "the router could not be parsed: {found:?}");
    found
}
