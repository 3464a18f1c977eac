//! Costs by day, stacked by the values of a dimension.

use std::collections::{BTreeMap, HashMap};

use chrono::NaiveDate;
use maud::{Markup, html};

use super::query::{CostQuery, Period};
use crate::{
    console::parts::{View, tokens},
    domain::costs::{CostLine, CostReport, Costs, Dimension, Measure},
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

/// A value of a dimension, with its sums on each day.
pub(super) struct Value {
    /// None for calls without a value, such as those of no user, and for the days themselves.
    pub(super) name: Option<String>,
    pub(super) costs: Costs,
    by_day: HashMap<NaiveDate, i64>,
}

/// The values with the highest sums, in their order, and the sums of each day.
pub(super) struct Stack {
    pub(super) values: Vec<Value>,
    pub(super) n_others: usize,
    pub(super) of_others: Costs,
    /// Days with calls, in their order.
    pub(super) days: BTreeMap<NaiveDate, Costs>,
    measure: Measure,
}

impl Stack {
    /// Reads a report by day and another dimension, or by day alone.
    pub(super) fn of(report: &CostReport, measure: Measure) -> Self {
        let mut values: HashMap<&Option<String>, Value> = HashMap::new();
        let mut of_others = Costs::default();
        let mut days: BTreeMap<NaiveDate, Costs> = BTreeMap::new();
        let day_of = |line: &CostLine| line.value.as_deref().and_then(|day| day.parse().ok());
        for line in &report.lines {
            let value = values.entry(&line.second).or_insert_with(|| Value::new(&line.second));
            value.costs.add(&line.costs);
            if let Some(day) = day_of(line) {
                *value.by_day.entry(day).or_default() += measure.of(&line.costs);
            }
        }
        report.others.iter().for_each(|line| of_others.add(&line.costs));
        for line in report.lines.iter().chain(&report.others) {
            if let Some(day) = day_of(line) {
                days.entry(day).or_default().add(&line.costs);
            }
        }
        let mut values: Vec<Value> = values.into_values().collect();
        values.sort_by(|a, b| {
            let order = |costs: &Costs| (measure.of(costs), costs.tokens(), costs.calls);
            (order(&b.costs), &a.name).cmp(&(order(&a.costs), &b.name))
        });
        let n_others = usize::try_from(report.n_others).unwrap_or(0);
        Self { values, n_others, of_others, days, measure }
    }

    /// Returns the colour of the value at a place.
    pub(super) fn class(&self, place: usize) -> &'static str {
        CLASSES.get(place).copied().unwrap_or(REST)
    }

    /// Returns the number of values without a colour of their own, and their sum.
    pub(super) fn rest(&self) -> (usize, i64) {
        let shown = self.values.iter().skip(N_OWN);
        let sum: i64 = shown.map(|value| self.measure.of(&value.costs)).sum();
        let n = self.values.len().saturating_sub(N_OWN) + self.n_others;
        (n, sum + self.measure.of(&self.of_others))
    }

    fn of_day(&self, day: NaiveDate) -> i64 {
        self.days.get(&day).map_or(0, |costs| self.measure.of(costs))
    }
}

impl Value {
    fn new(name: &Option<String>) -> Self {
        Self { name: name.clone(), costs: Costs::default(), by_day: HashMap::new() }
    }

    /// Returns its sums on each day.
    pub(super) fn days(&self, period: Period) -> Vec<f64> {
        period.days().map(|day| self.on(day) as f64).collect()
    }

    fn on(&self, day: NaiveDate) -> i64 {
        self.by_day.get(&day).copied().unwrap_or(0)
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
    pub(super) fn shown(&self, value: i64) -> String {
        match self.measure {
            Measure::Money => self.view.money(value),
            Measure::Tokens => tokens(value),
        }
    }

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
                    @for tick in &ticks { text.end x="100%" y=(px(y(*tick) + 4.0)) { (self.shown(*tick as i64)) } }
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
        // A link without a part has no name.
        if self.stack.of_day(day) == 0 {
            return html! {};
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
        for (place, value) in self.stack.values.iter().take(N_OWN).enumerate() {
            let own = value.on(day);
            let words = name(self.report, &value.name);
            let link =
                |date| self.query.calls_link(self.dimension, value.name.as_deref(), Some(date));
            parts.push((self.stack.class(place), words, date.map(link), own, begin));
            begin += own;
        }
        let rest = self.stack.of_day(day) - begin;
        parts.push((REST, "others".to_owned(), None, rest, begin));
        html! {
            @for (class, words, link, own, begin) in parts.into_iter().filter(|(.., own, _)| *own > 0) {
                @let (top, bottom) = (y((begin + own) as f64), y(begin as f64));
                @let drawn = html! {
                    title { (day.format("%-d %B")) @if self.dimension != Dimension::Day { ", " (words) } ": " (self.shown(own)) }
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
            others: vec![line("2026-11-02", None, 25)],
            n_others: 3,
            total: Costs::default(),
            campaign_names: HashMap::new(),
        };
        let stack = Stack::of(&report, Measure::Money);
        let names: Vec<_> = stack.values.iter().map(|it| it.name.clone().unwrap()).collect();
        assert_eq!(names, ["planner", "writer"]);
        let first = "2026-11-01".parse().unwrap();
        assert_eq!(stack.of_day(first), 800);
        let period = Period { first, last: "2026-11-03".parse().unwrap() };
        assert_eq!(stack.values[0].days(period), [300.0, 400.0, 0.0]);
        assert_eq!(stack.of_day("2026-11-02".parse().unwrap()), 425);
        assert_eq!(stack.rest(), (3, 25));
        assert_eq!(stack.class(6), REST);
    }

    #[test]
    fn grid_lines_have_round_figures() {
        assert_eq!([nice_step(9), nice_step(40), nice_step(4_100)], [5.0, 10.0, 2_000.0]);
        assert_eq!(nice_step(0), 1.0);
    }
}
