//! Costs by day, stacked by the values of a dimension.

use std::collections::HashMap;

use chrono::NaiveDate;
use maud::{Markup, html};

use super::query::{CostQuery, Period};
use crate::{
    console::parts::{View, tokens},
    domain::costs::{CostReport, Costs, Dimension},
};

/// Colours of the values with the highest costs. All further values share one.
const CLASSES: [&str; 6] = ["p3", "p2", "p4", "p5", "p6", "p1"];
/// Values with a colour of their own.
pub(super) const N_OWN: usize = CLASSES.len();
const REST: &str = "hatch";
const TOP: f64 = 12.0;
const BASE: f64 = 188.0;
/// Labels of days below the bars.
const MAX_LABELS: i64 = 6;
/// Days up to which each part of a bar is a link of its own. Narrower bars are one link, to all calls of their day.
const MAX_LINKED_DAYS: i64 = 31;

/// The figure that the bars show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    Money,
    Tokens,
}

impl Measure {
    pub(super) fn of(self, costs: &Costs) -> i64 {
        match self {
            Self::Money => costs.cost_micros,
            Self::Tokens => {
                costs.input_tokens
                    + costs.output_tokens
                    + costs.cache_read_tokens
                    + costs.cache_creation_tokens
            }
        }
    }

    pub(super) fn shown(self, view: &View, value: i64) -> String {
        match self {
            Self::Money => view.money(value),
            Self::Tokens => tokens(value),
        }
    }
}

/// Values of a dimension, the highest sum first, and the sums by day.
pub(super) struct Stack {
    pub(super) values: Vec<(Option<String>, Costs)>,
    by_day: HashMap<(NaiveDate, Option<String>), i64>,
}

impl Stack {
    /// Reads a report by day and another dimension, or by day alone.
    pub(super) fn of(report: &CostReport, measure: Measure) -> Self {
        let mut sums: HashMap<Option<String>, Costs> = HashMap::new();
        let mut by_day = HashMap::new();
        for line in &report.lines {
            sums.entry(line.second.clone()).or_default().add(&line.costs);
            if let Some(day) = line.value.as_deref().and_then(|day| day.parse().ok()) {
                *by_day.entry((day, line.second.clone())).or_default() += measure.of(&line.costs);
            }
        }
        let mut values: Vec<_> = sums.into_iter().collect();
        values.sort_by(|(a, of_a), (b, of_b)| {
            let order = |costs: &Costs| (measure.of(costs), costs.tokens(), costs.calls);
            (order(of_b), a).cmp(&(order(of_a), b))
        });
        Self { values, by_day }
    }

    /// Returns the colour of the value at a place.
    pub(super) fn class(&self, place: usize) -> &'static str {
        CLASSES.get(place).copied().unwrap_or(REST)
    }

    fn at(&self, day: NaiveDate, value: &Option<String>) -> i64 {
        self.by_day.get(&(day, value.clone())).copied().unwrap_or(0)
    }

    pub(super) fn of_day(&self, day: NaiveDate) -> i64 {
        self.values.iter().map(|(value, _)| self.at(day, value)).sum()
    }

    /// Returns the sums of a value on each day.
    pub(super) fn days_of(&self, value: &Option<String>, period: Period) -> Vec<f64> {
        period.days().map(|day| self.at(day, value) as f64).collect()
    }
}

pub(super) struct Chart<'a> {
    pub(super) view: &'a View,
    pub(super) query: &'a CostQuery,
    pub(super) period: Period,
    pub(super) dimension: Dimension,
    pub(super) measure: Measure,
    pub(super) stack: &'a Stack,
    pub(super) report: &'a CostReport,
}

