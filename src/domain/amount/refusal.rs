//! Calls that a budget refuses: the numbers behind it, and the next step.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Amount, Unit, format_money};
use crate::domain::{
    class::{Class, Classify, Kind},
    text::quote_for_shell,
};

/// The owner of a budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "owner", content = "key", rename_all = "snake_case")]
pub enum Owner {
    Campaign(Uuid),
    Task(Uuid),
    /// An agent in all campaigns, by its name.
    Agent(Box<str>),
    /// A user in all campaigns, by the name.
    User(Box<str>),
    /// A day of the service: `2026-11-25`.
    Day(Box<str>),
    /// The budget for reruns of a campaign.
    Experiments(Uuid),
}

/// Effect of a hard limit on the tasks that reach it.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum OnLimit {
    /// They wait until the budget has space.
    #[default]
    Wait,
    Fail,
}

/// A call that a budget refuses, with the numbers behind the refusal. Tasks that failed at a budget store it (`tasks.budget_refusal`): a new
/// field needs a default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{}", self.describe())]
pub struct Refusal {
    #[serde(flatten)]
    pub owner: Owner,
    pub unit: Unit,
    pub limit: i64,
    pub spent: i64,
    /// Reserved for other turns that run now.
    pub reserved: i64,
    pub needed: i64,
    /// The needs of the call in both units. Functions of the database leave it out: their caller knows it.
    #[serde(default)]
    pub call: Amount,
    pub on_limit: OnLimit,
    /// End of the budget's period: `2026-11-26 00:00 Europe/Berlin`. `None`: it has no period.
    pub ends: Option<Box<str>>,
}

impl OnLimit {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Fail => "fail",
        }
    }
}

impl Owner {
    /// Returns the owner and the key of the budget's row.
    pub fn columns(&self) -> (&'static str, String) {
        match self {
            Self::Campaign(id) => ("campaign", id.to_string()),
            Self::Task(id) => ("task", id.to_string()),
            Self::Agent(name) => ("agent", name.to_string()),
            Self::User(name) => ("user", name.to_string()),
            Self::Day(_) => ("day", String::new()),
            Self::Experiments(id) => ("experiments", id.to_string()),
        }
    }

    /// Formats the owner and the key: `agent/writer`, `day`.
    pub fn subject(&self) -> String {
        let (owner, key) = self.columns();
        budget_subject(owner, &key)
    }

    pub fn describe(&self) -> String {
        match self {
            Self::Campaign(_) => "the budget of the campaign".to_owned(),
            Self::Task(_) => "the budget of the task".to_owned(),
            Self::Agent(name) => format!("the budget of the agent `{name}`"),
            Self::User(name) => format!("the budget of the user `{name}`"),
            Self::Day(day) => format!("the budget of the day {day}"),
            Self::Experiments(_) => "the budget of the campaign for reruns".to_owned(),
        }
    }

    /// Formats the command that changes the limit, up to its flags.
    fn command(&self) -> String {
        match self {
            Self::Campaign(id) | Self::Experiments(id) => format!("dalsegno campaign budget {id}"),
            Self::Task(id) => format!("dalsegno task budget {id}"),
            Self::Agent(name) => format!("dalsegno budget set agent {}", quote_for_shell(name)),
            Self::User(name) => format!("dalsegno budget set user {}", quote_for_shell(name)),
            Self::Day(_) => "dalsegno budget set day".to_owned(),
        }
    }
}

/// Formats the owner and the key of a budget: `agent/writer`, `day`.
pub fn budget_subject(owner: &str, key: &str) -> String {
    match key.is_empty() {
        true => owner.to_owned(),
        false => format!("{owner}/{key}"),
    }
}

impl Refusal {
    pub const CLASS: Class = Class::of(Kind::Conflict, "budget_exceeded");

