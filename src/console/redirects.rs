//! Redirects of addresses that people guess.

use axum::{Router, http::Uri, routing::get};
use percent_encoding::percent_decode_str;

use super::parts::url_text;
use crate::http::{RouterState, pages::see_other};

/// Guessed addresses and real ones. `{}` is the last part of the guessed address.
pub const REDIRECTS: &[(&str, &str)] = &[
    ("/home", "/"),
    ("/overview", "/"),
    ("/dashboard", "/"),
    ("/paused", "/"),
    ("/pauses", "/"),
    ("/campaign", "/campaigns"),
    ("/campaign/{id}", "/campaigns/{}"),
    ("/boards", "/campaigns"),
    ("/memory", "/campaigns"),
    ("/task", "/tasks"),
    ("/task/{id}", "/tasks/{}"),
    ("/failed", "/tasks?state=failed"),
    ("/session", "/sessions"),
    ("/session/{id}", "/sessions/{}"),
    ("/conversations", "/sessions"),
    ("/transcripts", "/sessions"),
    ("/turns", "/sessions"),
    ("/flow", "/flows"),
    ("/flow/{id}", "/flows/{}"),
    ("/flow-templates", "/catalogue"),
    ("/flow-templates/{name}", "/catalogue/flow/{}"),
    ("/agent", "/catalogue"),
    ("/agent/{name}", "/catalogue/agent/{}"),
    ("/agents", "/catalogue"),
    ("/agents/{name}", "/catalogue/agent/{}"),
    ("/skills", "/catalogue"),
    ("/skills/{name}", "/catalogue/skill/{}"),
    ("/nodes", "/catalogue"),
    ("/nodes/{name}", "/catalogue/node/{}"),
    ("/budget", "/cost/budgets"),
    ("/budgets", "/cost/budgets"),
    ("/costs", "/cost"),
    ("/usage", "/cost"),
    ("/calls", "/cost/calls"),
    ("/ledger", "/cost/calls"),
    ("/eval", "/cost/evals"),
    ("/evals", "/cost/evals"),
    ("/prices", "/installation?setting=prices.models"),
    ("/queue", "/work"),
    ("/queues", "/work"),
    ("/queues/{name}", "/work?queue={}"),
    ("/waits", "/work"),
    ("/workers", "/work"),
    ("/runs", "/work"),
    ("/rate-limits", "/work#rate-limits"),
    ("/limits", "/work#rate-limits"),
    ("/provider", "/work#rate-limits"),
    ("/providers", "/work#rate-limits"),
    ("/endpoints", "/work#rate-limits"),
    ("/models", "/work#rate-limits"),
    ("/credentials", "/work#credentials"),
    ("/job", "/work/jobs"),
    ("/job/{id}", "/work/jobs/{}"),
    ("/jobs", "/work/jobs"),
    ("/jobs/{id}", "/work/jobs/{}"),
    ("/dead-letters", "/work/jobs?state=dead"),
    ("/deadletters", "/work/jobs?state=dead"),
    ("/lanes", "/work/lanes"),
    ("/lanes/{name}", "/work/lanes?name={}"),
    ("/bulk", "/work/bulk"),
    ("/bulk-actions", "/work/bulk"),
    ("/schedule", "/schedules"),
    ("/schedule/{name}", "/schedules/{}"),
    ("/user", "/users"),
    ("/facts", "/users"),
    ("/webhook", "/webhooks"),
    ("/webhook/{id}", "/webhooks/{}"),
    ("/deliveries", "/webhooks"),
    ("/retention", "/cleanup"),
    ("/erasure", "/erasures"),
    ("/receipts", "/erasures"),
    ("/key", "/keys"),
    ("/api-keys", "/keys"),
    ("/audit-log", "/audit"),
    ("/audits", "/audit"),
    ("/health", "/doctor"),
    ("/status", "/doctor"),
    ("/settings", "/installation"),
    ("/config", "/installation"),
    ("/migrations", "/installation"),
];

/// Adds a route for each guessed address.
pub(super) fn add(router: Router<RouterState>) -> Router<RouterState> {
    REDIRECTS.iter().fold(router, |router, (guess, target)| {
        router.route(guess, get(move |uri: Uri| async move { see_other(&resolve(target, &uri)) }))
    })
}

/// Returns the real address of a request, with its query.
fn resolve(target: &str, uri: &Uri) -> String {
    let last = uri.path().rsplit('/').next().unwrap_or_default();
    // A plus or an ampersand of a path has another meaning in a query.
    let last = url_text(&percent_decode_str(last).decode_utf8_lossy());
    let target = target.replace("{}", &last);
    let Some(query) = uri.query() else { return target };
    let (page, place) = target.split_at(target.find('#').unwrap_or(target.len()));
    let mark = if page.contains('?') { '&' } else { '?' };
    format!("{page}{mark}{query}{place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_and_the_query_are_kept() {
        let resolved = |target, uri: &str| resolve(target, &uri.parse().unwrap());
        assert_eq!(resolved("/catalogue/agent/{}", "/agents/a%20b"), "/catalogue/agent/a%20b");
        assert_eq!(resolved("/work/jobs", "/jobs?state=held"), "/work/jobs?state=held");
        assert_eq!(resolved("/work/lanes?name={}", "/lanes/x?b=1"), "/work/lanes?name=x&b=1");
        assert_eq!(resolved("/work/lanes?name={}", "/lanes/a+b%26c"), "/work/lanes?name=a%2Bb%26c");
        assert_eq!(resolved("/work#rate-limits", "/rate-limits?a=1"), "/work?a=1#rate-limits");
    }
}