impl Chart<'_> {
    pub(super) fn show(&self) -> Markup {
        let highest = self.period.days().map(|day| self.stack.of_day(day)).max().unwrap_or(0);
        let step = nice_step(highest);
        let top = step * (highest as f64 / step).ceil().max(1.0);
        let y = |value: f64| BASE - (BASE - TOP) * value / top;
        let n_ticks = (top / step).round() as i64;
        let ticks: Vec<f64> = (0..=n_ticks).map(|n| n as f64 * step).collect();
        let n_days = self.period.n_days();
        let slot = 100.0 / n_days as f64;
        let label_step = (n_days + MAX_LABELS - 1) / MAX_LABELS;
        let label = format!(
            "Per day, by {}. The table below has the same figures.",
            self.dimension.as_str()
        );
        html! {
            div.bars {
                svg.chart aria-hidden="true" {
                    @for tick in &ticks { text.end x="100%" y=(px(y(*tick) + 4.0)) { (self.measure.shown(self.view, *tick as i64)) } }
                }
                svg.chart role="group" aria-label=(label) {
                    @for tick in &ticks { line.grid x1="0" x2="100%" y1=(px(y(*tick))) y2=(px(y(*tick))) {} }
                    @for (place, day) in self.period.days().enumerate() {
                        @let x = place as f64 * slot;
                        (self.bar(day, x, slot, &y))
                        @if place as i64 % label_step == 0 {
                            text.mid x=(percent(x + slot / 2.0)) y="206" { (day.format("%-d %b")) }
                        }
                    }
                }
            }
        }
    }

    fn bar(&self, day: NaiveDate, x: f64, slot: f64, y: &dyn Fn(f64) -> f64) -> Markup {
        let date = day.to_string();
        if self.period.n_days() <= MAX_LINKED_DAYS {
            return self.parts(day, x, slot, y, Some(&date));
        }
        let link = self.query.calls_link(Dimension::Day, Some(&date), None);
        html! { a href=(link) tabindex="-1" { (self.parts(day, x, slot, y, None)) } }
    }

    /// Draws the parts of a day from the bottom up, each a link to its calls of `date`. The values without a colour of their own are one part,
    /// without a link: no filter has just their calls.
    fn parts(
        &self,
        day: NaiveDate,
        x: f64,
        slot: f64,
        y: &dyn Fn(f64) -> f64,
        date: Option<&str>,
    ) -> Markup {
        let mut parts = Vec::new();
        let mut begin = 0_i64;
        for (place, (value, _)) in self.stack.values.iter().take(N_OWN).enumerate() {
            let own = self.stack.at(day, value);
            let link = |date| self.query.calls_link(self.dimension, value.as_deref(), Some(date));
            parts.push((
                self.stack.class(place),
                name(self.report, value),
                date.map(link),
                own,
                begin,
            ));
            begin += own;
        }
        let rest = self.stack.of_day(day) - begin;
        parts.push((REST, "others".to_owned(), None, rest, begin));
        html! {
            @for (class, words, link, own, begin) in parts.into_iter().filter(|(.., own, _)| *own > 0) {
                @let (top, bottom) = (y((begin + own) as f64), y(begin as f64));
                @let drawn = html! {
                    title { (day.format("%-d %B")) @if self.dimension != Dimension::Day { ", " (words) } ": " (self.measure.shown(self.view, own)) }
                    rect class=(class) x=(percent(x + slot * 0.12)) width=(percent(slot * 0.76)) y=(px(top)) height=(px((bottom - top).max(0.5))) {}
                };
                @match link { Some(link) => a href=(link) tabindex="-1" { (drawn) }, None => g { (drawn) } }
            }
        }
    }
}

/// Names a value: campaigns by their names.
pub(super) fn name(report: &CostReport, value: &Option<String>) -> String {
    match value {
        Some(value) => report.name_of(value).to_owned(),
        None if report.dimensions().any(|it| it == Dimension::User) => "no user".to_owned(),
        None => "all".to_owned(),
    }
}

/// Returns a distance of grid lines: 1, 2 or 5 times a power of ten, at most five lines.
fn nice_step(highest: i64) -> f64 {
    let least = (highest.max(4) as f64) / 4.0;
    let power = 10_f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= least);
    factor.unwrap_or(10.0) * power
}

fn percent(value: f64) -> String {
    format!("{value:.3}%")
}

fn px(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::costs::CostLine;

    fn line(day: &str, value: Option<&str>, cost_micros: i64) -> CostLine {
        let costs = Costs { calls: 1, cost_micros, ..Costs::default() };
        CostLine { value: Some(day.to_owned()), second: value.map(str::to_owned), costs }
    }

    #[test]
    fn values_are_sorted_by_their_sums_and_days_add_up() {
        let lines = vec![
            line("2026-11-01", Some("planner"), 300),
            line("2026-11-01", Some("writer"), 500),
            line("2026-11-02", Some("planner"), 400),
        ];
        let report = CostReport {
            by: Dimension::Day,
            and: Some(Dimension::Agent),
            currency: "EUR".to_owned(),
            time_zone: "UTC".to_owned(),
            since: None,
            until: None,
            lines,
            total: Costs::default(),
            campaign_names: HashMap::new(),
        };
        let stack = Stack::of(&report, Measure::Money);
        let names: Vec<_> = stack.values.iter().map(|(value, _)| value.clone().unwrap()).collect();
        assert_eq!(names, ["planner", "writer"]);
        let first = "2026-11-01".parse().unwrap();
        assert_eq!(stack.of_day(first), 800);
        let period = Period { first, last: "2026-11-03".parse().unwrap() };
        assert_eq!(stack.days_of(&Some("planner".to_owned()), period), [300.0, 400.0, 0.0]);
        assert_eq!(stack.class(6), REST);
    }

    #[test]
    fn grid_lines_have_round_figures() {
        assert_eq!([nice_step(9), nice_step(40), nice_step(4_100)], [5.0, 10.0, 2_000.0]);
        assert_eq!(nice_step(0), 1.0);
    }
}
