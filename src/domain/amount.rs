//! Money and tokens, and the rule that decides whether there is enough of both.

use crate::domain::class::{Class, Classify, Kind};
use std::{
    iter::Sum,
    ops::{Add, AddAssign},
};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Money is in micro-units: 1,000,000 are one unit of the configured currency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Amount {
    pub micros: i64,
    pub tokens: i64,
}

/// Null: no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limit {
    #[schema(minimum = 1)]
    pub micros: Option<i64>,
    #[schema(minimum = 1)]
    pub tokens: Option<i64>,
}

/// The owner of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    Campaign(Uuid),
    Task,
    /// The budget for experiments of a campaign.
    Experiments(Uuid),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Money,
    Tokens,
}

/// A call that a budget refuses, with the numbers behind the refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{}", self.describe())]
pub struct Refusal {
    pub owner: Owner,
    pub unit: Unit,
    pub limit: i64,
    pub spent: i64,
    /// Set aside for other turns that run now.
    pub reserved: i64,
    pub needed: i64,
}

impl Refusal {
    pub const CLASS: Class = Class::of(Kind::Conflict, "budget_exceeded");
}

impl Classify for Refusal {
    fn class(&self) -> Class {
        Class { retryable: self.may_pass_later(), ..Self::CLASS }
    }
}

/// Returns true if the stored error of a task is a refusal by its own budget. A retry keeps that budget, and fails again.
pub fn is_of_task_budget(error: &str) -> bool {
    error.contains("the budget of the task ")
}

/// Error for a text that is not an amount of money.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid amount of money `{0}`: use for example 5 or 5.25, with at most 6 decimals")]
pub struct MoneyError(String);

/// Parses money as people write it, into micro-units.
pub fn parse_money(text: &str) -> Result<i64, MoneyError> {
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let fits = !whole.is_empty() && digits(whole) && digits(decimals);
    let micros = match fits && (1..=6).contains(&decimals.len()) {
        true => format!("{whole}{decimals:0<6}").parse().ok(),
        false => None,
    };
    micros.ok_or_else(|| MoneyError(text.to_owned()))
}

impl Classify for MoneyError {
    fn class(&self) -> Class {
        Class::of(Kind::Invalid, "bad_amount")
    }
}

/// Formats micro-units as people write money.
pub fn format_money(micros: i64) -> String {
    let (whole, rest) = (micros / 1_000_000, micros % 1_000_000);
    // Calls cost fractions of a cent: two decimals would show 0.00.
    let digits = format!("{rest:06}");
    let trimmed = digits.trim_end_matches('0');
    format!("{whole}.{trimmed:0<2}")
}

/// Rounds up to two significant digits, which people can read and type.
fn round_up(value: i64) -> i64 {
    let exponent = value.max(1).ilog10().saturating_sub(1);
    let step = 10_i64.pow(exponent);
    // A multiple above the largest value does not exist.
    (value / step + i64::from(value % step != 0)).checked_mul(step).unwrap_or(value)
}

impl Amount {
    pub const ZERO: Self = Self { micros: 0, tokens: 0 };

    pub fn is_zero(self) -> bool {
        self == Self::ZERO
    }

    /// Subtracts `other`. The result is never negative.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self {
            micros: self.micros.saturating_sub(other.micros).max(0),
            tokens: self.tokens.saturating_sub(other.tokens).max(0),
        }
    }

    fn of(self, unit: Unit) -> i64 {
        match unit {
            Unit::Money => self.micros,
            Unit::Tokens => self.tokens,
        }
    }
}

impl Limit {
    /// Checks that `needed` fits beside the amounts that are spent and reserved.
    pub fn check(
        self,
        owner: Owner,
        spent: Amount,
        reserved: Amount,
        needed: Amount,
    ) -> Result<(), Refusal> {
        let money = (Unit::Money, self.micros, spent.micros, reserved.micros, needed.micros);
        let tokens = (Unit::Tokens, self.tokens, spent.tokens, reserved.tokens, needed.tokens);
        for (unit, limit, spent, reserved, needed) in [money, tokens] {
            if let Some(limit) = limit
                && spent.saturating_add(reserved).saturating_add(needed) > limit
            {
                return Err(Refusal { owner, unit, limit, spent, reserved, needed });
            }
        }
        Ok(())
    }
}

