//! The jobs that wait, by reason.

use maud::{Markup, html};

use crate::{
    console::{
        page::Page,
        parts::{Share, empty, section, share_bar, url_text},
    },
    queue::admin::{MAX_COUNTED, WaitCount, WaitReason},
};

pub(super) fn show(page: &Page, queue: &str, waits: &[WaitCount]) -> Markup {
    let mut own: Vec<_> = waits.iter().filter(|wait| wait.queue == queue).collect();
    own.sort_by_key(|wait| -wait.jobs);
    let whole: i64 = own.iter().map(|wait| wait.jobs).sum();
    let body = html! {
        @if own.is_empty() {
            (empty("Nothing waits in this queue. New tasks start at once.", "dalsegno task add --campaign CAMPAIGN --agent AGENT \"Write part one.\""))
        } @else {
            div.reasons-bar { (share_bar("Waiting jobs by reason", &shares(&own), whole as f64, None)) }
            table.sums {
                thead { tr { th { "They wait for" } th.num { "Jobs" } th.num { "Oldest" } } }
                tbody {
                    @for wait in &own {
                        tr {
                            td { svg.swatch aria-hidden="true" { rect class=(colour(wait.reason)) width="100%" height="100%" rx="2" {} } a href={ "/work/jobs?queue=" (url_text(queue)) "&state=" (state(wait.reason)) } { (words(wait.reason)) }
                                @if let Some(at) = wait.next_at { div."tiny faint" { "next " (page.view.time(at)) } }
                            }
                            td.num { (wait.jobs) }
                            td.num { (page.view.time(wait.oldest_at)) }
                        }
                    }
                }
            }
            @if whole >= MAX_COUNTED { p."tiny faint after" { "Of the " (MAX_COUNTED) " oldest jobs." } }
        }
    };
    section("What waits, and why", &html! { (whole) }, &body)
}

fn shares(waits: &[&WaitCount]) -> Vec<Share> {
    let share = |wait: &&WaitCount| Share {
        name: words(wait.reason).to_owned(),
        value: wait.jobs as f64,
        shown: wait.jobs.to_string(),
        class: colour(wait.reason),
    };
    waits.iter().map(share).collect()
}

/// Names what a job waits for.
pub(super) fn words(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::Slot => "A free slot of a worker",
        WaitReason::Pause => "The end of a pause",
        WaitReason::Lane => "The task ahead in its conversation",
        WaitReason::LaneHold => "The release of its lane",
        WaitReason::Later => "Its time",
        WaitReason::Retry => "Its next attempt, after an error",
        WaitReason::Snooze => "A limit or a busy provider",
        WaitReason::Condition => "Space in a budget",
        WaitReason::Crash => "Its next attempt, after its worker was lost",
        WaitReason::Signal => "Another task, or its flow",
        WaitReason::Person => "Its release by a person",
        WaitReason::Failure => "A decision after its failure",
    }
}

/// The state of jobs with this reason, by which the list of jobs is filtered.
fn state(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::Slot | WaitReason::Pause => "ready",
        WaitReason::Lane | WaitReason::LaneHold => "blocked",
        WaitReason::Person | WaitReason::Failure => "held",
        WaitReason::Later
        | WaitReason::Retry
        | WaitReason::Snooze
        | WaitReason::Condition
        | WaitReason::Crash
        | WaitReason::Signal => "scheduled",
    }
}

fn colour(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::Slot => "p3",
        WaitReason::Lane | WaitReason::Signal => "p5",
        WaitReason::Later | WaitReason::Retry | WaitReason::Crash => "p4",
        WaitReason::Snooze => "p2",
        WaitReason::Condition => "p6",
        WaitReason::Pause | WaitReason::LaneHold => "p7",
        WaitReason::Person | WaitReason::Failure => "p1",
    }
}