    /// Returns true if the call may fit later: running turns may cost less than was reserved for them. Otherwise only a higher limit or
    /// another period helps.
    pub fn may_pass_later(&self) -> bool {
        self.reserved > 0 && self.spent.saturating_add(self.needed) <= self.limit
    }

    /// Returns true if the task waits for space in the budget. A call that needs more than the whole limit would wait for ever.
    pub fn waits(&self) -> bool {
        let has_waits = !matches!(self.owner, Owner::Experiments(_));
        has_waits && self.on_limit == OnLimit::Wait && self.needed <= self.limit
    }

    /// Restates the refusal for a running turn. `own` is the turn's part of the reserved amount, `spent` is what it has used of that part,
    /// and `ahead` is what its next call needs.
    pub fn of_turn(self, own: Amount, spent: Amount, ahead: Amount) -> Self {
        let unit = self.unit;
        Self {
            spent: self.spent.saturating_add(spent.of(unit)),
            reserved: self.reserved.saturating_sub(own.of(unit)).max(0),
            needed: ahead.of(unit),
            call: ahead,
            ..self
        }
    }

    /// Formats the refusal for a turn that is postponed and retried automatically.
    pub fn describe_delay(&self) -> String {
        format!("{}; it is tried again when running turns have ended", self.amounts())
    }

    /// Formats the refusal for a task that waits for space in the budget.
    pub fn describe_wait(&self) -> String {
        format!("waiting: budget: {}; it continues {}", self.amounts(), self.describe_end())
    }

    /// Formats everything that lets a waiting task go on.
    pub fn describe_end(&self) -> String {
        let later = self.may_pass_later().then(|| "when running turns have ended, or ".to_owned());
        let ends = self.ends.as_ref().map(|ends| format!("at {ends}, or "));
        format!(
            "{}{}when {} raises the limit",
            later.unwrap_or_default(),
            ends.unwrap_or_default(),
            self.raise_command(),
        )
    }

    /// Formats the rest of the budget and the needs of the call: `0.02 of 0.05 are left, and the next call may need 0.04`.
    pub fn describe_left(&self) -> String {
        let left = self.limit.saturating_sub(self.spent).saturating_sub(self.reserved);
        let (limit, needed) = (self.format(self.limit), self.format(self.needed));
        let rest = match left {
            ..=0 => format!("nothing of {limit} is left"),
            left => format!("{} of {limit} are left", self.format(left)),
        };
        format!("{rest}, and the next call may need {needed}")
    }

    /// Formats what is gone from the budget: `0.03 are spent, and 0.01 are reserved for running turns`.
    pub fn describe_use(&self) -> String {
        let spent = format!("{} are spent", self.format(self.spent));
        match self.reserved {
            0 => spent,
            n => format!("{spent}, and {} are reserved for running turns", self.format(n)),
        }
    }

    fn format(&self, value: i64) -> String {
        match self.unit {
            Unit::Tokens => format!("{value} tokens"),
            Unit::Money => format_money(value),
        }
    }

    /// Computes a limit that allows the call, rounded up. It is above the current one.
    pub fn sufficient_limit(&self) -> i64 {
        let sum = self.spent.saturating_add(self.reserved).saturating_add(self.needed);
        round_up(sum.max(self.limit.saturating_add(1)))
    }

    /// Formats the command that raises the limit, in backticks.
    pub fn raise_command(&self) -> String {
        let flag = match (&self.owner, self.unit) {
            (Owner::Experiments(_), _) => {
                format!("--experiments {}", format_money(self.sufficient_limit()))
            }
            (_, Unit::Tokens) => format!("--tokens {}", self.sufficient_limit()),
            (_, Unit::Money) => format!("--money {}", format_money(self.sufficient_limit())),
        };
        format!("`{} {flag}`", self.owner.command())
    }