impl Refusal {
    /// Returns true if the call may fit later: running turns may cost less than was reserved for them. Otherwise only a higher limit helps.
    pub fn may_pass_later(&self) -> bool {
        self.reserved > 0 && self.spent.saturating_add(self.needed) <= self.limit
    }

    /// Restates the refusal for a running turn. `own` is the turn's part of the reserved amount, `spent` is what it has used of that part,
    /// and `ahead` is what its next call needs.
    pub fn of_turn(self, own: Amount, spent: Amount, ahead: Amount) -> Self {
        let unit = self.unit;
        Self {
            spent: self.spent.saturating_add(spent.of(unit)),
            reserved: self.reserved.saturating_sub(own.of(unit)).max(0),
            needed: ahead.of(unit),
            ..self
        }
    }

    /// Formats the refusal for a turn that is postponed and retried automatically.
    pub fn describe_delay(&self) -> String {
        format!("{}; it is tried again when running turns have ended", self.describe_amounts())
    }

    /// Computes a limit that allows the call, rounded up. It is above the current one.
    fn sufficient_limit(&self) -> i64 {
        let sum = self.spent.saturating_add(self.reserved).saturating_add(self.needed);
        round_up(sum.max(self.limit.saturating_add(1)))
    }

    fn describe(&self) -> String {
        let raise = match (self.owner, self.unit) {
            (Owner::Campaign(id), Unit::Tokens) => format!(
                "raise the limit with `dalsegno campaign budget {id} --tokens {}`, or remove it with --no-tokens",
                self.sufficient_limit()
            ),
            (Owner::Campaign(id), Unit::Money) => format!(
                "raise the limit with `dalsegno campaign budget {id} --money {}`, or remove it with --no-money",
                format_money(self.sufficient_limit())
            ),
            (Owner::Experiments(id), _) => format!(
                "raise the limit with `dalsegno campaign budget {id} --experiments {}`",
                format_money(self.sufficient_limit())
            ),
            (Owner::Task, unit) => {
                let key = match unit {
                    Unit::Tokens => "task_budget_tokens",
                    Unit::Money => "task_budget",
                };
                format!(
                    "raise `{key}` in the agent's file if the budget comes from there, then add the task again with a larger budget (`dalsegno flow retry` for a step of a flow): a retry of the job keeps the budget"
                )
            }
        };
        match self.may_pass_later() {
            true => format!(
                "{}; wait until running turns have ended, or {raise}",
                self.describe_amounts()
            ),
            false => format!("{}; {raise}", self.describe_amounts()),
        }
    }

    fn describe_amounts(&self) -> String {
        let Self { limit, spent, reserved, needed, .. } = *self;
        let say = |value: i64| match self.unit {
            Unit::Tokens => format!("{value} tokens"),
            Unit::Money => format_money(value),
        };
        let owner = match self.owner {
            Owner::Campaign(_) => "campaign",
            Owner::Task => "task",
            Owner::Experiments(_) => "campaign for experiments",
        };
        let spent_words = format!("{} of {} are spent", say(spent), say(limit));
        if spent >= limit {
            return format!("the budget of the {owner} is used up: {spent_words}");
        }
        let reserved_words = match reserved {
            0 => String::new(),
            _ => format!(", {} are set aside for running turns", say(reserved)),
        };
        format!(
            "the budget of the {owner} does not allow the call: {spent_words}{reserved_words}, and up to {} are needed",
            say(needed),
        )
    }
}

