//! Money and tokens, and the rule that decides whether there is enough of both.

mod balance;
mod refusal;

use std::{
    iter::Sum,
    ops::{Add, AddAssign},
};

use serde::{Deserialize, Serialize};

pub use self::{
    balance::Balance,
    refusal::{OnLimit, Owner, Refusal, budget_subject},
};
use crate::domain::class::{Class, Classify, Kind};

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Money,
    Tokens,
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
        let money = (Unit::Money, self.micros);
        let tokens = (Unit::Tokens, self.tokens);
        for (unit, limit) in [money, tokens] {
            let (spent, reserved, call) = (spent.of(unit), reserved.of(unit), needed);
            let (on_limit, needed) = (OnLimit::default(), needed.of(unit));
            if let Some(limit) = limit
                && spent.saturating_add(reserved).saturating_add(needed) > limit
            {
                let ends = None;
                return Err(Refusal {
                    owner,
                    unit,
                    limit,
                    spent,
                    reserved,
                    needed,
                    call,
                    on_limit,
                    ends,
                });
            }
        }
        Ok(())
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
    use uuid::Uuid;

    use super::*;

    fn tokens(tokens: i64) -> Amount {
        Amount { micros: 0, tokens }
    }

    #[test]
    fn a_limit_counts_reservations() {
        let limit = Limit { micros: None, tokens: Some(100) };
        let owner = || Owner::Campaign(Uuid::from_u128(7));
        let admit = |spent, reserved, needed| {
            limit.check(owner(), tokens(spent), tokens(reserved), tokens(needed))
        };
        assert_eq!(admit(50, 20, 30), Ok(()));
        let refusal = admit(50, 21, 30).unwrap_err();
        assert!(refusal.may_pass_later());
        assert!(!admit(80, 20, 30).unwrap_err().may_pass_later());
        assert!(!admit(80, 0, 30).unwrap_err().may_pass_later());
        let unlimited = Limit::default();
        assert_eq!(unlimited.check(owner(), tokens(1), tokens(1), tokens(i64::MAX)), Ok(()));
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
}