    fn describe(&self) -> String {
        let remove = match (&self.owner, self.unit) {
            (Owner::Experiments(_), _) => "",
            (_, Unit::Tokens) => ", or remove it with --no-tokens",
            (_, Unit::Money) => ", or remove it with --no-money",
        };
        let raise = format!("raise the limit with {}{remove}", self.raise_command());
        match self.may_pass_later() {
            true => format!("{}; wait until running turns have ended, or {raise}", self.amounts()),
            false => format!("{}; {raise}", self.amounts()),
        }
    }

    /// Formats the amounts, without a next step.
    pub fn amounts(&self) -> String {
        let Self { limit, spent, reserved, needed, .. } = *self;
        let say = |value: i64| self.format(value);
        let budget = self.owner.describe();
        if needed > limit {
            let verb = match self.unit {
                Unit::Money => "cost",
                Unit::Tokens => "use",
            };
            let spent_words = match spent {
                0 => String::new(),
                n => format!(", of which {} are spent", say(n)),
            };
            return format!(
                "this call may {verb} up to {}; the whole limit of {budget} is {}{spent_words}",
                say(needed),
                say(limit),
            );
        }
        let spent_words = format!("{} of {} are spent", say(spent), say(limit));
        if spent >= limit {
            return format!("{budget} is used up: {spent_words}");
        }
        let reserved_words = match reserved {
            0 => String::new(),
            _ => format!(", {} are reserved for running turns", say(reserved)),
        };
        format!(
            "{budget} does not allow the call: {spent_words}{reserved_words}, and up to {} are needed",
            say(needed),
        )
    }
}

impl Classify for Refusal {
    fn class(&self) -> Class {
        Class { retryable: self.may_pass_later(), ..Self::CLASS }
    }
}