impl Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            micros: self.micros.saturating_add(other.micros),
            tokens: self.tokens.saturating_add(other.tokens),
        }
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAMPAIGN: Uuid = Uuid::from_u128(7);

    #[test]
    fn a_refused_budget_is_retryable_only_while_turns_run() {
        let refusal = Refusal {
            owner: Owner::Campaign(CAMPAIGN),
            unit: Unit::Tokens,
            limit: 100,
            spent: 50,
            reserved: 40,
            needed: 20,
        };
        assert!(refusal.class().retryable);
        assert!(!Refusal { spent: 100, ..refusal }.class().retryable);
    }

    fn tokens(tokens: i64) -> Amount {
        Amount { micros: 0, tokens }
    }

    #[test]
    fn a_limit_counts_reservations() {
        let limit = Limit { micros: None, tokens: Some(100) };
        let admit = |spent, reserved, needed| {
            limit.check(Owner::Campaign(CAMPAIGN), tokens(spent), tokens(reserved), tokens(needed))
        };
        assert_eq!(admit(50, 20, 30), Ok(()));
        let refusal = admit(50, 21, 30).unwrap_err();
        assert!(refusal.may_pass_later());
        assert!(!admit(80, 20, 30).unwrap_err().may_pass_later());
        assert!(!admit(80, 0, 30).unwrap_err().may_pass_later());
        assert_eq!(
            Limit::default().check(Owner::Task, tokens(1), tokens(1), tokens(i64::MAX)),
            Ok(())
        );
    }

    #[test]
    fn money_is_parsed_exactly_or_refused() {
        for (text, micros) in [("5", 5_000_000), ("5.25", 5_250_000), ("0.000001", 1), ("0.0", 0)] {
            assert_eq!(parse_money(text), Ok(micros));
        }
        let huge = "9".repeat(20);
        for text in ["", ".", "5.", ".5", "-1", "1e3", "0.0000001", "5,25", "1 000", "+5", &huge] {
            assert!(parse_money(text).is_err(), "{text}");
        }
        assert_eq!(format_money(5_250_000), "5.25");
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
        assert!(!is_of_task_budget(&words), "{words}");
        let words = limit.check(Owner::Task, spent, Amount::ZERO, needed).unwrap_err().to_string();
        assert!(is_of_task_budget(&words) && words.contains("keeps the budget"), "{words}");
        assert!(words.contains("raise `task_budget` in the agent's file"), "{words}");
    }

    #[test]
    fn an_advised_limit_is_above_the_current_one_and_pays_for_the_call() {
        let refusal = Refusal {
            owner: Owner::Campaign(CAMPAIGN),
            unit: Unit::Tokens,
            limit: 200_000,
            spent: 196_103,
            reserved: 0,
            needed: 7_293,
        };
        let advises = |refusal: Refusal, words: &str| {
            let text = refusal.to_string();
            assert!(text.contains(words), "{text}");
        };
        advises(refusal, "--tokens 210000`");
        advises(Refusal { reserved: 16_000, ..refusal }, "--tokens 220000`");
        advises(Refusal { limit: 99, spent: 99, needed: 1, ..refusal }, "--tokens 100`");
        let of_turn = refusal.of_turn(Amount::ZERO, Amount::ZERO, Amount::ZERO);
        advises(of_turn, "--tokens 210000`");
        let money = Refusal { unit: Unit::Money, limit: 50_000, spent: 50_000, ..refusal };
        advises(Refusal { needed: 1, ..money }, "--money 0.051`");
        assert_eq!(round_up(i64::MAX), i64::MAX);
    }

    #[test]
    fn the_advice_of_a_refusal_matches_its_amounts() {
        let refusal = Refusal {
            owner: Owner::Campaign(CAMPAIGN),
            unit: Unit::Tokens,
            limit: 100,
            spent: 60,
            reserved: 30,
            needed: 20,
        };
        let words = refusal.to_string();
        let sums = "60 tokens of 100 tokens are spent, 30 tokens are set aside for running turns, and up to 20 tokens are needed; wait";
        assert!(words.contains(sums), "{words}");
        assert!(
            refusal
                .describe_delay()
                .ends_with("20 tokens are needed; it is tried again when running turns have ended")
        );
        // This turn holds all of the 30 reserved tokens and has spent 25 of them: waiting cannot help.
        let tokens = |tokens| Amount { micros: 0, tokens };
        let own = refusal.of_turn(tokens(30), tokens(25), tokens(20));
        assert!(!own.may_pass_later(), "{own:?}");
        let words = own.to_string();
        assert!(
            words.contains(
                "85 tokens of 100 tokens are spent, and up to 20 tokens are needed; raise"
            ),
            "{words}"
        );
        let used_up = Refusal { spent: 110, ..refusal }.to_string();
        assert!(
            used_up.contains("is used up: 110 tokens of 100 tokens are spent; raise"),
            "{used_up}"
        );
    }
}
