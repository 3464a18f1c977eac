//! The findings of the doctor, each problem with its fix.

use axum::extract::Query;
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    groups,
    layout::Content,
    page::{Page, PageResult},
    parts::{Tone, counted, section, sentence},
};
use crate::{
    domain::findings::{Finding, Status},
    operations::RunDoctor,
};

/// Pages on which a problem of a check is solved.
const PAGES: [(&str, &[(&str, &str)]); 14] = [
    ("agents", &[("Agents", "/catalogue")]),
    ("flow templates", &[("Agents and flow templates", "/catalogue")]),
    ("keys", &[("Keys", "/keys")]),
    ("budgets", &[("Budgets", "/cost/budgets")]),
    ("unpriced calls", &[("The prices", "/installation?setting=prices.models")]),
    ("busy", &[("The tasks that wait", "/work/jobs?waits_for=provider")]),
    ("cleanup", &[("Cleanup", "/cleanup")]),
    ("dead letters", &[("Dead letters", "/work/jobs?state=dead")]),
    (
        "held",
        &[
            ("Held jobs", "/work/jobs?state=held"),
            ("Held lanes", "/work/lanes?held=true"),
            ("Jobs of paused campaigns and queues", "/work/jobs?waits_for=pause"),
            ("Paused flows", "/flows?state=paused"),
        ],
    ),
    ("migrations", &[("Installation", "/installation")]),
    ("prices", &[("Cost", "/cost")]),
    ("version", &[("Installation", "/installation")]),
    ("webhooks", &[("Webhooks", "/webhooks")]),
    ("workers", &[("Work", "/work")]),
];

#[derive(Debug, Deserialize)]
pub(super) struct PageQuery {
    #[serde(default)]
    all: String,
}

pub(super) async fn show(Query(query): Query<PageQuery>, page: Page) -> PageResult {
    let items = page.caller.run(RunDoctor {}).await?.items;
    let is_problem = |finding: &&Finding| matches!(finding.status, Status::Fail | Status::Warn);
    let mut problems: Vec<_> = items.iter().filter(is_problem).collect();
    problems.sort_by_key(|finding| finding.status != Status::Fail);
    let rest: Vec<_> = items.iter().filter(|finding| !is_problem(finding)).collect();
    let heading = match problems.len() {
        0 => "The installation is in order".to_owned(),
        n => format!("{} found", counted(n, "problem", "problems")),
    };
    let body = html! {
        div.head {
            div { h1 { (heading) } div.meta { span { (counted(items.len(), "check", "checks")) " by the process that serves this page" } } }
            div.actions { a.btn href="/doctor" { (super::parts::icon("retry")) "Check again" } }
        }
        (groups::doctor("/doctor"))
        div.stack {
            @if problems.is_empty() {
                div.empty { "No check found a problem. The command checks the host of a worker, and can make a real call with each credential of Claude." code { "dalsegno doctor --smoke" } }
            } @else {
                (section("Problems", &html! { (problems.len()) ", failures first" }, &list(&page, &problems)))
            }
            @let is_open = problems.is_empty() || query.all == "true";
            details open[is_open] { summary { (counted(rest.len(), "check", "checks")) " without a problem" } (list(&page, &rest)) }
        }
    };
    let path = html! { span { "Doctor" } };
    Ok(page.respond(Content { title: "Doctor", path, body, watch: String::new() }).await?)
}

fn list(page: &Page, findings: &[&Finding]) -> Markup {
    html! {
        ul."rows findings" {
            @for finding in findings {
                li {
                    (state(finding.status))
                    div {
                        h3 { (finding.check) }
                        p dir="auto" { (sentence(&page.view, &finding.what)) }
                        @if !finding.fix.is_empty() {
                            p."small soft" { "Why it matters: " (finding.why) "." }
                            p { (fix(page, &finding.fix)) }
                        }
                        (pages(finding))
                    }
                }
            }
        }
    }
}

/// Renders a fix: a command alone, or a sentence with commands in backticks.
fn fix(page: &Page, text: &str) -> Markup {
    match text.starts_with("dalsegno ") && !text.contains(['`', ';']) {
        true => html! { code { (text) } },
        false => sentence(&page.view, text),
    }
}

/// Links to the pages on which a problem is solved.
fn pages(finding: &Finding) -> Markup {
    let is_problem = matches!(finding.status, Status::Fail | Status::Warn);
    let known = PAGES.iter().find(|(check, _)| is_problem && *check == finding.check);
    html! {
        @if let Some((_, pages)) = known {
            div.actions { @for (words, target) in *pages { a."btn slim" href=(target) { (words) } } }
        }
    }
}

fn state(status: Status) -> Markup {
    match status {
        Status::Ok => Tone::Done.state("in order", None),
        Status::Warn => Tone::Waiting.state("warning", None),
        Status::Fail => Tone::Failed.state("failure", None),
        Status::Skipped => Tone::Queued.state("skipped", None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_leads_to_its_page_and_has_no_backticks() {
        let found = |status| Finding {
            check: "dead letters".into(),
            status,
            what: "6".to_owned(),
            why: "".into(),
            fix: String::new(),
        };
        assert!(pages(&found(Status::Warn)).0.contains("href=\"/work/jobs?state=dead\""));
        assert_eq!(pages(&found(Status::Ok)).0, "");
    }
}