/// Rounds up to two significant digits, which people can read and type.
fn round_up(value: i64) -> i64 {
    let exponent = value.max(1).ilog10().saturating_sub(1);
    let step = 10_i64.pow(exponent);
    // A multiple above the largest value does not exist.
    (value / step + i64::from(value % step != 0)).checked_mul(step).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::amount::Limit;

    const CAMPAIGN: Uuid = Uuid::from_u128(7);

    fn refusal(limit: i64, spent: i64, reserved: i64, needed: i64) -> Refusal {
        Refusal {
            owner: Owner::Campaign(CAMPAIGN),
            unit: Unit::Tokens,
            limit,
            spent,
            reserved,
            needed,
            call: tokens(needed),
            on_limit: OnLimit::Wait,
            ends: None,
        }
    }

    fn tokens(tokens: i64) -> Amount {
        Amount { micros: 0, tokens }
    }

    #[test]
    fn a_refused_budget_is_retryable_only_while_turns_run() {
        assert!(refusal(100, 50, 40, 20).class().retryable);
        assert!(!refusal(100, 100, 40, 20).class().retryable);
    }

    #[test]
    fn a_task_waits_unless_its_call_exceeds_the_whole_limit_or_the_budget_lets_it_fail() {
        assert!(refusal(100, 100, 0, 100).waits());
        assert!(!refusal(100, 0, 0, 101).waits());
        assert!(!Refusal { on_limit: OnLimit::Fail, ..refusal(100, 100, 0, 1) }.waits());
        let words = refusal(100, 0, 0, 101).to_string();
        let larger = "this call may use up to 101 tokens; the whole limit of the budget of the campaign is 100 tokens; raise";
        assert!(words.starts_with(larger), "{words}");
    }

    #[test]
    fn a_wait_names_everything_that_ends_it() {
        let used_up = refusal(100, 100, 0, 10);
        let end = format!(
            "are spent; it continues when `dalsegno campaign budget {CAMPAIGN} --tokens 110` raises the limit"
        );
        let words = used_up.describe_wait();
        assert!(
            words.starts_with("waiting: budget: the budget of the campaign is used up"),
            "{words}"
        );
        assert!(words.ends_with(&end), "{words}");
        let day = Refusal {
            owner: Owner::Day("2026-11-25".into()),
            unit: Unit::Money,
            ends: Some("2026-11-26 00:00 Europe/Berlin".into()),
            ..refusal(2_000_000, 1_900_000, 90_000, 100_000)
        };
        let words = day.describe_wait();
        assert_eq!(
            words,
            "waiting: budget: the budget of the day 2026-11-25 does not allow the call: 1.90 of 2.00 are spent, 0.09 are reserved for running \
             turns, and up to 0.10 are needed; it continues when running turns have ended, or at 2026-11-26 00:00 Europe/Berlin, or when \
             `dalsegno budget set day --money 2.10` raises the limit"
        );
    }

    #[test]
    fn a_refusal_names_amounts_and_the_next_step() {
        let limit = Limit { micros: Some(5_000_000), tokens: None };
        let spent = Amount { micros: 4_900_000, tokens: 0 };
        let needed = Amount { micros: 120_500, tokens: 0 };
        let words = limit
            .check(Owner::Campaign(CAMPAIGN), spent, Amount::ZERO, needed)
            .unwrap_err()
            .to_string();
        assert!(words.contains("4.90 of 5.00 are spent"), "{words}");
        assert!(words.contains("0.1205 are needed"), "{words}");
        assert!(
            words.ends_with("--money 5.10`, or remove it with --no-money")
                && words.contains(&format!("`dalsegno campaign budget {CAMPAIGN} ")),
            "{words}"
        );
        let task = Owner::Task(CAMPAIGN);
        let words = limit.check(task, spent, Amount::ZERO, needed).unwrap_err().to_string();
        let raise = format!("raise the limit with `dalsegno task budget {CAMPAIGN} --money 5.10`");
        assert!(words.contains(&raise), "{words}");
    }

    #[test]
    fn an_advised_limit_is_above_the_current_one_and_pays_for_the_call() {
        let refusal = refusal(200_000, 196_103, 0, 7_293);
        let advises = |refusal: &Refusal, words: &str| {
            let text = refusal.to_string();
            assert!(text.contains(words), "{text}");
        };
        advises(&refusal, "--tokens 210000`");
        advises(&Refusal { reserved: 16_000, ..refusal.clone() }, "--tokens 220000`");
        advises(&Refusal { limit: 99, spent: 99, needed: 1, ..refusal.clone() }, "--tokens 100`");
        let money = Refusal { unit: Unit::Money, limit: 50_000, spent: 50_000, ..refusal.clone() };
        advises(&Refusal { needed: 1, ..money }, "--money 0.051`");
        let of_turn = refusal.of_turn(Amount::ZERO, Amount::ZERO, Amount::ZERO);
        advises(&of_turn, "--tokens 210000`");
        assert_eq!(round_up(i64::MAX), i64::MAX);
    }

    #[test]
    fn the_advice_of_a_refusal_matches_its_amounts() {
        let refusal = refusal(100, 60, 30, 20);
        let words = refusal.to_string();
        let sums = "60 tokens of 100 tokens are spent, 30 tokens are reserved for running turns, and up to 20 tokens are needed; wait";
        assert!(words.contains(sums), "{words}");
        assert!(
            refusal
                .describe_delay()
                .ends_with("20 tokens are needed; it is tried again when running turns have ended")
        );
        let used_up = Refusal { spent: 110, ..refusal.clone() }.to_string();
        assert!(
            used_up.contains("is used up: 110 tokens of 100 tokens are spent; raise"),
            "{used_up}"
        );
        // This turn holds all of the 30 reserved tokens and has spent 25 of them: waiting cannot help.
        let own = refusal.of_turn(tokens(30), tokens(25), tokens(20));
        assert!(!own.may_pass_later(), "{own:?}");
        let words = own.to_string();
        assert!(
            words.contains(
                "85 tokens of 100 tokens are spent, and up to 20 tokens are needed; raise"
            ),
            "{words}"
        );
    }
}
