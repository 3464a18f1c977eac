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
        (groups::health("/doctor"))
        div.stack {
            @if problems.is_empty() {
                div.empty { "No check found a problem. The command checks the host of a worker, and can make a real call with each credential of Claude." code { "dalsegno doctor --smoke" } }
            } @else {
                (section("Problems", &html! { (problems.len()) ", failures first" }, &list(&problems)))
            }
            @let is_open = problems.is_empty() || query.all == "true";
            details open[is_open] { summary { (counted(rest.len(), "check", "checks")) " without a problem" } (list(&rest)) }
        }
    };
    let path = html! { span { "Health" } };
    Ok(page.respond(Content { title: "Doctor", path, body, watch: String::new() }).await?)
}

fn list(findings: &[&Finding]) -> Markup {
    html! {
        ul."rows findings" {
            @for finding in findings {
                li {
                    (state(finding.status))
                    div {
                        h3 { (finding.check) }
                        p dir="auto" { (sentence(&finding.what)) }
                        @if !finding.fix.is_empty() {
                            p."small soft" { "Why it matters: " (finding.why) "." }
                            pre."code wrap" { (finding.fix) }
                        }
                    }
                }
            }
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
