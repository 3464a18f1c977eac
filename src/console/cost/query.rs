//! The period and the filters of the cost pages, from the URL.

use chrono::{DateTime, Datelike as _, Days, NaiveDate, Utc};
use serde::Deserialize;

use crate::{
    console::parts::{View, campaign_id, optional, url_text},
    domain::{costs::Dimension, usage::Purpose},
    operations::{ListCalls, Refusal, ReportCosts},
};

/// Choices of the period, in days up to today.
pub(super) const PERIODS: [u64; 4] = [1, 7, 30, 90];
const DEFAULT_DAYS: u64 = 30;
/// Longest period, so that each day has a bar.
const MAX_DAYS: u64 = 366;

/// Fields of the URL. A form sends empty fields for those that are not set.
#[derive(Debug, Clone, Default, Deserialize)]
pub(in crate::console) struct CostQuery {
    #[serde(default)]
    pub(super) by: String,
    #[serde(default)]
    pub(super) measure: String,
    #[serde(default)]
    days: String,
    #[serde(default)]
    pub(super) from: String,
    #[serde(default)]
    pub(super) to: String,
    #[serde(default)]
    pub(super) campaign_id: String,
    #[serde(default)]
    pub(super) agent: String,
    #[serde(default)]
    pub(super) model: String,
    #[serde(default)]
    pub(super) provider: String,
    #[serde(default)]
    pub(super) purpose: String,
    #[serde(default)]
    pub(super) user: String,
    /// `true`: only campaigns without a user.
    #[serde(default)]
    pub(super) no_user: String,
    /// `true`: without reruns.
    #[serde(default)]
    pub(super) without_reruns: String,
    /// `true`: the CSV file has one line per value instead of one per day and value.
    #[serde(default)]
    pub(super) total: String,
    #[serde(default)]
    pub(super) order: String,
    #[serde(default)]
    pub(super) cursor: String,
}

/// Days from the first to the last, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Period {
    pub(super) first: NaiveDate,
    pub(super) last: NaiveDate,
}

/// Returns the periods with a name: yesterday, and the last week from Monday to Sunday.
pub(super) fn named_periods(today: NaiveDate) -> [(&'static str, Period); 2] {
    let yesterday = today - Days::new(1);
    let monday = today - Days::new(u64::from(today.weekday().num_days_from_monday()) + 7);
    [
        ("Yesterday", Period { first: yesterday, last: yesterday }),
        ("Last week", Period { first: monday, last: monday + Days::new(6) }),
    ]
}

impl Period {
    pub(super) fn days(self) -> impl Iterator<Item = NaiveDate> {
        self.first.iter_days().take_while(move |day| *day <= self.last)
    }

    pub(super) fn n_days(self) -> i64 {
        (self.last - self.first).num_days() + 1
    }

    pub(super) fn since(self, view: &View) -> DateTime<Utc> {
        view.begin_of(self.first)
    }

    pub(super) fn until(self, view: &View) -> DateTime<Utc> {
        view.begin_of(self.last + Days::new(1))
    }
}

impl CostQuery {
    /// Refuses fields that cannot be read: without them, the pages would show more than the URL says.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        campaign_id(&self.campaign_id)?;
        for day in [&self.from, &self.to] {
            optional("a day, such as 2026-11-27", day, |day| day.parse::<NaiveDate>().ok())?;
        }
        optional("a number of days from 1 to 366", &self.days, read_days)?;
        optional("a purpose of calls", &self.purpose, read_purpose).map(drop)
    }

    /// Returns the dimension, by default agents.
    pub(super) fn dimension(&self) -> Dimension {
        let named = Dimension::ALL.into_iter().find(|dimension| dimension.as_str() == self.by);
        named.unwrap_or(Dimension::Agent)
    }

    /// Returns the number of days up to today, if no dates are named.
    pub(super) fn n_days(&self) -> Option<u64> {
        let is_dated =
            [&self.from, &self.to].into_iter().any(|day| day.parse::<NaiveDate>().is_ok());
        let named = read_days(&self.days);
        (!is_dated).then_some(named.unwrap_or(DEFAULT_DAYS))
    }

    pub(super) fn period(&self, today: NaiveDate) -> Period {
        if let Some(n) = self.n_days() {
            return Period { first: today - Days::new(n - 1), last: today };
        }
        let day = |text: &str| text.parse::<NaiveDate>().ok();
        let last = day(&self.to).unwrap_or(today);
        let first = day(&self.from).unwrap_or(last).min(last);
        Period { first: first.max(last - Days::new(MAX_DAYS - 1)), last }
    }

    pub(super) fn report(&self, view: &View, by: Dimension, and: Option<Dimension>) -> ReportCosts {
        let period = self.period(view.day_of(view.now));
        ReportCosts {
            by,
            and,
            since: Some(period.since(view).into()),
            until: Some(period.until(view).into()),
            campaign_id: self.campaign_id.parse().ok(),
            ..ReportCosts::default()
        }
    }

    pub(super) fn calls(&self, view: &View) -> ListCalls {
        let period = self.period(view.day_of(view.now));
        let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let user = match self.no_user == "true" {
            true => Some(String::new()),
            false => given(&self.user),
        };
        let purpose = read_purpose(&self.purpose);
        ListCalls {
            since: Some(period.since(view).into()),
            until: Some(period.until(view).into()),
            campaign_id: self.campaign_id.parse().ok(),
            agent: given(&self.agent),
            model: given(&self.model),
            provider: given(&self.provider),
            purpose,
            user,
            without_reruns: self.without_reruns == "true",
            ..ListCalls::default()
        }
    }

    /// Lists the fields that are set, by their names in the URL.
    pub(super) fn fields(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("by", &self.by),
            ("measure", &self.measure),
            ("days", &self.days),
            ("from", &self.from),
            ("to", &self.to),
            ("campaign_id", &self.campaign_id),
            ("agent", &self.agent),
            ("model", &self.model),
            ("provider", &self.provider),
            ("purpose", &self.purpose),
            ("user", &self.user),
            ("no_user", &self.no_user),
            ("without_reruns", &self.without_reruns),
            ("order", &self.order),
        ];
        all.into_iter()
            .map(|(name, text)| (name, text.as_str()))
            .filter(|(_, text)| !text.is_empty())
            .collect()
    }

    /// Returns a link with some fields changed; an empty text removes a field.
    pub(super) fn link(&self, path: &str, changes: &[(&str, &str)]) -> String {
        let is_changed = |name: &str| changes.iter().any(|(changed, _)| *changed == name);
        let own = self.fields().into_iter().filter(|(name, _)| !is_changed(name));
        let all = own.chain(changes.iter().copied()).filter(|(_, text)| !text.is_empty());
        let pairs: Vec<String> =
            all.map(|(name, text)| format!("{name}={}", url_text(text))).collect();
        match pairs.is_empty() {
            true => path.to_owned(),
            false => format!("{path}?{}", pairs.join("&")),
        }
    }

    /// Returns the link to the calls with a value of a dimension, and of a day if one is named.
    pub(super) fn calls_link(
        &self,
        dimension: Dimension,
        value: Option<&str>,
        day: Option<&str>,
    ) -> String {
        let mut changes = vec![("by", ""), ("measure", "")];
        let day = match dimension {
            Dimension::Day => value.or(day),
            _ => day,
        };
        if let Some(day) = day {
            changes.extend([("from", day), ("to", day), ("days", "")]);
        }
        match (dimension, value) {
            (Dimension::Day, _) => {}
            (Dimension::User, None) => changes.push(("no_user", "true")),
            (Dimension::Campaign, Some(value)) => changes.push(("campaign_id", value)),
            (_, Some(value)) => changes.push((dimension.as_str(), value)),
            (_, None) => {}
        }
        self.link("/cost/calls", &changes)
    }
}

