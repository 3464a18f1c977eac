//! The jobs that wait, by reason.

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use crate::{
    console::{
        page::Page,
        parts::{Share, capital, empty, section, share_bar, url_text},
    },
    operations::WaitCounts,
    queue::admin::{MAX_COUNTED, QueueView, WaitCount, WaitReason},
};

pub(super) fn show(page: &Page, queue: &str, waits: &WaitCounts) -> Markup {
    let mut own: Vec<_> = waits.items.iter().filter(|wait| wait.queue == queue).collect();
    own.sort_by_key(|wait| -wait.jobs);
    let whole: i64 = own.iter().map(|wait| wait.jobs).sum();
    let body = html! {
        @if own.is_empty() {
            (empty("Nothing waits in this queue. New tasks start at once.", "dalsegno task add --campaign CAMPAIGN --agent AGENT \"Write part one.\""))
        } @else {
            div.reasons-bar { (share_bar("Waiting jobs by reason", &shares(&own, waits), whole as f64, None)) }
            table.sums {
                thead { tr { th { "They wait for" } th.num { "Jobs" } th.num { "Oldest" } } }
                tbody {
                    @for wait in &own {
                        tr {
                            td { svg.swatch aria-hidden="true" { rect class=(colour(wait.reason)) width="100%" height="100%" rx="2" {} } a href={ "/work/jobs?queue=" (url_text(queue)) "&waits_for=" (wait.reason.as_str()) } { (capital(&waits.describe(wait.reason))) }
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

fn shares(own: &[&WaitCount], waits: &WaitCounts) -> Vec<Share> {
    let share = |wait: &&WaitCount| Share {
        name: capital(&waits.describe(wait.reason)),
        value: wait.jobs as f64,
        shown: wait.jobs.to_string(),
        class: colour(wait.reason),
    };
    own.iter().map(share).collect()
}

fn colour(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::Slot => "p3",
        WaitReason::Lane | WaitReason::Signal => "p5",
        WaitReason::Later | WaitReason::Retry | WaitReason::Snooze | WaitReason::Crash => "p4",
        WaitReason::Provider | WaitReason::Batch => "p2",
        WaitReason::Condition => "p6",
        WaitReason::Pause | WaitReason::LaneHold => "p7",
        WaitReason::Person | WaitReason::Failure => "p1",
    }
}

/// The waits of a queue by what people call them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::console) struct WaitSums {
    /// Jobs that a free slot takes.
    pub(in crate::console) ready: i64,
    /// Jobs of a paused queue or campaign.
    pub(in crate::console) paused: i64,
    /// Jobs behind another one of their lane.
    pub(in crate::console) behind: i64,
    /// Jobs that wait for a time, a budget or a signal.
    pub(in crate::console) later: i64,
    /// Jobs that are held one by one, with their lane, or because their agent is paused.
    pub(in crate::console) held: i64,
    /// Since when the first of the ready jobs is ready.
    pub(in crate::console) ready_at: Option<DateTime<Utc>>,
}

impl WaitSums {
    /// Adds up the waits of a queue. Beyond the jobs that are counted by reason, the counters of the queue go on.
    pub(in crate::console) fn of(queue: &QueueView, waits: &[WaitCount]) -> Self {
        let own = || waits.iter().filter(|wait| wait.queue == queue.queue);
        let of = |reason| own().filter(|wait| wait.reason == reason).map(|wait| wait.jobs).sum();
        let (paused, lane_held): (i64, i64) = (of(WaitReason::Pause), of(WaitReason::LaneHold));
        let slots = own().filter(|wait| wait.reason == WaitReason::Slot);
        Self {
            ready: (queue.ready - paused).max(0),
            paused,
            behind: (queue.blocked - lane_held).max(0),
            later: queue.scheduled,
            held: queue.held + lane_held,
            ready_at: slots.filter_map(|wait| wait.ready_at).min(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paused_jobs_are_not_ready_and_jobs_of_held_lanes_are_held() {
        let queue = QueueView {
            queue: "turns".to_owned(),
            paused_at: None,
            pause_reason: None,
            ready: 3,
            running: 0,
            blocked: 4,
            scheduled: 2,
            held: 1,
            dead: 0,
            oldest_ready_secs: Some(90.0),
            workers: 1,
        };
        let at = DateTime::UNIX_EPOCH;
        let wait = |reason, jobs, ready_at| WaitCount {
            queue: "turns".to_owned(),
            reason,
            jobs,
            oldest_at: at,
            next_at: None,
            ready_at,
        };
        let waits = [
            wait(WaitReason::Pause, 3, Some(at)),
            wait(WaitReason::LaneHold, 3, None),
            wait(WaitReason::Lane, 1, None),
        ];
        let sums = WaitSums::of(&queue, &waits);
        let expected =
            WaitSums { ready: 0, paused: 3, behind: 1, later: 2, held: 4, ready_at: None };
        assert_eq!(sums, expected);
    }
}
