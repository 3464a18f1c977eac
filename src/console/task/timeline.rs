//! Waits and attempts of a task over time.
//!
//! Widths are in proportion to time. If waits of hours and attempts of seconds are in one picture, they grow with the logarithm of the time.

use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};

use crate::{
    console::{
        job_runs::JobRuns,
        parts::{Tone, View, duration, no_price, section, sentence, wide},
    },
    domain::{
        audit::describe_label,
        tasks::{Detail, State},
        turns::{self, Turn},
    },
};

/// Gaps that are shorter are no wait.
const SHORTEST_WAIT: TimeDelta = TimeDelta::seconds(1);
/// Longest stretch of a picture in proportion to time.
const LONGEST_IN_PROPORTION: TimeDelta = TimeDelta::minutes(10);
/// The part of the picture that the shortest stretch has, so that it is seen.
const SHORTEST_PART: f64 = 0.004;
const BAR_HEIGHT: usize = 16;
const ROW_HEIGHT: usize = 24;

/// A stretch of the task's time.
struct Stretch {
    begin: DateTime<Utc>,
    end: DateTime<Utc>,
    tone: Tone,
    word: &'static str,
    what: Markup,
    /// Of attempts.
    cost: Option<AttemptCost>,
    /// The time of its attempts, without the waits between them.
    at_work: TimeDelta,
    is_open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AttemptCost {
    Micros(i64),
    /// No price is set for its model.
    Unpriced,
}

pub(super) fn show(view: &View, detail: &Detail, runs: &JobRuns) -> Markup {
    let stretches = stretches(view, detail, runs);
    let total =
        stretches.last().map_or(TimeDelta::zero(), |last| last.end - detail.task.created_at);
    let at_work: TimeDelta = stretches.iter().map(|stretch| stretch.at_work).sum();
    let end = html! { (duration(total)) " in all, " (duration(at_work)) " at work" };
    let body = html! {
        (wide("Waits and attempts over time", &chart(&stretches)))
        (wide("Waits and attempts", &table(view, &stretches)))
    };
    section("Waits and attempts", &end, &body)
}

fn stretches(view: &View, detail: &Detail, runs: &JobRuns) -> Vec<Stretch> {
    let task = &detail.task;
    let mut all = Vec::new();
    let mut at = task.created_at;
    let mut rest = detail.turns.as_slice();
    while let Some(first) = rest.first() {
        if first.started_at - at > SHORTEST_WAIT || at == task.created_at {
            all.push(wait(detail, at, first.started_at, false));
        }
        let (alike, later) = rest.split_at(count_alike(rest));
        rest = later;
        let worked = match alike {
            [turn] => attempt(view, detail, turn, runs),
            turns => put_off(view, detail, turns, runs),
        };
        at = worked.end;
        all.push(worked);
    }
    match task.state {
        State::Queued => all.push(wait(detail, at, view.now, true)),
        State::Running if detail.turns.is_empty() => all.push(wait(detail, at, view.now, true)),
        _ if detail.turns.is_empty() => {
            all.push(wait(detail, at, task.ended_at.unwrap_or(view.now), false));
        }
        _ => {}
    }
    all
}

fn wait(detail: &Detail, begin: DateTime<Utc>, end: DateTime<Utc>, is_open: bool) -> Stretch {
    let what = match (begin == detail.task.created_at, &detail.added_by) {
        (true, Some(by)) => {
            html! { b { "added" } span.soft { " by " bdi title=(by) { (describe_label(by)) } } }
        }
        (true, None) => html! { b { "added" } },
        (false, _) => html! { b { "until the next attempt" } },
    };
    let (tone, word) = if is_open { (Tone::Waiting, "waiting") } else { (Tone::Queued, "queued") };
    let at_work = TimeDelta::zero();
    Stretch { begin, end, tone, word, what, cost: None, at_work, is_open }
}

fn attempt(view: &View, detail: &Detail, turn: &Turn, runs: &JobRuns) -> Stretch {
    let worker = runs.worker_of(turn);
    let (tone, word) = match turn.state {
        turns::State::Running => (Tone::Running, "running"),
        turns::State::Done => (Tone::Done, "done"),
        turns::State::Failed if turn.is_put_off() => (Tone::Waiting, "put off"),
        turns::State::Failed => (Tone::Failed, "failed"),
        turns::State::Interrupted => (Tone::Failed, "interrupted"),
    };
    let is_unpriced =
        detail.unpriced_calls.iter().any(|calls| (calls.session_id, calls.turn) == turn.place());
    let cost = match is_unpriced && turn.cost_micros == 0 {
        true => AttemptCost::Unpriced,
        false => AttemptCost::Micros(turn.cost_micros),
    };
    let what = html! {
        b { "attempt " (turn.attempt) } span.soft {
            ", " a href={ "/sessions/" (turn.session_id) "/turns/" (turn.number) } { "turn " (turn.number) }
            @if !worker.0.is_empty() { ", on " (worker) }
            @if let Some(error) = &turn.error { ": " bdi { (sentence(view, error)) } }
        }
    };
    let end = runs.lost_at(turn).or(turn.ended_at).unwrap_or(view.now);
    Stretch {
        begin: turn.started_at,
        end,
        at_work: end - turn.started_at,
        tone,
        word,
        what,
        cost: Some(cost),
        is_open: turn.ended_at.is_none(),
    }
}

/// Counts the first turns that were put off with the same error; any other turn stands alone.
fn count_alike(turns: &[Turn]) -> usize {
    let is_alike = |turn: &&Turn| turn.is_put_off() && turn.error == turns[0].error;
    turns.iter().take_while(is_alike).count().max(1)
}

/// Folds turns that were put off with the same error, and the waits between them, into one stretch.
fn put_off(view: &View, detail: &Detail, turns: &[Turn], runs: &JobRuns) -> Stretch {
    let each: Vec<Stretch> = turns.iter().map(|turn| attempt(view, detail, turn, runs)).collect();
    let last = &turns[turns.len() - 1];
    let end = each.iter().map(|stretch| stretch.end).max().unwrap_or(last.started_at);
    let micros: i64 = turns.iter().map(|turn| turn.cost_micros).sum();
    let is_unpriced = each.iter().any(|stretch| stretch.cost == Some(AttemptCost::Unpriced));
    let cost = match is_unpriced && micros == 0 {
        true => AttemptCost::Unpriced,
        false => AttemptCost::Micros(micros),
    };
    let what = html! {
        b { "put off " (turns.len()) " times" } span.soft {
            ", last " (view.time(last.started_at)) " in "
            a href={ "/sessions/" (last.session_id) "/turns/" (last.number) } { "turn " (last.number) }
            @if let Some(error) = &last.error { ": " bdi { (sentence(view, error)) } }
        }
    };
    Stretch {
        begin: turns[0].started_at,
        end,
        tone: Tone::Waiting,
        word: "put off",
        what,
        cost: Some(cost),
        at_work: each.iter().map(|stretch| stretch.at_work).sum(),
        is_open: false,
    }
}

fn chart(stretches: &[Stretch]) -> Markup {
    let times: Vec<TimeDelta> = stretches.iter().map(|it| it.end - it.begin).collect();
    let is_in_proportion = times.iter().all(|time| *time <= LONGEST_IN_PROPORTION);
    let widths = widths(&times, is_in_proportion);
    let scale = match is_in_proportion {
        true => "the width is in proportion to the time",
        false => "the width grows with the logarithm of the time",
    };
    let height = stretches.len().max(1) * ROW_HEIGHT;
    let mut x = 0.0;
    let place = |width: f64| {
        x += width;
        (x - width, width)
    };
    let bars: Vec<(f64, f64)> = widths.into_iter().map(place).collect();
    html! {
        svg."chart timeline" height=(height) role="img" aria-label={ "Waits and attempts; " (scale) ". The table below has the same data." } {
            @for (place, (stretch, (x, width))) in stretches.iter().zip(&bars).enumerate() {
                @let y = place * ROW_HEIGHT + 4;
                @let class = if is_solid(stretch) { "bar-tone" } else { "bar-soft" };
                @let (label, at) = label_of(stretch, *x, *width);
                g class=(stretch.tone.class()) { rect class=(class) x=(percent(*x)) y=(y) width=(percent(*width)) height=(BAR_HEIGHT) rx="2" {} }
                text class=(label) x=(percent(at)) y=(y + 12) {
                    (stretch.word) " " (duration(stretch.end - stretch.begin)) @if stretch.is_open { " so far" }
                }
            }
        }
    }
}

/// Returns the widths of stretches of time, in percent.
fn widths(times: &[TimeDelta], is_in_proportion: bool) -> Vec<f64> {
    let secs = |time: &TimeDelta| time.num_milliseconds().max(0) as f64 / 1e3;
    let sum: f64 = times.iter().map(secs).sum();
    let weight = |time: &TimeDelta| match is_in_proportion {
        true => secs(time).max(sum * SHORTEST_PART).max(f64::MIN_POSITIVE),
        false => (1.0 + secs(time)).ln() + 0.4,
    };
    let whole: f64 = times.iter().map(weight).sum();
    times.iter().map(|time| weight(time) / whole * 100.0).collect()
}

/// Running and failed attempts are filled; waits, and attempts that are done or were put off, are outlined.
fn is_solid(stretch: &Stretch) -> bool {
    stretch.cost.is_some() && !matches!(stretch.tone, Tone::Done | Tone::Waiting)
}

/// Places a label beside its bar, or in a bar that leaves no room for it.
fn label_of(stretch: &Stretch, x: f64, width: f64) -> (&'static str, f64) {
    match (x + width < 70.0, x > 30.0) {
        (true, _) => ("ink", x + width + 1.0),
        (false, true) => ("ink end", x - 1.0),
        (false, false) if is_solid(stretch) => ("on-tone", x + 1.0),
        (false, false) => ("ink", x + 1.0),
    }
}

fn percent(value: f64) -> String {
    format!("{value:.2}%")
}

fn table(view: &View, stretches: &[Stretch]) -> Markup {
    let micros = stretches.iter().filter_map(|stretch| match stretch.cost? {
        AttemptCost::Micros(micros) => Some(micros),
        AttemptCost::Unpriced => None,
    });
    let money = view.column(micros);
    html! {
        table.folds {
            thead { tr { th { "Since" } th { "State" } th { "What happened" } th.num { "Took" } th.num { "Cost" } } }
            tbody {
                @for stretch in stretches {
                    tr {
                        td.faint { (view.clock(stretch.begin)) }
                        td { (stretch.tone.state(stretch.word, None)) }
                        td.text { (stretch.what) }
                        td.num { (duration(stretch.end - stretch.begin)) }
                        td.num {
                            @match stretch.cost {
                                Some(AttemptCost::Micros(micros)) => (money(micros)),
                                Some(AttemptCost::Unpriced) => (no_price()),
                                None => {},
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put_off_for(number: i32, error: &str) -> Turn {
        let at = DateTime::UNIX_EPOCH + TimeDelta::seconds(i64::from(number));
        Turn {
            number,
            lease: i64::from(number),
            flags: vec![turns::PUT_OFF.to_owned()],
            error: Some(error.to_owned()),
            ..Turn::example(turns::State::Failed, at)
        }
    }

    #[test]
    fn turns_that_were_put_off_with_one_error_are_one_stretch() {
        let failed = Turn { flags: Vec::new(), ..put_off_for(4, "refused") };
        let turns = [
            put_off_for(1, "refused"),
            put_off_for(2, "refused"),
            put_off_for(3, "no answer"),
            failed.clone(),
            failed,
        ];
        let counts = [0, 2, 3, 4].map(|first| count_alike(&turns[first..]));
        assert_eq!(counts, [2, 1, 1, 1]);
    }

    #[test]
    fn a_short_wait_is_short_beside_an_attempt_of_seconds() {
        let times = [TimeDelta::milliseconds(33), TimeDelta::milliseconds(9_600)];
        let found = widths(&times, true);
        assert!(found[0] < 1.0 && found[0] > 0.0, "{found:?}");
        assert!((found.iter().sum::<f64>() - 100.0).abs() < 1e-6);
        let none = widths(&[TimeDelta::zero()], true);
        assert!((none[0] - 100.0).abs() < 1e-6, "{none:?}");
        let hours = widths(&[TimeDelta::hours(9), TimeDelta::seconds(9)], false);
        assert!(hours[1] > 10.0, "{hours:?}");
    }
}