fn read_days(text: &str) -> Option<u64> {
    text.parse().ok().filter(|n| (1..=MAX_DAYS).contains(n))
}

fn read_purpose(text: &str) -> Option<Purpose> {
    serde_json::from_value(text.into()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    #[test]
    fn a_period_ends_today_or_at_the_named_day() {
        let today = day("2026-11-27");
        let period = |days: &str, from: &str, to: &str| {
            let query = CostQuery {
                days: days.into(),
                from: from.into(),
                to: to.into(),
                ..CostQuery::default()
            };
            let period = query.period(today);
            (period.first.to_string(), period.last.to_string())
        };
        assert_eq!(period("7", "", ""), ("2026-11-21".into(), "2026-11-27".into()));
        assert_eq!(period("x", "", "").0, "2026-10-29");
        assert_eq!(period("7", "2026-11-01", ""), ("2026-11-01".into(), "2026-11-27".into()));
        assert_eq!(period("", "2026-12-01", "2026-11-02").0, "2026-11-02");
        assert_eq!(period("", "1990-01-01", "2026-11-02").0, "2025-11-02");
    }

    #[test]
    fn the_last_week_goes_from_monday_to_sunday() {
        let [(_, yesterday), (_, week)] = named_periods(day("2026-11-27"));
        assert_eq!(yesterday.first, day("2026-11-26"));
        assert_eq!((week.first, week.last), (day("2026-11-16"), day("2026-11-22")));
    }

    #[test]
    fn links_keep_the_filters_and_name_the_value() {
        let query = CostQuery { days: "7".into(), by: "agent".into(), ..CostQuery::default() };
        assert_eq!(
            query.calls_link(Dimension::Agent, Some("a&b"), Some("2026-11-02")),
            "/cost/calls?from=2026-11-02&to=2026-11-02&agent=a%26b"
        );
        assert_eq!(
            query.calls_link(Dimension::User, None, None),
            "/cost/calls?days=7&no_user=true"
        );
        assert_eq!(query.link("/cost", &[("days", "30")]), "/cost?by=agent&days=30");
    }
}
